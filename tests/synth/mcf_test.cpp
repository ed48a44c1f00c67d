// Schedules from multicommodity flows: right on any machine, never below the bound, near it on known ones.
#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/mcf.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "support/full.hpp"
#include "support/random_groups.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using ir::CollectiveKind;
using topologies::Topology;

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::all_to_all, CollectiveKind::scatter,
                                     CollectiveKind::gather, CollectiveKind::send_recv};

sim::SimulationResult simulated(const Topology& topology, const ir::Algorithm& algorithm, Bytes size,
                                int tiles, topologies::RoutePolicy policy) {
    sim::SimulationOptions options;
    options.size = size;
    options.tiles = tiles;
    options.policy = policy;
    return sim::simulate(topology, algorithm, options);
}

double gap(const std::string& spec, CollectiveKind kind) {
    const Topology topology = topologies::load(spec);
    const ir::Collective c = test::collective_of(kind, topology.rank_count());
    const Bytes size{std::int64_t{1} << 30};
    const synth::Bound bound = synth::bound(topology, c);
    double least = 1e9;
    for (const synth::FlowAlgorithm& made : synth::mcf(topology, c)) {
        for (const int tiles : {1, 16}) {
            const auto run =
                simulated(topology, made.algorithm, size, tiles, topologies::RoutePolicy::spread);
            CHECK(run.time >= bound.at(size));
            least = std::min(least, run.time.seconds() / bound.at(size).seconds() - 1);
        }
    }
    return least;
}

}  // namespace

TEST_CASE("flow schedules are right on random machines with random groups and never beat the bound") {
    const int seeds = test::full() ? 500 : 40;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed) + 31);
        test::RandomTopologyOptions options;
        options.most_ranks = seed % 4 == 0 ? 24 : 9;
        options.routed = seed % 2 == 0;
        Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 7100, options);
        // Joint limits, wherever the links lie.
        for (int i = 0; seed % 5 < 2 && i < 2 && topology.links.size() > 3; ++i) {
            const int last = static_cast<int>(topology.links.size()) - 1;
            topologies::Limit limit;
            limit.id = "limit" + std::to_string(i);
            limit.links = {dice.between(0, last / 2), dice.between(last / 2 + 1, last)};
            limit.bandwidth = {std::int64_t{dice.between(1, 20)} * 2'500'000'000};
            topology.limits.push_back(limit);
            topology.finish("limits");
        }
        ir::Collective c;
        c.ranks = topology.rank_count();
        if (dice.chance(50)) c.groups = test::random_groups(dice, c.ranks);
        int least = c.group_size();
        for (int g = 0; g < c.group_count(); ++g) least = std::min(least, c.group_size(g));
        const auto policy = seed % 3 == 0 ? topologies::RoutePolicy::fixed : topologies::RoutePolicy::spread;
        for (const CollectiveKind kind : kKinds) {
            CAPTURE(ir::to_string(kind));
            c.kind = kind;
            c.root = ir::has_root(kind) ? dice.between(0, least - 1) : 0;
            c.peer = kind == CollectiveKind::send_recv ? dice.between(0, least - 1) : -1;
            const synth::Bound bound = synth::bound(topology, c);
            for (const synth::FlowAlgorithm& made : synth::mcf(topology, c, policy)) {
                CHECK(made.algorithm.collective.groups == c.groups);
                CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
                for (const Bytes size : {Bytes{1024}, Bytes{1 << 26}}) {
                    const auto run = simulated(topology, made.algorithm, size, 4, policy);
                    CHECK(run.outcome == sim::Outcome::finished);
                    CHECK(run.time >= bound.at(size));
                }
            }
        }
    }
}

