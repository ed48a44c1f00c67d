// The trees of a joint all_reduce: shallow in-trees and out-trees that together fill the links.
#pragma once

#include <baton/topologies/routes.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// A way between two ranks and what one unit of rate takes of the resources.
struct TreeEdge {
    int from = -1, to = -1;
    std::vector<topologies::LinkShare> uses;
};

/// A tree with a share of the buffer. In-trees run from all ranks to the root, out-trees from it to all.
struct WeightedTree {
    int root = -1;
    std::vector<int> edges;  ///< by growth from the root: one end is the root or in an earlier edge
    double rate = 0;         ///< bytes of the buffer per second
    int depth = 0;           ///< hops
};

struct JointTrees {
    std::vector<WeightedTree> in, out;  ///< rates of both sum to the same at every root
    double rate = 0;                    ///< bytes of the buffer per second, all trees together
    int most_depth = 0;                 ///< bound on the hops of every tree under which they were found
    double stretch = 1;                 ///< how many times their even shares edges may carry
    int rounds = 0, columns = 0;        ///< of the linear program
};

struct JointTreeOptions {
    double target = 0;           ///< bytes per second that no trees exceed; 0: not known
    std::vector<double> prices;  ///< per resource, optimal duals of the capacities, or empty
    double tolerance = 1e-3;     ///< how far below the target is good enough
    /// Resources from this number on are one per edge: its even share of what several edges draw on. Shares
    /// are kept to where the target allows it, and else stretched up to twofold, at last freed: lanes of like
    /// load fill a port together, others leave it idle. -1: none.
    int first_share = -1;
    int most_depth = 0;               ///< bound on hops, 0: none
    std::vector<int> roots;           ///< the ranks that may be roots; empty: all
    std::int64_t work = 400'000'000;  ///< edges looked at; what was found by then is returned
};

/// Maximizes the rate of an all_reduce whose every piece goes up an in-tree and down an out-tree of the same
/// root, both phases within the capacities together, by column generation: a linear program over the trees
/// found so far, whose dual prices make the next trees (the cheapest that a greedy search with local
/// improvement finds). Trees may have few hops at first, as few as some root needs; the bound is raised only
/// when prices say that the target is out of reach under it. So trees are as shallow as the target allows,
/// as far as the search goes; nothing proves that there are no shallower ones. Without a target the rate
/// under the last bound of hops that was worth 0.4% is returned. Empty when no root reaches all.
JointTrees joint_trees(int ranks, const std::vector<TreeEdge>& edges, const std::vector<double>& capacity,
                       const JointTreeOptions& options = {});

}  // namespace baton::synth
