// Folding: steps that symmetry makes equal run once, and nothing about the time changes.
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/compose.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/synthesis_checks.hpp"

using namespace baton;
using test::collective_of;
using topologies::Topology;

namespace {

// The same time within rounding of events, whole and folded; gives how many steps are left of how many.
std::pair<std::int64_t, std::int64_t> compare(const Topology& topology, const ir::Algorithm& algorithm,
                                              Bytes size, const std::vector<int>& tiles) {
    const sim::PreparedAlgorithm whole(topology, algorithm);
    sim::PreparedAlgorithm fewer(topology, algorithm);
    const std::int64_t left = fewer.fold();
    // Chunks of unequal weight that fold together may differ by 16 bytes a tile; where several messages wait
    // for one lane, which is ready first hangs on these (0.25% was seen on a machine of 32 ranks).
    const double close = algorithm.collective.weights.empty() ? 1e-7 : 5e-3;
    for (const int t : tiles) {
        sim::SimulationOptions options;
        options.size = size;
        options.tiles = t;
        const sim::SimulationResult a = whole.run(options), b = fewer.run(options);
        CAPTURE(t);
        CHECK(a.outcome == b.outcome);
        CHECK(static_cast<double>(b.time.picoseconds) ==
              doctest::Approx(static_cast<double>(a.time.picoseconds)).epsilon(close));
    }
    return {left, algorithm.step_count()};
}

}  // namespace

TEST_CASE("patterns on symmetric machines fold and keep their time") {
    using enum ir::CollectiveKind;
    struct Case {
        const char* topology;
        const char* pattern;
        ir::CollectiveKind kind;
    };
    for (const Case& c :
         {Case{"paper/h100-flat:hosts=4", "ring", all_reduce},
          Case{"paper/h100-flat:hosts=4", "rabenseifner", all_reduce},
          Case{"paper/h100-flat:hosts=2", "bruck", all_gather},
          Case{"torus:4x4,forward=true", "recursive_doubling", all_gather},
          Case{"fully_connected:8", "all_pairs", all_reduce}, Case{"ring:8", "ring", reduce_scatter}}) {
        CAPTURE(std::string(c.topology) + " " + c.pattern);
        const Topology topology = topologies::load(c.topology);
        synth::PatternOptions options;
        options.collective = collective_of(c.kind, topology.rank_count());
        const auto [left, all] = compare(topology, synth::fixed_pattern(c.pattern, options),
                                         Bytes{std::int64_t{1} << 26}, {1, 2, 5});
        CHECK(left <= all);
    }
}

TEST_CASE("compositions fold to what one host does") {
    using enum ir::CollectiveKind;
    for (const char* spec : {"paper/h100-rail:hosts=4", "paper/h100-rail:hosts=32", "dgx_a100:hosts=4"}) {
        const Topology topology = topologies::load(spec);
        for (const auto kind : {all_reduce, all_gather, reduce_scatter}) {
            std::int64_t fewest = INT64_MAX;
            synth::ComposeOptions options;
            options.take = [&](synth::Composition&& made) {
                if (made.words.find("ring") != std::string::npos) return;
                CAPTURE(spec);
                CAPTURE(made.words);
                const auto [left, all] =
                    compare(topology, made.algorithm, Bytes{std::int64_t{1} << 28}, {1, 4});
                fewest = std::min(fewest, left * 4 / all);
            };
            synth::compose(topology, collective_of(kind, topology.rank_count()), options);
            CHECK(fewest == 0);
        }
    }
}

TEST_CASE("a machine without symmetry is left as it is") {
    Topology topology = topologies::load("ring:6");
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        topology.links[l].bandwidth.bytes_per_second += static_cast<std::int64_t>(l) * 1'000'000'000;
        topology.links[l].goodput = topology.links[l].bandwidth;
    }
    topology.finish();
    synth::PatternOptions options;
    options.collective = collective_of(ir::CollectiveKind::all_reduce, 6);
    const ir::Algorithm ring = synth::fixed_pattern("ring", options);
    CHECK(sim::PreparedAlgorithm(topology, ring).fold() == ring.step_count());
    compare(topology, ring, Bytes{1 << 20}, {1, 3});
}
