#include <baton/synth/link_forest.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/forward_graph.hpp>
#include <baton/synth/switch_removal.hpp>
#include <baton/synth/tree_count.hpp>

#include <algorithm>

namespace baton::synth {
using topologies::Routes;
using topologies::Topology;

double forest_time(const Topology& topology, const Routes& routes, const Forest& forest, bool turned,
                   const WayNumbers& ways) {
    std::map<std::tuple<int, int, int>, std::int64_t> messages;
    for (const PackedTree& tree : forest.trees) {
        for (std::size_t e = 0; e < tree.edges.size(); ++e) {
            auto [from, to] = tree.edges[e];
            if (turned) std::swap(from, to);
            messages[{from, to, tree.ways.empty() ? -1 : tree.ways[e]}] += tree.multiplicity;
        }
    }
    std::vector<double> load(topology.links.size(), 0);
    for (const auto& [key, count] : messages) {
        const auto& [from, to, way] = key;
        const topologies::Route route =
            way < 0 ? routes.between(from, to) : routes.via(from, to, ways.all().at(key));
        for (const topologies::LinkShare& use : route.links)
            load[at(use.link)] += use.share * static_cast<double>(count);
    }
    double most = 0;
    for (std::size_t l = 0; l < load.size(); ++l)
        most = std::max(most, load[l] / topology.links[l].capacity().value());
    for (const topologies::Limit& limit : topology.limits) {
        double sum = 0;
        for (const int link : limit.links) sum += load[at(link)];
        most = std::max(most, sum / limit.bandwidth.value());
    }
    return most / static_cast<double>(forest.per_root);
}

int WayNumbers::number(int sender, int receiver, const std::string& via) {
    const auto [place, fresh] = numbers_.emplace(std::tuple(sender, receiver, via), 0);
    if (fresh) {
        place->second = count_[{sender, receiver}]++;
        vias_[{sender, receiver, place->second}] = via;
    }
    return place->second;
}

std::optional<Forest> link_forest(const Topology& topology, const Routes& routes, int ranks,
                                  const std::vector<int>& roots, bool turned, double optimum,
                                  const ForestOptions& options, WayNumbers& ways) {
    const ForwardGraph graph(topology, routes, ranks, turned);
    std::vector<RankEdge> arcs;
    for (const ForwardArc& arc : graph.arcs()) arcs.push_back({arc.from, arc.to, arc.rate});
    Work work{options.work};
    const TreeCount count = least_trees({ranks, graph.vertices(), arcs, roots}, optimum, options, work);
    if (count.per_root == 0) return std::nullopt;
    Forest forest;
    forest.per_root = count.per_root;
    forest.optimum = optimum;
    std::vector<RootDemand> demands;
    for (const int root : roots) demands.push_back({root, count.per_root});
    const std::vector<DirectLink> links =
        remove_switches(graph, tree_capacities(arcs, count.u), demands, work.left);
    if (links.empty()) return std::nullopt;
    std::vector<RankEdge> edges;
    std::vector<std::int64_t> capacity;
    for (const DirectLink& link : links) {
        const int sender = turned ? link.to : link.from, receiver = turned ? link.from : link.to;
        edges.push_back({link.from, link.to, static_cast<double>(link.trees), link.way.latency,
                         link.way.standard ? -1 : ways.number(sender, receiver, link.way.via)});
        capacity.push_back(link.trees);
    }
    forest.trees = pack_trees(ranks, edges, capacity, demands, work.left, options.most_depth);
    if (forest.trees.empty()) return std::nullopt;
    forest.seconds_per_byte = 1.0 / static_cast<double>(forest.per_root);  // rates are trees
    choose_ways(forest, edges);
    forest.seconds_per_byte = forest_time(topology, routes, forest, turned, ways);
    return forest;
}

}  // namespace baton::synth
