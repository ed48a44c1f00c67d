// Exact search: published frontiers, schedules that verify, answers that agree with bounds.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/exact.hpp>
#include <baton/synth/exact_search.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using test::collective_of;
using topologies::Topology;

namespace {

synth::ExactDemand all_to_all_ranks(int ranks, std::int64_t chunks) {
    synth::ExactDemand demand;
    demand.chunks = chunks;
    for (int r = 0; r < ranks; ++r) {
        synth::ExactAddress address{r, std::vector<char>(static_cast<std::size_t>(ranks), 1)};
        address.needed[static_cast<std::size_t>(r)] = 0;
        demand.addresses.push_back(std::move(address));
    }
    return demand;
}

}  // namespace

TEST_CASE("the all-gather frontier of the cube mesh starts at 2 chunks, 2 steps, 3 rounds, proved") {
    const Topology topology = topologies::load("paper/dgx1-25");
    const synth::SynchronousMachine machine = synth::synchronous_machine(topology, 8);
    CHECK(machine.exact);
    CHECK(machine.all_links);
    const auto groups = synth::free_symmetries(machine);
    const synth::ExactDemand demand = all_to_all_ranks(8, 2);
    CHECK(synth::fewest_rounds_per_chunk(machine, demand, 2, groups.front(), {}) == Rational(3, 2));
    CHECK(synth::search_schedule(machine, demand, 2, 3, groups.back(), {}).answer ==
          synth::ExactAnswer::found);
    CHECK(synth::search_schedule(machine, demand, 2, 2, groups.back(), {}).answer ==
          synth::ExactAnswer::impossible);
    CHECK(synth::search_schedule(machine, demand, 1, 3, groups.back(), {}).answer ==
          synth::ExactAnswer::impossible);

    synth::ExactOptions options;
    options.more_steps = 0;
    const synth::ExactFrontier frontier =
        synth::exact_frontier(topology, collective_of(ir::CollectiveKind::all_gather, 8), options);
    CHECK(frontier.fewest_steps == 2);
    REQUIRE(frontier.points.size() == 1);
    CHECK(frontier.points[0].chunks == 2);
    CHECK(frontier.points[0].steps == 2);
    CHECK(frontier.points[0].rounds == 3);
    CHECK(frontier.points[0].optimal);
    CHECK(ir::verify(frontier.points[0].algorithm).assurance == ir::Assurance::proved);
}

TEST_CASE("the relaxation of many steps is the bandwidth bound of the cube mesh") {
    const synth::SynchronousMachine machine =
        synth::synchronous_machine(topologies::load("paper/dgx1-25"), 8);
    CHECK(synth::fewest_rounds_per_chunk(machine, all_to_all_ranks(8, 1), 3,
                                         synth::free_symmetries(machine).front(), {}) == Rational(7, 6));
}

TEST_CASE("the all-gather frontier of the cube mesh ends at 6 chunks, 3 steps, 7 rounds") {
    if (!test::full()) return;
    const synth::ExactFrontier frontier = synth::exact_frontier(
        topologies::load("paper/dgx1-25"), collective_of(ir::CollectiveKind::all_gather, 8));
    REQUIRE(frontier.points.size() == 2);
    const synth::ExactPoint& last = frontier.points.back();
    CHECK(last.chunks == 6);
    CHECK(last.steps == 3);
    CHECK(last.rounds == 7);
    CHECK(last.optimal);
    CHECK(ir::verify(last.algorithm).assurance == ir::Assurance::proved);
}

TEST_CASE("symmetries keep the machine and leave no rank in place") {
    for (const char* spec : {"paper/dgx1-25", "ring:5", "torus:3x3", "mesh:3x3"}) {
        CAPTURE(spec);
        const Topology topology = topologies::load(spec);
        const synth::SynchronousMachine machine = synth::synchronous_machine(topology, topology.rank_count());
        for (const auto& group : synth::free_symmetries(machine)) {
            for (std::size_t i = 0; i < group.size(); ++i) {
                for (const synth::SynchronousArc& arc : machine.arcs) {
                    bool kept = false;
                    for (const synth::SynchronousArc& image : machine.arcs)
                        kept = kept || (image.from == group[i][static_cast<std::size_t>(arc.from)] &&
                                        image.to == group[i][static_cast<std::size_t>(arc.to)] &&
                                        image.chunks == arc.chunks);
                    CHECK(kept);
                }
                for (int v = 0; i > 0 && v < machine.ranks; ++v)
                    CHECK(group[i][static_cast<std::size_t>(v)] != v);
            }
        }
    }
}

TEST_CASE("exact schedules verify for every kind on small machines") {
    const int seeds = test::full() ? 60 : 6;
    int made = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = 4;
        options.routed = false;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 900, options);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            CAPTURE(ir::to_string(kind));
            synth::ExactOptions search;
            search.most_chunks = 2;
            search.effort = 20'000'000;
            search.more_steps = seed % 2;
            try {
                const synth::ExactFrontier frontier = synth::exact_frontier(
                    topology, collective_of(kind, topology.rank_count(), seed % topology.rank_count()),
                    search);
                for (const synth::ExactPoint& point : frontier.points) {
                    ++made;
                    CHECK(Rational(point.rounds, point.chunks) >= point.bound);
                    CHECK(point.algorithm.collective.kind == kind);
                    CHECK(ir::verify(point.algorithm).assurance == ir::Assurance::proved);
                }
            } catch (const Error& error) {
                CHECK(error.kind() == ErrorKind::input);
            }
        }
    }
    CHECK(made > seeds);
}

TEST_CASE("exact search refuses what it is not made for") {
    const auto refused = [](const char* spec, ir::CollectiveKind kind) {
        const Topology topology = topologies::load(spec);
        CHECK_THROWS_AS(synth::exact_frontier(topology, collective_of(kind, topology.rank_count())), Error);
    };
    refused("dgx_h100", ir::CollectiveKind::all_gather);
    refused("torus:5x5", ir::CollectiveKind::all_gather);
    refused("ring:4", ir::CollectiveKind::send_recv);
}

TEST_CASE("exact search serves groups one by one, on the links among their ranks") {
    const topologies::Topology torus = topologies::load("torus:4x4");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 16;
    c.groups = {{0, 1, 2, 3}, {5, 9}, {15}};
    const synth::ExactFrontier frontier = synth::exact_frontier(torus, c);
    REQUIRE(!frontier.points.empty());
    for (const synth::ExactPoint& point : frontier.points) {
        CHECK(point.steps == 2);  // a ring of four
        CHECK(point.algorithm.collective.groups == c.groups);
        CHECK(ir::verify(point.algorithm).assurance == ir::Assurance::proved);
    }
    c.groups = {{0, 5}};
    CHECK_THROWS_AS(synth::exact_frontier(torus, c), Error);
}
