#include <baton/synth/breadth_first.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/max_flow.hpp>
#include <baton/synth/tree_count.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;

constexpr double kCloseEnough = 1e-3;
constexpr std::int64_t kFineTrees = 720'720;  // so many that whole trees are no restriction worth speaking of

// Hops from each root to each vertex.
std::vector<std::vector<int>> hop_distances(int ranks, const std::vector<RankEdge>& edges,
                                            const std::vector<int>& roots) {
    std::vector<std::vector<int>> next(at(ranks));
    for (const RankEdge& edge : edges) {
        if (edge.rate > 0) next[at(edge.from)].push_back(edge.to);
    }
    std::vector<std::vector<int>> distance;
    for (const int root : roots) {
        std::vector<int> of(at(ranks), -1), queue = {root};
        of[at(root)] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const int v : next[at(queue[i])]) {
                if (of[at(v)] >= 0) continue;
                of[at(v)] = of[at(queue[i])] + 1;
                queue.push_back(v);
            }
        }
        if (queue.size() < at(ranks)) throw internal_error("a rank is out of reach of a root");
        distance.push_back(std::move(of));
    }
    return distance;
}

// What one vertex receives in one layer: which roots, over which edges each of them may come.
struct Layer {
    int vertex = 0;
    std::vector<std::size_t> roots;         // numbers in the list of roots
    std::vector<int> edges;                 // edge numbers
    std::vector<std::vector<int>> allowed;  // per root: places in `edges`
};

// Whole trees of each root over each edge of a layer, and the time they take.
struct LayerShares {
    double seconds = 0;                             // of the busiest edge, for `trees` trees a root
    std::vector<std::vector<std::int64_t>> counts;  // [root of the layer][allowed edge]
};

LayerShares share(const Layer& layer, const std::vector<double>& rates, std::int64_t trees) {
    const int roots = static_cast<int>(layer.roots.size()), count = static_cast<int>(layer.edges.size());
    MaxFlow<std::int64_t> flow(roots + count + 2);
    const int source = roots + count, sink = source + 1;
    std::vector<std::vector<int>> arcs(layer.roots.size());
    std::vector<int> gates;
    for (int r = 0; r < roots; ++r) {
        flow.add(source, r, trees);
        for (const int e : layer.allowed[at(r)]) arcs[at(r)].push_back(flow.add(r, roots + e, trees));
    }
    for (int e = 0; e < count; ++e) gates.push_back(flow.add(roots + e, sink, 0));
    LayerShares shares;
    shares.seconds = least_scale(rates, trees * roots, 0);
    while (true) {
        for (int e = 0; e < count; ++e)
            flow.set_capacity(gates[at(e)], whole_trees(rates[at(e)], shares.seconds));
        if (flow.run(source, sink, trees * roots) == trees * roots) break;
        // The cut: roots on the source side can only use edges on the source side, whose gates are full.
        std::vector<double> full;
        std::int64_t demand = 0;
        for (int r = 0; r < roots; ++r) demand += flow.source_side(r) ? trees : 0;
        for (int e = 0; e < count; ++e) {
            if (flow.source_side(roots + e)) full.push_back(rates[at(e)]);
        }
        const double raised = least_scale(full, demand, shares.seconds);
        if (!(raised > shares.seconds))
            throw internal_error("a violated cut of a layer asks for no more time");
        shares.seconds = raised;
    }
    for (const std::vector<int>& of_root : arcs) {
        shares.counts.emplace_back();
        for (const int arc : of_root) shares.counts.back().push_back(flow.flow_on(arc));
    }
    return shares;
}

// All layers of all vertices, by distance.
std::vector<std::vector<Layer>> layers_of(int ranks, const std::vector<RankEdge>& edges,
                                          const std::vector<std::vector<int>>& distance) {
    std::vector<std::vector<int>> in(at(ranks));
    for (std::size_t e = 0; e < edges.size(); ++e) {
        if (edges[e].rate > 0) in[at(edges[e].to)].push_back(static_cast<int>(e));
    }
    int deepest = 0;
    for (const auto& of_root : distance)
        deepest = std::max(deepest, *std::max_element(of_root.begin(), of_root.end()));
    std::vector<std::vector<Layer>> layers(at(deepest + 1));
    for (int v = 0; v < ranks; ++v) {
        std::vector<std::vector<std::size_t>> by_distance(at(deepest + 1));
        for (std::size_t r = 0; r < distance.size(); ++r) by_distance[at(distance[r][at(v)])].push_back(r);
        for (int t = 1; t <= deepest; ++t) {
            if (by_distance[at(t)].empty()) continue;
            Layer layer{v, by_distance[at(t)], in[at(v)], {}};
            for (const std::size_t r : layer.roots) {
                layer.allowed.emplace_back();
                for (std::size_t e = 0; e < layer.edges.size(); ++e) {
                    if (distance[r][at(edges[at(layer.edges[e])].from)] == t - 1)
                        layer.allowed.back().push_back(static_cast<int>(e));
                }
            }
            layers[at(t)].push_back(std::move(layer));
        }
    }
    return layers;
}

