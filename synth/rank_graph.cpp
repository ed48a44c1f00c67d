#include <baton/synth/rank_graph.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace baton::synth {
namespace {

using topologies::Routes;
using topologies::Topology;

constexpr int kMostRanks = 2048;

}  // namespace

std::vector<topologies::LinkShare> resource_uses(const topologies::Route& route,
                                                 const std::vector<std::vector<int>>& limits_of) {
    std::map<int, double> shares;
    for (const topologies::LinkShare& use : route.links) {
        shares[use.link] += use.share;
        for (const int limit : limits_of[at(use.link)]) shares[limit] += use.share;
    }
    std::vector<topologies::LinkShare> uses;
    for (const auto& [resource, share] : shares) uses.push_back({resource, share});
    return uses;
}

std::vector<double> resource_capacities(const Topology& topology) {
    std::vector<double> capacities;
    for (const topologies::Link& link : topology.links) capacities.push_back(link.capacity().value());
    for (const topologies::Limit& limit : topology.limits) capacities.push_back(limit.bandwidth.value());
    return capacities;
}

NearestPairs::Length NearestPairs::length_of(const topologies::Route& route) {
    return {route.latency.picoseconds, route.hops};
}

void NearestPairs::learn(int from, int to, const topologies::Route& route) {
    if (hosts_[at(from)] == hosts_[at(to)] || !route.reachable) return;
    const auto keep_least = [&](std::map<std::pair<int, int>, Length>& least, std::pair<int, int> key) {
        const auto [place, fresh] = least.emplace(key, length_of(route));
        if (!fresh) place->second = std::min(place->second, length_of(route));
    };
    keep_least(to_host_, {from, hosts_[at(to)]});
    keep_least(from_host_, {to, hosts_[at(from)]});
}

bool NearestPairs::near(int from, int to, const topologies::Route& route) const {
    return hosts_[at(from)] == hosts_[at(to)] || length_of(route) == to_host_.at({from, hosts_[at(to)]}) ||
           length_of(route) == from_host_.at({to, hosts_[at(from)]});
}

std::vector<std::vector<int>> limits_of_links(const Topology& topology) {
    std::vector<std::vector<int>> limits_of(topology.links.size());
    for (std::size_t l = 0; l < topology.limits.size(); ++l) {
        for (const int link : topology.limits[l].links)
            limits_of[at(link)].push_back(static_cast<int>(topology.links.size() + l));
    }
    return limits_of;
}

RankGraph::RankGraph(const Topology& topology, int ranks, topologies::RoutePolicy policy, std::uint64_t seed,
                     RankPairs which)
    : ranks_(ranks) {
    if (ranks > kMostRanks)
        throw input_error(fmt::format("{} ranks are more than the {} for which pairs of ranks are looked at",
                                      ranks, kMostRanks));
    const Routes routes(topology, policy, seed);
    const std::vector<int> hosts = topology.rank_hosts();
    NearestPairs pairs(hosts);
    for (int a = 0; a < ranks; ++a) {
        for (int b = 0; b < ranks; ++b) {
            if (hosts[at(a)] != hosts[at(b)]) pairs.learn(a, b, routes.between(a, b));
        }
    }
    const std::vector<std::vector<int>> limits_of = limits_of_links(topology);
    capacity_ = resource_capacities(topology);
    for (int a = 0; a < ranks; ++a) {
        for (int b = 0; b < ranks; ++b) {
            if (a == b) continue;
            const topologies::Route& route = routes.between(a, b);
            if (!route.reachable || (which == RankPairs::nearest && !pairs.near(a, b, route))) continue;
            edges_.push_back({a, b, 0, route.latency});
            uses_.push_back(resource_uses(route, limits_of));
        }
    }
    share(std::vector<double>(edges_.size(), 1));
}

namespace {

// A path in growth: where it is, where it has been, and its name.
struct Detour {
    int node;
    std::vector<int> been;
    std::string name;
};

// Names of the next hops out of a node: a neighbor where all links to it are equally long, else single links.
std::vector<std::pair<int, std::string>> next_hops(const Topology& topology, const std::vector<int>& out) {
    std::map<int, std::vector<int>> by_head;
    for (const int link : out) by_head[topology.links[at(link)].to].push_back(link);
    std::vector<std::pair<int, std::string>> hops;
    for (const auto& [head, links] : by_head) {
        const bool alike = std::all_of(links.begin(), links.end(), [&](int link) {
            return topology.links[at(link)].latency == topology.links[at(links[0])].latency;
        });
        if (alike) {
            hops.push_back({head, topology.nodes[at(head)].id});
        } else {
            for (const int link : links) hops.push_back({head, topology.links[at(link)].id});
        }
    }
    return hops;
}

}  // namespace

