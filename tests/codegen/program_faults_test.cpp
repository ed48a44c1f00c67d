// Faults planted into lowered programs: a wait taken away, weakened or turned back, fewer slots. Each must be
// found as a race or a deadlock, unless a checker that shares no code with the verifier finds everything
// still ordered.
#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <support/full.hpp>
#include <support/order_checker.hpp>
#include <support/random_algorithm.hpp>
#include <support/small_algorithms.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace baton;
using namespace baton::codegen;
using test::OrderFault;

namespace {

/// What the verifier says: "" (proved), "race", "deadlock", or the whole message of anything else.
std::string verdict(const ir::Program& program, int slots = 0) {
    ir::VerifyOptions options;
    options.slots = slots;
    try {
        const ir::ProgramReport report = ir::verify(program, options);
        CHECK(report.assurance == ir::Assurance::proved);
        return {};
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        const std::string text = error.what();
        for (const char* word : {"race", "deadlock"}) {
            if (text.find(word) != std::string::npos) return word;
        }
        return text;
    }
}

std::string expected(const ir::Program& program, int slots = 0) {
    switch (test::OrderChecker(program, slots).check()) {
        case OrderFault::race: return "race";
        case OrderFault::deadlock: return "deadlock";
        case OrderFault::none: break;
    }
    return {};
}

ir::Program lowered(const ir::Algorithm& algorithm, ModePreference mode, const std::string& stop_after,
                    int threadblocks = 32, int channels = 1) {
    LowerOptions options;
    options.mode = mode;
    options.stop_after = stop_after;
    options.threadblocks = threadblocks;
    options.channels = channels;
    options.verify = false;
    ir::Program program = lower(algorithm, options);
    // Marks of repeated bodies are for printing; a mutant would contradict them.
    for (auto& rank : program.ranks) {
        for (auto& block : rank.threadblocks) block.repeats.clear();
    }
    return program;
}

struct NeedSite {
    std::size_t rank, block, instruction;
    int need;
};

std::vector<NeedSite> needs_of(const ir::Program& program) {
    std::vector<NeedSite> list;
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        for (std::size_t b = 0; b < program.ranks[r].threadblocks.size(); ++b) {
            const auto& code = program.ranks[r].threadblocks[b].instructions;
            for (std::size_t i = 0; i < code.size(); ++i) {
                for (int n = 0; n < code[i].needs; ++n) list.push_back({r, b, i, n});
            }
        }
    }
    return list;
}

/// The program without one need.
ir::Program without(ir::Program program, const NeedSite& site) {
    ir::Threadblock& block = program.ranks[site.rank].threadblocks[site.block];
    ir::Instruction& instruction = block.instructions[site.instruction];
    const auto first = block.needs.begin() + instruction.first_need;
    std::rotate(first + site.need, first + site.need + 1, first + instruction.needs);
    --instruction.needs;
    ir::mark_posts(program);
    return program;
}

ir::Need& need_at(ir::Program& program, const NeedSite& site) {
    ir::Threadblock& block = program.ranks[site.rank].threadblocks[site.block];
    return block
        .needs[block.instructions[site.instruction].first_need + static_cast<std::uint32_t>(site.need)];
}

ir::Algorithm random_algorithm(std::mt19937_64& random) {
    const auto& kinds = ir::standard_kinds();
    const ir::CollectiveKind kind = kinds[random() % kinds.size()];
    const int n = 2 + static_cast<int>(random() % 4);
    return test::random_algorithm(
        test::collective(kind, n, 1 + static_cast<std::int64_t>(random() % 2),
                         ir::has_root(kind) ? static_cast<int>(random() % static_cast<unsigned>(n)) : 0),
        random);
}

}  // namespace

TEST_CASE("a wait taken from a lowered program is a race, unless other waits imply it") {
    int races = 0;
    for (const ir::Algorithm& algorithm :
         {test::ring_all_reduce(3), test::one_shot_all_reduce(3), test::direct_all_to_all(3),
          test::scratch_reduce_scatter(3), test::recursive_doubling(4)}) {
        for (const ModePreference mode : {ModePreference::staged, ModePreference::put, ModePreference::get}) {
            const ir::Program whole = lowered(algorithm, mode, "waits");
            CAPTURE(algorithm.name);
            CAPTURE(to_string(mode));
            REQUIRE(verdict(whole) == "");
            REQUIRE(expected(whole) == "");
            for (const NeedSite& site : needs_of(whole)) {
                const ir::Program broken = without(whole, site);
                CHECK(verdict(broken) == expected(broken));
                races += verdict(broken) == "race" ? 1 : 0;
            }
        }
    }
    CHECK(races > 30);
}

