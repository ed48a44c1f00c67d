// The greedy search: right on any machine, never below the bound, the same for the same seed.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/greedy.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/full.hpp"
#include "support/random_groups.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Collective of_kind(ir::CollectiveKind kind, int ranks) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    return c;
}

bool same(const ir::Algorithm& a, const ir::Algorithm& b) {
    return ir::expand(a) == ir::expand(b) && a.collective == b.collective;
}

void check(const Topology& topology, const ir::Collective& c, Bytes size, std::uint64_t seed) {
    synth::GreedyOptions options;
    options.size = size;
    options.seed = seed;
    options.most_chunks = 4;
    options.work = 20'000;
    const synth::GreedyAlgorithm made = synth::greedy(topology, c, options);
    REQUIRE(made.algorithm.collective.kind == c.kind);
    CHECK(made.algorithm.collective.groups == c.groups);
    CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
    CHECK(same(made.algorithm, synth::greedy(topology, c, options).algorithm));
    sim::SimulationOptions run;
    run.size = size;
    const sim::SimulationResult ran = sim::simulate(topology, made.algorithm, run);
    REQUIRE(ran.outcome == sim::Outcome::finished);
    CHECK(ran.time >= synth::bound(topology, c).at(size));
}

}  // namespace

TEST_CASE("greedy verifies on random machines, stays above the bound and repeats itself") {
    const int seeds = test::full() ? 400 : 24;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions shape;
        shape.most_ranks = seed % 4 == 0 ? 24 : 10;
        shape.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 9100, shape);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            CAPTURE(ir::to_string(kind));
            ir::Collective c = of_kind(kind, topology.rank_count());
            test::detail::Dice dice(static_cast<std::uint64_t>(seed));
            if (seed % 3 == 1) c.groups = test::random_groups(dice, c.ranks);
            int smallest = c.group_size();
            for (int g = 0; g < c.group_count(); ++g) smallest = std::min(smallest, c.group_size(g));
            if (ir::has_root(kind)) c.root = seed % smallest;
            const std::int64_t size = seed % 2 == 0 ? 1 << 10 : 16 << 20;
            check(topology, c, {size}, static_cast<std::uint64_t>(seed));
        }
    }
}

TEST_CASE("the planned time on tori is near the discrete bound") {
    // An own bound in closed form: (N-1) chunks over the in-links of a rank, rounded up, and one latency.
    struct Row {
        const char* spec;
        int links;
        double most;
    };
    for (const Row& row :
         {Row{"torus:8x8", 4, 1.07}, Row{"torus:16x16", 4, 1.02}, Row{"torus:4x4x4", 6, 1.01},
          Row{"ring:16", 2, 1.07}, Row{"fully_connected:16", 15, 1.0}}) {
        CAPTURE(row.spec);
        const Topology topology = topologies::load(row.spec);
        const ir::Collective c = of_kind(ir::CollectiveKind::all_gather, topology.rank_count());
        const synth::GreedyNetwork network(topology, c.ranks, topologies::RoutePolicy::spread, 0);
        const Bytes shard{4 << 20};
        const synth::GreedyDemand demand = synth::greedy_demand(network, c, shard);
        const Time bound = synth::discrete_bound(network, demand, shard);
        const double chunk = 4.0 * (1 << 20) / topology.links[0].capacity().value();
        const int rounds = (c.ranks - 1 + row.links - 1) / row.links;
        CHECK(bound.seconds() == doctest::Approx(rounds * chunk + topology.links[0].latency.seconds()));
        synth::GreedySearchOptions options;
        options.bytes = shard;
        const synth::GreedySchedule found = synth::greedy_search(network, demand, options);
        CHECK(found.messages.size() ==
              static_cast<std::size_t>(c.ranks) * static_cast<std::size_t>(c.ranks - 1));
        CHECK(found.time >= bound);
        CHECK(found.time.seconds() <= row.most * bound.seconds());
    }
}

