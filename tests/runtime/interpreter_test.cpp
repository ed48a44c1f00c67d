// The interpreter on hand-written Programs, against the reference.
#include "support/programs.hpp"

#include <baton/base/error.hpp>
#include <baton/runtime/interpreter.hpp>
#include <baton/runtime/reference.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <cstring>
#include <vector>

using namespace baton;
using namespace baton::runtime;
using ir::Buffer;

namespace {

/// Input and output memory of all ranks, filled; in place where asked for.
struct Memory {
    std::vector<std::vector<char>> inputs, outputs;
    std::vector<RankBuffers> buffers;
    Memory(const ir::Collective& c, const CallArguments& a, bool in_place, std::uint64_t seed) {
        for (int r = 0; r < c.ranks; ++r) {
            const auto in = static_cast<std::size_t>(buffer_bytes(c, r, Buffer::input, a.count, a.type));
            const auto out = static_cast<std::size_t>(buffer_bytes(c, r, Buffer::output, a.count, a.type));
            const auto offset = in_place ? in_place_offset(c, r, a.count) : std::nullopt;
            outputs.emplace_back(std::max(out, offset ? in : 0), char(0x5a));
            inputs.emplace_back(in);
            char* output = outputs.back().data();
            char* input = inputs.back().data();
            if (offset) {
                const std::int64_t shift = *offset * ir::size_of(a.type);
                if (shift < 0) output -= shift;
                input = output + shift;
            }
            fill_exact(a, c.ranks, r, seed, input, static_cast<std::int64_t>(in) / ir::size_of(a.type));
            buffers.push_back({in == 0 ? nullptr : input, out == 0 ? nullptr : output});
        }
    }
};

void check_result(const ir::Program& program, const CallArguments& a, bool in_place,
                  const InterpretOptions& options = {}) {
    const ir::Collective& c = program.collective;
    Memory memory(c, a, in_place, 3), expected(c, a, false, 3);
    Interpreter(program).run(a, memory.buffers, options);
    reference(c, a, expected.buffers);
    for (int r = 0; r < c.ranks; ++r) {
        const auto found = compare(a.type, memory.buffers[r].output, expected.buffers[r].output,
                                   buffer_elements(c, r, Buffer::output, a.count));
        CHECK_MESSAGE(!found, fmt::format("rank {}: {}", r, found ? found->words : ""));
    }
}

std::string error_of(const std::function<void()>& run) {
    try {
        run();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a ring all-reduce gives the reference result for any count and tiles, in place and out") {
    for (const int ranks : {2, 3, 5}) {
        const ir::Program program = test::ring_all_reduce_program(ranks);
        for (const std::int64_t count : {0, 1, 7, 64, 1001})
            for (const std::int64_t tiles : {1, 2, 3, 7})
                for (const bool in_place : {false, true}) check_result(program, {count}, in_place, {tiles});
    }
}

TEST_CASE("every mode of a connection moves the same data") {
    for (const auto mode : {ir::Mode::staged, ir::Mode::put, ir::Mode::get}) {
        const ir::Program program = test::direct_all_gather(4, mode, 2);
        for (const bool in_place : {false, true})
            for (const std::uint64_t seed : {0, 1, 2, 3})
                check_result(program, {37, ir::DataType::u8}, in_place, {2, 0, seed});
    }
}

TEST_CASE("one instruction reduces many sources in their order") {
    const ir::Program program = test::one_shot_all_reduce_program(5);
    check_result(program, {33, ir::DataType::f16, ir::ReduceOp::max}, false);
    check_result(program, {33, ir::DataType::i8, ir::ReduceOp::avg}, true);
}

TEST_CASE("a deadlock is reported with the instructions that wait for each other") {
    const ir::Program program = test::ring_all_reduce_program(3, 1);
    const CallArguments arguments{4};
    Memory memory(program.collective, arguments, false, 1);
    const std::string words = error_of([&] { Interpreter(program).run(arguments, memory.buffers); });
    CHECK(words.find("deadlock in tile 0") != std::string::npos);
    CHECK(words.find("waits for a free slot of connection") != std::string::npos);
    // The option replaces the slots of the program.
    check_result(program, arguments, false, {1, 2});
}

TEST_CASE("a missing token shows as wrong data under some interleaving") {
    ir::Program program = test::one_shot_all_reduce_program(4);
    for (auto& rank : program.ranks)
        for (auto& block : rank.threadblocks)
            for (auto& instruction : block.instructions) instruction.needs = 0;
    const CallArguments arguments{16};
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Memory memory(program.collective, arguments, true, 3),
            expected(program.collective, arguments, false, 3);
        Interpreter(program).run(arguments, memory.buffers, {1, 0, seed});
        reference(program.collective, arguments, expected.buffers);
        for (int r = 0; r < 4; ++r)
            if (compare(arguments.type, memory.buffers[r].output, expected.buffers[r].output, 16)) ++wrong;
    }
    CHECK(wrong > 0);
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
        check_result(test::one_shot_all_reduce_program(4), arguments, true, {1, 0, seed});
}

TEST_CASE("arguments without meaning are errors in words") {
    const ir::Program program = test::ring_all_reduce_program(2);
    const auto run = [&](const CallArguments& a, const InterpretOptions& options = {}) {
        Memory memory(program.collective, {8, ir::DataType::f64}, false, 1);
        return error_of([&] { Interpreter(program).run(a, memory.buffers, options); });
    };
    CHECK(run({4, ir::DataType::f32, ir::ReduceOp::maxloc}).find("maxloc") != std::string::npos);
    CHECK(run({-1}).find("must not be negative") != std::string::npos);
    CHECK(run({4, ir::DataType::f16, ir::ReduceOp::avg}).find("lower it with --wide") != std::string::npos);
    CHECK(run({4}, {0}).find("tiles must be 1 to") != std::string::npos);
    CHECK(run({4}, {1, -1}).find("slots") != std::string::npos);
    CHECK(run({INT64_MAX}).find("too large") != std::string::npos);

    std::vector<float> data(16);
    const auto buffers_error = [&](std::vector<RankBuffers> buffers) {
        return error_of([&] { Interpreter(program).run({4}, buffers); });
    };
    CHECK(buffers_error({{data.data(), data.data() + 4}}).find("buffers of 1 ranks") != std::string::npos);
    CHECK(buffers_error({{nullptr, data.data()}, {data.data() + 4, data.data() + 8}}) ==
          "rank 0: the input of 16 bytes is null");
    CHECK(buffers_error({{data.data(), data.data() + 1}, {data.data() + 8, data.data() + 8}})
              .find("overlap in part") != std::string::npos);
}