// Divides all layers for one number of trees.
class Division {
public:
    Division(const std::vector<std::vector<Layer>>& layers, const std::vector<RankEdge>& edges,
             std::int64_t trees)
        : trees_(trees) {
        for (const std::vector<Layer>& of_distance : layers) {
            shares_.emplace_back();
            double slowest = 0;
            for (const Layer& layer : of_distance) {
                std::vector<double> rates;
                for (const int e : layer.edges) rates.push_back(edges[at(e)].rate);
                shares_.back().push_back(share(layer, rates, trees));
                slowest = std::max(slowest, shares_.back().back().seconds);
            }
            seconds_per_byte_ += slowest / static_cast<double>(trees);
        }
    }
    double seconds_per_byte() const { return seconds_per_byte_; }
    std::int64_t trees() const { return trees_; }
    const LayerShares& shares(std::size_t distance, std::size_t number) const {
        return shares_[distance][number];
    }

private:
    std::int64_t trees_;
    double seconds_per_byte_ = 0;
    std::vector<std::vector<LayerShares>> shares_;  // [distance][vertex of that layer]
};

// Trees from shares: the trees of a root are dealt out to the edges of each vertex in runs.
Forest trees_of(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                const std::vector<std::vector<Layer>>& layers, const Division& division) {
    Forest forest;
    forest.per_root = division.trees();
    const auto trees = static_cast<std::size_t>(division.trees());
    // Edges by which each tree of each root reaches vertices, in order of distance.
    std::vector<std::vector<std::vector<int>>> grown(roots.size(), std::vector<std::vector<int>>(trees));
    std::vector<double> load(edges.size(), 0);
    for (std::size_t t = 1; t < layers.size(); ++t) {
        for (std::size_t l = 0; l < layers[t].size(); ++l) {
            const Layer& layer = layers[t][l];
            const LayerShares& shares = division.shares(t, l);
            for (std::size_t r = 0; r < layer.roots.size(); ++r) {
                std::size_t tree = 0;
                for (std::size_t a = 0; a < layer.allowed[r].size(); ++a) {
                    const int e = layer.edges[at(layer.allowed[r][a])];
                    load[at(e)] += static_cast<double>(shares.counts[r][a]);
                    for (std::int64_t i = 0; i < shares.counts[r][a]; ++i)
                        grown[layer.roots[r]][tree++].push_back(e);
                }
            }
        }
    }
    for (std::size_t r = 0; r < roots.size(); ++r) {
        for (std::size_t c = 0; c < trees; ++c) {
            if (grown[r][c].size() + 1 != at(ranks)) throw internal_error("a tree of a root does not span");
            if (c > 0 && grown[r][c] == grown[r][c - 1]) {
                ++forest.trees.back().multiplicity;
                continue;
            }
            PackedTree tree{roots[r], 1, {}};
            for (const int e : grown[r][c]) tree.edges.push_back({edges[at(e)].from, edges[at(e)].to});
            forest.trees.push_back(std::move(tree));
        }
    }
    for (std::size_t e = 0; e < edges.size(); ++e) {
        if (load[e] > 0)
            forest.seconds_per_byte = std::max(
                forest.seconds_per_byte, load[e] / edges[e].rate / static_cast<double>(division.trees()));
    }
    forest.optimum = forest.seconds_per_byte;
    return forest;
}

}  // namespace

BreadthFirstForest breadth_first_forest(int ranks, const std::vector<RankEdge>& edges,
                                        const std::vector<int>& roots, int most_trees) {
    const std::vector<std::vector<int>> distance = hop_distances(ranks, edges, roots);
    const std::vector<std::vector<Layer>> layers = layers_of(ranks, edges, distance);
    BreadthFirstForest made;
    made.layers = static_cast<int>(layers.size()) - 1;
    made.layered_optimum = Division(layers, edges, kFineTrees).seconds_per_byte();
    std::unique_ptr<Division> best;
    for (std::int64_t trees = 1; trees <= most_trees; ++trees) {
        auto division = std::make_unique<Division>(layers, edges, trees);
        if (!best || division->seconds_per_byte() < best->seconds_per_byte() * (1 - kCloseEnough))
            best = std::move(division);
        if (best->seconds_per_byte() <= made.layered_optimum * (1 + kCloseEnough)) break;
    }
    made.layered_seconds_per_byte = best->seconds_per_byte();
    made.forest = trees_of(ranks, edges, roots, layers, *best);
    return made;
}

BreadthFirstAlgorithm breadth_first(const topologies::Topology& topology, const ir::Collective& collective,
                                    topologies::RoutePolicy policy, std::uint64_t seed, int most_depth) {
    const Kind kind = collective.kind;
    if (!forest_serves(kind))
        throw input_error(fmt::format("breadth-first layers are not made for {}", ir::to_string(kind)));
    if (!collective.groups.empty()) throw input_error("bfb serves one group of all ranks only");
    const TreePhases phases = tree_phases(collective);
    const auto& [roots, in, out] = phases;
    const RankGraph graph = graph_within(topology, collective.ranks, phases, most_depth, policy, seed);
    BreadthFirstForest inward, outward;
    if (in) inward = breadth_first_forest(graph.ranks(), graph.turned(), roots);
    if (out) outward = breadth_first_forest(graph.ranks(), graph.edges(), roots);
    BreadthFirstAlgorithm made;
    made.algorithm =
        tree_schedule(collective, in ? &inward.forest : nullptr, out ? &outward.forest : nullptr);
    made.algorithm.name = fmt::format("bfb {}", ir::to_string(kind));
    made.trees_per_root = std::max(inward.forest.per_root, outward.forest.per_root);
    made.depth = std::max(inward.layers, outward.layers);
    return made;
}

}  // namespace baton::synth