TEST_CASE("greedy sends no chunk twice into a host, and refuses in words") {
    const Topology boxes = topologies::load("paper/a100-oddeven:hosts=4");
    const ir::Collective c = of_kind(ir::CollectiveKind::all_gather, 32);
    const synth::GreedyNetwork network(boxes, 32, topologies::RoutePolicy::spread, 0);
    const Bytes shard{1 << 20};
    const synth::GreedyDemand demand = synth::greedy_demand(network, c, shard);
    synth::GreedySearchOptions options;
    options.bytes = shard;
    int between = 0;
    for (const synth::GreedyMessage& message : synth::greedy_search(network, demand, options).messages)
        between += network.edges()[static_cast<std::size_t>(message.edge)].between_hosts ? 1 : 0;
    CHECK(between == 32 * 3);

    synth::GreedyOptions few;
    few.size = shard;
    few.step_limit = 100;
    CHECK_THROWS_WITH_AS(synth::greedy(boxes, c, few), doctest::Contains("limit"), Error);
    CHECK_THROWS_WITH_AS(synth::greedy(boxes, of_kind(ir::CollectiveKind::all_gather, 33), {}),
                         doctest::Contains("only 32"), Error);
}

TEST_CASE("boxes with scarce links between them come within a tenth of the bound at 1 GiB") {
    // A tenth is the aim; the measured gaps are 0.4 to 5.0%, 0.4 to 3.6% for broadcast and reduce.
    const auto kinds = test::full()
                           ? std::vector{ir::CollectiveKind::all_gather, ir::CollectiveKind::reduce_scatter,
                                         ir::CollectiveKind::all_reduce, ir::CollectiveKind::broadcast,
                                         ir::CollectiveKind::reduce}
                           : std::vector{ir::CollectiveKind::all_gather, ir::CollectiveKind::reduce_scatter};
    for (const char* spec : {"paper/a100-oddeven:hosts=2", "paper/h100-rail:hosts=2",
                             "paper/h100-rail:hosts=4", "paper/a100-oddeven:hosts=4"}) {
        if (!test::full() && std::string(spec) == "paper/a100-oddeven:hosts=4") continue;
        CAPTURE(spec);
        const Topology boxes = topologies::load(spec);
        synth::SynthesisOptions options;
        options.algorithm = "greedy";
        options.sizes = {{1 << 30}};
        options.most_tiles = 32;
        for (const ir::CollectiveKind kind : kinds) {
            CAPTURE(ir::to_string(kind));
            const synth::Synthesis made =
                synth::synthesize(boxes, of_kind(kind, boxes.rank_count()), options);
            const synth::Choice& choice = made.choices.front();
            CHECK(choice.best().time >= choice.bound);
            CHECK(choice.best().time.seconds() <= 1.1 * choice.bound.seconds());
        }
    }
}

TEST_CASE("from one host to several, chunks go from host to host in a line and rails carry equal shares") {
    // Without the line the busiest rail has a seventh more, and messages wait for each other: 20% off.
    for (const char* spec : {"paper/a100-oddeven:hosts=4", "paper/h100-rail:hosts=4"}) {
        CAPTURE(spec);
        const Topology boxes = topologies::load(spec);
        for (const ir::CollectiveKind kind : {ir::CollectiveKind::broadcast, ir::CollectiveKind::reduce}) {
            CAPTURE(ir::to_string(kind));
            const ir::Collective c = of_kind(kind, boxes.rank_count());
            synth::GreedyOptions options;
            options.size = {1 << 30};
            options.chunks = 256;
            options.work = 100'000;
            const synth::GreedyAlgorithm made = synth::greedy(boxes, c, options),
                                         again = synth::greedy(boxes, c, options);
            CHECK(ir::expand(made.algorithm) == ir::expand(again.algorithm));
            CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
            sim::SimulationOptions simulation;
            simulation.size = options.size;
            simulation.tiles = 4;
            const Time time = sim::simulate(boxes, made.algorithm, simulation).time,
                       bound = synth::bound(boxes, c).at(options.size);
            CHECK(time >= bound);
            CHECK(time.seconds() <= 1.1 * bound.seconds());
        }
    }
}
