#include <baton/synth/shortest_paths.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;
using Length = std::pair<std::int64_t, std::int64_t>;  // picoseconds, hops; or the other way round

constexpr Length kFar = {INT64_MAX, INT64_MAX};

Length after(const Length& tail, const RankEdge& edge, bool fewest_hops) {
    const std::int64_t latency = edge.latency.picoseconds;
    return {tail.first + (fewest_hops ? 1 : latency), tail.second + (fewest_hops ? latency : 1)};
}

std::vector<Length> lengths_from(int root, int ranks, const std::vector<RankEdge>& edges,
                                 const std::vector<std::vector<int>>& out, bool fewest_hops) {
    std::vector<Length> length(at(ranks), kFar);
    length[at(root)] = {0, 0};
    using Entry = std::pair<Length, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
    heap.push({{0, 0}, root});
    while (!heap.empty()) {
        const auto [reached, v] = heap.top();
        heap.pop();
        if (reached > length[at(v)]) continue;
        for (const int e : out[at(v)]) {
            const Length next = after(reached, edges[at(e)], fewest_hops);
            if (next >= length[at(edges[at(e)].to)]) continue;
            length[at(edges[at(e)].to)] = next;
            heap.push({next, edges[at(e)].to});
        }
    }
    return length;
}

}  // namespace

Forest shortest_path_forest(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                            std::int64_t per_root, bool fewest_hops) {
    Forest forest;
    forest.per_root = per_root;
    std::vector<std::vector<int>> out(at(ranks)), in(at(ranks));
    for (std::size_t e = 0; e < edges.size(); ++e) {
        if (edges[e].rate <= 0) continue;
        out[at(edges[e].from)].push_back(static_cast<int>(e));
        in[at(edges[e].to)].push_back(static_cast<int>(e));
    }
    std::vector<double> load(edges.size(), 0);
    for (const int root : roots) {
        const std::vector<Length> length = lengths_from(root, ranks, edges, out, fewest_hops);
        std::vector<int> order;
        for (int i = 1; i < ranks; ++i) order.push_back((root + i) % ranks);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return length[at(a)] < length[at(b)]; });
        for (std::int64_t t = 0; t < per_root; ++t) {
            stop_point();
            PackedTree tree{root, 1, {}};
            for (const int v : order) {
                int best = -1;
                for (const int e : in[at(v)]) {
                    const RankEdge& edge = edges[at(e)];
                    const Length& tail = length[at(edge.from)];
                    if (tail == kFar || after(tail, edge, fewest_hops) != length[at(v)]) continue;
                    if (best < 0 ||
                        (load[at(e)] + 1) / edge.rate < (load[at(best)] + 1) / edges[at(best)].rate)
                        best = e;
                }
                if (best < 0) throw internal_error("a rank is out of reach of a root");
                load[at(best)] += 1;
                tree.edges.push_back({edges[at(best)].from, v});
            }
            forest.trees.push_back(std::move(tree));
        }
    }
    for (std::size_t e = 0; e < edges.size(); ++e) {
        if (edges[e].rate > 0)
            forest.seconds_per_byte =
                std::max(forest.seconds_per_byte, load[e] / edges[e].rate / static_cast<double>(per_root));
    }
    return forest;
}

Forest shortest_path_forest_within(int most_depth, int ranks, const std::vector<RankEdge>& edges,
                                   const std::vector<int>& roots, std::int64_t per_root) {
    Forest forest = shortest_path_forest(ranks, edges, roots, per_root);
    if (most_depth == 0 || depth_of(forest) <= most_depth) return forest;
    return shortest_path_forest(ranks, edges, roots, per_root, true);
}

ShortestPathAlgorithm shortest_paths(const topologies::Topology& topology, const ir::Collective& collective,
                                     std::int64_t per_root, topologies::RoutePolicy policy,
                                     std::uint64_t seed, int most_depth) {
    const Kind kind = collective.kind;
    if (kind == Kind::custom) throw input_error("shortest_paths is not made for custom collectives");
    if (!collective.groups.empty()) throw input_error("shortest_paths serves one group of all ranks only");
    const TreePhases phases = tree_phases(collective);
    const auto& [roots, in, out] = phases;
    const RankGraph graph = graph_within(topology, collective.ranks, phases, most_depth, policy, seed);
    Forest in_forest, out_forest;
    if (in)
        in_forest = shortest_path_forest_within(most_depth, graph.ranks(), graph.turned(), roots, per_root);
    if (out)
        out_forest = shortest_path_forest_within(most_depth, graph.ranks(), graph.edges(), roots, per_root);
    ShortestPathAlgorithm made;
    made.algorithm = tree_schedule(collective, in ? &in_forest : nullptr, out ? &out_forest : nullptr);
    made.algorithm.name = fmt::format("shortest_paths {}", ir::to_string(kind));
    made.depth = std::max(depth_of(in_forest), depth_of(out_forest));
    return made;
}

}  // namespace baton::synth
