// The best rate of an all_reduce along trees, proved in whole numbers.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::synth {

/// Between what the optimum over all tree schedules lies, in bytes of the buffer per second, with the
/// witness.
///
/// `at_most`: every link l and joint limit has a price p_l >= 0, a whole number. A piece of the buffer that
/// is reduced at rank v and sent out from there uses links worth at least D_v, the least price of an in-tree
/// to v plus that of an out-tree from v, over all routes; a second of all links is worth W = sum of capacity
/// times price. So no schedule along trees is faster than W / min over v of D_v, wherever its roots lie.
///
/// `at_least`: whole rates for both phases and all roots, within the capacities, equal in and out where nodes
/// only pass on, whose cuts all suffice (Edmonds): trees of this rate exist.
struct TreeRate {
    Rational at_most = 0, at_least = 0;
    std::vector<std::int64_t> prices;  ///< per link of the topology, then per joint limit
    /// Distance between both, relative to `at_most`.
    double loss() const { return 1 - at_least.value() / at_most.value(); }
};

/// Of the linear program `end_point_optimum`: its duals and rates, rounded and counted again. Nodes that
/// multicast or reduce only pass on here. Nothing where that gives nothing.
std::optional<TreeRate> tree_rate(const topologies::Topology& topology, const ir::Collective& collective);

}  // namespace baton::synth
