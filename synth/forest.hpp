// Schedules from packed spanning trees: every link at work all the time, on any topology.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::synth {

/// A forest as an Algorithm, and how good it is on its rates.
struct ForestAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t trees_per_root = 0;  ///< the larger of both phases of an all_reduce
    int depth = 0;                    ///< hops of the deepest tree
};

/// broadcast and all_gather: trees out of the roots; reduce and reduce_scatter: the same on the reversed
/// machine, run backwards; all_reduce: reduce_scatter, then all_gather. Shares of trees are weights of
/// chunks. One group of all ranks only. Rates of pairs of ranks come from `RankGraph`; while the packing is
/// behind the best cut of the machine, rates are shifted a few times towards the pairs across the binding cut
/// and the best division is kept. `most_trees`: largest number of trees per root (1 gives the fewest steps).
/// Throws an input error with the reason when the case is not served.
ForestAlgorithm forest(const topologies::Topology& topology, const ir::Collective& collective,
                       std::int64_t most_trees,
                       topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                       std::uint64_t seed = 0);

/// Whether `forest` is made for a kind.
bool forest_serves(ir::CollectiveKind kind);

}  // namespace baton::synth
