// Routes between ranks: the one owner of the question "which links does a message use".
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace baton::topologies {

/// A share of a message on one link; shares out of the source sum to 1.
struct LinkShare {
    int link = -1;
    double share = 0;
};

/// How messages from one rank to another travel.
struct Route {
    bool reachable = false;
    Time latency{};                 ///< links plus forwarding nodes, of the least-latency paths
    std::vector<LinkShare> links;   ///< in order of distance from the source; empty for src == dst
    int hops = 0;                   ///< links on a least-latency path with the fewest links
};

/// How a message is spread over equal paths.
enum class RoutePolicy : std::uint8_t {
    spread,   ///< over all least-latency paths in proportion to capacity (the default)
    ecmp,     ///< one path per (source, destination, channel), chosen by a seeded hash
    fixed,    ///< one path: always the first in file order ("static")
};

/// Computes and caches routes. Forwarding rules: GPUs never forward; NICs forward between host side and fabric
/// side only; traffic that enters a host ends at a rank of that host. A GPU's NIC is the nearest by latency then
/// hops; ties go by local rank; where no locality is known traffic is spread over all NICs.
/// Not thread-safe; the topology must outlive it.
class Routes {
public:
    explicit Routes(const Topology& topology, RoutePolicy policy = RoutePolicy::spread, std::uint64_t seed = 0);
    ~Routes();
    Routes(Routes&&) noexcept;

    /// Route between two ranks. `channel` matters for `ecmp` only. The reference lives as long as this object.
    const Route& between(int source_rank, int destination_rank, int channel = 0) const;

    /// The route along a named path: node ids or link ids from source to destination joined by '/'. Throws an
    /// input error naming the first hop that does not exist or may not forward.
    Route via(int source_rank, int destination_rank, const std::string& path) const;

    const Topology& topology() const;
    /// Sentences a user should read (for example: no locality known, traffic spread over all NICs).
    const std::vector<std::string>& warnings() const;

    /// Every rank pair must be connected: throws an input error that names the ranks that cannot reach each other.
    void require_connected(const std::vector<int>& ranks) const;

private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace baton::topologies
