#include <baton/topologies/host_nics.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <queue>

namespace baton::topologies {
namespace {

// Distances from a rank's node to all nodes of its host, without leaving it.
std::vector<Distance> distances_in_host(const Topology& topology, const Forwarding& rules, int source) {
    std::vector<Distance> distance(rules.host_nodes(rules.host(source)).size());
    using Entry = std::pair<Distance, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
    heap.push({distance[at(rules.place_in_host(source))] = {0, 0}, source});
    while (!heap.empty()) {
        const auto [reached, u] = heap.top();
        heap.pop();
        if (distance[at(rules.place_in_host(u))] < reached) continue;
        for (const int link : topology.out_links[at(u)]) {
            Phase next;
            if (!rules.step(source, {}, Phase::home, link, next) || next != Phase::home) continue;
            const int v = topology.links[at(link)].to;
            const Distance candidate = reached.plus(rules.cost(link, u == source));
            Distance& best = distance[at(rules.place_in_host(v))];
            if (candidate < best) heap.push({best = candidate, v});
        }
    }
    return distance;
}

// The NICs at the least distance.
std::vector<int> nearest(const std::vector<Distance>& distance, const Forwarding& rules,
                         const std::vector<int>& nics) {
    std::vector<int> ties;
    Distance best;
    for (const int nic : nics) {
        const Distance d = distance[at(rules.place_in_host(nic))];
        if (!d.known() || d > best) continue;
        if (d < best) ties.clear();
        best = d;
        ties.push_back(nic);
    }
    return ties;
}

}  // namespace

std::vector<std::pair<int, std::vector<int>>> assign_nics(const Topology& topology, const Forwarding& rules,
                                                          int host, std::vector<std::string>& warnings) {
    std::vector<int> ranks, nics;
    std::int64_t links = 0;
    for (const int node : rules.host_nodes(host)) {
        const Node& n = topology.nodes[at(node)];
        if (n.rank >= 0) ranks.push_back(n.rank);
        if (n.type == NodeType::nic && rules.has_fabric_link(node)) nics.push_back(node);
        links += static_cast<std::int64_t>(topology.out_links[at(node)].size());
    }
    std::sort(ranks.begin(), ranks.end());
    std::vector<std::pair<int, std::vector<int>>> result;
    // A search per rank would take minutes; no real host comes near.
    const bool too_large = static_cast<std::int64_t>(ranks.size()) * links > 1'000'000'000;
    if (nics.empty() || too_large) {
        for (const int rank : ranks) result.push_back({rank, nics});
        return result;
    }
    std::map<std::vector<int>, std::vector<int>> groups;
    for (const int rank : ranks) {
        groups[nearest(distances_in_host(topology, rules, topology.rank_nodes[at(rank)]), rules, nics)]
            .push_back(rank);
    }
    for (const auto& [ties, members] : groups) {
        const std::size_t g = members.size(), k = ties.size();
        const bool divides = k == 0 || g % k == 0 || k % g == 0;
        for (std::size_t i = 0; i < g; ++i) {
            std::vector<int> own;
            for (std::size_t n = 0; n < k; ++n) {
                if (!divides || (k <= g ? n == i % k : n % g == i)) own.push_back(ties[n]);
            }
            result.push_back({members[i], std::move(own)});
        }
        if (!divides) {
            warnings.push_back(
                fmt::format("host {}: {} NICs at the same distance from {} ranks; no locality known, traffic "
                            "is spread over all of them",
                            topology.nodes[at(rules.host_nodes(host).front())].host, k, g));
        }
    }
    return result;
}

}  // namespace baton::topologies
