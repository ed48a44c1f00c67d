// One question to the solver: is there a synchronous schedule of so many steps and rounds? Internal to the
// layer; see exact.hpp.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/synth/synchronous.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::synth {

/// Equal chunks that start at one rank and that some ranks need.
struct ExactAddress {
    int source = -1;
    std::vector<char> needed;  ///< per rank; never the source
};

/// What is to be moved: `chunks` chunks of every address.
struct ExactDemand {
    std::vector<ExactAddress> addresses;
    std::int64_t chunks = 1;
};

/// Budget of one question. `effort` counts the solver's own steps, so that the same question ends the same
/// way on every machine: some two million are a second. Questions also end, with Stopped, when the
/// thread's stop token says so.
struct ExactBudget {
    std::int64_t effort = 2'000'000'000;  ///< at most 2^32 - 1; <= 0 ends at once
    std::int64_t megabytes = 2048;        ///< memory of the solver
    std::int64_t* spent = nullptr;        ///< where not null: what the question took is added
};

enum class ExactAnswer : std::uint8_t {
    found,
    impossible,  ///< no schedule within the given symmetry
    unknown      ///< the budget ended first
};

/// Chunk number `chunk` = address * chunks + copy crosses an arc in a step (counted from 0).
struct TimedSend {
    int step = 0;
    std::int64_t chunk = 0;
    int arc = -1;
};

struct SearchResult {
    ExactAnswer answer = ExactAnswer::unknown;
    std::vector<TimedSend> sends;      ///< by step, then chunk, then arc; every send is used
    std::vector<std::int64_t> rounds;  ///< per step
};

/// Looks for a schedule that `symmetry` (all elements of a group of automorphisms, see `free_symmetries`)
/// maps to itself; with the trivial group, for any. Every chunk enters a rank at most once. The question goes
/// to Z3's solver for finite domains: one Boolean per chunk, arc and step, pruned by distances; one
/// cardinality constraint per arc and step. Same question and budget of effort, same answer.
SearchResult search_schedule(const SynchronousMachine& machine, const ExactDemand& demand, int steps,
                             std::int64_t rounds, const std::vector<RankPermutation>& symmetry,
                             const ExactBudget& budget);

/// The fewest rounds per chunk that a schedule of `steps` steps could have however many chunks an address is
/// divided into, from the linear relaxation in exact rational arithmetic: no schedule of C chunks and R
/// rounds has R / C below it. Averaging over `symmetry` loses nothing. Empty when the budget ended first or
/// no schedule has so few steps.
std::optional<Rational> fewest_rounds_per_chunk(const SynchronousMachine& machine, const ExactDemand& demand,
                                                int steps, const std::vector<RankPermutation>& symmetry,
                                                const ExactBudget& budget);

}  // namespace baton::synth
