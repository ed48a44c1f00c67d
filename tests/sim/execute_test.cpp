// Runs of algorithms: contention, conservation, determinism, and how runs end.
#include <baton/base/error.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/sim/step_bytes.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "machines.hpp"
#include "naive_simulator.hpp"
#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/small_algorithms.hpp"

using namespace baton;
using namespace baton::test;

namespace {

constexpr Rate kRate{50'000'000'000};

sim::SimulationResult run(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                          std::int64_t size, int tiles = 1, sim::Model model = sim::Model::flow) {
    sim::SimulationOptions options;
    options.size = {size};
    options.tiles = tiles;
    options.model = model;
    return sim::simulate(topology, algorithm, options);
}

/// Algorithms for any number of ranks.
std::vector<ir::Algorithm> algorithms(int ranks) {
    std::vector<ir::Algorithm> all{ring_all_reduce(ranks),
                                   ring_all_gather(ranks, 2),
                                   one_shot_all_reduce(ranks),
                                   reduce_to_root(ranks, 0),
                                   chain_broadcast(ranks, ranks / 2, 3),
                                   direct_all_to_all(ranks, 2),
                                   scratch_reduce_scatter(ranks)};
    if ((ranks & (ranks - 1)) == 0) all.push_back(recursive_doubling(ranks, 2));
    return all;
}

ir::Algorithm pairs(int ranks, const std::vector<std::pair<int, int>>& sends,
                    std::int16_t channel_of_last = 0) {
    // An all_to_all shard each: independent messages of size / ranks bytes.
    ir::AlgorithmBuilder b("pairs", collective(ir::CollectiveKind::all_to_all, ranks, 1));
    for (std::size_t i = 0; i < sends.size(); ++i) {
        if (i + 1 == sends.size()) b.channel(channel_of_last);
        b.send({sends[i].first, ir::Buffer::input, sends[i].second},
               {sends[i].second, ir::Buffer::scratch, static_cast<int>(i)});
    }
    return b.build();
}

}  // namespace

TEST_CASE("the engine agrees with a plain simulation on random machines") {
    const int seeds = full() ? 600 : 60;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        const topologies::Topology topology = random_topology(static_cast<std::uint64_t>(seed), {2, 7, true});
        std::mt19937_64 dice(static_cast<std::uint64_t>(seed));
        for (const ir::Algorithm& algorithm : algorithms(topology.rank_count())) {
            const std::int64_t size = dice() % 2 ? static_cast<std::int64_t>(dice() % 3000)
                                                 : static_cast<std::int64_t>(dice() % 10'000'000);
            const int tiles = 1 + static_cast<int>(dice() % 3);
            CAPTURE(algorithm.name);
            CAPTURE(size);
            CAPTURE(tiles);
            const auto result = run(topology, algorithm, size, tiles);
            REQUIRE_MESSAGE(result.outcome == sim::Outcome::finished, result.reason);
            NaiveSimulator naive(topology, algorithm, sim::shard_bytes(algorithm.collective, {size}).count,
                                 tiles);
            std::vector<double> link_bytes;
            const double expected = naive.run(&link_bytes);
            // Roundings to picoseconds add up along the critical path, and shift who shares with whom.
            CHECK(result.time.seconds() ==
                  doctest::Approx(expected).epsilon(1e-9 + 1e-10 / std::max(expected, 1e-9)));
            for (std::size_t l = 0; l < link_bytes.size(); ++l) {
                CHECK(result.links[l].bytes == doctest::Approx(link_bytes[l]).epsilon(1e-9));
                // No link carries more than its capacity over the time it was busy.
                const double carried = topology.links[l].capacity().value() * result.links[l].busy.seconds();
                CHECK(result.links[l].bytes <= carried * (1 + 1e-9) + 1e-3);
                CHECK(result.links[l].busy <= result.time);
            }
        }
    }
}

