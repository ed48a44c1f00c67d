#include <baton/synth/forest.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/transform.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

constexpr int kShifts = 24;  // attempts at a better division of shared links

// The division of shared links whose forest is best, and that forest.
Forest best_forest(RankGraph& graph, bool turned, const std::vector<int>& roots,
                   const ForestOptions& options) {
    std::vector<double> weights(graph.edges().size(), 1), best_weights = weights;
    double best = 0;
    const int attempts = weights.empty() ? 0 : kShifts;  // one rank alone has no pairs
    for (int attempt = 0; attempt < attempts; ++attempt) {
        graph.share(weights);
        std::vector<char> source_side;
        const std::vector<RankEdge> edges = turned ? graph.turned() : graph.edges();
        const double time = forest_optimum(graph.ranks(), edges, roots, &source_side);
        if (attempt == 0 || time < best * (1 - 1e-9)) {
            best = time;
            best_weights = weights;
        }
        // Pairs that do not cross the binding cut give way.
        for (std::size_t e = 0; e < edges.size(); ++e) {
            const bool crosses = source_side[at(edges[e].from)] && !source_side[at(edges[e].to)];
            if (crosses) weights[e] *= 1.25;
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        for (double& weight : weights) weight = std::max(weight / largest, 1e-3);
    }
    graph.share(best_weights);
    return pack_forest(graph.ranks(), turned ? graph.turned() : graph.edges(), roots, options);
}

// Fractions of a shard at which some tree begins or ends, over all forests, as multiples of 1/K.
struct Classes {
    std::int64_t per_whole = 1;            // K
    std::vector<std::int64_t> boundaries;  // ascending, from 0 to K
    std::vector<std::int64_t> weights() const {
        std::vector<std::int64_t> list;
        for (std::size_t i = 1; i < boundaries.size(); ++i) list.push_back(boundaries[i] - boundaries[i - 1]);
        const std::int64_t divisor =
            std::accumulate(list.begin(), list.end(), std::int64_t{0},
                            [](std::int64_t a, std::int64_t b) { return std::gcd(a, b); });
        for (std::int64_t& weight : list) weight /= divisor;
        return list;
    }
    std::int64_t index(std::int64_t boundary) const {
        return std::lower_bound(boundaries.begin(), boundaries.end(), boundary) - boundaries.begin();
    }
};

Classes common_classes(const std::vector<const Forest*>& forests) {
    Classes classes;
    for (const Forest* forest : forests) classes.per_whole = std::lcm(classes.per_whole, forest->per_root);
    std::set<std::int64_t> boundaries = {0, classes.per_whole};
    for (const Forest* forest : forests) {
        const std::int64_t unit = classes.per_whole / forest->per_root;
        std::map<int, std::int64_t> sum;
        for (const PackedTree& tree : forest->trees)
            boundaries.insert((sum[tree.root] += tree.multiplicity) * unit);
    }
    classes.boundaries.assign(boundaries.begin(), boundaries.end());
    return classes;
}

// broadcast or all_gather along the trees, level by level.
ir::Algorithm out_trees(const ir::Collective& collective, const Forest& forest, const Classes& classes) {
    struct Hop {
        int depth;
        std::size_t tree;
        int from, to;
        std::int64_t first, count;
    };
    const bool gather = collective.kind == Kind::all_gather;
    const std::int64_t chunks = collective.chunks;
    std::vector<Hop> hops;
    std::map<int, std::int64_t> begin;
    const std::int64_t unit = classes.per_whole / forest.per_root;
    for (std::size_t t = 0; t < forest.trees.size(); ++t) {
        const PackedTree& tree = forest.trees[t];
        const std::int64_t first = classes.index(begin[tree.root]);
        const std::int64_t end = classes.index(begin[tree.root] += tree.multiplicity * unit);
        std::map<int, int> depth = {{tree.root, 0}};
        for (const auto& [from, to] : tree.edges) {
            depth[to] = depth[from] + 1;
            hops.push_back({depth[to], t, from, to, first, end - first});
        }
    }
    std::stable_sort(hops.begin(), hops.end(), [](const Hop& a, const Hop& b) { return a.depth < b.depth; });
    ir::AlgorithmBuilder builder(fmt::format("forest {}", ir::to_string(collective.kind)), collective);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        if (gather)
            builder.copy({rank, Buffer::input, 0}, {rank, Buffer::output, rank * chunks}, chunks);
        else if (rank == collective.root)
            builder.copy({rank, Buffer::input, 0}, {rank, Buffer::output, 0}, chunks);
    }
    for (const Hop& hop : hops) {
        const int root = forest.trees[hop.tree].root;
        const std::int64_t index = (gather ? root * chunks : 0) + hop.first;
        builder.send({hop.from, hop.from == root ? Buffer::input : Buffer::output,
                      hop.from == root ? hop.first : index},
                     {hop.to, Buffer::output, index}, hop.count);
    }
    return builder.build();
}

