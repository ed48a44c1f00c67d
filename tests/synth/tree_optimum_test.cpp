// The exact optimum of trees, and forests that reach it; certificates are checked apart from the
// synthesizers.
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

TEST_CASE("machines without the symmetry have no symmetric forest") {
    for (const char* spec : {"mesh:4x4", "paper/dgx1-25"}) {
        const Topology topology = topologies::load(spec);
        const topologies::Routes routes(topology);
        const auto optimum = synth::tree_optimum(topology, gathering(topology.rank_count()));
        CHECK_FALSE(synth::symmetric_forest(topology, routes, topology.rank_count(),
                                            optimum.seconds_per_byte.value()));
    }
}
