// Trees whose messages share links through switches that multicast or reduce.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// A schedule with steps of switches, and how many messages they stand for.
struct PrunedAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t replaced = 0;  ///< messages between two ranks that are gone
    std::int64_t switched = 0;  ///< steps of switches in their place
};

/// Where a rank sends the same place to several others, the ways to those that a node with `multicast` tells
/// apart carry one message instead of one each (a `multicast` step): the ways leave the rank over the same
/// links and part nowhere but at such nodes. Where a rank adds what others hold unchanged to its own, the
/// same holds in reverse for nodes with `reduce` (`switch_reduce`). So the load of no link grows, and what is
/// saved is the way from the sender to the switch, or from the switch to the receiver (tree pruning of
/// ForestColl, arXiv 2402.06787).
///
/// Made for trees out of roots and into roots, and both, one after the other; what could change a value that
/// somebody reads meanwhile stays as it is, and so do steps on pinned routes and in par blocks. Throws an
/// input error when the schedule has steps of switches already.
PrunedAlgorithm with_switch_steps(const topologies::Topology& topology, const topologies::Routes& routes,
                                  const ir::Algorithm& algorithm);

}  // namespace baton::synth
