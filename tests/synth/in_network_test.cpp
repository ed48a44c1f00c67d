// all_reduce by switches that reduce and multicast.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/in_network.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "support/synthesis_checks.hpp"

using namespace baton;

TEST_CASE("switches reduce and multicast for one host and several, verified and above the bound") {
    for (const int hosts : {1, 2, 3}) {
        CAPTURE(hosts);
        const topologies::Topology topology = topologies::load("dgx_h100:hosts=" + std::to_string(hosts));
        ir::Collective c;
        c.ranks = topology.rank_count();
        const synth::InNetworkAlgorithm made = synth::in_network(topology, c);
        CHECK(made.domains == hosts);
        CHECK(made.per_domain == 8);
        test::check_right_and_above_bound(topology, c, made.algorithm, 64 << 20, 16);
    }
}

TEST_CASE("in-network all_reduce is refused without such switches and never chosen among others") {
    ir::Collective c;
    c.ranks = 8;
    CHECK_THROWS_AS(synth::in_network(topologies::load("dgx1_v100"), c), Error);
    c.kind = ir::CollectiveKind::all_gather;
    CHECK_THROWS_AS(synth::in_network(topologies::load("dgx_h100"), c), Error);
    c.kind = ir::CollectiveKind::all_reduce;
    synth::SynthesisOptions options;
    options.sizes = {Bytes{1 << 20}};
    const synth::Synthesis all = synth::synthesize(topologies::load("dgx_h100"), c, options);
    CHECK(std::none_of(all.candidates.begin(), all.candidates.end(),
                       [](const synth::Candidate& candidate) { return candidate.name == "in_network"; }));
}
