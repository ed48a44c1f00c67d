// All-reduce along trees whose roots, shares and capacities per phase are chosen together.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// Largest number of ranks and of pairs of ranks that `joint` takes where nothing is alike (its linear
/// program grows with both), and of ranks that are.
inline constexpr int kMostJointRanks = 64, kMostTurnedRanks = 128;
inline constexpr std::size_t kMostJointPairs = 6000;

struct JointAlgorithm {
    ir::Algorithm algorithm;
    double optimum = 0;      ///< bytes per second of the best trees on any route, where known; else `rate`
    double rate = 0;         ///< of these trees on their routes
    std::int64_t trees = 0;  ///< pairs of an in-tree and an out-tree with a share of their own
    int roots = 0;
    int depth = 0;    ///< hops of the deepest in-tree plus those of the deepest out-tree
    int deepest = 0;  ///< hops of the deepest tree
};

/// Which routes trees may take between two ranks.
enum class JointWays : std::uint8_t {
    usual,   ///< the default routes
    detours  ///< others too, pinned, each a lane of its own
};

/// All-reduce along in-trees and out-trees with common roots that together come near the optimum of
/// `end_point_optimum`, shallow and evenly spread over lanes (`joint_trees`). Where equal shares of all ranks
/// reach the optimum on a machine that looks the same from every rank, they are those of `symmetric_forest`.
/// Elsewhere trees are looked for from one root of every orbit of the shifts that map the machine to itself
/// (`symmetric_shifts`) and turned to the other roots, message by message, so that all of an orbit have the
/// same order and simulation can fold them. Shares are whole numbers, as few as lose less than 0.05%. Every
/// piece is reduced up its in-tree and sent down its out-tree; pieces do not wait for each other, so both
/// phases run at once. One group of all ranks. Throws an input error with the reason when the case is not
/// served.
JointAlgorithm joint(const topologies::Topology& topology, const ir::Collective& collective,
                     topologies::RoutePolicy policy = topologies::RoutePolicy::spread, std::uint64_t seed = 0,
                     JointWays ways = JointWays::usual);

/// From how many roots `joint` looks for trees: one of every orbit of the machine's shifts.
int joint_roots(const topologies::Topology& topology, int ranks, topologies::RoutePolicy policy,
                std::uint64_t seed = 0);

}  // namespace baton::synth
