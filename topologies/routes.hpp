// Routes between ranks: the one owner of the question "which links does a message use".
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
    Time latency{};                ///< links plus forwarding nodes, of the least-latency paths
    std::vector<LinkShare> links;  ///< in order of distance from the source; empty for src == dst
    int hops = 0;                  ///< links on a least-latency path with the fewest links
};

/// How a message is spread over equal paths. Links of striping kinds (see `stripes`) carry their part of
/// every message under each policy: hardware interleaves one flow over them.
enum class RoutePolicy : std::uint8_t {
    spread,  ///< over all least-latency paths in proportion to capacity (the default)
    ecmp,    ///< one path per (source, destination, channel), chosen by a seeded hash
    fixed,   ///< one path: always the first in file order ("static")
};

/// "spread", "static", "ecmp" or "ecmp:SEED"; an input error for anything else.
struct NamedPolicy {
    RoutePolicy policy = RoutePolicy::spread;
    std::uint64_t seed = 0;
};
NamedPolicy parse_policy(std::string_view text);

/// Computes and caches routes over the paths of least latency and, among these, fewest links. Capacity of a
/// branch is what it can carry downstream: at a node, a share goes to each link in proportion to the smaller
/// of the link's capacity and that of the paths behind it.
///
/// Forwarding rules: GPUs never forward; NICs forward between host side and fabric side only; traffic that
/// enters a host ends at a rank of that host. A GPU's NIC is the nearest by latency then hops, among those
/// with a link to the fabric; ties go by local rank (G GPUs and K tied NICs, where one divides the other: GPU
/// i has the NICs congruent to i); where they do not divide, no locality is known and traffic is spread over
/// all tied NICs, with a warning. Where the NICs of both ends are not connected (rails without a spine), any
/// NICs serve. Not thread-safe; the topology must outlive it.
class Routes {
public:
    explicit Routes(const Topology& topology, RoutePolicy policy = RoutePolicy::spread,
                    std::uint64_t seed = 0);
    ~Routes();
    Routes(Routes&&) noexcept;

    /// Route between two ranks. `channel` matters for `ecmp` only. The reference lives as long as this
    /// object.
    const Route& between(int source_rank, int destination_rank, int channel = 0) const;

    /// The route along a named path: node ids or link ids from source to destination joined by '/' (an id may
    /// hold
    /// '/' itself: the longest match counts). The end points may be left out. Between two named nodes all
    /// parallel links of least latency serve, in proportion to capacity. Throws an input error naming the
    /// first hop that does not exist or may not forward.
    Route via(int source_rank, int destination_rank, const std::string& path) const;

    const Topology& topology() const;
    /// The NICs (node indices) that a rank's traffic leaves and enters its host by; empty for a rank without
    /// NICs.
    const std::vector<int>& nics(int rank) const;
    /// Sentences a user should read (for example: no locality known, traffic spread over all NICs).
    const std::vector<std::string>& warnings() const;

    /// Every rank pair must be connected: throws an input error that names the ranks that cannot reach each
    /// other.
    void require_connected(const std::vector<int>& ranks) const;

private:
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace baton::topologies
