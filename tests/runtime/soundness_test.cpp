// Programs broken at random: what verification lets pass must give the reference result under every
// interleaving, in place and out.
#include "support/collective_run.hpp"
#include "support/full.hpp"
#include "support/kind_algorithms.hpp"
#include "support/random_topology.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>
#include <map>

using namespace baton;
using namespace baton::runtime;

namespace {

using test::detail::Dice;

/// Changes one thing; returns what, or "" when the choice does not apply.
std::string mutate(ir::Program& program, Dice& dice) {
    auto& rank = program.ranks[static_cast<std::size_t>(dice.between(0, program.collective.ranks - 1))];
    if (rank.threadblocks.empty()) return "";
    auto& block = rank.threadblocks[static_cast<std::size_t>(
        dice.between(0, static_cast<int>(rank.threadblocks.size()) - 1))];
    if (block.instructions.empty()) return "";
    block.repeats.clear();
    const auto pick = [&] {
        return static_cast<std::size_t>(dice.between(0, static_cast<int>(block.instructions.size()) - 1));
    };
    const std::size_t at = pick();
    ir::Instruction& instruction = block.instructions[at];
    const auto operand = [&]() -> ir::Operand& {
        return block.operands[instruction.first_operand +
                              static_cast<std::size_t>(
                                  dice.between(0, instruction.sources + instruction.destinations - 1))];
    };
    switch (dice.between(0, 8)) {
        case 0:
            if (instruction.needs == 0) return "";
            instruction.needs = 0;
            return "all needs of an instruction dropped";
        case 1:
            if (instruction.needs == 0) return "";
            --instruction.needs;
            return "a need dropped";
        case 2: {
            if (instruction.needs == 0) return "";
            ir::Need& need = block.needs[instruction.first_need];
            if (need.instruction == 0) return "";
            --need.instruction;
            return "a need of an earlier instruction";
        }
        case 3:
            if (at + 1 >= block.instructions.size()) return "";
            std::swap(block.instructions[at], block.instructions[at + 1]);
            return "instructions swapped";
        case 4: {
            ir::Operand& changed = operand();
            if (changed.kind != ir::OperandKind::local) return "";
            changed.index += dice.chance(50) ? 1 : -1;
            return "another place";
        }
        case 5: {
            ir::Operand& changed = operand();
            if (changed.kind != ir::OperandKind::local) return "";
            changed.buffer = static_cast<ir::Buffer>(dice.between(0, 2));
            return "another buffer";
        }
        case 6: {
            if (program.connections.empty()) return "";
            auto& connection = program.connections[static_cast<std::size_t>(
                dice.between(0, static_cast<int>(program.connections.size()) - 1))];
            connection.mode = static_cast<ir::Mode>(dice.between(0, 2));
            return "another mode";
        }
        case 7: {
            if (program.connections.empty()) return "";
            auto& connection = program.connections[static_cast<std::size_t>(
                dice.between(0, static_cast<int>(program.connections.size()) - 1))];
            connection.slots = 1;
            return "one slot";
        }
        default: instruction.finalize = !instruction.finalize; return "finalize toggled";
    }
}

ir::Program random_program(Dice& dice) {
    const auto& kinds = ir::standard_kinds();
    synth::PatternOptions options;
    options.collective.kind =
        kinds[static_cast<std::size_t>(dice.between(0, static_cast<int>(kinds.size()) - 1))];
    options.collective.ranks = dice.between(2, 6);
    options.collective.root = dice.between(0, options.collective.ranks - 1);
    auto algorithms =
        test::algorithms_for(options.collective.kind, options.collective.ranks, options.collective.root);
    for (const auto& pattern : synth::fixed_patterns())
        if (synth::serves(pattern.name, options))
            algorithms.push_back(synth::fixed_pattern(pattern.name, options));
    codegen::LowerOptions lowering;
    lowering.mode = static_cast<codegen::ModePreference>(dice.between(0, 3));
    lowering.threadblocks = dice.between(1, 6);
    lowering.verify = false;
    return codegen::lower(
        algorithms[static_cast<std::size_t>(dice.between(0, static_cast<int>(algorithms.size()) - 1))],
        lowering);
}

}  // namespace

TEST_CASE("a program that verification lets pass gives the reference result under every interleaving") {
    const std::uint64_t seeds = test::full() ? 100'000 : 4000;
    std::map<std::string, std::pair<int, int>> outcomes;  // mutation -> (passed, refused)
    int passed = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Dice dice(seed);
        ir::Program program = random_program(dice);
        std::string what;
        for (int tries = 0; what.empty() && tries < 20; ++tries) what = mutate(program, dice);
        if (what.empty()) continue;
        ir::mark_posts(program);
        try {
            if (ir::verify(program).assurance != ir::Assurance::proved) continue;
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::check_failed);
            ++outcomes[what].second;
            ++refused;
            continue;
        }
        ++outcomes[what].first;
        ++passed;
        Interpreter interpreter(program);
        const bool reduces = ir::reduces(program.collective.kind);
        const CallArguments arguments{40, ir::DataType::i32, reduces ? ir::ReduceOp::avg : ir::ReduceOp::sum};
        for (std::uint64_t order = 0; order < 4; ++order)
            for (const bool in_place : {false, true}) {
                const InterpretOptions options{2, 0, order == 0 ? 0 : seed * 4 + order};
                CHECK_MESSAGE(test::faults_of(interpreter, arguments, in_place, options) == "",
                              "seed " << seed << ", " << what << ": "
                                      << test::words(program, arguments, in_place, options));
            }
    }
    for (const auto& [what, count] : outcomes)
        MESSAGE(what << ": " << count.first << " passed, " << count.second << " refused");
    CHECK(passed > static_cast<int>(seeds) / 20);
    CHECK(refused > static_cast<int>(seeds) / 20);
}

TEST_CASE(
    "a program runs with the smallest number of slots that verification names, and hangs with one less") {
    const std::uint64_t seeds = test::full() ? 5000 : 400;
    int tight = 0;
    const auto hangs = [](Interpreter& interpreter, int slots, std::uint64_t seed) {
        const CallArguments arguments{20, ir::DataType::i32};
        const test::Buffers buffers(interpreter.program().collective, arguments, false);
        InterpretOptions options;
        options.tiles = 3;
        options.slots = slots;
        options.seed = seed;
        try {
            interpreter.run(arguments, buffers.pointers(), options);
            return false;
        } catch (const Error& error) {
            CHECK(std::string(error.what()).find("deadlock in tile") != std::string::npos);
            return true;
        }
    };
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Dice dice(seed);
        const ir::Program program = random_program(dice);
        const int smallest = ir::verify(program).smallest_slots;
        Interpreter interpreter(program);
        if (smallest > 0) {
            CHECK(!hangs(interpreter, smallest, 0));
            CHECK(!hangs(interpreter, smallest, seed));
        }
        if (smallest > 1) {
            ++tight;
            CHECK(hangs(interpreter, smallest - 1, 0));
            CHECK(hangs(interpreter, smallest - 1, seed));
        }
    }
    CHECK(tight > static_cast<int>(seeds) / 50);
}
