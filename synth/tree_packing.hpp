// Packing of spanning out-trees into a directed graph: throughput-optimal broadcast from several roots at
// once.
#pragma once

#include <baton/synth/rank_graph.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// One tree, standing for `multiplicity` equal ones. Edges are in the order in which the tree grew: the tail
/// of each is the root or the head of an earlier one.
struct PackedTree {
    int root = -1;
    std::int64_t multiplicity = 1;
    std::vector<std::pair<int, int>> edges;
    /// Empty (default routes), or per edge the number of its way (`RankEdge::way`).
    std::vector<int> ways = {};
};

/// `per_root` trees for every root; no edge carries more of them than its share of time allows.
struct Forest {
    std::int64_t per_root = 0;      ///< k
    double seconds_per_byte = 0;    ///< to send one byte from every root to all: (trees per rate unit) / k
    double optimum = 0;             ///< the same without rounding to k trees
    std::vector<PackedTree> trees;  ///< those of a root side by side, roots in order
};

/// Options of `pack_forest`.
struct ForestOptions {
    std::int64_t most_per_root = 64;  ///< largest k that is tried
    double tolerance =
        0.001;  ///< the smallest k is taken whose time is this close to the optimum, else the best
    bool exact_count = false;         ///< k = most_per_root, whatever its time
    int most_depth = 0;               ///< bound on the depth of trees, 0: none
    std::int64_t work = 400'000'000;  ///< arcs times flows; an input error when it does not suffice
};

/// k trees from every root over `ranks` vertices such that the busiest edge, at its rate, takes least time.
///
/// With capacities floor(U * rate), k trees per root fit exactly when a source that feeds k units to every
/// root can send all of them to any one vertex (Edmonds); the least such U is found by raising it to what
/// violated cuts demand. Trees are then grown one batch after another; an edge is taken with the largest
/// multiplicity that leaves room for all others, one maximum flow per probe, and no choice is ever taken back
/// (as in throughput-optimal tree packing, arXiv 2402.06787). Edges are tried breadth first, short latencies
/// first, so that trees stay shallow. Where `most_depth` is exceeded at the best time, time gives way; an
/// input error when no trees are that shallow. REQUIRES: every vertex can be reached from every root.
Forest pack_forest(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                   const ForestOptions& options = {});

/// Says for each edge of each tree which of several edges between the same ranks it takes, within their
/// capacities at the forest's time; trees that no single way holds are divided. Nothing to do where no edge
/// has a way.
void choose_ways(Forest& forest, const std::vector<RankEdge>& edges);

/// How many trees one root shall have.
struct RootDemand {
    int root = -1;
    std::int64_t trees = 0;
};

/// True when the capacities carry the wanted trees: a source that feeds every root its number can send all of
/// them to any one vertex (Edmonds). A root stands in `demands` at most once; the capacities sum to less than
/// 2^62.
bool trees_fit(int ranks, const std::vector<RankEdge>& edges, const std::vector<std::int64_t>& capacity,
               const std::vector<RootDemand>& demands);

/// Spanning out-trees, as many from each root as it demands, no more of them over an edge than its capacity
/// (one number per edge; rates are not looked at). Empty when they do not fit. Grown as in `pack_forest`;
/// trees of a root stand side by side, roots in the order of `demands`. `work` and `most_depth` as in
/// ForestOptions; empty, too, when no trees that shallow were found.
std::vector<PackedTree> pack_trees(int ranks, const std::vector<RankEdge>& edges,
                                   const std::vector<std::int64_t>& capacity,
                                   const std::vector<RootDemand>& demands, std::int64_t work = 400'000'000,
                                   int most_depth = 0);

/// The time of the best forest without rounding (seconds per byte of each root), by exact cuts on rates
/// rounded to 2^-20 of the largest; `critical` (optional) receives per vertex whether it is on the source
/// side of the binding cut.
double forest_optimum(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                      std::vector<char>* critical = nullptr);

}  // namespace baton::synth
