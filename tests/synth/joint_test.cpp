// All-reduce with both phases planned together: frozen optima, and schedules that reach them.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/rank_symmetry.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "support/full.hpp"
#include "support/gpu_graph.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Collective joint_collective(int ranks) {
    ir::Collective collective;
    collective.kind = ir::CollectiveKind::all_reduce;
    collective.ranks = ranks;
    return collective;
}

// A grid of 50 GB/s links without a way round.
Topology grid(int side) {
    Topology topology = test::loose_gpus("grid", side * side);
    const auto join = [&](int a, int b) { test::join(topology, a, b, Rate{50'000'000'000}, Time{500'000}); };
    for (int y = 0; y < side; ++y) {
        for (int x = 0; x < side; ++x) {
            if (x + 1 < side) join(y * side + x, y * side + x + 1);
            if (y + 1 < side) join(y * side + x, (y + 1) * side + x);
        }
    }
    topology.finish("grid");
    return topology;
}

// On default routes, or on detours where those do better.
synth::JointAlgorithm best_joint(const Topology& topology, const ir::Collective& collective) {
    const topologies::RoutePolicy spread = topologies::RoutePolicy::spread;
    synth::JointAlgorithm usual = synth::joint(topology, collective);
    if (usual.rate >= usual.optimum * 0.98) return usual;
    synth::JointAlgorithm other = synth::joint(topology, collective, spread, 0, synth::JointWays::detours);
    return other.rate > usual.rate ? other : usual;
}

}  // namespace

TEST_CASE("joint all_reduce meets the known optima of meshes and reaches them in the flow model") {
    for (const auto& [side, gigabytes] : {std::pair(3, 75.0), std::pair(4, 80.0)}) {
        CAPTURE(side);
        const Topology topology = grid(side);
        const synth::JointAlgorithm made = synth::joint(topology, joint_collective(side * side));
        CHECK(made.optimum == doctest::Approx(gigabytes * 1e9).epsilon(1e-6));
        CHECK(made.rate >= made.optimum * (1 - 2e-3));
        CHECK(made.rate <= made.optimum * (1 + 1e-6));
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        sim::SimulationOptions options;
        options.size = Bytes{std::int64_t{1} << 30};
        options.tiles = 128;
        const sim::SimulationResult run = sim::simulate(topology, made.algorithm, options);
        CHECK(run.outcome == sim::Outcome::finished);
        CHECK(static_cast<double>(options.size.count) / run.time.seconds() >= 0.95 * gigabytes * 1e9);
    }
}

TEST_CASE("joint all_reduce verifies and stays within the bound on random machines") {
    const int seeds = test::full() ? 200 : 24;
    int near = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions shape;
        shape.fewest_ranks = 2;
        shape.most_ranks = 9;
        shape.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 7100, shape);
        const ir::Collective collective = joint_collective(topology.rank_count());
        const synth::JointAlgorithm made = best_joint(topology, collective);
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        CHECK(made.rate <= made.optimum * (1 + 1e-6));
        // Nothing promises that routes and the search of trees reach it: 5 of 200 are 2% to 8% off.
        near += made.rate >= made.optimum * 0.98 ? 1 : 0;
        CHECK(made.rate >= made.optimum * 0.92);
        const synth::Bound bound = synth::bound(topology, collective);
        CHECK(made.rate <= bound.algbw() * (1 + 1e-6));
        sim::SimulationOptions options;
        options.size = Bytes{1 << 26};
        options.tiles = 8;
        const sim::SimulationResult run = sim::simulate(topology, made.algorithm, options);
        CHECK(run.outcome == sim::Outcome::finished);
        CHECK(run.time >= bound.at(options.size));
    }
    CHECK(near * 40 >= seeds * 39);
}

TEST_CASE("symmetric shifts are those that map a machine to itself") {
    const auto shifts = [](const Topology& topology) {
        const synth::RankGraph graph(topology, topology.rank_count(), topologies::RoutePolicy::spread, 0);
        return synth::symmetric_shifts(graph, topology.rank_hosts());
    };
    CHECK(shifts(topologies::load("torus:4x4")).size() == 16);
    CHECK(shifts(grid(4)).size() == 4);  // turned over, both ways
    CHECK(shifts(grid(3)).size() == 1);
    CHECK(shifts(topologies::load("dgx_h100:hosts=2")).size() == 16);
    CHECK(shifts(topologies::load("paper/mi250:hosts=2")).size() == 8);
    Topology lame = topologies::load("torus:4x4");
    lame.links[5].goodput.bytes_per_second /= 2;
    lame.finish();
    CHECK(shifts(lame).size() == 1);
    for (const std::vector<int>& image : shifts(grid(4))) {
        std::vector<int> sorted = image;
        std::sort(sorted.begin(), sorted.end());
        for (int v = 0; v < 16; ++v) CHECK(sorted[static_cast<std::size_t>(v)] == v);
    }
}

TEST_CASE("joint turns the trees of a few roots to all of eight hosts, within 1% of the optimum at 1 GiB") {
    for (const char* name :
         {"dgx_h100:hosts=8", "mi300x:hosts=8", "paper/mi250:hosts=2", "paper/mi250:hosts=8"}) {
        CAPTURE(name);
        const Topology topology = topologies::load(name);
        const synth::JointAlgorithm made = synth::joint(topology, joint_collective(topology.rank_count()));
        CHECK(made.rate >= made.optimum * 0.99);
        CHECK(made.rate <= made.optimum * (1 + 1e-6));
        sim::PreparedAlgorithm prepared(topology, made.algorithm);
        prepared.fold();
        sim::SimulationOptions options;
        options.size = Bytes{std::int64_t{1} << 30};
        options.tiles = 128;
        CHECK(prepared.steps(options.size) * 4 < made.algorithm.step_count());
        const sim::SimulationResult run = prepared.run(options);
        CHECK(run.outcome == sim::Outcome::finished);
        CHECK(static_cast<double>(options.size.count) / run.time.seconds() >= 0.985 * made.optimum);
    }
}

TEST_CASE("joint refuses other collectives, groups and large machines") {
    const Topology topology = grid(3);
    ir::Collective other = joint_collective(9);
    other.kind = ir::CollectiveKind::all_gather;
    CHECK_THROWS_AS(synth::joint(topology, other), Error);
    ir::Collective grouped = joint_collective(9);
    grouped.groups = {{0, 1}, {2, 3}};
    CHECK_THROWS_AS(synth::joint(topology, grouped), Error);
    CHECK_THROWS_AS(synth::joint(grid(9), joint_collective(81)), Error);
}
