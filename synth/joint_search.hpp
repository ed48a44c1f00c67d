// The search of joint trees on a machine: which pairs they may use, what is kept in reserve, and one root's
// trees for all that look alike.
#pragma once

#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/joint_plan.hpp>
#include <baton/synth/rank_graph.hpp>
#include <baton/topologies/topology.hpp>

#include <optional>

namespace baton::synth {

/// What was found: trees from one root of each orbit, and the permutations that turn them to the others.
struct SearchedPlan {
    JointPlan plan;  ///< empty when no trees were found within the work limit
    RankGroup group;
    std::vector<std::vector<int>> turned;  ///< `turned_edges` of the group
    EdgeLoads loads;                       ///< with all turned copies, of resources that are alike: of one
};

/// Trees on the pairs of the graph, with whole shares that lose at most `most_loss` (relative). `optimum`:
/// of the machine, where known. `group`: symmetries of the graph (`symmetric_shifts`): trees are looked for
/// from one root of each orbit. What a turned tree takes of a resource is summed over all its copies;
/// resources that carry the same of everything are one.
SearchedPlan search_joint_plan(const RankGraph& graph, const topologies::Topology& topology,
                               const std::optional<JointOptimum>& optimum, const RankGroup& group,
                               double most_loss);

}  // namespace baton::synth