TEST_CASE("two messages on one link take turns by halves; on two links they do not meet") {
    const topologies::Topology machine = star(4, kRate, {1'000'000});
    const double alone = 1e-6 + 4e6 / 50e9, shared = 1e-6 + 8e6 / 50e9;
    CHECK(run(machine, pairs(4, {{0, 1}}), 16'000'000).time.seconds() ==
          doctest::Approx(alone).epsilon(1e-9));
    CHECK(run(machine, pairs(4, {{0, 1}, {2, 3}}), 16'000'000).time.seconds() ==
          doctest::Approx(alone).epsilon(1e-9));
    CHECK(run(machine, pairs(4, {{0, 1}, {0, 2}}), 16'000'000).time.seconds() ==
          doctest::Approx(shared).epsilon(1e-9));
    CHECK(run(machine, pairs(4, {{0, 3}, {1, 3}}), 16'000'000).time.seconds() ==
          doctest::Approx(shared).epsilon(1e-9));
    // One lane sends one after the other; the latency does not occupy it. Two channels share.
    CHECK(run(machine, pairs(4, {{0, 1}, {0, 1}}), 16'000'000).time.seconds() ==
          doctest::Approx(shared).epsilon(1e-9));
    CHECK(run(machine, pairs(4, {{0, 1}, {0, 1}}, 1), 16'000'000).time.seconds() ==
          doctest::Approx(shared).epsilon(1e-9));
}

TEST_CASE("alpha_beta knows no contention and says so") {
    const topologies::Topology machine = star(4, kRate, {1'000'000});
    const auto result =
        run(machine, pairs(4, {{0, 3}, {1, 3}, {2, 3}}), 16'000'000, 1, sim::Model::alpha_beta);
    CHECK(result.time.seconds() == doctest::Approx(1e-6 + 4e6 / 50e9).epsilon(1e-9));
    CHECK(result.model_in_words.find("no contention") != std::string::npos);
    const auto fair = run(machine, pairs(4, {{0, 3}, {1, 3}, {2, 3}}), 16'000'000);
    CHECK(fair.time.seconds() == doctest::Approx(1e-6 + 12e6 / 50e9).epsilon(1e-9));
    CHECK(fair.model_in_words.find("max-min") != std::string::npos);
}

TEST_CASE("a joint limit binds the links it names") {
    topologies::Topology machine = star(4, kRate, {0});
    topologies::Limit limit;
    limit.id = "copy engine";
    limit.links = {machine.link_index("g0>hub"), machine.link_index("hub>g0")};
    limit.bandwidth = kRate;
    machine.limits.push_back(limit);
    machine.finish("limited");
    const auto result = run(machine, pairs(4, {{0, 1}, {2, 0}}), 16'000'000);
    CHECK(result.time.seconds() == doctest::Approx(8e6 / 50e9).epsilon(1e-9));
    REQUIRE(result.limits.size() == 1);
    CHECK(result.limits[0].bytes == doctest::Approx(8e6));
    CHECK(run(machine, pairs(4, {{0, 1}, {2, 3}}), 16'000'000).time.seconds() ==
          doctest::Approx(4e6 / 50e9).epsilon(1e-9));
}

