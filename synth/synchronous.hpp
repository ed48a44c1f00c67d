// The machine of synchronous schedules: direct links that carry whole chunks per round, and its symmetries.
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// All links from one rank to another.
struct SynchronousArc {
    int from = -1, to = -1;
    std::int64_t chunks = 1;  ///< carried per round
};

/// Arcs that carry at most so many chunks per round together.
struct SynchronousLimit {
    std::vector<int> arcs;
    std::int64_t chunks = 1;
};

/// Ranks and the links between them, as in "Synthesizing Optimal Collective Algorithms" (arXiv 2008.08708):
/// time passes in steps, each of one or more rounds; in a round an arc carries `chunks` chunks; what arrives
/// in a step can be sent on in later steps only.
struct SynchronousMachine {
    int ranks = 0;
    std::vector<SynchronousArc> arcs;  ///< at most one per ordered pair, sorted by (from, to)
    std::vector<SynchronousLimit> limits;
    double unit = 0;        ///< bytes per second of an arc that carries one chunk per round
    bool exact = true;      ///< false: bandwidths were rounded down to multiples of `unit`
    bool all_links = true;  ///< false: the topology has links besides those between its ranks
    /// Arcs that leave and enter each rank.
    std::vector<std::vector<int>> out() const, in() const;
    /// Hops from each rank to each other over arcs, [from][to]; -1 out of reach.
    std::vector<std::vector<int>> distances() const;
    /// All arcs turned round.
    SynchronousMachine reversed() const;
    bool operator==(const SynchronousMachine& other) const;
};

/// The direct links between the first `ranks` ranks. The unit is the greatest bandwidth of which all are
/// multiples of at most 16, else the least bandwidth over 4, all others rounded down. Throws an input error
/// when direct links do not lead from every rank to every other, or above 64 ranks.
SynchronousMachine synchronous_machine(const topologies::Topology& topology, int ranks);

/// A permutation of ranks: [rank] = image.
using RankPermutation = std::vector<int>;

/// Groups of automorphisms of the machine in which nothing but the identity leaves any rank in place, largest
/// first, as lists of all their elements (identity first). Found by a bounded search: not always the largest
/// that exist. The last is the trivial group.
std::vector<std::vector<RankPermutation>> free_symmetries(const SynchronousMachine& machine);

}  // namespace baton::synth
