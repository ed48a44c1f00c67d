// Balanced breadth-first layers (BFB): diameter steps, every layer's load spread evenly over links.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/topology.hpp>

namespace baton::synth {

/// Trees whose depth is the distance in hops, and what their layers cost one after another.
struct BreadthFirstForest {
    Forest forest;   ///< `seconds_per_byte`: of the busiest edge, all layers together
    int layers = 0;  ///< largest distance from a root, in hops
    /// Sum over layers of the time of its busiest edge, per byte of each root: what the forest takes when
    /// each layer waits for the one before it.
    double layered_seconds_per_byte = 0;
    /// The least sum that any division of roots over shortest ways can have (without whole trees).
    double layered_optimum = 0;
};

/// In layer t a vertex receives what roots at distance t hops send, over edges from vertices at distance t-1.
/// How much over which edge is chosen so that the busiest edge takes least time: a small flow problem for
/// each vertex and layer, independent of all others, solved exactly by raising the time to what violated cuts
/// demand. (Breadth-first broadcast, Zhao et al., arXiv 2202.03356, there with linear programs.) Data of a
/// root is cut into as many trees, up to `most_trees`, as come within 0.1% of the optimum, else the best.
/// REQUIRES: every vertex can be reached from every root over edges with a rate.
BreadthFirstForest breadth_first_forest(int ranks, const std::vector<RankEdge>& edges,
                                        const std::vector<int>& roots, int most_trees = 24);

/// broadcast, reduce, all_gather, reduce_scatter (the reverse on the turned machine) and all_reduce (both).
/// The depth is the least possible; above `most_depth` (0: no bound) an input error says so. Throws an input
/// error with the reason when the case is not served.
struct BreadthFirstAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t trees_per_root = 0;
    int depth = 0;  ///< hops of each phase
};
BreadthFirstAlgorithm breadth_first(const topologies::Topology& topology, const ir::Collective& collective,
                                    topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                                    std::uint64_t seed = 0, int most_depth = 0);

}  // namespace baton::synth
