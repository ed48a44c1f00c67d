// What tests of synthesizers have in common: plain collectives, and what every schedule must keep.
#pragma once

#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

namespace baton::test {

/// One group of all ranks; the root counts for kinds that have one.
inline ir::Collective collective_of(ir::CollectiveKind kind, int ranks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.root = ir::has_root(kind) ? root : 0;
    return c;
}

/// The algorithm is proved, runs to its end, and does not beat the bound of its collective.
inline void check_right_and_above_bound(const topologies::Topology& topology, const ir::Collective& c,
                                        const ir::Algorithm& made, std::int64_t size, int tiles) {
    CHECK(ir::verify(made).assurance == ir::Assurance::proved);
    sim::SimulationOptions simulation;
    simulation.size = {size};
    simulation.tiles = tiles;
    const auto result = sim::simulate(topology, made, simulation);
    REQUIRE(result.outcome == sim::Outcome::finished);
    CHECK(result.time >= synth::bound(topology, c).at(simulation.size));
}

/// Simulates at each size (bytes) with its number of tiles, and checks that the run ends, not below the
/// bound.
inline void check_above_bound(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                              const synth::Bound& bound,
                              std::initializer_list<std::pair<std::int64_t, int>> runs) {
    const sim::PreparedAlgorithm prepared(topology, algorithm);
    for (const auto& [size, tiles] : runs) {
        sim::SimulationOptions simulation;
        simulation.size = {size};
        simulation.tiles = tiles;
        const sim::SimulationResult result = prepared.run(simulation);
        CHECK(result.outcome == sim::Outcome::finished);
        if (result.outcome != sim::Outcome::finished) continue;  // further seeds are still worth their time
        // Beyond the rounding of the simulator's rates.
        CHECK(static_cast<double>(result.time.picoseconds) * (1 + 1e-9) + 1 >=
              static_cast<double>(bound.at(simulation.size).picoseconds));
    }
}

}  // namespace baton::test
