// The latency bound: how long information must travel, whatever the method.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// The longest of the least-latency ways that information of the collective must go, and that way.
struct LatencyBound {
    Time time{};
    int source = -1, destination = -1;  ///< ranks; -1 when nothing has to travel
    std::vector<int> links;             ///< the way, in order
    /// How many sources were looked at when that was not all (see `kMaxLatencySources`), else 0; the bound
    /// is valid all the same.
    int sampled = 0;
};

/// Sources that are searched for kinds where every rank informs every other, spread evenly over the ranks;
/// fewer on topologies where sources times links would exceed `kMaxLatencyWork`.
inline constexpr int kMaxLatencySources = 1024;
inline constexpr std::int64_t kMaxLatencyWork = 100'000'000;

/// Links and forwarding nodes cost their latency; a member of the communicator that relays in software costs
/// nothing. Throws an input error naming ranks that cannot reach each other, even with other members as
/// relays.
LatencyBound latency_bound(const topologies::Topology& topology, const ir::Collective& collective);

}  // namespace baton::synth
