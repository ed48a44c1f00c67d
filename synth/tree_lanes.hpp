// Channels for trees, so that fair sharing gives every pair of ranks what its trees need.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/link_forest.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace baton::synth {

/// One phase of a schedule along trees; `turned`: messages run against the edges, towards the roots.
struct TreePhase {
    Forest* forest = nullptr;
    bool turned = false;
};

struct LaneLimits {
    int most_per_rank = 192;   ///< channels that a rank sends on, and that it receives on, all peers together
    double tolerance = 0.002;  ///< how far below its need the fair share of a channel may be, relative
    std::int64_t most_steps = 80'000;  ///< trees times edges up to which trees are divided
};

/// By sender, receiver and channel: the route that steps are pinned to.
using LaneRoutes = std::map<std::tuple<int, int, int>, std::string>;

/// Gives every edge of every tree a channel, in place of the number of its way (`PackedTree::ways`; -1: no
/// channel, the pair's only one).
///
/// A channel carries one message at a time and all messages share links max-min fairly, so what trees put on
/// a pair of ranks arrives in time only if no resource gives a channel less than its load over the time of
/// the forest. Pairs that would get less are given more channels, the neediest first, until none lacks more
/// than the tolerance or the limit is reached; the numbers with the least lack are kept. Trees are dealt out
/// to the channels of a pair in order and cut where one channel ends and the next begins, unless that makes
/// too many steps. Channels of default routes come first; pinned routes begin at channel 1. `ways`: routes of
/// numbered ways. Trees on default routes alone of more than 100,000 edges stay as they are.
LaneRoutes assign_lanes(const topologies::Topology& topology, const topologies::Routes& routes,
                        const std::vector<TreePhase>& phases, const LaneRoutes& ways,
                        const LaneLimits& limits = {});

/// Pins the steps on these channels to their routes.
void pin_lanes(ir::Algorithm& algorithm, const LaneRoutes& lanes, const topologies::Topology& topology);

}  // namespace baton::synth
