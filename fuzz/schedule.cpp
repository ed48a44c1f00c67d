// Any bytes: an algorithm, a program or an input error. What is read prints and reads back the same; small
// ones go through verification and, when it passes, through execution, which may not find fault either.
#include <baton/base/error.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>
#include <baton/runtime/interpreter.hpp>
#include <baton/runtime/reference.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using namespace baton;

constexpr std::int64_t kMostRanks = 64, kMostPlaces = 4096, kMostSteps = 10'000;

bool small(const ir::Collective& collective) {
    if (collective.ranks > kMostRanks) return false;
    std::int64_t places = 0;
    for (int rank = 0; rank < collective.ranks; ++rank)
        places += collective.places(rank, ir::Buffer::input) + collective.places(rank, ir::Buffer::output);
    return places <= kMostPlaces;
}

/// A verified program must give the reference result.
void execute(const ir::Program& program) {
    runtime::Interpreter interpreter(program);
    const runtime::CallArguments arguments{3, ir::DataType::i32};
    std::vector<std::vector<std::int32_t>> memory;
    std::vector<runtime::RankBuffers> buffers, expected;
    const auto make = [&](std::int64_t elements, int rank) {
        memory.emplace_back(static_cast<std::size_t>(elements) + 1);
        runtime::fill_exact(arguments, program.collective.ranks, rank, 1, memory.back().data(), elements);
        return memory.back().data();
    };
    for (int rank = 0; rank < program.collective.ranks; ++rank) {
        const auto in =
            runtime::buffer_elements(program.collective, rank, ir::Buffer::input, arguments.count);
        const auto out =
            runtime::buffer_elements(program.collective, rank, ir::Buffer::output, arguments.count);
        if (in + out > 1'000'000) return;
        const auto* input = make(in, rank);
        buffers.push_back({input, make(out, -1)});
        expected.push_back({input, make(out, -1)});
    }
    runtime::reference(program.collective, arguments, expected);
    interpreter.run(arguments, buffers, {2});
    if (program.collective.kind == ir::CollectiveKind::custom)
        return;  // outputs may have places that nobody asks for
    for (int rank = 0; rank < program.collective.ranks; ++rank) {
        const auto out =
            runtime::buffer_elements(program.collective, rank, ir::Buffer::output, arguments.count);
        if (runtime::compare(arguments.type, buffers[static_cast<std::size_t>(rank)].output,
                             expected[static_cast<std::size_t>(rank)].output, out))
            __builtin_trap();
    }
}

void check(const ir::Program& program) {
    const std::string text = ir::to_json(program);
    if (ir::to_json(ir::parse_program(text)) != text) __builtin_trap();
    if (ir::to_json(ir::parse_program(ir::to_cbor(program))) != text) __builtin_trap();
    if (!small(program.collective) || program.instruction_count() > kMostSteps) return;
    try {
        ir::verify(program);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed && error.kind() != ErrorKind::input) __builtin_trap();
        return;
    }
    if (!program.clobbers_input) execute(program);
}

void check(const ir::Algorithm& algorithm) {
    const std::string text = ir::to_json(algorithm);
    if (ir::to_json(ir::parse_algorithm(text)) != text) __builtin_trap();
    if (!small(algorithm.collective)) return;
    auto steps = algorithm.steps();
    ir::Step step;
    for (std::int64_t n = 0; steps.next(step); ++n)
        if (n > kMostSteps || step.chunks > kMostPlaces) return;
    ir::VerifyOptions options;
    options.memory_budget = 1 << 24;
    ir::verify(algorithm, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto schedule = ir::parse_schedule({reinterpret_cast<const char*>(data), size}, "fuzz");
        std::visit([](const auto& form) { check(form); }, schedule);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::internal) __builtin_trap();
    }
    return 0;
}