void RankGraph::add_detours(const Topology& topology, topologies::RoutePolicy policy, std::uint64_t seed,
                            std::size_t most) {
    constexpr std::size_t kMostHops = 6, kMostPaths = 4000;
    constexpr int kMostOfPair = 6;
    const Routes routes(topology, policy, seed);
    const std::vector<std::vector<int>> limits_of = limits_of_links(topology);
    std::vector<int> rank_of(topology.nodes.size(), -1);
    for (int rank = 0; rank < ranks_; ++rank) rank_of[at(topology.rank_nodes[at(rank)])] = rank;
    std::set<std::pair<int, int>> direct;
    for (const RankEdge& edge : edges_) direct.insert({edge.from, edge.to});
    for (int a = 0; a < ranks_; ++a) {
        std::map<int, std::set<std::vector<int>>> found;  // receiver -> links of its ways
        std::map<int, int> count, numbers;                // of ways that leave the default route; of all
        std::map<int, int> parts;                         // of ways within it
        std::vector<Detour> queue = {{topology.rank_nodes[at(a)], {topology.rank_nodes[at(a)]}, ""}};
        for (std::size_t q = 0; q < queue.size() && edges_.size() < most; ++q) {
            const Detour here = queue[q];
            for (const auto& [next, name] : next_hops(topology, topology.out_links[at(here.node)])) {
                if (std::find(here.been.begin(), here.been.end(), next) != here.been.end()) continue;
                const std::string path = here.name.empty() ? name : here.name + "/" + name;
                const int b = rank_of[at(next)];
                if (b < 0) {
                    if (topology.nodes[at(next)].type == topologies::NodeType::gpu ||
                        here.been.size() >= kMostHops || queue.size() >= kMostPaths)
                        continue;
                    Detour further{next, here.been, path};
                    further.been.push_back(next);
                    queue.push_back(std::move(further));
                    continue;
                }
                if ((count[b] >= kMostOfPair && parts[b] >= kMostOfPair) || edges_.size() >= most) continue;
                topologies::Route route;
                try {
                    route = routes.via(a, b, path);
                } catch (const Error&) {
                    continue;  // a node on the way does not forward so
                }
                const auto links_of = [](const topologies::Route& way) {
                    std::vector<int> links;
                    for (const topologies::LinkShare& use : way.links) links.push_back(use.link);
                    std::sort(links.begin(), links.end());
                    return links;
                };
                const std::vector<int> links = links_of(route);
                bool within = false;
                if (direct.count({a, b}) != 0) {
                    const std::vector<int> usual = links_of(routes.between(a, b));
                    found[b].insert(usual);
                    within = std::includes(usual.begin(), usual.end(), links.begin(), links.end());
                }
                int& kind = within ? parts[b] : count[b];
                if (kind >= kMostOfPair || !found[b].insert(links).second) continue;
                ++kind;
                const int number = numbers[b]++;
                ways_[{a, b, number}] = path;
                edges_.push_back({a, b, 0, route.latency, number});
                uses_.push_back(resource_uses(route, limits_of));
            }
        }
    }
}

// Progressive filling: all rates rise in proportion to their weights until a resource is full; its edges then
// stay.
void RankGraph::share(const std::vector<double>& weights) {
    std::vector<double> rest = capacity_, pressure(capacity_.size(), 0);
    std::vector<std::vector<int>> users(capacity_.size());
    std::vector<char> fixed(edges_.size(), 0);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
        edges_[e].rate = 0;
        for (const topologies::LinkShare& use : uses_[e]) {
            pressure[at(use.link)] += use.share * weights[e];
            users[at(use.link)].push_back(static_cast<int>(e));
        }
    }
    std::size_t open = edges_.size();
    double level = 0;
    while (open > 0) {
        // The resource that fills first. A resource counts for as long as an open edge presses on it.
        double step = INFINITY;
        for (std::size_t r = 0; r < rest.size(); ++r) {
            if (pressure[r] > 1e-12) step = std::min(step, rest[r] / pressure[r]);
        }
        if (!std::isfinite(step)) break;
        step = std::max(step, 0.0);
        level += step;
        std::vector<std::size_t> full;
        for (std::size_t r = 0; r < rest.size(); ++r) {
            if (pressure[r] <= 1e-12) continue;
            rest[r] -= pressure[r] * step;
            if (rest[r] <= capacity_[r] * 1e-12) full.push_back(r);
        }
        for (const std::size_t r : full) {
            for (const int e : users[r]) {
                if (fixed[at(e)]) continue;
                fixed[at(e)] = 1;
                --open;
                edges_[at(e)].rate = level * weights[at(e)];
                for (const topologies::LinkShare& use : uses_[at(e)])
                    pressure[at(use.link)] -= use.share * weights[at(e)];
            }
            pressure[r] = 0;
        }
    }
}

bool RankGraph::connected() const {
    for (const bool backward : {false, true}) {
        std::vector<std::vector<int>> next(at(ranks_));
        for (const RankEdge& edge : edges_)
            next[at(backward ? edge.to : edge.from)].push_back(backward ? edge.from : edge.to);
        std::vector<char> seen(at(ranks_), 0);
        std::vector<int> queue = {0};
        seen[0] = 1;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const int v : next[at(queue[i])]) {
                if (!seen[at(v)]) seen[at(v)] = 1, queue.push_back(v);
            }
        }
        if (queue.size() < at(ranks_)) return false;
    }
    return true;
}

void RankGraph::require_connected() const {
    if (!connected()) throw input_error("the pairs of ranks with a route do not connect all ranks");
}

std::vector<RankEdge> RankGraph::turned() const {
    std::vector<RankEdge> edges = edges_;
    for (RankEdge& edge : edges) std::swap(edge.from, edge.to);
    return edges;
}

}  // namespace baton::synth
