// Collectives beyond the plain ones: groups, relays, weights, custom places; and operands that only
// hand-written Programs have: remote places, switch groups, inputs that are clobbered.
#include "support/collective_run.hpp"
#include "support/small_algorithms.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>

using namespace baton;
using namespace baton::runtime;
using ir::CollectiveKind;

namespace {

void check_all(const ir::Algorithm& algorithm, ir::ReduceOp op = ir::ReduceOp::sum) {
    for (const auto mode :
         {codegen::ModePreference::staged, codegen::ModePreference::put, codegen::ModePreference::get}) {
        codegen::LowerOptions options;
        options.mode = mode;
        Interpreter interpreter(codegen::lower(algorithm, options));
        for (const std::int64_t count : {0, 1, 7, 100, 1001})
            for (const bool in_place : {false, true}) {
                const CallArguments arguments{count, ir::DataType::i32, op};
                const InterpretOptions how{3, 0, static_cast<std::uint64_t>(count)};
                CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, how) == "",
                              test::words(interpreter.program(), arguments, in_place, how));
            }
    }
}

ir::Program program_of(const std::string& text) { return ir::parse_program(text); }

}  // namespace

TEST_CASE("groups run at once, and avg divides by the size of the group") {
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce,
                            CollectiveKind::all_to_all, CollectiveKind::gather, CollectiveKind::scatter}) {
        synth::PatternOptions options;
        options.collective.kind = kind;
        options.collective.ranks = 9;
        options.collective.groups = {{8, 1, 4}, {0, 2}, {5, 3, 7}};  // rank 6 is a relay
        options.collective.root = 1;
        for (const auto& pattern : synth::fixed_patterns()) {
            if (!synth::serves(pattern.name, options)) continue;
            const auto algorithm = synth::fixed_pattern(pattern.name, options);
            check_all(algorithm);
            if (ir::reduces(kind)) check_all(algorithm, ir::ReduceOp::avg);
        }
    }
}

TEST_CASE("a relay holds data in scratch only, and calls with null buffers") {
    using enum ir::Buffer;
    ir::Collective c = test::collective(CollectiveKind::broadcast, 3, 2);
    c.groups = {{0, 2}};
    ir::AlgorithmBuilder b("through a relay", c);
    b.copy({0, input, 0}, {0, output, 0}, 2)
        .send({0, input, 0}, {1, scratch, 0}, 2)
        .send({1, scratch, 0}, {2, output, 0}, 2);
    const auto algorithm = b.build();
    const test::Buffers buffers(c, {5}, false);
    CHECK(buffers.pointers()[1].input == nullptr);
    CHECK(buffers.pointers()[1].output == nullptr);
    check_all(algorithm);
}

TEST_CASE("chunks of unequal weight") {
    using enum ir::Buffer;
    ir::Collective c = test::collective(CollectiveKind::all_reduce, 3, 4);
    c.weights = {1, 7, 2, 3};
    ir::AlgorithmBuilder b("weighted", c);
    for (int r = 0; r < 3; ++r) b.copy({r, input, 0}, {r, scratch, 0}, 4);
    for (int k = 0; k < 4; ++k) {
        const int owner = k % 3;
        for (int r = 0; r < 3; ++r)
            if (r != owner) b.send_reduce({r, scratch, k}, {owner, scratch, k});
        for (int r = 0; r < 3; ++r) b.send({owner, scratch, k}, {r, output, k});
    }
    check_all(b.build());
}

TEST_CASE("custom places: a transposition with a sum, buffers that differ per rank") {
    using enum ir::Buffer;
    ir::Collective c = test::collective(CollectiveKind::custom, 3, 2);
    auto places = std::make_shared<ir::CustomPlaces>();
    places->inputs = {{{0, 0}, {0, 1}, {1, 0}}, {{0, 0}}, {}};
    places->outputs = {{}, {{1, {{0, 0}}}}, {{0, {{0, 0}, {0, 1}, {1, 0}}}, {0, {{0, 1}}}}};
    c.custom = places;
    ir::AlgorithmBuilder b("custom", c);
    b.send({0, input, 1}, {1, output, 0});
    b.send({0, input, 2}, {2, output, 1});
    b.copy({0, input, 0}, {0, scratch, 0}).reduce({0, input, 2}, {0, scratch, 0});
    b.send({1, input, 0}, {2, output, 0}).send_reduce({0, scratch, 0}, {2, output, 0});
    const auto algorithm = b.build();
    check_all(algorithm);
    check_all(algorithm, ir::ReduceOp::max);
    check_all(algorithm, ir::ReduceOp::avg);  // by three, and by one
}