TEST_CASE("all-to-all comes within 5% of its bound where others lose half") {
    CHECK(gap("paper/dgx1-25", CollectiveKind::all_to_all) < 0.005);
    CHECK(gap("torus:4x4", CollectiveKind::all_to_all) < 0.005);
    CHECK(gap("mesh:4x4", CollectiveKind::all_to_all) < 0.01);
    CHECK(gap("paper/a100-oddeven:hosts=2", CollectiveKind::all_to_all) < 0.005);
    // NVLink and PCIe at once, over pinned routes.
    CHECK(gap("dgx_h100", CollectiveKind::all_to_all) < 0.05);
    CHECK(gap("dgx1_v100", CollectiveKind::all_to_all) < 0.05);
}

TEST_CASE("scatter and gather use every way out of the root") {
    for (const CollectiveKind kind : {CollectiveKind::scatter, CollectiveKind::gather}) {
        CAPTURE(ir::to_string(kind));
        CHECK(gap("ring:5", kind) < 0.03);
        CHECK(gap("torus:4x4", kind) < 0.03);
        CHECK(gap("paper/dgx1-25", kind) < 0.03);
    }
}

TEST_CASE("the same flow schedule comes out every time, through parallel and one-way links") {
    const Topology topology = topologies::load("paper/mi250");
    ir::Collective c;
    c.kind = CollectiveKind::all_to_all;
    c.ranks = topology.rank_count();
    const auto first = synth::mcf(topology, c), second = synth::mcf(topology, c);
    REQUIRE(first.size() == second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        CHECK(ir::expand(first[i].algorithm) == ir::expand(second[i].algorithm));
        CHECK(first[i].algorithm.vias == second[i].algorithm.vias);
    }
    // Ranks on a one-way ring: the last has all others between itself and the next.
    CHECK(gap("ring:6,oneway=true", CollectiveKind::all_to_all) < 0.02);
}

TEST_CASE("a stop ends the search for flows at once and leaves the schedule that was there") {
    // Nothing looks alike here: hundreds of rounds, then thousands of ways.
    Topology topology = topologies::load("torus:5x6");
    for (std::size_t l = 0; l < topology.links.size(); l += 5)
        topology.links[l].goodput.bytes_per_second /= 2 + static_cast<std::int64_t>(l) % 3;
    topology.finish("unequal");
    const ir::Collective c = test::collective_of(CollectiveKind::all_to_all, topology.rank_count());
    std::size_t all_reports = 0;
    for (std::size_t last = 0; last < 4; ++last) {
        CAPTURE(last);
        const StopToken token;
        const StopScope scope(token);
        std::vector<synth::FlowAlgorithm> made;
        std::size_t reports = 0;
        std::clock_t stopped_at = 0;
        synth::FlowOptions options;
        options.take = [&](synth::FlowAlgorithm&& one) { made.push_back(std::move(one)); };
        options.progress = [&](const std::string& stage, double fraction) {
            CHECK(!stage.empty());
            CHECK(fraction <= 1);
            if (++reports != last) return;
            token.request_stop();
            stopped_at = std::clock();
        };
        if (last == 0) {
            synth::mcf(topology, c, options);
            all_reports = reports;
            CHECK(made.size() == 2);
            continue;
        }
        CHECK_THROWS_AS(synth::mcf(topology, c, options), Stopped);
        CHECK(reports == last);
        CHECK(static_cast<double>(std::clock() - stopped_at) / CLOCKS_PER_SEC < 0.25);
        CHECK(made.size() == (last < 3 ? 0 : 1));  // the third report: whole shards have their ways
    }
    CHECK(all_reports >= 3);
}

TEST_CASE("flow schedules are refused in words for other kinds and for too many pairs") {
    ir::Collective c;
    c.kind = CollectiveKind::all_gather;
    c.ranks = 4;
    CHECK_THROWS_WITH_AS(synth::mcf(topologies::load("ring:4"), c),
                         doctest::Contains("flows serve all_to_all"), Error);
    c.kind = CollectiveKind::all_to_all;
    c.ranks = 1100;
    CHECK_THROWS_WITH_AS(synth::mcf(topologies::load("ring:1100"), c), doctest::Contains("pairs of ranks"),
                         Error);
}
