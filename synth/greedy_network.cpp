#include <baton/synth/greedy_network.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/rank_graph.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

using topologies::NodeType;
using topologies::Topology;

constexpr std::size_t kMostPairs = 4'000'000;
constexpr std::size_t kMostRelaxed = 50'000'000;

// For each rank, the ranks that it may reach without passing a GPU: direct neighbors and what is behind
// forwarding nodes. Routes decides afterwards; this only keeps a torus from asking for all pairs.
std::vector<std::vector<int>> near_ranks(const Topology& topology, int ranks) {
    std::vector<std::vector<int>> near(at(ranks));
    std::vector<int> seen(topology.nodes.size(), -1), queue;
    for (int rank = 0; rank < ranks; ++rank) {
        queue = {topology.rank_nodes[at(rank)]};
        seen[at(queue[0])] = rank;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            const topologies::Node& node = topology.nodes[at(queue[i])];
            if (i > 0 && node.rank >= 0 && node.rank < ranks) near[at(rank)].push_back(node.rank);
            if (i > 0 && node.type == NodeType::gpu) continue;
            for (const int link : topology.out_links[at(queue[i])]) {
                const int to = topology.links[at(link)].to;
                if (seen[at(to)] == rank) continue;
                seen[at(to)] = rank;
                queue.push_back(to);
            }
        }
        std::sort(near[at(rank)].begin(), near[at(rank)].end());
    }
    return near;
}

}  // namespace

std::int64_t greedy_duration(Bytes bytes, double seconds_per_byte, std::int64_t most) {
    // Less than a hundredth of a picosecond is rounding of the rate.
    const double picoseconds = std::ceil(static_cast<double>(bytes.count) * seconds_per_byte * 1e12 - 0.01);
    if (picoseconds <= 0) return 0;
    return picoseconds >= static_cast<double>(most) ? most : static_cast<std::int64_t>(picoseconds);
}