TEST_CASE("a slow link and a long link count where they are crossed") {
    topologies::Topology machine = star(3, kRate, {500'000});
    machine.links[static_cast<std::size_t>(machine.link_index("g1>hub"))].goodput = {10'000'000'000};
    machine.links[static_cast<std::size_t>(machine.link_index("hub>g2"))].latency = {3'000'000};
    machine.finish("odd");
    CHECK(run(machine, pairs(3, {{0, 2}}), 3'000'000).time.seconds() ==
          doctest::Approx(3.5e-6 + 1e6 / 50e9).epsilon(1e-9));
    CHECK(run(machine, pairs(3, {{1, 0}}), 3'000'000).time.seconds() ==
          doctest::Approx(0.5e-6 + 1e6 / 10e9).epsilon(1e-9));
}

TEST_CASE("a ring with one slow link takes the published time") {
    // T = max(2(N-1) s b' + a, (N-1) s b' + (N-1)(a + s b) + 2a, 2(N-1)(a + s b) + 2 s (b' - b)).
    for (const int n : {3, 8, 32}) {
        for (const double slower : {1.5, 4.0, 20.0}) {
            for (const std::int64_t s : {4096, 1 << 20}) {
                CAPTURE(n);
                CAPTURE(slower);
                CAPTURE(s);
                topologies::Topology machine = ring(n, kRate, {1'000'000});
                auto& link = machine.links[static_cast<std::size_t>(machine.link_index("g0>g1"))];
                link.goodput = {static_cast<std::int64_t>(50e9 / slower)};
                machine.finish("slow");
                const double a = 1e-6, b = 1 / 50e9, b2 = 1 / link.goodput.value(),
                             d = static_cast<double>(s);
                const double expected =
                    std::max({2 * (n - 1) * d * b2 + a, (n - 1) * d * b2 + (n - 1) * (a + d * b) + 2 * a,
                              2 * (n - 1) * (a + d * b) + 2 * d * (b2 - b)});
                CHECK(run(machine, ring_all_reduce(n), s * n).time.seconds() ==
                      doctest::Approx(expected).epsilon(1e-7));
            }
        }
    }
}

TEST_CASE("reductions take the time that the machine states") {
    topologies::Topology machine = star(4, kRate, {1'000'000});
    machine.machine.reduction = {100'000'000'000};
    const double s = 1 << 20, step = 1e-6 + s / 50e9;
    const auto result = run(machine, ring_all_reduce(4), (1 << 20) * 4);
    CHECK(result.time.seconds() == doctest::Approx(6 * step + 3 * s / 100e9).epsilon(1e-7));
    CHECK(result.model_in_words.find("reduces at 100GB/s") != std::string::npos);
    // One rank reduces one piece after another: (N-1) S / rate after all have arrived.
    const auto one_shot = run(machine, one_shot_all_reduce(4), 1 << 20);
    CHECK(one_shot.time.seconds() == doctest::Approx(1e-6 + 3 * s / 50e9 + 3 * s / 100e9).epsilon(1e-7));
    sim::SimulationOptions free;
    free.size = {(1 << 20) * 4};
    free.reductions = false;
    CHECK(sim::simulate(machine, ring_all_reduce(4), free).time.seconds() ==
          doctest::Approx(6 * step).epsilon(1e-7));
}

TEST_CASE("a step without bytes takes the latency") {
    const auto result = run(star(4, kRate, {1'000'000}), ring_all_reduce(4), 0);
    CHECK(result.time == Time{6'000'000});
    CHECK(result.algbw == Rate{0});
    CHECK(run(star(1, kRate, {0}), ring_all_reduce(1), 1000).time == Time{0});
}

TEST_CASE("multicast and switch reduction cross each link once") {
    using enum ir::Buffer;
    ir::Algorithm algorithm;
    algorithm.collective = collective(ir::CollectiveKind::broadcast, 4, 1);
    algorithm.switch_groups = {{0, 1, 2, 3}};
    ir::Step step;
    step.op = ir::StepOp::multicast;
    step.dst_rank = 0;
    algorithm.body.push_back({ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(1, step)}});
    const topologies::Topology machine = star(4, kRate, {1'000'000});
    const double expected = 1e-6 + 8e6 / 50e9;
    CHECK(run(machine, algorithm, 8'000'000).time.seconds() == doctest::Approx(expected).epsilon(1e-9));
    CHECK(run(machine, algorithm, 8'000'000).links[0].bytes == 8e6);

    topologies::Topology plain = star(4, kRate, {0});
    plain.nodes[4].multicast = false;
    plain.finish("plain");
    const auto refused = run(plain, algorithm, 8'000'000);
    CHECK(refused.outcome == sim::Outcome::unreachable);
    CHECK(refused.reason.find("can multicast") != std::string::npos);

    algorithm.collective = collective(ir::CollectiveKind::reduce, 4, 1);
    step.op = ir::StepOp::switch_reduce;
    algorithm.body = {{ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(1, step)}}};
    CHECK(run(machine, algorithm, 8'000'000).time.seconds() == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("results are the same to the bit from run to run") {
    for (int seed = 100; seed < 110; ++seed) {
        const topologies::Topology topology =
            random_topology(static_cast<std::uint64_t>(seed), {2, 12, true});
        for (const ir::Algorithm& algorithm : algorithms(topology.rank_count())) {
            sim::SimulationOptions options;
            options.size = {1'234'567};
            options.tiles = 4;
            options.trace = true;
            const auto first = sim::simulate(topology, algorithm, options);
            const sim::PreparedAlgorithm prepared(topology, algorithm);
            prepared.run({});
            const auto second = prepared.run(options);
            CHECK(first.time == second.time);
            CHECK(first.events == second.events);
            REQUIRE(first.trace.size() == second.trace.size());
            for (std::size_t i = 0; i < first.trace.size(); ++i) {
                CHECK(first.trace[i].step == second.trace[i].step);
                CHECK(first.trace[i].committed == second.trace[i].committed);
            }
        }
    }
}

TEST_CASE("what cannot be reached is said, with the ranks") {
    topologies::Topology machine = ring(5, kRate, {0});
    std::erase_if(machine.links, [](const topologies::Link& link) { return link.id == "g2>g3"; });
    machine.finish("cut");
    const auto result = run(machine, ring_all_reduce(5), 1000);
    CHECK(result.outcome == sim::Outcome::unreachable);
    CHECK(result.reason.find("rank 2 cannot reach rank 3") != std::string::npos);
    CHECK(result.time == Time{0});
}

TEST_CASE("every limit ends a run in words") {
    const topologies::Topology machine = star(8, kRate, {0});
    sim::SimulationOptions options;
    options.size = {1 << 20};
    options.tiles = 4;
    options.operation_limit = 100;
    auto result = sim::simulate(machine, ring_all_reduce(8), options);
    CHECK(result.outcome == sim::Outcome::budget_exceeded);
    CHECK(result.reason.find("100 operations") != std::string::npos);
    options.operation_limit = 1'000'000;
    options.work_limit = 100;
    result = sim::simulate(machine, ring_all_reduce(8), options);
    CHECK(result.outcome == sim::Outcome::budget_exceeded);
    const auto slow = run(star(2, Rate{1}, {0}), ring_all_reduce(2), std::int64_t{1} << 40);
    CHECK(slow.outcome == sim::Outcome::budget_exceeded);
    CHECK(slow.reason.find("106 days") != std::string::npos);
    CHECK_THROWS_AS(run(machine, ring_all_reduce(9), 1000), Error);
    CHECK_THROWS_AS(run(machine, ring_all_reduce(8), 1000, -1), Error);
    CHECK_THROWS_AS(run(machine, ring_all_reduce(8), -1), Error);
}

TEST_CASE("tiles = 0 takes the fewest tiles that are as good as the best") {
    const topologies::Topology machine = star(8, kRate, {1'000'000});
    for (const std::int64_t size : {0, 100, 1 << 14, 1 << 20, 1 << 24}) {
        const auto chosen = run(machine, chain_broadcast(8, 0, 1), size, 0);
        Time best = Time::max();
        for (int tiles = 1; tiles <= 128; tiles *= 2)
            best = std::min(best, run(machine, chain_broadcast(8, 0, 1), size, tiles).time);
        CHECK(chosen.time.seconds() <= best.seconds() * 1.001);
        CHECK(chosen.time == run(machine, chain_broadcast(8, 0, 1), size, chosen.tiles).time);
    }
    CHECK(run(machine, chain_broadcast(8, 0, 1), 0, 0).tiles == 1);
    CHECK(run(machine, chain_broadcast(8, 0, 1), 1 << 24, 0).tiles > 8);
}

TEST_CASE("algbw and busbw are those of nccl-tests") {
    const auto result = run(star(4, kRate, {0}), ring_all_reduce(4), 1 << 22);
    CHECK(result.algbw.value() == doctest::Approx(50e9 / 1.5).epsilon(1e-6));
    CHECK(result.busbw.value() == doctest::Approx(50e9).epsilon(1e-6));
}
