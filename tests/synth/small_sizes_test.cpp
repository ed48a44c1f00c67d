// At sizes where latency rules, the automatic choice is never slower than any fixed pattern.
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using topologies::Topology;

namespace {

constexpr Bytes kSmall{1024};

// Simulated time of the best schedule of a fixed pattern in one tile; Time::max() where it does not serve.
Time best_of_pattern(const Topology& topology, const ir::Collective& c, const std::string& name) {
    synth::SynthesisOptions options;
    options.algorithm = name;
    options.sizes = {kSmall};
    Time best = Time::max();
    for (const synth::Candidate& candidate : synth::make_candidates(topology, c, options).candidates) {
        sim::SimulationOptions simulation;
        simulation.size = kSmall;
        const sim::SimulationResult run = sim::simulate(topology, *candidate.algorithm, simulation);
        if (run.outcome == sim::Outcome::finished) best = std::min(best, run.time);
    }
    return best;
}

// Returns how many patterns took part.
int compare(const Topology& topology, ir::CollectiveKind kind, std::vector<Bytes> sizes) {
    const ir::Collective c = test::collective_of(kind, topology.rank_count());
    CAPTURE(topology.name);
    CAPTURE(ir::to_string(kind));
    synth::SynthesisOptions options;
    options.sizes = std::move(sizes);
    const synth::Synthesis chosen = synth::synthesize(topology, c, options);
    REQUIRE(chosen.choices.front().size == kSmall);
    const synth::Timing& best = chosen.choices.front().best();
    CAPTURE(chosen.candidates[static_cast<std::size_t>(best.candidate)].label());
    int patterns = 0;
    for (const synth::PatternInfo& pattern : synth::fixed_patterns()) {
        CAPTURE(pattern.name);
        const Time time = best_of_pattern(topology, c, pattern.name);
        patterns += time < Time::max() ? 1 : 0;
        CHECK(best.time <= time);
    }
    return patterns;
}

}  // namespace

TEST_CASE("at 1 KiB the automatic choice is never slower than the best fixed pattern") {
    std::vector<std::string> machines = {"torus:3x3", "mesh:2x4"};
    for (const topologies::Nameable& named : topologies::nameables()) {
        if (named.generator) continue;
        const bool hosts = named.name.starts_with("dgx") || named.name == "mi300x" ||
                           named.name == "pcie_8gpu" || named.name.starts_with("paper/a") ||
                           named.name.starts_with("paper/h") || named.name == "paper/mi250";
        if (topologies::load(named.name).rank_count() > 16) continue;
        machines.push_back(named.name);
        if (hosts && test::full()) machines.push_back(named.name + ":hosts=2");
    }
    if (test::full())
        for (const char* more : {"torus:8x8", "torus:4x4x4", "mesh:8x8", "dragonfly:9", "dgx_h100:hosts=8"})
            machines.push_back(more);
    else
        machines.push_back("dgx_h100:hosts=2");
    std::size_t turn = 0;
    for (const std::string& name : machines) {
        const Topology topology = topologies::load(name);
        const auto& kinds = ir::standard_kinds();
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            // By default one kind of each machine, all of them over the machines.
            if (!test::full() && k != turn % kinds.size()) continue;
            if (kinds[k] == ir::CollectiveKind::send_recv) continue;
            CHECK(compare(topology, kinds[k], {kSmall}) > 0);
            // Beside large sizes the estimate at 1 KiB is an interpolation.
            if (test::full() && topology.rank_count() <= 16)
                compare(topology, kinds[k], {kSmall, {64 << 20}});
        }
        ++turn;
    }
}

TEST_CASE("nor on random machines, beside larger sizes") {
    const std::uint64_t seeds = test::full() ? 400 : 24;
    int patterns = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = seed % 8 == 0 ? 16 : 7;
        options.routed = seed % 3 != 0;
        const auto& kinds = ir::standard_kinds();
        const ir::CollectiveKind kind = kinds[seed % kinds.size()];
        if (kind == ir::CollectiveKind::send_recv) continue;
        patterns += compare(test::random_topology(seed + 91'000, options), kind, {kSmall, {16 << 20}});
    }
    CHECK(patterns > static_cast<int>(seeds));
}