void GreedyNetwork::Lists::fill(int lists,
                                const std::vector<std::pair<std::int32_t, std::int32_t>>& members) {
    begin.assign(at(lists) + 1, 0);
    items.resize(members.size());
    for (const auto& [list, item] : members) ++begin[at(list) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    for (const auto& [list, item] : members) items[at(next[at(list)]++)] = item;
}

GreedyNetwork::GreedyNetwork(const Topology& topology, int ranks, topologies::RoutePolicy policy,
                             std::uint64_t seed)
    : ranks_(ranks), resources_(static_cast<int>(topology.links.size() + topology.limits.size())) {
    hosts_ = topology.rank_hosts();
    hosts_.resize(at(ranks));
    add_edges(topology, policy, seed);
    merge_private();
    index();
}

void GreedyNetwork::add_edges(const Topology& topology, topologies::RoutePolicy policy, std::uint64_t seed) {
    const topologies::Routes routes(topology, policy, seed);
    const std::vector<std::vector<int>> near = near_ranks(topology, ranks_);
    std::size_t pairs = 0;
    for (const auto& list : near) pairs += list.size();
    if (pairs > kMostPairs)
        throw input_error(
            fmt::format("{} pairs of ranks are more than the {} that greedy looks at", pairs, kMostPairs));
    NearestPairs nearest(hosts_);
    for (int a = 0; a < ranks_; ++a) {
        for (const int b : near[at(a)]) {
            if (hosts_[at(a)] != hosts_[at(b)]) nearest.learn(a, b, routes.between(a, b));
        }
    }
    const std::vector<std::vector<int>> limits_of = limits_of_links(topology);
    const std::vector<double> capacity = resource_capacities(topology);
    const auto add = [&](int a, int b) {
        const topologies::Route& route = routes.between(a, b);
        GreedyEdge edge{
            a, b, route.latency, 0, hosts_[at(a)] != hosts_[at(b)], static_cast<std::int32_t>(uses_.size()),
            0};
        for (const auto& [resource, share] : resource_uses(route, limits_of)) {
            const double seconds = share / capacity[at(resource)];
            uses_.push_back({resource, seconds});
            edge.seconds_per_byte = std::max(edge.seconds_per_byte, seconds);
        }
        edge.uses = static_cast<std::int32_t>(uses_.size()) - edge.first_use;
        edges_.push_back(edge);
    };
    std::vector<std::pair<int, int>> left;
    for (int a = 0; a < ranks_; ++a) {
        for (const int b : near[at(a)]) {
            const topologies::Route& route = routes.between(a, b);
            if (!route.reachable) continue;
            if (nearest.near(a, b, route))
                add(a, b);
            else
                left.emplace_back(a, b);
        }
    }
    if (static_cast<std::size_t>(ranks_) * edges_.size() > kMostRelaxed) return;
    const std::vector<std::pair<int, int>> sooner =
        quicker_than_edges(left, [&](int a, int b) { return routes.between(a, b).latency; });
    for (const auto& [a, b] : sooner) add(a, b);
}

std::vector<std::pair<int, int>> GreedyNetwork::quicker_than_edges(
    const std::vector<std::pair<int, int>>& pairs, const std::function<Time(int, int)>& latency) const {
    std::vector<std::pair<int, int>> quicker;
    std::vector<std::vector<std::size_t>> out(at(ranks_));
    for (std::size_t e = 0; e < edges_.size(); ++e) out[at(edges_[e].from)].push_back(e);
    std::vector<Time> reached;
    int source = -1;
    for (const auto& [a, b] : pairs) {
        if (a != source) {
            source = a;
            reached.assign(at(ranks_), Time::max());
            reached[at(a)] = {0};
            std::set<std::pair<Time, int>> queue = {{{0}, a}};
            while (!queue.empty()) {
                const auto [time, v] = *queue.begin();
                queue.erase(queue.begin());
                for (const std::size_t e : out[at(v)]) {
                    const Time next = time + edges_[e].latency;
                    if (next >= reached[at(edges_[e].to)]) continue;
                    queue.erase({reached[at(edges_[e].to)], edges_[e].to});
                    reached[at(edges_[e].to)] = next;
                    queue.emplace(next, edges_[e].to);
                }
            }
        }
        if (latency(a, b) < reached[at(b)]) quicker.emplace_back(a, b);
    }
    return quicker;
}

void GreedyNetwork::merge_private() {
    std::vector<int> count(at(resources_), 0);
    for (const GreedyUse& use : uses_) ++count[at(use.resource)];
    std::vector<GreedyUse> kept;
    std::vector<std::int32_t> number(at(resources_), -1);
    std::int32_t next = 0;
    for (GreedyEdge& edge : edges_) {
        const auto begin = static_cast<std::int32_t>(kept.size());
        double own = 0;
        for (std::int32_t u = edge.first_use; u < edge.first_use + edge.uses; ++u) {
            const GreedyUse& use = uses_[at(u)];
            if (count[at(use.resource)] == 1) {
                own = std::max(own, use.seconds_per_byte);
                continue;
            }
            if (number[at(use.resource)] < 0) number[at(use.resource)] = next++;
            kept.push_back({number[at(use.resource)], use.seconds_per_byte});
        }
        // A message leaves an edge at the rate of its slowest resource: the edge itself is busy so long.
        kept.push_back({next++, std::max(own, edge.seconds_per_byte)});
        edge.first_use = begin;
        edge.uses = static_cast<std::int32_t>(kept.size()) - begin;
    }
    uses_ = std::move(kept);
    resources_ = next;
}

void GreedyNetwork::index() {
    std::vector<std::pair<std::int32_t, std::int32_t>> from, to, used;
    for (std::size_t e = 0; e < edges_.size(); ++e) {
        const auto number = static_cast<std::int32_t>(e);
        from.emplace_back(edges_[e].from, number);
        to.emplace_back(edges_[e].to, number);
        for (const GreedyUse& use : uses_of(number)) used.emplace_back(use.resource, number);
    }
    out_.fill(ranks_, from);
    in_.fill(ranks_, to);
    users_.fill(resources_, used);
}

bool GreedyNetwork::connected() const {
    for (const bool backward : {false, true}) {
        std::vector<char> seen(at(ranks_), 0);
        std::vector<int> queue = {0};
        seen[0] = 1;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const std::int32_t e : backward ? in(queue[i]) : out(queue[i])) {
                const int v = backward ? edges_[at(e)].from : edges_[at(e)].to;
                if (!seen[at(v)]) seen[at(v)] = 1, queue.push_back(v);
            }
        }
        if (queue.size() < at(ranks_)) return false;
    }
    return true;
}

GreedyNetwork GreedyNetwork::turned() const {
    GreedyNetwork turned = *this;
    for (GreedyEdge& edge : turned.edges_) std::swap(edge.from, edge.to);
    turned.index();
    return turned;
}

}  // namespace baton::synth
