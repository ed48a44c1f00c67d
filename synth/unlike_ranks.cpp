#include <baton/synth/unlike_ranks.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/color_refinement.hpp>

#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace baton::synth {
namespace {

constexpr std::int64_t kMostPairsOfRoots = 50'000'000;
constexpr std::size_t kKinds = 2;  // of hosts, or of leaves: a full one and a part

int root_of(std::vector<int>& parent, int node) {
    while (parent[at(node)] != node) node = parent[at(node)] = parent[at(parent[at(node)])];
    return node;
}

// Sizes of the classes of ranks that links, figures and neighbors tell apart. Where all hosts are equal, so
// are these.
std::set<int> sizes_of_classes(const topologies::Topology& topology) {
    std::vector<std::tuple<topologies::NodeType, bool, std::int64_t>> nodes;
    for (const topologies::Node& node : topology.nodes)
        nodes.emplace_back(node.type, node.rank >= 0, node.latency.picoseconds);
    std::vector<std::tuple<std::int64_t, int, std::int64_t>> links;
    ColoredNetwork network;
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const topologies::Link& link = topology.links[l];
        network.arcs.push_back({link.from, link.to, {static_cast<int>(l)}});
        links.emplace_back(link.goodput.bytes_per_second, link.count, link.latency.picoseconds);
    }
    int count = 0;
    network.vertex_color = numbers_of(nodes, count);
    network.resource_color = numbers_of(links, count);
    ColorRefinement refinement(std::move(network));
    refinement.refine(static_cast<int>(topology.links.size()));
    std::map<int, int> ranks_of;
    for (const int node : topology.rank_nodes) ++ranks_of[refinement.vertices()[at(node)]];
    std::set<int> sizes;
    for (const auto& [color, ranks] : ranks_of) sizes.insert(ranks);
    return sizes;
}

}  // namespace

std::int64_t neighboring_pairs(const topologies::Topology& topology) {
    const auto is_rank = [&](int node) { return topology.nodes[at(node)].rank >= 0; };
    std::vector<int> parent(topology.nodes.size());
    std::iota(parent.begin(), parent.end(), 0);
    for (const topologies::Link& link : topology.links)
        if (!is_rank(link.from) && !is_rank(link.to))
            parent[at(root_of(parent, link.from))] = root_of(parent, link.to);
    // Ranks at each set of switches, and pairs that links join directly.
    std::set<std::pair<int, int>> at_switches, direct;
    for (const topologies::Link& link : topology.links) {
        if (is_rank(link.from) && is_rank(link.to)) direct.insert({link.from, link.to});
        if (is_rank(link.from) != is_rank(link.to)) {
            const int rank = is_rank(link.from) ? link.from : link.to;
            at_switches.insert({root_of(parent, rank == link.from ? link.to : link.from), rank});
        }
    }
    std::int64_t pairs = static_cast<std::int64_t>(direct.size()), together = 0;
    int previous = -1;
    for (const auto& [root, rank] : at_switches) {
        if (root != previous) together = 0;
        previous = root;
        pairs += 2 * together++;
    }
    return pairs;
}

bool too_many_unlike_ranks(const topologies::Topology& topology) {
    const std::int64_t ranks = topology.rank_count();
    if (neighboring_pairs(topology) <= kMostPairsOfRoots / std::max<std::int64_t>(ranks, 1)) return false;
    return sizes_of_classes(topology).size() > kKinds;
}

}  // namespace baton::synth
