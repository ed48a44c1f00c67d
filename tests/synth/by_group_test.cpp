// Synthesizers of whole machines, for groups of ranks.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/relay.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include "support/full.hpp"
#include "support/random_groups.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Algorithm grouped(const Topology& topology, const ir::Collective& c, const synth::MakeForAll& make) {
    return synth::with_relays(synth::by_group(topology, c, make), topologies::Routes(topology));
}

ir::Algorithm shortest(const Topology& machine, const ir::Collective& c) {
    return synth::shortest_paths(machine, c, 1).algorithm;
}

void check_result(const Topology& topology, const ir::Collective& c, const ir::Algorithm& made) {
    CHECK(made.collective.groups == c.groups);
    test::check_right_and_above_bound(topology, c, made, 1 << 20, 2);
}

}  // namespace

TEST_CASE("groups verify on random machines, over relays where they must, and never beat the bound") {
    const int seeds = test::full() ? 300 : 24;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        test::RandomTopologyOptions options;
        options.most_ranks = test::full() ? 24 : 12;
        options.routed = seed % 3 != 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 7300, options);
        ir::Collective c;
        c.ranks = topology.rank_count();
        c.groups = test::random_groups(dice, c.ranks);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            c.kind = kind;
            CAPTURE(ir::to_string(kind));
            check_result(topology, c, grouped(topology, c, shortest));
        }
        c.kind = ir::CollectiveKind::all_gather;
        check_result(topology, c, grouped(topology, c, [](const Topology& m, const ir::Collective& plain) {
                         return synth::breadth_first(m, plain).algorithm;
                     }));
        c.kind = ir::CollectiveKind::all_reduce;
        check_result(topology, c, grouped(topology, c, [](const Topology& m, const ir::Collective& plain) {
                         return synth::joint(m, plain).algorithm;
                     }));
    }
}

TEST_CASE("opposite corners of a grid gather over the ranks between them") {
    const Topology mesh = topologies::load("mesh:3x3");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 9;
    c.groups = {{0, 8}, {2, 6}};
    const ir::Algorithm made = grouped(mesh, c, shortest);
    CHECK(ir::verify(made).assurance == ir::Assurance::proved);
    CHECK(made.step_count() == 4 + 4 * 4);  // each opening copy, and four hops for each of four messages
}

TEST_CASE("a group that falls apart is refused") {
    Topology ring = topologies::load("ring:4");
    topologies::fail(ring, "gpu0>gpu1");
    topologies::fail(ring, "gpu0>gpu3");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 4;
    c.groups = {{0, 2}};
    CHECK_THROWS_AS(grouped(ring, c, shortest), Error);
}
