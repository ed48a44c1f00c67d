// All-reduce along trees whose roots, shares and capacities per phase are chosen together.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// Largest number of ranks and of pairs of ranks that `joint` takes: its linear program grows with both.
inline constexpr int kMostJointRanks = 64;
inline constexpr std::size_t kMostJointPairs = 6000;

struct JointAlgorithm {
    ir::Algorithm algorithm;
    double optimum = 0;      ///< bytes per second by the linear program, on pairs of ranks with a route
    double rate = 0;         ///< the same of the trees: after rounding to whole trees
    std::int64_t trees = 0;  ///< pairs of an in-tree and an out-tree with a share of their own
    int roots = 0;
    int depth = 0;  ///< hops of the deepest in-tree plus those of the deepest out-tree
};

/// The optimum of `joint_optimum` over the default routes between ranks, scaled to whole trees (as few as
/// come within 0.1%, else shares of 2^-16), both forests packed, and every piece reduced up its in-tree and
/// sent down its out-tree; pieces do not wait for each other, so both phases run at once. all_reduce over one
/// group of all ranks. Throws an input error with the reason when the case is not served.
JointAlgorithm joint(const topologies::Topology& topology, const ir::Collective& collective,
                     topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                     std::uint64_t seed = 0);

}  // namespace baton::synth
