// What packed trees come to on machines of unlike links, and which of them are offered: counted on the links
// by the steps of the schedules alone.
#include <baton/synth/candidates.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "support/forest_check.hpp"

using namespace baton;
using Kind = ir::CollectiveKind;

namespace {

ir::Collective of_all(Kind kind, const topologies::Topology& topology) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = topology.rank_count();
    return c;
}

std::vector<synth::Candidate> forests(const topologies::Topology& topology, const ir::Collective& c) {
    synth::SynthesisOptions options;
    options.algorithm = "forest";
    options.sizes = {Bytes{1 << 30}};
    return synth::make_candidates(topology, c, options).candidates;
}

}  // namespace

TEST_CASE("a few trees of unequal shares fill links of 48 and 51.2 GB/s together") {
    const topologies::Topology topology = topologies::load("mi300x");
    const topologies::Routes routes(topology);
    for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
        CAPTURE(ir::to_string(kind));
        const ir::Collective c = of_all(kind, topology);
        const synth::ForestAlgorithm made = synth::forest(topology, c, 256);
        const double least = synth::phase_optimum(topology, c, kind == Kind::reduce);
        CHECK(test::busiest_link(topology, routes, made.algorithm) <= least * 1.001);
        CHECK(made.trees_per_root <= 32);
    }
}

TEST_CASE("where the fewest trees of one root are deep, shallow ones at the same rate are offered too") {
    const topologies::Topology topology = topologies::load("dgx_h100:hosts=8");
    const topologies::Routes routes(topology);
    const ir::Collective c = of_all(Kind::broadcast, topology);
    const double least = synth::phase_optimum(topology, c, false);
    const std::vector<synth::Candidate> offered = forests(topology, c);
    CHECK(std::any_of(offered.begin(), offered.end(), [&](const synth::Candidate& candidate) {
        return candidate.depth <= 4 &&
               test::busiest_link(topology, routes, *candidate.algorithm) <= least * 1.001;
    }));
}

TEST_CASE("where the cut takes detours beside default routes, a few trees without them are offered too") {
    const topologies::Topology topology = topologies::load("dgx_h100:hosts=8");
    const topologies::Routes routes(topology);
    const ir::Collective c = of_all(Kind::all_gather, topology);
    const double least = synth::phase_optimum(topology, c, false);
    const std::vector<synth::Candidate> offered = forests(topology, c);
    CHECK(std::any_of(offered.begin(), offered.end(), [&](const synth::Candidate& candidate) {
        return candidate.algorithm->vias.empty() && candidate.steps < 40'000 &&
               test::busiest_link(topology, routes, *candidate.algorithm) <= least * 1.006;
    }));
}