int depth_of(const Forest& forest) {
    int deepest = 0;
    for (const PackedTree& tree : forest.trees) {
        std::map<int, int> depth = {{tree.root, 0}};
        for (const auto& [from, to] : tree.edges) deepest = std::max(deepest, depth[to] = depth[from] + 1);
    }
    return deepest;
}

ir::Collective with_classes(ir::Collective collective, Kind kind, const Classes& classes) {
    collective.kind = kind;
    collective.weights = classes.weights();
    collective.chunks = static_cast<std::int64_t>(collective.weights.size());
    if (std::all_of(collective.weights.begin(), collective.weights.end(),
                    [](std::int64_t w) { return w == 1; }))
        collective.weights.clear();
    if (!ir::has_root(kind)) collective.root = 0;
    collective.peer = -1;
    return collective;
}

}  // namespace

bool forest_serves(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::all_gather ||
           kind == Kind::reduce_scatter || kind == Kind::all_reduce;
}

ForestAlgorithm forest(const topologies::Topology& topology, const ir::Collective& collective,
                       std::int64_t most_trees, topologies::RoutePolicy policy, std::uint64_t seed) {
    if (!forest_serves(collective.kind))
        throw input_error(fmt::format("forest is not made for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("forest serves one group of all ranks only");
    RankGraph graph(topology, collective.ranks, policy, seed);
    if (!graph.connected()) throw input_error("the pairs of ranks with a route do not connect all ranks");
    ForestOptions options;
    options.most_per_root = most_trees;
    std::vector<int> roots;
    const bool rooted = ir::has_root(collective.kind);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        if (!rooted || rank == collective.root) roots.push_back(rank);
    }
    const bool in = collective.kind != Kind::broadcast && collective.kind != Kind::all_gather;
    const bool out = collective.kind != Kind::reduce && collective.kind != Kind::reduce_scatter;
    Forest in_forest, out_forest;
    std::vector<const Forest*> used;
    if (in) used.push_back(&(in_forest = best_forest(graph, true, roots, options)));
    if (out) used.push_back(&(out_forest = best_forest(graph, false, roots, options)));
    const Classes classes = common_classes(used);

    ForestAlgorithm made;
    for (const Forest* forest : used) {
        made.trees_per_root = std::max(made.trees_per_root, forest->per_root);
        made.depth = std::max(made.depth, depth_of(*forest));
    }
    const Kind out_kind = rooted ? Kind::broadcast : Kind::all_gather;
    const ir::Collective spread = with_classes(collective, out_kind, classes);
    if (out) made.algorithm = out_trees(spread, out_forest, classes);
    if (in) {
        ir::Algorithm gathered = ir::reverse(out_trees(spread, in_forest, classes));
        made.algorithm = out ? ir::concatenate(gathered, made.algorithm) : std::move(gathered);
    }
    made.algorithm.name = fmt::format("forest {}", ir::to_string(collective.kind));
    return made;
}

}  // namespace baton::synth
