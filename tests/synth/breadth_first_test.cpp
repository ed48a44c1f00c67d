// Balanced breadth-first layers: diameter steps, and on tori also the least time.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "support/forest_check.hpp"
#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using test::collective_of;
using topologies::Topology;

namespace {

struct Layered {
    synth::BreadthFirstForest made;
    double over_bound = 0;  // layers one after another, against the bandwidth bound
};

Layered all_gather_on(const std::string& spec) {
    const Topology topology = topologies::load(spec);
    const int ranks = topology.rank_count();
    const synth::RankGraph graph(topology, ranks, topologies::RoutePolicy::spread, 0);
    std::vector<int> roots(static_cast<std::size_t>(ranks));
    std::iota(roots.begin(), roots.end(), 0);
    Layered layered{synth::breadth_first_forest(ranks, graph.edges(), roots)};
    const synth::Bound bound = synth::bound(topology, collective_of(ir::CollectiveKind::all_gather, ranks));
    layered.over_bound = layered.made.layered_seconds_per_byte / bound.bandwidth.seconds_per_byte.value();
    const auto check =
        test::check_forest_on(topology, topologies::Routes(topology), layered.made.forest, false);
    CHECK(check.fault == "");
    CHECK(check.depth == layered.made.layers);
    CHECK(check.seconds_per_byte <= layered.made.layered_seconds_per_byte * (1 + 1e-9));
    return layered;
}

}  // namespace

TEST_CASE("on tori breadth-first layers take diameter steps and the bandwidth bound") {
    const struct {
        const char* spec;
        int diameter;
    } tori[] = {{"torus:3x3", 2}, {"torus:4x4", 4},   {"torus:5x5", 4},   {"torus:4x8", 6},
                {"torus:8x8", 8}, {"torus:3x3x3", 3}, {"torus:4x4x4", 6}, {"hypercube:3", 3},
                {"ring:7", 3},    {"ring:8", 4},      {"mesh:4x4", 6}};
    for (const auto& torus : tori) {
        CAPTURE(torus.spec);
        const Layered layered = all_gather_on(torus.spec);
        CHECK(layered.made.layers == torus.diameter);
        CHECK(layered.over_bound == doctest::Approx(1).epsilon(1.1e-3));
    }
}

TEST_CASE("on the cube mesh and the 8x8 mesh the layers' sum is the published one") {
    const Layered cube = all_gather_on("paper/dgx1-25");
    CHECK(cube.made.layers == 2);
    CHECK(cube.over_bound == doctest::Approx(9.0 / 7).epsilon(1.1e-3));  // (chunks, steps, rounds) = (2,2,3)
    const Layered mesh = all_gather_on("mesh:8x8");
    CHECK(mesh.made.layers == 14);
    CHECK(mesh.over_bound == doctest::Approx(1.079).epsilon(2e-3));
}

TEST_CASE("no division of a layer is better than the one that was found") {
    // Two vertices away from the root, one way twice as fast as the other: 2/3 of the data goes the fast way.
    const std::vector<synth::RankEdge> edges = {{0, 1, 10, {}}, {0, 2, 10, {}}, {1, 3, 2, {}}, {2, 3, 1, {}}};
    const auto made = synth::breadth_first_forest(4, edges, {0});
    CHECK(made.forest.per_root == 3);
    CHECK(made.layered_optimum == doctest::Approx(0.1 + 1.0 / 3));
    CHECK(made.layered_seconds_per_byte == doctest::Approx(0.1 + 1.0 / 3));
}

TEST_CASE("breadth-first layers verify on random machines and never beat the bound") {
    const int seeds = test::full() ? 300 : 20;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = test::full() ? 24 : 12;
        options.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 9100, options);
        for (const ir::CollectiveKind kind :
             {ir::CollectiveKind::broadcast, ir::CollectiveKind::reduce, ir::CollectiveKind::all_gather,
              ir::CollectiveKind::reduce_scatter, ir::CollectiveKind::all_reduce}) {
            CAPTURE(ir::to_string(kind));
            const ir::Collective c = collective_of(kind, topology.rank_count(), seed % topology.rank_count());
            const ir::Algorithm made = synth::breadth_first(topology, c).algorithm;
            test::check_right_and_above_bound(topology, c, made, 1 << 20, 4);
        }
    }
}

TEST_CASE("breadth-first layers refuse what they are not made for") {
    const Topology ring = topologies::load("ring:4");
    CHECK_THROWS_AS(synth::breadth_first(ring, collective_of(ir::CollectiveKind::all_to_all, 4)), Error);
    ir::Collective groups = collective_of(ir::CollectiveKind::all_gather, 4);
    groups.groups = {{0, 1}, {2, 3}};
    CHECK_THROWS_AS(synth::breadth_first(ring, groups), Error);
}
