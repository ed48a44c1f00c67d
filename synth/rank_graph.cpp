#include <baton/synth/rank_graph.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace baton::synth {
namespace {

using topologies::Routes;
using topologies::Topology;

constexpr int kMostRanks = 2048;

// Least (latency, hops) of the routes from each rank to each other host, and to each rank from each other
// host.
using Length = std::pair<std::int64_t, int>;

Length length_of(const topologies::Route& route) { return {route.latency.picoseconds, route.hops}; }

}  // namespace

RankGraph::RankGraph(const Topology& topology, int ranks, topologies::RoutePolicy policy, std::uint64_t seed)
    : ranks_(ranks) {
    if (ranks > kMostRanks)
        throw input_error(fmt::format("{} ranks are more than the {} for which pairs of ranks are looked at",
                                      ranks, kMostRanks));
    const Routes routes(topology, policy, seed);
    const std::vector<int> hosts = topology.rank_hosts();
    std::map<std::pair<int, int>, Length> to_host, from_host;
    const auto keep_least = [](std::map<std::pair<int, int>, Length>& least, std::pair<int, int> key,
                               Length length) {
        const auto [place, fresh] = least.emplace(key, length);
        if (!fresh) place->second = std::min(place->second, length);
    };
    for (int a = 0; a < ranks; ++a) {
        for (int b = 0; b < ranks; ++b) {
            if (hosts[at(a)] == hosts[at(b)]) continue;
            const topologies::Route& route = routes.between(a, b);
            if (!route.reachable) continue;
            keep_least(to_host, {a, hosts[at(b)]}, length_of(route));
            keep_least(from_host, {b, hosts[at(a)]}, length_of(route));
        }
    }
    std::vector<std::vector<int>> limits_of(topology.links.size());
    for (std::size_t l = 0; l < topology.limits.size(); ++l) {
        for (const int link : topology.limits[l].links)
            limits_of[at(link)].push_back(static_cast<int>(topology.links.size() + l));
    }
    for (const topologies::Link& link : topology.links) capacity_.push_back(link.capacity().value());
    for (const topologies::Limit& limit : topology.limits) capacity_.push_back(limit.bandwidth.value());
    for (int a = 0; a < ranks; ++a) {
        for (int b = 0; b < ranks; ++b) {
            if (a == b) continue;
            const topologies::Route& route = routes.between(a, b);
            if (!route.reachable) continue;
            if (hosts[at(a)] != hosts[at(b)] && length_of(route) != to_host[{a, hosts[at(b)]}] &&
                length_of(route) != from_host[{b, hosts[at(a)]}])
                continue;
            std::map<int, double> shares;
            for (const topologies::LinkShare& use : route.links) {
                shares[use.link] += use.share;
                for (const int limit : limits_of[at(use.link)]) shares[limit] += use.share;
            }
            std::vector<topologies::LinkShare> uses;
            for (const auto& [resource, share] : shares) uses.push_back({resource, share});
            edges_.push_back({a, b, 0, route.latency});
            uses_.push_back(std::move(uses));
        }
    }
    share(std::vector<double>(edges_.size(), 1));
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

std::vector<RankEdge> RankGraph::turned() const {
    std::vector<RankEdge> edges = edges_;
    for (RankEdge& edge : edges) std::swap(edge.from, edge.to);
    return edges;
}

}  // namespace baton::synth
