// Exact search on small machines: the schedules between fewest steps and fewest rounds, and proofs that there
// are no better ones.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::synth {

struct ExactOptions {
    std::int64_t effort = 200'000'000;  ///< of all questions together, in the solver's own steps
    int most_chunks = 6;                ///< largest number of chunks per address that is tried
    int more_steps = 1;                 ///< steps beyond the fewest that are tried
    bool rounded = true;                ///< false: machines whose bandwidths must be rounded are refused
    int most_ranks = 16;                ///< larger machines are refused
};

/// A schedule of `chunks` chunks per shard (per buffer for kinds without shards) in `steps` steps of `rounds`
/// rounds altogether. all_reduce: these of each of its two phases.
struct ExactPoint {
    std::int64_t chunks = 1;
    int steps = 0;
    std::int64_t rounds = 0;
    /// No schedule of so few steps has fewer rounds per chunk than this, however many chunks there are
    /// (linear relaxation, exact arithmetic); the point is optimal where rounds / chunks equals it.
    Rational bound;
    bool optimal = false;
    ir::Algorithm algorithm;
};

struct ExactFrontier {
    std::vector<ExactPoint> points;  ///< steps ascending, rounds per chunk descending
    int fewest_steps = 0;            ///< hops to the farthest rank: fewer steps are impossible
    std::vector<std::string> notes;  ///< what was proved impossible or not decided, in words
};

/// The frontier between latency and bandwidth of synchronous schedules (arXiv 2008.08708; machine and rules
/// in synchronous.hpp): for each number of steps, the fewest rounds per chunk found. Serves all_gather,
/// broadcast, scatter, gather and all_to_all, reduce and reduce_scatter by reversal, and all_reduce as both
/// of these. Links through switches are not used and no claim is made about them. Groups are searched one by
/// one, each on the links among its own ranks; a point then names the group with most steps. Same input,
/// same schedules. Throws an input error with the reason where it does not serve the case.
ExactFrontier exact_frontier(const topologies::Topology& topology, const ir::Collective& collective,
                             const ExactOptions& options = {});

}  // namespace baton::synth
