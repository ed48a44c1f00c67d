// Schedules mended after a link has failed.
#include <baton/base/error.hpp>
#include <baton/ir/transform.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/repair.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "support/forest_check.hpp"
#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using test::collective_of;
using topologies::Topology;

namespace {

constexpr ir::CollectiveKind kTreeKinds[] = {
    ir::CollectiveKind::broadcast, ir::CollectiveKind::reduce, ir::CollectiveKind::all_gather,
    ir::CollectiveKind::reduce_scatter, ir::CollectiveKind::all_reduce};

std::string refusal(const ir::Algorithm& algorithm) {
    try {
        synth::lift_forests(algorithm);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

// All trees of both forests, whatever their order.
std::int64_t weight_of(const synth::Forest& forest) {
    std::int64_t sum = 0;
    for (const synth::PackedTree& tree : forest.trees) sum += tree.multiplicity;
    return sum;
}

}  // namespace

TEST_CASE("after a failed link eight boxes have a schedule at the new cut, with few branches moved") {
    const struct {
        const char* machine;
        const char* dead;
        double loss;
    } cases[] = {{"paper/a100-oddeven:hosts=8", "h0/gpu0<>rail0", 0.003},
                 {"paper/h100-rail:hosts=8", "h0/gpu3<>rail3", 0.003},
                 {"paper/a100-oddeven:hosts=2", "h1/gpu5>rail1", 0.03},
                 {"torus:8x8", "gpu0<>gpu1", 0.003},
                 {"torus:4x4x4", "gpu0>gpu1", 0.003}};
    for (const auto& one : cases) {
        CAPTURE(one.machine);
        Topology machine = topologies::load(one.machine);
        const ir::Collective c = collective_of(ir::CollectiveKind::all_gather, machine.rank_count());
        const synth::ForestAlgorithm old = synth::forest(machine, c, 64);
        topologies::fail(machine, one.dead);
        const synth::Repaired made = synth::repair(machine, old.algorithm);
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        CHECK(made.loss < one.loss);
        CHECK(made.depth <= old.depth + 4);
        CHECK(made.replaced > 0);
        CHECK(test::busiest_link(machine, topologies::Routes(machine), made.algorithm) ==
              doctest::Approx((1 + made.loss) * synth::bound(machine, c).bandwidth.seconds_per_byte.value()));
    }
}

TEST_CASE("a schedule for a machine that is as it was comes back as good as it was") {
    const Topology torus = topologies::load("torus:4x4");
    for (const ir::CollectiveKind kind : kTreeKinds) {
        CAPTURE(ir::to_string(kind));
        const ir::Collective c = collective_of(kind, 16, 5);
        const synth::ForestAlgorithm old = synth::forest(torus, c, 64);
        const synth::Repaired made = synth::repair(torus, old.algorithm);
        CHECK(made.replaced == 0);
        CHECK(made.loss <= old.loss + 1e-9);
        CHECK(made.depth <= old.depth);
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
    }
}

TEST_CASE("schedules of every tree family are repaired on random machines and never beat the bound") {
    const int seeds = test::full() ? 300 : 25;
    int repaired = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = test::full() ? 20 : 10;
        options.routed = seed % 2 == 0;
        Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 8800, options);
        const ir::CollectiveKind kind = kTreeKinds[seed % 5];
        const ir::Collective c = collective_of(kind, topology.rank_count(), seed % topology.rank_count());
        CAPTURE(ir::describe(c));
        const ir::Algorithm old[] = {synth::shortest_paths(topology, c, 2).algorithm,
                                     synth::breadth_first(topology, c).algorithm};
        topologies::fail(topology, topology.links[random() % topology.links.size()].id);
        for (const ir::Algorithm& before : old) {
            try {
                const synth::Repaired made = synth::repair(topology, before);
                ++repaired;
                CHECK(made.loss > -1e-9);
                test::check_right_and_above_bound(topology, c, made.algorithm, 1 << 20, 1);
            } catch (const Error& error) {
                CHECK(error.kind() == ErrorKind::input);  // the machine fell apart
            }
        }
    }
    CHECK(repaired > seeds / 2);
}

TEST_CASE("trees are read back from patterns too, through scratch and partial sums") {
    for (const char* name : {"ring", "binomial", "chain", "recursive_doubling", "bruck", "all_pairs"}) {
        CAPTURE(name);
        for (const ir::CollectiveKind kind : kTreeKinds) {
            synth::PatternOptions pattern;
            pattern.collective = collective_of(kind, 8, 3);
            if (!synth::serves(name, pattern)) continue;
            CAPTURE(ir::to_string(kind));
            const ir::Algorithm algorithm = synth::fixed_pattern(name, pattern);
            const std::string why = refusal(algorithm);
            if (why != "accepted") {
                // Ways that are no trees: sums that are passed on twice, or a single root for all chunks.
                CHECK(kind == ir::CollectiveKind::all_reduce);
                continue;
            }
            const synth::LiftedForests forests = synth::lift_forests(algorithm);
            const bool in = ir::reduces(kind);
            CHECK(weight_of(forests.in) == (in ? forests.in.per_root * (ir::has_root(kind) ? 1 : 8) : 0));
            for (const synth::Forest* forest : {&forests.in, &forests.out}) {
                for (const synth::PackedTree& tree : forest->trees) CHECK(tree.edges.size() == 7);
            }
        }
    }
}

TEST_CASE("what is not made of trees is refused with the reason") {
    const Topology full = topologies::load("fully_connected:4");
    const auto direct = [&](ir::CollectiveKind kind) {
        synth::PatternOptions pattern;
        pattern.collective = collective_of(kind, 4);
        return synth::fixed_pattern(kind == ir::CollectiveKind::all_reduce ? "recursive_doubling" : "direct",
                                    pattern);
    };
    CHECK(refusal(direct(ir::CollectiveKind::all_to_all)).find("not made of trees") != std::string::npos);
    CHECK(refusal(direct(ir::CollectiveKind::all_reduce)).find("twice") != std::string::npos);
    ir::Algorithm gather =
        synth::shortest_paths(full, collective_of(ir::CollectiveKind::all_gather, 4), 1).algorithm;
    CHECK_THROWS_AS(synth::repair(topologies::load("fully_connected:5"), gather), Error);
    Topology apart = full;
    topologies::fail(apart, "gpu0>*");
    CHECK_THROWS_AS(synth::repair(apart, gather), Error);
}
