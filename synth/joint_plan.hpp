// Trees of a joint all_reduce with whole shares.
#pragma once

#include <baton/synth/joint_trees.hpp>
#include <baton/synth/rank_symmetry.hpp>
#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace baton::synth {

/// A tree with a whole share, its hops from the root on; of an in-tree they run towards the root.
struct PlannedTree {
    struct Hop {
        int depth, parent, child;
        int way;   ///< as in RankEdge
        int edge;  ///< of the rank graph
    };
    int root = -1, depth = 0;
    std::int64_t weight = 0;
    std::vector<Hop> hops;
};

/// The trees of both phases; those of a root stand side by side and weigh the same in both.
struct JointPlan {
    std::vector<PlannedTree> in, out;
    std::int64_t total() const;
};

/// The trees of two forests with equal shares of all ranks, on the graph's default routes.
JointPlan plan_of_forests(const RankGraph& graph, const Forest& in, const Forest& out);

/// Per edge of the graph, what a unit of rate on it takes of each resource, by number: seconds.
using EdgeLoads = std::vector<std::vector<std::pair<std::size_t, double>>>;

/// Trees with whole shares near their rates, as few as lose at most `most_loss` of the rate (relative).
/// `numbers`: what the edges of the trees are in the graph; `copies`: how often the plan will be turned.
JointPlan whole_shares(const RankGraph& graph, const JointTrees& trees,
                       const std::vector<std::size_t>& numbers, const EdgeLoads& loads, std::int64_t copies,
                       double most_loss);

/// The plan with its trees turned by every permutation of the group; `edges`: `turned_edges` of it.
JointPlan turned_plan(const JointPlan& plan, const RankGraph& graph, const RankGroup& group,
                      const std::vector<std::vector<int>>& edges);

/// Bytes per second at which the busiest resource is full.
double rate_of(const JointPlan& plan, const RankGraph& graph);

}  // namespace baton::synth
