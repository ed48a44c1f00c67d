// Faults planted into right algorithms: each must be found and named, unless a simulator that shares no code
// with the verifier finds that the result is still right.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <support/full.hpp>
#include <support/random_algorithm.hpp>
#include <support/small_algorithms.hpp>
#include <support/step_simulator.hpp>

#include <doctest/doctest.h>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace baton;
using namespace baton::ir;
using Kind = CollectiveKind;

namespace {

using Steps = std::vector<Step>;

Algorithm with(const Algorithm& whole, Steps steps) {
    Algorithm changed = whole;
    // A step continues a par block only behind another step of one.
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].par && (i == 0 || !steps[i - 1].in_par)) steps[i].par = 0;
    }
    changed.body = {{ExplicitSteps{std::make_shared<const Steps>(std::move(steps))}, 0}};
    changed.over_positions = false;
    return changed;
}

/// The message of the check error, or "verified".
std::string message(const Algorithm& algorithm) {
    try {
        verify(algorithm);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        return error.what();
    }
    return "verified";
}

bool contains(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE("\"" << part << "\" is not in: " << text);
    return false;
}

void swap_operands(Step& a, Step& b) {
    std::swap(a, b);
    std::swap(a.par, b.par);
    std::swap(a.in_par, b.in_par);
}

/// A random change of one step, or of two that change places.
Steps mutated(Steps steps, const Collective& c, std::mt19937_64& random) {
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    const auto at = static_cast<std::size_t>(below(static_cast<std::int64_t>(steps.size())));
    Step& step = steps[at];
    switch (below(10)) {
        case 0:
        case 1: steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 2: {
            Step again = step;
            again.par = step.in_par;
            steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at) + 1, again);
            break;
        }
        case 3:
            if (at + 1 < steps.size()) swap_operands(step, steps[at + 1]);
            break;
        case 4:
            swap_operands(step,
                          steps[static_cast<std::size_t>(below(static_cast<std::int64_t>(steps.size())))]);
            break;
        case 5: step.src_rank = static_cast<int>(below(c.ranks)); break;
        case 6: step.dst_rank = static_cast<int>(below(c.ranks)); break;
        case 7:
            (below(2) == 0 ? step.src_index : step.dst_index) =
                static_cast<std::int32_t>(below(c.ranks * c.chunks + 1));
            break;
        case 8: (below(2) == 0 ? step.src_buffer : step.dst_buffer) = static_cast<Buffer>(below(3)); break;
        default:
            if (step.in_par && below(2) == 0) {  // the block falls apart into single steps
                for (std::size_t i = at; i < steps.size() && (i == at || steps[i].par); ++i)
                    steps[i].par = steps[i].in_par = 0;
            } else {
                step.op = step.op == StepOp::send          ? StepOp::send_reduce
                          : step.op == StepOp::send_reduce ? StepOp::send
                          : step.op == StepOp::copy        ? StepOp::reduce
                                                           : StepOp::copy;
            }
    }
    for (Step& each : steps) {
        const bool reducing = each.reducing(), crosses = each.src_rank != each.dst_rank;
        each.op = reducing ? (crosses ? StepOp::send_reduce : StepOp::reduce)
                           : (crosses ? StepOp::send : StepOp::copy);
    }
    return steps;
}

}  // namespace

TEST_CASE("planted: a dropped step") {
    const Algorithm ring = test::ring_all_reduce(4);
    auto steps = expand(ring);
    auto copy = steps;
    copy.erase(copy.begin() + 2);  // the opening copy of rank 2
    CHECK(contains(message(with(ring, copy)),
                   "step 4: send_reduce [1, output, 1] -> [2, output, 1]: reduces into nothing: output 1 of "
                   "rank 2 holds no value yet"));
    auto reduction = steps;
    reduction.erase(reduction.begin() + 4);  // the first reduction of chunk 0
    CHECK(
        contains(message(with(ring, reduction)), "at the end: output 0 of rank 0 lacks the input of rank 0"));
    auto last = steps;
    last.pop_back();
    CHECK(contains(message(with(ring, last)), "at the end: output 2 of rank 0 lacks the input of"));
}

