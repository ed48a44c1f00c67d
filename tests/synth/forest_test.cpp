// Packed trees: complete, within the rates, at the optimum; and the schedules made of them are right.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/forest.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>
#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

// Empty when every root has `per_root` spanning trees and no edge carries more of them than its time allows.
std::string check_forest(int ranks, const std::vector<synth::RankEdge>& edges, const std::vector<int>& roots,
                         const synth::Forest& forest) {
    std::map<int, std::int64_t> trees;
    std::map<std::pair<int, int>, double> load, rate;
    for (const synth::RankEdge& edge : edges) rate[{edge.from, edge.to}] += edge.rate;
    for (const synth::PackedTree& tree : forest.trees) {
        trees[tree.root] += tree.multiplicity;
        std::set<int> reached = {tree.root};
        for (const auto& [from, to] : tree.edges) {
            if (!reached.count(from)) return "an edge begins where the tree is not";
            if (!reached.insert(to).second) return "a vertex is entered twice";
            load[{from, to}] += static_cast<double>(tree.multiplicity);
        }
        if (static_cast<int>(reached.size()) != ranks) return "a tree does not span";
    }
    for (const int root : roots) {
        if (trees[root] != forest.per_root) return "a root has another number of trees";
    }
    const double seconds = forest.seconds_per_byte * static_cast<double>(forest.per_root);
    for (const auto& [edge, amount] : load) {
        if (amount > rate[edge] * seconds * (1 + 1e-5)) return "an edge is overloaded";
    }
    return "";
}

std::vector<int> all_ranks(int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

ir::Collective collective(ir::CollectiveKind kind, int ranks, int root) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.root = root;
    return c;
}

}  // namespace

TEST_CASE("forests of published machines reach the all-gather optimum with the published number of trees") {
    struct Case {
        const char* spec;
        std::int64_t trees;
    };
    for (const Case& c :
         {Case{"paper/dgx1-25", 6}, Case{"torus:4x4", 4}, Case{"torus:3x3x3", 3}, Case{"mesh:4x4", 2},
          Case{"paper/a100-oddeven:hosts=1", 1}, Case{"paper/mi250", 3}}) {
        CAPTURE(c.spec);
        const Topology topology = topologies::load(c.spec);
        const synth::RankGraph graph(topology, topology.rank_count(), topologies::RoutePolicy::spread, 0);
        const synth::Forest forest =
            synth::pack_forest(graph.ranks(), graph.edges(), all_ranks(graph.ranks()));
        CHECK(check_forest(graph.ranks(), graph.edges(), all_ranks(graph.ranks()), forest) == "");
        const synth::Bound bound =
            synth::bound(topology, collective(ir::CollectiveKind::all_gather, topology.rank_count(), 0));
        CHECK(forest.seconds_per_byte ==
              doctest::Approx(bound.bandwidth.seconds_per_byte.value()).epsilon(1e-5));
        CHECK(forest.per_root == c.trees);
    }
}

TEST_CASE("forests on random graphs are complete and near the optimum over cuts") {
    const int seeds = test::full() ? 400 : 60;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        const int ranks = dice.between(2, 9);
        std::vector<synth::RankEdge> edges;
        for (int v = 0; v < ranks; ++v)
            edges.push_back({v, (v + 1) % ranks, dice.between(1, 10) * 1e9, Time{dice.between(0, 5) * 100}});
        for (int i = 0; i < 3 * ranks; ++i) {
            const int a = dice.between(0, ranks - 1), b = dice.between(0, ranks - 1);
            if (a != b) edges.push_back({a, b, dice.between(1, 20) * 1e9, Time{100}});
        }
        std::vector<int> roots =
            dice.chance(50) ? all_ranks(ranks) : std::vector<int>{dice.between(0, ranks - 1)};
        const synth::Forest forest = synth::pack_forest(ranks, edges, roots);
        CHECK(check_forest(ranks, edges, roots, forest) == "");
        CHECK(forest.seconds_per_byte >= forest.optimum * (1 - 1e-5));
        CHECK(forest.seconds_per_byte <= forest.optimum * 1.1);
    }
}

TEST_CASE("rates of pairs of ranks fit on all links together") {
    for (int seed = 0; seed < 40; ++seed) {
        CAPTURE(seed);
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 400);
        synth::RankGraph graph(topology, topology.rank_count(), topologies::RoutePolicy::spread, 0);
        std::vector<double> weights;
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        for (std::size_t e = 0; e < graph.edges().size(); ++e) weights.push_back(dice.between(1, 9));
        graph.share(weights);
        const topologies::Routes routes(topology);
        std::vector<double> load(topology.links.size(), 0);
        for (const synth::RankEdge& edge : graph.edges()) {
            CHECK(edge.rate > 0);
            for (const topologies::LinkShare& use : routes.between(edge.from, edge.to).links)
                load[static_cast<std::size_t>(use.link)] += use.share * edge.rate;
        }
        for (std::size_t l = 0; l < load.size(); ++l)
            CHECK(load[l] <= topology.links[l].capacity().value() * (1 + 1e-9));
        CHECK(graph.connected());
    }
}

TEST_CASE("schedules of forests verify for every kind on random machines") {
    const int seeds = test::full() ? 200 : 20;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.most_ranks = 9;
        options.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 220, options);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            if (!synth::forest_serves(kind)) continue;
            CAPTURE(ir::to_string(kind));
            const ir::Collective c = collective(kind, topology.rank_count(), seed % topology.rank_count());
            const synth::ForestAlgorithm made = synth::forest(topology, c, seed % 3 == 0 ? 1 : 8);
            CHECK(made.algorithm.collective.kind == kind);
            CHECK(made.algorithm.collective.root == (ir::has_root(kind) ? c.root : 0));
            CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        }
    }
}

TEST_CASE("one rank alone has a forest without edges") {
    Topology topology;
    topology.name = "alone";
    topologies::Node node;
    node.id = "g0";
    node.type = topologies::NodeType::gpu;
    topology.add_node(node);
    topology.finish();
    for (const auto kind : ir::standard_kinds()) {
        if (!synth::forest_serves(kind)) continue;
        ir::Collective collective;
        collective.kind = kind;
        collective.ranks = 1;
        const auto made = synth::forest(topology, collective, 8, topologies::RoutePolicy::spread, 0);
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        CHECK(made.depth == 0);
    }
}

TEST_CASE("what forests do not serve is refused") {
    const Topology ring = topologies::load("ring:4");
    CHECK_THROWS_AS(synth::forest(ring, collective(ir::CollectiveKind::all_to_all, 4, 0), 4), Error);
    ir::Collective grouped = collective(ir::CollectiveKind::all_gather, 4, 0);
    grouped.groups = {{0, 1}, {2, 3}};
    CHECK_THROWS_AS(synth::forest(ring, grouped, 4), Error);
}