TEST_CASE("remote operands and switch groups are executed") {
    // Rank 0 reduces over all inputs in the switch and multicasts the result; rank 1 then adds nothing but a
    // copy.
    const auto all_reduce = program_of(R"({"baton": "program/1", "name": "in the switch",
      "collective": {"kind": "all_reduce", "ranks": 3, "chunks": 1}, "switch_groups": [[0, 1, 2]],
      "ranks": [{"threadblocks": [{"instructions": [
          {"from": [["switch", 0, "input", 0]], "to": [["switch", 0, "output", 0]], "finalize": true}]}]},
        {"threadblocks": []}, {"threadblocks": []}]})");
    Interpreter in_switch(all_reduce);
    for (const auto op : {ir::ReduceOp::sum, ir::ReduceOp::max, ir::ReduceOp::avg})
        CHECK(test::faults_of(in_switch, {37, ir::DataType::f32, op}, false, {2}) == "");

    const auto pull = program_of(R"({"baton": "program/1", "name": "remote reads and writes",
      "collective": {"kind": "all_gather", "ranks": 2, "chunks": 1},
      "ranks": [{"threadblocks": [{"instructions": [
          {"from": [["input", 0]], "to": [["output", 0], ["remote", 1, "output", 0]]},
          {"need": [[1, 0, 0]], "from": [["remote", 1, "output", 1]], "to": [["output", 1]]}]}]},
        {"threadblocks": [{"instructions": [{"from": [["input", 0]], "to": [["output", 1]]}]}]}]})");
    CHECK(ir::verify(pull).assurance == ir::Assurance::proved);
    Interpreter remote(pull);
    for (const std::uint64_t seed : {0, 1, 2, 3})
        for (const bool in_place : {false, true})
            CHECK(test::faults_of(remote, {37}, in_place, {2, 0, seed}) == "");
}

TEST_CASE("a program may use its input as room when it says so") {
    const char* text = R"({"baton": "program/1", "name": "clobber", "clobbers_input": true,
      "collective": {"kind": "reduce", "ranks": 2, "chunks": 1, "root": 1}, "connections": [{"src": 0, "dst": 1}],
      "ranks": [{"threadblocks": [{"instructions": [{"from": [["input", 0]], "to": [["message", 0]]}]}]},
        {"threadblocks": [{"instructions": [{"from": [["message", 0], ["input", 0]], "to": [["input", 0]], "finalize": true},
          {"from": [["input", 0]], "to": [["output", 0]]}]}]}]})";
    Interpreter interpreter(program_of(text));
    const ir::Collective& c = interpreter.program().collective;
    const CallArguments arguments{9};
    const test::Buffers buffers(c, arguments, false), expected(c, arguments, false);
    reference(c, arguments, expected.pointers());
    CHECK_THROWS_WITH_AS(interpreter.run(arguments, buffers.pointers()),
                         doctest::Contains("overwrites its input"), Error);
    InterpretOptions options;
    options.may_clobber_input = true;
    interpreter.run(arguments, buffers.pointers(), options);
    CHECK(!compare(arguments.type, buffers.output(1), expected.output(1), 9));
    CHECK(buffers.faults(expected) == "the input of rank 1 was changed");
}

TEST_CASE("chunks of different classes in one instruction are an error, not a write out of bounds") {
    const auto program = program_of(R"({"baton": "program/1", "name": "classes",
      "collective": {"kind": "broadcast", "ranks": 1, "chunks": 2, "weights": [1, 3]},
      "ranks": [{"threadblocks": [{"instructions": [
        {"from": [["input", 1]], "to": [["output", 0]]}, {"from": [["input", 0]], "to": [["output", 1]]}]}]}]})");
    Interpreter interpreter(program);
    const test::Buffers buffers(program.collective, {100}, false);
    CHECK_THROWS_WITH_AS(interpreter.run({100}, buffers.pointers()), doctest::Contains("joins chunks of"),
                         Error);
}

TEST_CASE("programs that are not well formed are refused with the instruction") {
    const auto refused = [](const std::string& instructions) {
        const std::string text =
            R"({"baton": "program/1", "collective": {"kind": "all_gather", "ranks": 2, "chunks": 1},
          "connections": [{"src": 0, "dst": 1}], "ranks": [{"threadblocks": [{"sends": [0], "instructions": [)" +
            instructions + R"(]}]}, {"threadblocks": [{"receives": [0], "instructions": []}]}]})";
        try {
            Interpreter interpreter(program_of(text));
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refused(R"({"from": [["input", 3]], "to": [["output", 0]]})")
              .find("rank 0, threadblock 0, instruction 0") != std::string::npos);
    CHECK(refused(R"({"from": [["input", 0]], "to": [["message", 0]]})")
              .find("1 messages are sent and 0 received") != std::string::npos);
    CHECK(refused(R"({"need": [[1, 0, 5]], "from": [["input", 0]], "to": [["output", 0]]})")
              .find("which does not exist") != std::string::npos);
}