TEST_CASE("planted: a swapped pair") {
    const Algorithm chain = test::chain_broadcast(4, 0, 1);
    auto steps = expand(chain);
    std::swap(steps[1], steps[2]);
    CHECK(contains(message(with(chain, steps)),
                   "step 1: send [1, output, 0] -> [2, output, 0]: reads nothing: output 0 of rank 1"));
    const Algorithm gather = test::ring_all_gather(3);
    steps = expand(gather);
    std::swap(steps[3].src_index, steps[4].src_index);
    std::swap(steps[3].dst_index, steps[4].dst_index);
    CHECK(contains(message(with(gather, steps)), "reads nothing"));
}

TEST_CASE("planted: a doubled reduction") {
    const Algorithm ring = test::ring_all_reduce(3);
    auto steps = expand(ring);
    steps.insert(steps.begin() + 4, steps[3]);
    CHECK(contains(message(with(ring, steps)),
                   "step 4: send_reduce [0, output, 0] -> [1, output, 0]: the input of rank 0 (class 0) is "
                   "reduced twice"));
}

TEST_CASE("planted: an exchange without its par block") {
    const Algorithm exchange = test::recursive_doubling(4);
    auto steps = expand(exchange);
    for (Step& step : steps) step.par = step.in_par = 0;
    CHECK(contains(message(with(exchange, steps)), "is reduced twice"));
    const Algorithm all = test::direct_all_to_all(3);
    steps = expand(all);
    for (Step& step : steps) step.par = step.in_par = 0;
    CHECK(contains(message(with(all, steps)), "the message differs in place"));
}

TEST_CASE("planted: a retargeted step") {
    const Algorithm flat = test::reduce_to_root(4, 1);
    auto steps = expand(flat);
    steps[2].src_rank = 0;
    CHECK(contains(message(with(flat, steps)), "the input of rank 0 (class 0) is reduced twice"));
    const Algorithm all = test::direct_all_to_all(3);
    steps = expand(all);
    steps[1].dst_index = 1;
    CHECK(contains(message(with(all, steps)), "which step"));
}

TEST_CASE("random mutants are found, unless they are still right") {
    std::mt19937_64 random(2024);
    const int rounds = test::full() ? 8000 : 300;
    std::map<std::string, int> tally;
    for (int round = 0; round < rounds; ++round) {
        for (const Kind kind : standard_kinds()) {
            const int n = 2 + static_cast<int>(random() % 3);
            const std::int64_t chunks = 1 + static_cast<std::int64_t>(random() % 2);
            const Collective c = test::collective(
                kind, n, chunks, has_root(kind) ? static_cast<int>(random() % static_cast<unsigned>(n)) : 0);
            const Algorithm whole = test::random_algorithm(c, random);
            const Steps steps = expand(whole);
            for (int k = 0; k < 4; ++k) {
                const Algorithm mutant = with(whole, mutated(steps, c, random));
                const Steps changed = expand(mutant);
                const std::string text = message(mutant);
                const bool accepted = text == "verified";
                const auto wrong = test::StepSimulator(c, changed).run_all();
                INFO(dump(mutant));
                INFO("verify: " << text << "\nsimulator: " << wrong.value_or("right"));
                if (accepted) CHECK(!wrong);
                // Values that no output needs may be wrong; the verifier is strict about them, but not at the
                // end.
                if (!accepted && !wrong) CHECK(text.find("at the end") == std::string::npos);
                ++tally[accepted ? "accepted" : wrong ? "found" : "refused though right"];
            }
        }
    }
    MESSAGE(tally["found"] << " found, " << tally["accepted"] << " still right, "
                           << tally["refused though right"] << " refused though right");
    CHECK(tally["found"] > rounds * 9);
    CHECK(tally["accepted"] > rounds);
}
