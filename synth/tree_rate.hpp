// The best rate of an all_reduce along trees, proved in whole numbers.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/base/rational.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::synth {

/// Between what the optimum over all tree schedules lies, in bytes of the buffer per second, with a witness
/// for either side.
///
/// `at_most`: every link and joint limit has a price >= 0, a whole number; to use a link costs its price and
/// that of its limits. A piece of the buffer that is reduced at rank v and sent out from there costs at least
/// D_v: the least price of an in-tree to v plus that of an out-tree from v, over all routes. All that flows
/// in a second is worth W = sum of capacity times price. So no schedule along trees is faster than
/// W / min over v of D_v, wherever its roots lie.
///
/// `at_least`: whole rates for both phases and all roots, in units of `unit` bytes per second: within
/// capacities and limits, in and out equal where nodes only pass on, and cuts all suffice: a source that
/// feeds every root its share can send all of them to any one rank over `broadcast`, and over `reduce` turned
/// round. By Edmonds' branching theorem trees of this rate exist.
struct TreeRate {
    Rational at_most = 0, at_least = 0;
    std::vector<std::int64_t> link_prices, limit_prices;  ///< of the topology's links and limits
    std::int64_t piece = 0;                               ///< min over v of D_v
    Rational unit = 1;
    std::vector<std::int64_t> shares;             ///< per rank
    std::vector<std::int64_t> reduce, broadcast;  ///< per link

    /// Distance between both sides, relative to `at_most`.
    double loss() const { return 1 - at_least.value() / at_most.value(); }
    /// Time that no schedule along trees is below; 0 for no bytes.
    Time time(Bytes size) const;
};

/// Rounds duals and rates of `end_point_optimum` and counts them again. Nothing where that gives nothing.
/// Nodes that multicast or reduce only pass on here: schedules with steps of switches may be faster.
std::optional<TreeRate> tree_rate(const topologies::Topology& topology, const ir::Collective& collective);

/// What the time of a schedule is measured against: `bound`, and the optimum over trees where that is known
/// and all its steps are between ranks.
Time yardstick(Time bound, const std::optional<TreeRate>& trees, const ir::Algorithm& algorithm, Bytes size);

/// The rate and its argument in one line.
std::string tree_rate_in_words(const TreeRate& rate);

/// Rate and witness as a JSON object: prices and rates by the ids of links and limits, zeros left out.
std::string to_json(const topologies::Topology& topology, const TreeRate& rate);

}  // namespace baton::synth
