// Which way traffic may turn at a node: the forwarding rules behind Routes. Internal to the layer.
#pragma once

#include <baton/topologies/topology.hpp>

#include <compare>
#include <cstdint>
#include <vector>

namespace baton::topologies {

/// Length of a path: least latency first, then fewest links. Latencies are sums of at most 2^21 terms of at
/// most 1 s (see Topology::finish), so they do not overflow.
struct Distance {
    std::int64_t picoseconds = INT64_MAX;
    std::int32_t hops = INT32_MAX;
    auto operator<=>(const Distance&) const = default;
    bool known() const { return hops != INT32_MAX; }
    Distance plus(Time time) const { return {picoseconds + time.picoseconds, hops + 1}; }
};

/// How far a message has come. `away` (inside the destination's host) is entered by one link and never left.
enum class Phase : std::uint8_t {
    home,              ///< inside the source's host
    fabric,            ///< outside of hosts
    fabric_host_side,  ///< at a NIC without a host, arrived from its host side
    away,              ///< inside the destination's host
};
inline constexpr int kForwardPhases = 3;

/// Hosts as numbers and the rules of the design: GPUs never forward; a NIC forwards only between its host
/// side and its fabric side; traffic that enters a host stays there.
class Forwarding {
public:
    explicit Forwarding(const Topology& topology);

    /// Host number of a node, -1 for fabric nodes.
    int host(int node) const { return hosts_[static_cast<std::size_t>(node)]; }
    int host_count() const { return static_cast<int>(host_nodes_.size()); }
    /// Nodes of a host, and the position of a node in its host's list.
    const std::vector<int>& host_nodes(int host) const { return host_nodes_[static_cast<std::size_t>(host)]; }
    int place_in_host(int node) const { return places_[static_cast<std::size_t>(node)]; }
    /// Links that lead into a host from elsewhere.
    const std::vector<int>& entry_links(int host) const {
        return entry_links_[static_cast<std::size_t>(host)];
    }

    /// True when `other` lies on the host side of a NIC.
    bool host_side(int nic, int other) const;
    /// True for a NIC with a link to its fabric side.
    bool has_fabric_link(int nic) const;

    Phase start(int source) const { return host(source) >= 0 ? Phase::home : Phase::fabric; }

    /// Phase after crossing `link` from its tail, reached in `phase`; false when traffic of `source` may not
    /// turn there. `nics`: NICs that may leave the source's host, empty for any.
    bool step(int source, const std::vector<int>& nics, Phase phase, int link, Phase& next) const;

    /// Inside the destination's host: may traffic go on over `link` from its tail, given that it
    /// `just_entered` there from outside?
    bool step_away(int link, bool just_entered) const;

    /// Time from arriving at the tail (or starting there, when `first`) until arriving at the head.
    Time cost(int link, bool first) const;

private:
    const Topology& topology_;
    std::vector<int> hosts_, places_;
    std::vector<std::vector<int>> host_nodes_, entry_links_;
};

}  // namespace baton::topologies
