// Local search on forests: branches move from busy links to idle ones.
#pragma once

#include <baton/synth/rank_graph.hpp>
#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

struct ReroutingOptions {
    double target = 1;                ///< seconds per byte of each root at which the search ends, above 0
    double tolerance = 0.002;         ///< above the target, relative
    int most_depth = 0;               ///< no move makes a tree deeper than this; 0: no bound
    int most_splits = 4;              ///< how often trees that are stuck on busy links may be cut in halves
    std::int64_t work = 200'000'000;  ///< alternatives that are looked at
};

/// What a forest became.
struct Rerouted {
    Forest forest;  ///< `seconds_per_byte`: of the busiest resource of the graph, by its true capacity
    std::int64_t moved = 0;     ///< branches that hang elsewhere now
    std::int64_t replaced = 0;  ///< of these, branches whose edge is not in the graph
    std::int64_t work = 0;      ///< alternatives that were looked at
};

/// Takes trees that may use pairs of ranks which are no edges any more, and edges that carry too much. Every
/// such branch is hung onto another vertex of its tree; then branches on busy resources (links and joint
/// limits) move, by another edge to the top of the branch or to a vertex below it, from which the way up
/// turns round, as long as that lowers the sum over resources of (load / capacity)^12, which stands for the
/// busiest one and still rewards moves that only prepare others. Where nothing moves, trees on busy resources
/// are cut in halves that move apart. At the end the deepest branches are hung as high as loads allow. Rates
/// of edges are not looked at: loads are those of the resources. Deterministic. `turned`: the trees run
/// against the edges of the graph (reduce kinds). Nothing is proved about the result but its own time;
/// compare it with the cut. Throws an input error when a vertex cannot be reached at all. REQUIRES: trees
/// span all ranks of the graph.
Rerouted reroute(const Forest& forest, const RankGraph& graph, bool turned, const ReroutingOptions& options);

}  // namespace baton::synth
