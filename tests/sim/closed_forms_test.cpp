// Simulated times against the closed forms of the literature.
#include <baton/sim/execute_algorithm.hpp>

#include "../support/small_algorithms.hpp"
#include "machines.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace baton;
using namespace baton::test;

namespace {

constexpr Rate kRate{50'000'000'000};
constexpr double kBeta = 1.0 / 50e9;

/// Relative 1e-9 and one picosecond per step on the critical path.
void check_time(Time actual, double expected, double steps) {
    const double seconds = actual.seconds();
    CHECK(seconds >= expected * (1 - 1e-12));
    CHECK(seconds <= expected * (1 + 1e-9) + steps * 1e-12);
}

Time run(const topologies::Topology& topology, const ir::Algorithm& algorithm, std::int64_t size,
         int tiles = 1) {
    sim::SimulationOptions options;
    options.size = {size};
    options.tiles = tiles;
    const auto result = sim::simulate(topology, algorithm, options);
    REQUIRE_MESSAGE(result.outcome == sim::Outcome::finished, result.reason);
    return result.time;
}

}  // namespace

TEST_CASE("ring all_reduce takes 2(N-1)(alpha + S/N beta)") {
    for (const int n : {2, 3, 4, 8, 17, 64}) {
        for (const std::int64_t latency : {0, 700'000}) {
            for (const std::int64_t per_rank : {16, 1024, 1 << 20}) {
                CAPTURE(n);
                CAPTURE(per_rank);
                const double alpha = latency * 1e-12, s = per_rank;
                const double expected = 2 * (n - 1) * (alpha + s * kBeta);
                check_time(run(star(n, kRate, {latency}), ring_all_reduce(n), per_rank * n), expected, 2 * n);
                check_time(run(ring(n, kRate, {latency}), ring_all_reduce(n), per_rank * n), expected, 2 * n);
            }
        }
    }
}

// With slices of a port time c and lanes that take the lowest tile first, g = ceil((alpha + c) / c) tiles
// fill a lane; they go round together, group after group, and the last, smaller group pays the latency in
// every step. In the latency-bound case (k <= g) and where g divides k this is the form for ports that take
// the lowest step first: max(2(N-1) k c + alpha, 2(N-1)(alpha + c) + (k-1) c).
TEST_CASE("ring all_reduce in tiles runs them in groups that fill the lanes") {
    for (const int n : {2, 3, 8, 16}) {
        for (const int k : {1, 2, 5, 13, 14, 16, 28, 64}) {
            for (const std::int64_t slice : {16, 4096, 1 << 16}) {
                CAPTURE(n);
                CAPTURE(k);
                CAPTURE(slice);
                const double alpha = 1e-6, c = static_cast<double>(slice) * kBeta, steps = 2 * (n - 1);
                const int group = static_cast<int>(std::ceil((alpha + c) / c)), rest = k % group;
                const double expected = rest == 0
                                            ? steps * k * c + alpha
                                            : steps * (k - rest) * c + steps * (alpha + c) + (rest - 1) * c;
                check_time(run(star(n, kRate, {1'000'000}), ring_all_reduce(n), slice * k * n, k), expected,
                           2 * n * k);
                if (k <= group || rest == 0) {
                    CHECK(expected ==
                          doctest::Approx(std::max(steps * k * c + alpha, steps * (alpha + c) + (k - 1) * c))
                              .epsilon(1e-12));
                }
            }
        }
    }
}

TEST_CASE("pipelined chain broadcast takes (N-1)(alpha + c beta) + (k-1) c beta") {
    for (const int n : {2, 5, 16}) {
        for (const int k : {1, 4, 32}) {
            const std::int64_t slice = 8192;
            const double expected = (n - 1) * (1e-6 + slice * kBeta) + (k - 1) * slice * kBeta;
            check_time(run(star(n, kRate, {1'000'000}), chain_broadcast(n, 0, 1), slice * k, k), expected,
                       n + k);
            check_time(run(star(n, kRate, {1'000'000}), chain_broadcast(n, 0, k), slice * k, 1), expected,
                       n + k);
        }
    }
}

TEST_CASE("recursive doubling takes log2(N)(alpha + S beta)") {
    for (const int n : {2, 4, 8, 32, 128}) {
        const std::int64_t size = 1 << 20;
        check_time(run(star(n, kRate, {700'000}), recursive_doubling(n), size),
                   std::log2(n) * (7e-7 + size * kBeta), std::log2(n));
    }
}

TEST_CASE("direct all_to_all shares the ports: alpha + (N-1)/N S beta") {
    for (const int n : {2, 3, 8, 33, 128}) {
        const std::int64_t part = 4096;
        check_time(run(star(n, kRate, {700'000}), direct_all_to_all(n), part * n),
                   7e-7 + (n - 1) * part * kBeta, 1);
    }
}

TEST_CASE("one-shot all_reduce takes alpha + (N-1) S beta") {
    for (const int n : {2, 5, 16}) {
        const std::int64_t size = 1 << 16;
        check_time(run(star(n, kRate, {700'000}), one_shot_all_reduce(n), size),
                   7e-7 + (n - 1) * size * kBeta, 1);
    }
}
