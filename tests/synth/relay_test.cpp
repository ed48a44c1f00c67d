#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/relay.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;

namespace {

ir::Collective collective(ir::CollectiveKind kind, int ranks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.root = root;
    return c;
}

bool all_reachable(const ir::Algorithm& algorithm, const topologies::Routes& routes) {
    ir::Step step;
    for (ir::StepCursor cursor = algorithm.steps(); cursor.next(step);) {
        if (step.crosses() && !routes.between(step.src_rank, step.dst_rank).reachable) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("with relays every pattern of every kind runs on machines whose ranks do not all have routes") {
    int relayed = 0;
    for (std::uint64_t seed = 1; seed <= (test::full() ? 200u : 25u); ++seed) {
        test::RandomTopologyOptions options;
        options.routed = false;
        options.most_ranks = 9;
        const topologies::Topology topology = test::random_topology(seed, options);
        const topologies::Routes routes(topology);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            for (const synth::PatternInfo& pattern : synth::fixed_patterns()) {
                synth::PatternOptions wanted;
                wanted.collective =
                    collective(kind, topology.rank_count(), static_cast<int>(seed) % topology.rank_count());
                if (!synth::serves(pattern.name, wanted)) continue;
                CAPTURE(seed);
                CAPTURE(pattern.name);
                CAPTURE(std::string(ir::to_string(kind)));
                const ir::Algorithm plain = synth::fixed_pattern(pattern.name, wanted);
                const ir::Algorithm made = synth::with_relays(plain, routes);
                CHECK(all_reachable(made, routes));
                CHECK(ir::verify(made).assurance == ir::Assurance::proved);
                if (made.step_count() == plain.step_count()) continue;
                ++relayed;
                CHECK(ir::parse_algorithm(ir::to_json(made)).step_count() == made.step_count());
            }
        }
    }
    CHECK(relayed > 100);
}

TEST_CASE("an algorithm that needs no relay keeps its loops") {
    const topologies::Topology topology = topologies::load("fully_connected:6");
    synth::PatternOptions wanted;
    wanted.collective = collective(ir::CollectiveKind::all_reduce, 6);
    const ir::Algorithm ring = synth::fixed_pattern("ring", wanted);
    CHECK(ir::to_json(synth::with_relays(ring, topologies::Routes(topology))) == ir::to_json(ring));
}

TEST_CASE("ranks that no relay joins are named") {
    topologies::Topology topology;
    for (const char* id : {"a", "b", "c"}) {
        topologies::Node node;
        node.id = id;
        topology.add_node(node);
    }
    topologies::Link link;
    link.from = 0;
    link.to = 1;
    link.bandwidth = link.goodput = Rate{1'000'000'000};
    topology.add_link(link);
    topology.finish();
    synth::PatternOptions wanted;
    wanted.collective = collective(ir::CollectiveKind::all_gather, 3);
    try {
        synth::with_relays(synth::fixed_pattern("ring", wanted), topologies::Routes(topology));
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(std::string(error.what()).find("cannot reach rank 2") != std::string::npos);
    }
}

TEST_CASE("the number of steps that relaying writes is bounded") {
    const topologies::Topology topology = topologies::load("ring:16");
    synth::PatternOptions wanted;
    wanted.collective = collective(ir::CollectiveKind::all_to_all, 16);
    CHECK_THROWS_AS(
        synth::with_relays(synth::fixed_pattern("direct", wanted), topologies::Routes(topology), 300), Error);
}
