// Trees of least latency and the schedules made of them.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

TEST_CASE("every kind verifies along shortest ways, also where ranks must relay") {
    const int seeds = test::full() ? 200 : 25;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.most_ranks = 9;
        options.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 640, options);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            CAPTURE(ir::to_string(kind));
            ir::Collective c;
            c.kind = kind;
            c.ranks = topology.rank_count();
            c.root = ir::has_root(kind) ? seed % c.ranks : 0;
            if (kind == ir::CollectiveKind::send_recv) c.peer = (seed / 2) % c.ranks;
            for (const std::int64_t per_root : {1, 3}) {
                const ir::Algorithm made = synth::shortest_paths(topology, c, per_root).algorithm;
                CHECK(made.collective.kind == kind);
                CHECK(made.collective.peer == c.peer);
                CHECK(ir::verify(made).assurance == ir::Assurance::proved);
            }
        }
    }
}

TEST_CASE("trees are as deep as the machine is wide, and balanced on tori") {
    const Topology torus = topologies::load("torus:4x4");
    const synth::RankGraph graph(torus, 16, topologies::RoutePolicy::spread, 0);
    std::vector<int> roots;
    for (int r = 0; r < 16; ++r) roots.push_back(r);
    const synth::Forest forest = synth::shortest_path_forest(16, graph.edges(), roots, 8);
    std::size_t deepest = 0;
    for (const synth::PackedTree& tree : forest.trees) {
        CHECK(tree.edges.size() == 15);
        std::vector<std::size_t> depth(16, 0);
        for (const auto& [from, to] : tree.edges)
            depth[static_cast<std::size_t>(to)] = depth[static_cast<std::size_t>(from)] + 1;
        for (const std::size_t d : depth) deepest = std::max(deepest, d);
    }
    CHECK(deepest == 4);
    // Within two fifths of the best rate over all trees, which are twice as deep.
    CHECK(forest.seconds_per_byte <= 1.4 * 3 / 40e9);
    CHECK(forest.seconds_per_byte >= (1 - 1e-9) * 3 / 40e9);
}

TEST_CASE("shortest paths refuse groups and custom collectives") {
    const Topology ring = topologies::load("ring:4");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 4;
    c.groups = {{0, 1}, {2, 3}};
    CHECK_THROWS_AS(synth::shortest_paths(ring, c, 1), Error);
}
