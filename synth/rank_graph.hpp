// What ranks can send each other directly: the graph on which trees are packed.
#pragma once

#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace baton::synth {

/// A pair of ranks with a route, and the rate that it is given (bytes per second).
struct RankEdge {
    int from = -1, to = -1;
    double rate = 0;
    Time latency{};
    int way = -1;  ///< -1: the default route; else the number of a detour of the pair, see `RankGraph::ways`
};

/// Per link, the joint limits that it is under, numbered as resources behind all links: links.size() + l for
/// limit l.
std::vector<std::vector<int>> limits_of_links(const topologies::Topology& topology);

/// Bytes per second of each resource.
std::vector<double> resource_capacities(const topologies::Topology& topology);

/// What a unit of rate on a route takes of each resource, by number; `limits_of` from `limits_of_links`.
std::vector<topologies::LinkShare> resource_uses(const topologies::Route& route,
                                                 const std::vector<std::vector<int>>& limits_of);

/// Which pairs of ranks on different hosts are looked at: those whose route is as short, by latency, then
/// hops, as any from the sender to the receiver's host, or as any to the receiver from the sender's host (on
/// rails, the ranks of one rail). All routes are learned first.
class NearestPairs {
public:
    explicit NearestPairs(const std::vector<int>& hosts) : hosts_(hosts) {}
    void learn(int from, int to, const topologies::Route& route);
    /// True for all pairs within a host.
    bool near(int from, int to, const topologies::Route& route) const;

private:
    using Length = std::pair<std::int64_t, int>;
    static Length length_of(const topologies::Route& route);

    const std::vector<int>& hosts_;  // per rank
    std::map<std::pair<int, int>, Length> to_host_, from_host_;
};

/// Which pairs of ranks with a route a `RankGraph` has: see `NearestPairs`.
enum class RankPairs : std::uint8_t { nearest, all };

/// Pairs of ranks with rates that all links and joint limits can carry at once. Links shared by several pairs
/// (ports of switches, NICs, trunks) are divided max-min fairly by weight. Which pairs: see `NearestPairs`.
class RankGraph {
public:
    /// Routes of the first `ranks` ranks. Throws an input error when a limit of 2048 ranks is exceeded.
    RankGraph(const topologies::Topology& topology, int ranks, topologies::RoutePolicy policy,
              std::uint64_t seed, RankPairs which = RankPairs::nearest);

    int ranks() const { return ranks_; }
    const std::vector<RankEdge>& edges() const { return edges_; }
    /// What one unit of rate on each edge takes of the resources: links of the topology, then its limits.
    const std::vector<std::vector<topologies::LinkShare>>& uses() const { return uses_; }
    /// Bytes per second of each resource.
    const std::vector<double>& capacities() const { return capacity_; }
    /// Divides shared links anew; `weights` has one positive number per edge.
    void share(const std::vector<double>& weights);
    /// Adds other ways between ranks than their default routes: paths of up to six links over nodes that
    /// forward, shortest first, up to six for a pair that leave its default route, six within it, and `most`
    /// edges in all. They have no rate until `share`
    /// or the caller gives them one. Same topology, policy and seed as the constructor's.
    void add_detours(const topologies::Topology& topology, topologies::RoutePolicy policy, std::uint64_t seed,
                     std::size_t most);
    /// The detours by sender, receiver and number: routes as `via` of a step names them.
    const std::map<std::tuple<int, int, int>, std::string>& ways() const { return ways_; }
    /// True when every rank reaches every other over these edges.
    bool connected() const;
    /// Throws an input error when they do not.
    void require_connected() const;
    /// All edges turned round.
    std::vector<RankEdge> turned() const;

private:
    int ranks_;
    std::vector<RankEdge> edges_;
    std::vector<std::vector<topologies::LinkShare>>
        uses_;                      // per edge: resources (links, then limits) and shares
    std::vector<double> capacity_;  // per resource
    std::map<std::tuple<int, int, int>, std::string> ways_;
};

}  // namespace baton::synth
