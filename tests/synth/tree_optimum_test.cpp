// The exact optimum of trees, and forests that reach it; certificates are checked apart from the
// synthesizers.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/symmetric_forest.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_schedules.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "support/forest_check.hpp"
#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Collective gathering(int ranks, ir::CollectiveKind kind = ir::CollectiveKind::all_gather) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    return c;
}

}  // namespace

TEST_CASE("optimum and number of trees of published machines, exactly") {
    struct Case {
        const char* spec;
        std::int64_t num, den, trees;  // seconds per gigabyte and root
    };
    for (const Case& c :
         {Case{"paper/dgx1-25", 7, 150, 6}, Case{"paper/torus-50:shape=4x4", 3, 40, 4},
          Case{"torus:3x3x3", 13, 150, 3}, Case{"mesh:4x4", 3, 20, 2},
          Case{"paper/a100-oddeven:hosts=1", 7, 300, 1}, Case{"paper/a100-oddeven:hosts=2", 3, 65, 13},
          Case{"paper/a100-oddeven:hosts=4", 3, 25, 1}, Case{"paper/h100-rail:hosts=2", 3, 100, 2},
          Case{"paper/mi250:hosts=1", 7, 150, 3}}) {
        CAPTURE(c.spec);
        const Topology topology = topologies::load(c.spec);
        for (const auto kind : {ir::CollectiveKind::all_gather, ir::CollectiveKind::reduce_scatter}) {
            const synth::TreeOptimum optimum =
                synth::tree_optimum(topology, gathering(topology.rank_count(), kind));
            CHECK(optimum.exact);
            CHECK(optimum.seconds_per_byte == Rational(c.num, c.den * 1'000'000'000));
            CHECK(optimum.per_root == c.trees);
            CHECK(Rational(optimum.per_unit, optimum.unit) / Rational(optimum.per_root) ==
                  optimum.seconds_per_byte);
        }
    }
}

TEST_CASE("symmetric machines: trees at the optimum and as shallow as the machine") {
    struct Case {
        const char* spec;
        int depth;
        std::int64_t most_trees;
    };
    for (const Case& c :
         {Case{"torus:8x8", 8, 4}, Case{"torus:3x3x3", 3, 6}, Case{"torus:4x4x4", 6, 2},
          Case{"hypercube:4", 4, 8}, Case{"ring:7", 3, 2}, Case{"paper/a100-oddeven:hosts=1", 1, 1},
          Case{"paper/a100-oddeven:hosts=2", 3, 13}, Case{"paper/a100-oddeven:hosts=4", 2, 1},
          Case{"paper/a100-oddeven:hosts=8", 2, 1}, Case{"paper/h100-rail:hosts=2", 2, 2},
          Case{"paper/h100-rail:hosts=8", 2, 1}, Case{"paper/h100-flat:hosts=4", 3, 10}}) {
        CAPTURE(c.spec);
        const Topology topology = topologies::load(c.spec);
        const int ranks = topology.rank_count();
        const topologies::Routes routes(topology);
        for (const bool turned : {false, true}) {
            const synth::TreeOptimum optimum =
                synth::tree_optimum(topology, gathering(ranks, turned ? ir::CollectiveKind::reduce_scatter
                                                                      : ir::CollectiveKind::all_gather));
            synth::SymmetryOptions options;
            options.turned = turned;
            const auto forest =
                synth::symmetric_forest(topology, routes, ranks, optimum.seconds_per_byte.value(), options);
            REQUIRE(forest);
            const test::ForestCheck check = test::check_forest_on(topology, routes, *forest, turned);
            CHECK(check.fault == "");
            CHECK(check.seconds_per_byte <= optimum.seconds_per_byte.value() * 1.001 * (1 + 1e-9));
            CHECK(check.seconds_per_byte == doctest::Approx(forest->seconds_per_byte).epsilon(1e-9));
            CHECK(check.depth <= c.depth);
            CHECK(forest->per_root <= c.most_trees);
        }
    }
}

TEST_CASE("boxes whose cut counts ways over their CPUs get shallow trees that take them") {
    for (const auto kind : {ir::CollectiveKind::all_gather, ir::CollectiveKind::reduce_scatter}) {
        for (const char* spec : {"mi300x:hosts=8", "dgx_h100:hosts=1"}) {
            CAPTURE(spec);
            const Topology topology = topologies::load(spec);
            const synth::ForestAlgorithm made =
                synth::forest(topology, gathering(topology.rank_count(), kind), {64});
            CHECK(made.loss < 0.001);
            CHECK(made.depth <= 2);
            CHECK_FALSE(made.algorithm.vias.empty());
            ir::VerifyOptions options;
            options.memory_budget = std::int64_t{512} << 20;
            CHECK(ir::verify(made.algorithm, options).assurance != ir::Assurance::not_proven);
        }
    }
}

TEST_CASE("machines without the symmetry have no symmetric forest") {
    for (const char* spec : {"mesh:4x4", "paper/dgx1-25"}) {
        const Topology topology = topologies::load(spec);
        const topologies::Routes routes(topology);
        const auto optimum = synth::tree_optimum(topology, gathering(topology.rank_count()));
        CHECK_FALSE(synth::symmetric_forest(topology, routes, topology.rank_count(),
                                            optimum.seconds_per_byte.value()));
    }
}

TEST_CASE("a number of trees and a depth can be asked for") {
    const Topology boxes = topologies::load("paper/a100-oddeven:hosts=2");
    const auto one = synth::forest(boxes, gathering(16), synth::TreeLimits(1, true));
    CHECK(one.trees_per_root == 1);
    CHECK(one.loss == doctest::Approx(7.0 / 6 * 13 / 15 - 1).epsilon(1e-5));
    const auto all = synth::forest(boxes, gathering(16), synth::TreeLimits(13, true));
    CHECK(all.trees_per_root == 13);
    CHECK(all.loss < 1e-6);

    const Topology cube = topologies::load("paper/dgx1-25");
    double before = 1;
    for (const int depth : {2, 3, 5}) {
        CAPTURE(depth);
        const auto made = synth::forest(cube, gathering(8), synth::TreeLimits(6, false, depth));
        CHECK(made.depth <= depth);
        CHECK(made.loss <= before);
        CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
        before = made.loss;
    }
    CHECK(before < 1e-5);
    CHECK_THROWS_AS(synth::forest(cube, gathering(8), synth::TreeLimits(6, false, 1)), Error);
}

TEST_CASE("trees of direct networks are shallow at the optimum") {
    for (const auto& [spec, depth] :
         {std::pair("mesh:4x4", 6), std::pair("paper/dgx1-25", 3), std::pair("mesh:8x8", 14)}) {
        CAPTURE(spec);
        const Topology topology = topologies::load(spec);
        const auto made = synth::forest(topology, gathering(topology.rank_count()), synth::TreeLimits(8));
        CHECK(made.depth <= depth);
        CHECK(made.loss < 1e-5);
    }
}

TEST_CASE("no forest beats the cuts of its machine, and shared links are divided well") {
    const int seeds = test::full() ? 300 : 24;
    double sum = 0;
    int cases = 0, at_optimum = 0, pinned = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.most_ranks = test::full() ? 16 : 10;
        options.routed = true;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 7000, options);
        for (const auto kind : {ir::CollectiveKind::all_gather, ir::CollectiveKind::broadcast,
                                ir::CollectiveKind::reduce_scatter, ir::CollectiveKind::reduce}) {
            CAPTURE(ir::to_string(kind));
            if (topology.rank_count() < 2) continue;
            const ir::Collective c = gathering(topology.rank_count(), kind);
            const auto made = synth::forest(topology, c, synth::TreeLimits(64));
            CHECK(made.loss > -1e-6);
            // What the steps put on links along their routes is what the forest promised.
            const double least = synth::tree_optimum(topology, c).seconds_per_byte.value();
            const double busiest = test::busiest_link(topology, topologies::Routes(topology), made.algorithm);
            CHECK(busiest >= least * (1 - 1e-6));
            if (kind == ir::CollectiveKind::all_gather || kind == ir::CollectiveKind::broadcast)
                CHECK(busiest <= least * (1 + made.loss) * (1 + 1e-5));
            pinned += made.algorithm.vias.empty() ? 0 : 1;
            CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
            sum += made.loss;
            ++cases;
            at_optimum += made.loss < 0.01 ? 1 : 0;
        }
    }
    CHECK(pinned > 0);
    CHECK(at_optimum * 5 >= cases * 4);
    CHECK(sum < 0.02 * cases);
    MESSAGE(at_optimum, " of ", cases, " within 1% of the cut, mean loss ", sum / cases);
}
