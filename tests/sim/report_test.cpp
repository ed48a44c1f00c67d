// Traces, link reports and what-if studies.
#include <baton/base/error.hpp>
#include <baton/sim/link_report.hpp>
#include <baton/sim/trace.hpp>
#include <baton/sim/whatif.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "machines.hpp"
#include "support/small_algorithms.hpp"

using namespace baton;
using namespace baton::test;

namespace {

constexpr Rate kRate{50'000'000'000};

sim::SimulationResult traced(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                             std::int64_t size, int tiles, std::int64_t limit = 1'000'000) {
    sim::SimulationOptions options;
    options.size = {size};
    options.tiles = tiles;
    options.trace = true;
    options.trace_limit = limit;
    return sim::simulate(topology, algorithm, options);
}

}  // namespace

TEST_CASE("a trace has a track for every lane and link, and no two slices of a track overlap") {
    const topologies::Topology machine = star(4, kRate, {1'000'000});
    const auto result = traced(machine, ring_all_reduce(4), 4 << 20, 3);
    CHECK(result.trace.size() == static_cast<std::size_t>(result.operations));
    CHECK_FALSE(result.trace_truncated);
    const auto json = nlohmann::json::parse(sim::chrome_trace(machine, "a \"ring\"", result));
    CHECK(json["otherData"]["name"] == "a \"ring\"");
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
    std::map<std::pair<int, int>, std::string> names;
    std::map<std::string, double> busy;
    for (const auto& event : json["traceEvents"]) {
        if (event["ph"] == "M" && event["name"] == "thread_name")
            names[{event["pid"], event["tid"]}] = event["args"]["name"];
        if (event["ph"] != "X") continue;
        tracks[{event["pid"], event["tid"]}].push_back(
            {event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
    }
    CHECK(names.size() == tracks.size());
    CHECK(tracks.size() == 4 * 2 + 8);  // a lane and the rank itself; every link in both directions
    for (auto& [key, slices] : tracks) {
        std::sort(slices.begin(), slices.end());
        for (std::size_t i = 1; i < slices.size(); ++i) CHECK(slices[i].first >= slices[i - 1].second - 1e-9);
        if (key.first != 0) continue;
        double total = 0;
        for (const auto& [begin, end] : slices) total += end - begin;
        busy[names[key]] = total;
    }
    for (std::size_t l = 0; l < machine.links.size(); ++l)
        CHECK(busy[machine.links[l].id] ==
              doctest::Approx(result.links[l].busy.seconds() * 1e6).epsilon(1e-9));
}

TEST_CASE("a long trace ends early and says so") {
    const topologies::Topology machine = star(4, kRate, {0});
    const auto result = traced(machine, ring_all_reduce(4), 4 << 20, 3, 10);
    CHECK(result.trace.size() == 10);
    CHECK(result.trace_truncated);
    CHECK(result.time == traced(machine, ring_all_reduce(4), 4 << 20, 3).time);
}

TEST_CASE("the times of a step follow one another") {
    const topologies::Topology machine = star(5, kRate, {300'000});
    for (const sim::TraceEvent& event : traced(machine, scratch_reduce_scatter(5), 5 << 20, 2).trace) {
        CHECK(event.start <= event.left);
        CHECK(event.left <= event.arrived);
        CHECK(event.arrived <= event.committed);
        if (event.source != event.destination) CHECK(event.arrived == event.left + Time{300'000});
    }
}

TEST_CASE("the link report has a line per link and size") {
    const topologies::Topology machine = star(4, kRate, {0});
    sim::SimulationOptions options;
    options.size = {4 << 20};
    std::vector<sim::SimulationResult> results{sim::simulate(machine, ring_all_reduce(4), options)};
    options.size = {8 << 20};
    results.push_back(sim::simulate(machine, ring_all_reduce(4), options));
    std::istringstream lines(sim::link_report_csv(machine, results));
    std::string line;
    std::getline(lines, line);
    CHECK(line.rfind("size_bytes,tiles,time_ps,id,", 0) == 0);
    int count = 0;
    while (std::getline(lines, line)) ++count;
    CHECK(count == 2 * 8);
    const auto busiest = sim::busiest_links(machine, results[0], 3);
    REQUIRE(busiest.size() == 3);
    CHECK(busiest[0].utilization == doctest::Approx(1).epsilon(1e-6));
    CHECK(busiest[0].bytes == doctest::Approx(6 << 20));
    results[0].outcome = sim::Outcome::unreachable;
    CHECK(sim::busiest_links(machine, results[0], 3).empty());
}

TEST_CASE("a what-if study keeps the schedule and makes it anew") {
    const topologies::Topology machine = ring(4, kRate, {1'000'000});
    std::vector<sim::Variation> variations(4);
    variations[0] = {"slow", machine, ""};
    topologies::degrade(*variations[0].topology, "g0>g1", 0.5);
    variations[1] = {"cut", machine, ""};
    topologies::fail(*variations[1].topology, "g0>g1");
    variations[2] = {"larger", ring(6, kRate, {1'000'000}), ""};
    variations[3] = {"impossible", std::nullopt, "there is no such machine"};

    // The other way round: the reverse ring does not use g0>g1.
    const auto reversed = [](int n) {
        ir::AlgorithmBuilder b("reverse ring", collective(ir::CollectiveKind::all_gather, n, 1));
        for (int r = 0; r < n; ++r) b.copy({r, ir::Buffer::input, 0}, {r, ir::Buffer::output, r});
        for (int s = 0; s < n - 1; ++s)
            for (int r = 0; r < n; ++r)
                b.send({r, ir::Buffer::output, (r + s) % n},
                       {(r + n - 1) % n, ir::Buffer::output, (r + s) % n});
        return b.build();
    };
    const auto synthesize = [&](const topologies::Topology& topology, Bytes) {
        const int n = topology.rank_count();
        const bool plain = topology.links.size() == 2 * static_cast<std::size_t>(n) &&
                           topology.hash() != variations[0].topology->hash();
        return sim::ChosenSchedule{
            plain ? "ring" : "reverse ring",
            std::make_shared<const ir::Algorithm>(plain ? ring_all_gather(n) : reversed(n)), 1};
    };
    const auto bound = [](const topologies::Topology& topology, Bytes) -> Time {
        if (topology.links.size() < 8) throw input_error("no bound");
        return {topology.rank_count()};
    };
    sim::SimulationOptions options;
    const std::vector<Bytes> sizes{{4 << 10}, {4 << 20}};
    const auto rows = sim::what_if(machine, variations, sizes, options, synthesize, bound);
    REQUIRE(rows.size() == 10);
    const auto row = [&](int variation, int size) {
        return rows[static_cast<std::size_t>(2 * variation + size)];
    };
    CHECK(row(0, 0).variation == "baseline");
    CHECK(row(0, 1).size == sizes[1]);
    CHECK(row(0, 1).kept.time == row(0, 1).anew.time);
    CHECK(row(0, 1).bound == Time{4});
    // Kept, every shard but one crosses the slow link; anew, none.
    CHECK(row(1, 1).kept.time > row(0, 1).kept.time);
    CHECK(row(1, 1).anew.time == row(0, 1).anew.time);
    CHECK(row(1, 1).anew.schedule == "reverse ring");
    CHECK_FALSE(row(2, 0).kept.time.has_value());
    CHECK(row(2, 0).kept.reason.find("unreachable: rank 0 cannot reach rank 1") != std::string::npos);
    CHECK(row(2, 0).anew.time == row(0, 0).anew.time);
    CHECK_FALSE(row(2, 0).bound.has_value());
    CHECK(row(3, 0).kept.reason == "made for 4 ranks, the machine has 6");
    CHECK(row(3, 0).anew.time.has_value());
    CHECK(row(4, 1).kept.reason == "there is no such machine");
    CHECK(row(4, 1).anew.reason == "there is no such machine");
}

TEST_CASE("a study whose baseline has no schedule is an error, a variation without one is a cell") {
    const topologies::Topology machine = star(4, kRate, {0});
    std::vector<sim::Variation> variations{{"same", machine, ""}};
    const auto never = [](const topologies::Topology&, Bytes) -> sim::ChosenSchedule {
        throw input_error("nothing serves");
    };
    CHECK_THROWS_AS(sim::what_if(machine, variations, {{1024}}, {}, never, {}), Error);
    const auto baseline_only = [&](const topologies::Topology& topology, Bytes) {
        if (&topology != &machine) throw input_error("nothing serves");
        return sim::ChosenSchedule{"ring", std::make_shared<const ir::Algorithm>(ring_all_reduce(4)), 1};
    };
    const auto rows = sim::what_if(machine, variations, {{1024}}, {}, baseline_only, {});
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].kept.time == rows[0].kept.time);
    CHECK(rows[1].anew.reason == "nothing serves");
}