TEST_CASE("planted: the credit of a remote write is missing") {
    // The token that says a place was read before another rank puts into it, or the acknowledgement of a get.
    int tokens = 0, acknowledgements = 0;
    for (const ir::Algorithm& algorithm : {test::scratch_reduce_scatter(4), test::ring_all_reduce(4),
                                           test::recursive_doubling(8), test::one_shot_all_reduce(4)}) {
        for (const ModePreference mode : {ModePreference::put, ModePreference::get}) {
            const ir::Program whole = lowered(algorithm, mode, "");
            for (const NeedSite& site : needs_of(whole)) {
                ir::Program weak = whole;
                ir::Need& need = need_at(weak, site);
                const bool across = need.rank != static_cast<int>(site.rank);
                if (!across && need.event != ir::Event::source_free) continue;
                const ir::Program broken = without(whole, site);
                CHECK(verdict(broken) == expected(broken));
                (across ? tokens : acknowledgements) += verdict(broken) == "race" ? 1 : 0;
                need.event = ir::Event::completed;
                CHECK(verdict(weak) == expected(weak));
            }
        }
    }
    MESSAGE(tokens << " tokens, " << acknowledgements << " acknowledgements");
    CHECK(tokens + acknowledgements > 0);
}

TEST_CASE("planted: a slot count of zero") {
    ir::Program program = lowered(test::ring_all_reduce(3), ModePreference::staged, "");
    program.connections[1].slots = 0;
    CHECK(verdict(program).find("connection 1: has 0 slots") != std::string::npos);
}

TEST_CASE("random mutants of waits, slots and order are judged as a checker written apart judges them") {
    std::mt19937_64 random(99);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    std::map<std::string, int> tally;
    const int rounds = test::full() ? 4000 : 150;
    for (int round = 0; round < rounds; ++round) {
        const ir::Algorithm algorithm = random_algorithm(random);
        const ModePreference mode =
            std::array{ModePreference::staged, ModePreference::put, ModePreference::get}[below(3)];
        const std::string stop = std::array<const char*, 3>{"threadblocks", "waits", ""}[below(3)];
        const ir::Program whole =
            lowered(algorithm, mode, stop, 1 + static_cast<int>(below(4)), 1 + static_cast<int>(below(2)));
        INFO(ir::dump(whole));
        REQUIRE(verdict(whole) == "");
        REQUIRE(expected(whole) == "");
        const auto needs = needs_of(whole);
        for (int k = 0; k < 6 && !needs.empty(); ++k) {
            const NeedSite& site = needs[below(needs.size())];
            ir::Program mutant = whole;
            if (k < 2) {
                mutant = without(whole, site);
            } else if (k == 2) {
                need_at(mutant, site).event = ir::Event::completed;
            } else {  // another instruction of the threadblock that is waited for: earlier is weaker, later
                      // may be a circle
                ir::Need& need = need_at(mutant, site);
                const auto& code = mutant.ranks[static_cast<std::size_t>(need.rank)]
                                       .threadblocks[static_cast<std::size_t>(need.threadblock)];
                need.instruction = static_cast<int>(below(code.instructions.size()));
                ir::mark_posts(mutant);
            }
            const std::string found = verdict(mutant);
            INFO("mutation " << k << ": " << ir::dump(mutant));
            // A get may not announce what is not there yet, even where its reader would wait for it.
            const bool announced_early =
                mode == ModePreference::get && found.find("which holds nothing") != std::string::npos;
            if (announced_early)
                CHECK(expected(mutant) == "");
            else
                CHECK(found == expected(mutant));
            ++tally[found.empty() ? "ordered" : announced_early ? "announced early" : found];
        }
        for (const int slots : {1, 2}) {
            const std::string found = verdict(whole, slots);
            CHECK(found == expected(whole, slots));
            ++tally[found.empty() ? "enough slots" : "too few slots"];
        }
    }
    MESSAGE(tally["race"] << " races, " << tally["deadlock"] << " deadlocks, " << tally["ordered"]
                          << " still ordered; " << tally["too few slots"] << " with too few slots, "
                          << tally["enough slots"] << " with enough");
    CHECK(tally["race"] > rounds / 2);
    CHECK(tally["deadlock"] > rounds / 10);
    CHECK(tally["ordered"] > rounds / 10);
}
