// Trees, exchanges, Bruck, all pairs and hierarchies against their closed forms. Symbols: N ranks, S bytes,
// alpha, beta.
#include <baton/sim/execute_algorithm.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "machines.hpp"
#include "support/small_algorithms.hpp"

using namespace baton;
using namespace baton::test;
using enum ir::Buffer;

namespace {

constexpr Rate kRate{50'000'000'000};
constexpr double kBeta = 1 / 50e9, kAlpha = 7e-7;
constexpr Time kLatency{700'000};

void check_time(const topologies::Topology& machine, const ir::Algorithm& algorithm, std::int64_t size,
                double expected, double steps, int tiles = 1) {
    sim::SimulationOptions options;
    options.size = {size};
    options.tiles = tiles;
    const auto result = sim::simulate(machine, algorithm, options);
    CAPTURE(algorithm.name);
    CAPTURE(algorithm.collective.ranks);
    CAPTURE(size);
    REQUIRE_MESSAGE(result.outcome == sim::Outcome::finished, result.reason);
    CHECK(result.time.seconds() >= expected * (1 - 1e-12));
    CHECK(result.time.seconds() <= expected * (1 + 1e-9) + steps * 1e-12);
}

int rounds(int n) {
    int lg = 0;
    while ((1 << lg) < n) ++lg;
    return lg;
}

ir::Algorithm binomial_broadcast(int n) {
    ir::AlgorithmBuilder b("binomial", collective(ir::CollectiveKind::broadcast, n, 1));
    b.copy({0, input, 0}, {0, output, 0});
    for (int d = 1; d < n; d *= 2)
        for (int r = 0; r < d && r + d < n; ++r) b.send({r, output, 0}, {r + d, output, 0});
    return b.build();
}

ir::Algorithm tree_broadcast(int depth) {
    const int n = (2 << depth) - 1;
    ir::AlgorithmBuilder b("binary tree", collective(ir::CollectiveKind::broadcast, n, 1));
    b.copy({0, input, 0}, {0, output, 0});
    for (int r = 0; 2 * r + 2 < n; ++r)
        b.send({r, output, 0}, {2 * r + 1, output, 0}).send({r, output, 0}, {2 * r + 2, output, 0});
    return b.build();
}

ir::Algorithm tree_reduce(int depth) {
    const int n = (2 << depth) - 1;
    ir::AlgorithmBuilder b("binary tree", collective(ir::CollectiveKind::reduce, n, 1));
    for (int r = 0; r < n; ++r)
        b.copy({r, input, 0}, r == 0 ? ir::Place{r, output, 0} : ir::Place{r, scratch, 0});
    for (int r = n - 1; r > 0; --r) {
        const int parent = (r - 1) / 2;
        b.send_reduce({r, scratch, 0}, parent == 0 ? ir::Place{0, output, 0} : ir::Place{parent, scratch, 0});
    }
    return b.build();
}

ir::Algorithm rabenseifner(int n) {
    ir::AlgorithmBuilder b("halving and doubling", collective(ir::CollectiveKind::all_reduce, n, n));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, 0}, n);
    for (int d = n / 2; d >= 1; d /= 2) {
        b.begin_par();
        for (int r = 0; r < n; ++r) {
            const int half = ((r ^ d) / d) * d;  // where the partner's half begins
            b.send_reduce({r, output, half}, {r ^ d, output, half}, d);
        }
        b.end_par();
    }
    for (int d = 1; d < n; d *= 2) {
        b.begin_par();
        for (int r = 0; r < n; ++r) b.send({r, output, (r / d) * d}, {r ^ d, output, (r / d) * d}, d);
        b.end_par();
    }
    return b.build();
}

ir::Algorithm bruck_all_gather(int n) {
    ir::AlgorithmBuilder b("Bruck all_gather", collective(ir::CollectiveKind::all_gather, n, 1));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, scratch, 0});
    for (int d = 1; d < n; d *= 2)
        for (int r = 0; r < n; ++r)
            b.send({r, scratch, 0}, {(r - d + n) % n, scratch, d}, std::min(d, n - d));
    for (int r = 0; r < n; ++r)
        for (int i = 0; i < n; ++i) b.copy({r, scratch, i}, {r, output, (r + i) % n});
    return b.build();
}

/// Blocks are packed before they are sent, so that a round is one message. Scratch: N blocks by distance,
/// then a packing and an unpacking area for each round.
ir::Algorithm bruck_all_to_all(int n) {
    ir::AlgorithmBuilder b("Bruck all_to_all", collective(ir::CollectiveKind::all_to_all, n, 1));
    for (int r = 0; r < n; ++r)
        for (int i = 0; i < n; ++i) b.copy({r, input, (r + i) % n}, {r, scratch, i});
    int area = n;
    for (int d = 1; d < n; d *= 2) {
        std::vector<int> moved;
        for (int i = 0; i < n; ++i)
            if (i & d) moved.push_back(i);
        const int count = static_cast<int>(moved.size());
        for (int r = 0; r < n; ++r)
            for (int k = 0; k < count; ++k)
                b.copy({r, scratch, moved[static_cast<std::size_t>(k)]}, {r, scratch, area + k});
        for (int r = 0; r < n; ++r) b.send({r, scratch, area}, {(r + d) % n, scratch, area + count}, count);
        for (int r = 0; r < n; ++r)
            for (int k = 0; k < count; ++k)
                b.copy({r, scratch, area + count + k}, {r, scratch, moved[static_cast<std::size_t>(k)]});
        area += 2 * count;
    }
    for (int r = 0; r < n; ++r)
        for (int i = 0; i < n; ++i) b.copy({r, scratch, i}, {r, output, (r - i + n) % n});
    return b.build();
}

ir::Algorithm two_shot_all_reduce(int n) {
    ir::AlgorithmBuilder b("two-shot", collective(ir::CollectiveKind::all_reduce, n, n));
    for (int r = 0; r < n; ++r) b.copy({r, input, r}, {r, output, r});
    for (int r = 0; r < n; ++r)
        for (int q = 0; q < n; ++q)
            if (q != r) b.send_reduce({r, input, q}, {q, output, q});
    for (int r = 0; r < n; ++r)
        for (int q = 0; q < n; ++q)
            if (q != r) b.send({r, output, r}, {q, output, r});
    return b.build();
}

/// M hosts of G GPUs: a hub in each host, a rail between the GPUs of the same number.
topologies::Topology hosts(int m, int g, Rate inside, Time inside_latency, Rate outside,
                           Time outside_latency) {
    topologies::Topology topology;
    topology.name = "hosts";
    const auto place = [&](const std::string& id, Time latency) {
        topologies::Node node;
        node.id = id;
        node.type = topologies::NodeType::switch_node;
        node.latency = latency;
        return topology.add_node(node);
    };
    for (int r = 0; r < m * g; ++r) topology.add_node(gpu("g" + std::to_string(r)));
    const auto connect = [&](int from, int to, Rate rate) {
        topologies::Link link;
        link.from = from;
        link.to = to;
        link.bandwidth = rate;
        topology.add_link(link);
    };
    for (int h = 0; h < m; ++h) {
        const int hub = place("hub" + std::to_string(h), inside_latency);
        for (int i = 0; i < g; ++i) connect(h * g + i, hub, inside);
    }
    for (int i = 0; i < g; ++i) {
        const int rail = place("rail" + std::to_string(i), outside_latency);
        for (int h = 0; h < m; ++h) connect(h * g + i, rail, outside);
    }
    topology.finish("hosts");
    return topology;
}

/// Ring reduce_scatter in each host, ring all_reduce on each rail, ring all_gather in each host. Chunk (i, j)
/// is part j of M of what local rank i owns.
ir::Algorithm two_level(int m, int g) {
    ir::AlgorithmBuilder b("two level", collective(ir::CollectiveKind::all_reduce, m * g, m * g));
    const auto mod = [](int a, int n) { return ((a % n) + n) % n; };
    for (int r = 0; r < m * g; ++r) b.copy({r, input, 0}, {r, output, 0}, m * g);
    for (int s = 0; s < g - 1; ++s)
        for (int h = 0; h < m; ++h)
            for (int i = 0; i < g; ++i) {
                const int part = mod(i - s - 1, g) * m;
                b.send_reduce({h * g + i, output, part}, {h * g + (i + 1) % g, output, part}, m);
            }
    for (int s = 0; s < 2 * (m - 1); ++s)
        for (int h = 0; h < m; ++h)
            for (int i = 0; i < g; ++i) {
                const int j = mod(s < m - 1 ? h - s : h + 1 - (s - (m - 1)), m);
                const ir::Place from{h * g + i, output, i * m + j},
                    to{(h + 1) % m * g + i, output, i * m + j};
                s < m - 1 ? b.send_reduce(from, to) : b.send(from, to);
            }
    for (int s = 0; s < g - 1; ++s)
        for (int h = 0; h < m; ++h)
            for (int i = 0; i < g; ++i) {
                const int part = mod(i - s, g) * m;
                b.send({h * g + i, output, part}, {h * g + (i + 1) % g, output, part}, m);
            }
    return b.build();
}

}  // namespace

namespace {

void check_bruck(const topologies::Topology& machine, const ir::Algorithm& algorithm, std::int64_t size,
                 double port, double rest) {
    const int n = algorithm.collective.ranks;
    if ((n & (n - 1)) == 0) return check_time(machine, algorithm, size, port + rest, rounds(n));
    sim::SimulationOptions options;
    options.size = {size};
    const auto result = sim::simulate(machine, algorithm, options);
    CHECK(result.time.seconds() >= port + kAlpha - 1e-12);
    CHECK(result.time.seconds() <= (port + rest) * (1 + 1e-9) + rounds(n) * 1e-12);
}

}  // namespace

// A rank with m children serves them at once, each at 1/m of the port: m S beta until they have it, where the
// usual form, ceil(log2 N)(alpha + S beta), lets it serve one child after another.
TEST_CASE("binomial broadcast on lanes takes d alpha + d(d+1)/2 S beta, d = log2 N") {
    for (const int n : {2, 4, 8, 64}) {
        for (const std::int64_t size : {0, 16, 1 << 20}) {
            const double d = rounds(n),
                         expected = d * kAlpha + d * (d + 1) / 2 * static_cast<double>(size) * kBeta;
            check_time(star(n, kRate, kLatency), binomial_broadcast(n), size, expected, d);
        }
    }
}

TEST_CASE("a binary tree of depth d in k tiles takes d(alpha + 2 c beta) + 2(k-1) c beta, either way") {
    for (const int depth : {1, 2, 4}) {
        for (const int k : {1, 3, 16}) {
            const std::int64_t c = 65536;
            const double port = static_cast<double>(c) * kBeta,
                         expected = depth * (kAlpha + 2 * port) + 2 * (k - 1) * port;
            const auto machine = star((2 << depth) - 1, kRate, kLatency);
            check_time(machine, tree_broadcast(depth), c * k, expected, depth + 2 * k, k);
            check_time(machine, tree_reduce(depth), c * k, expected, depth + 2 * k, k);
        }
    }
}

TEST_CASE("halving and doubling takes 2 d alpha + 2(N-1)/N S beta") {
    for (const int n : {2, 4, 16, 64}) {
        for (const std::int64_t part : {16, 65536}) {
            const double expected = 2 * rounds(n) * kAlpha + 2 * (n - 1) * static_cast<double>(part) * kBeta;
            check_time(star(n, kRate, kLatency), rabenseifner(n), part * n, expected, 2 * rounds(n));
        }
    }
}

// With N no power of two, the last round of Bruck sends what does not wait for all rounds before it; lanes
// start it early, so that the forms for rounds in lock step are upper limits there, and the time of the port
// a lower one.
TEST_CASE("Bruck all_gather takes ceil(log2 N) alpha + (N-1)/N S beta") {
    for (const int n : {2, 3, 4, 5, 8, 12, 32, 33}) {
        const double port = (n - 1) * 4096 * kBeta, rest = rounds(n) * kAlpha;
        check_bruck(star(n, kRate, kLatency), bruck_all_gather(n), 4096 * n, port, rest);
    }
}

TEST_CASE("Bruck all_to_all takes ceil(log2 N) alpha + (S/N) beta times the blocks of all rounds") {
    for (const int n : {2, 3, 4, 5, 8, 12, 32, 33}) {
        int blocks = 0;
        for (int i = 0; i < n; ++i)
            for (int bit = i; bit > 0; bit /= 2) blocks += bit & 1;
        check_bruck(star(n, kRate, kLatency), bruck_all_to_all(n), 4096 * n, blocks * 4096 * kBeta,
                    rounds(n) * kAlpha);
    }
}

TEST_CASE("two-shot all_reduce takes 2 alpha + 2(N-1)/N S beta") {
    for (const int n : {2, 3, 8, 24}) {
        const std::int64_t part = 4096;
        const double expected = 2 * kAlpha + 2 * (n - 1) * static_cast<double>(part) * kBeta;
        check_time(star(n, kRate, kLatency), two_shot_all_reduce(n), part * n, expected, 2);
    }
}

TEST_CASE("two levels of rings take the sum of their forms") {
    const Rate inside{400'000'000'000}, outside{50'000'000'000};
    const Time near{600'000}, far{2'000'000};
    for (const auto& [m, g] : std::vector<std::pair<int, int>>{{2, 2}, {2, 8}, {4, 4}, {8, 3}}) {
        const std::int64_t part = 65536;
        const double s = static_cast<double>(part);
        const double expected = 2 * (g - 1) * (0.6e-6 + s * m / 400e9) + 2 * (m - 1) * (2e-6 + s / 50e9);
        check_time(hosts(m, g, inside, near, outside, far), two_level(m, g), part * m * g, expected,
                   2 * (m + g));
    }
}

TEST_CASE("a flat ring over hosts hides its latency where the network port never rests") {
    // T = max(2(N-1) s b2 + a2, 2M c2 + (2(N-1) - 2M) c1), c = a + s b: one network link a host, k = 1, G
    // >= 3.
    const Rate inside{400'000'000'000}, outside{50'000'000'000};
    for (const auto& [m, g] : std::vector<std::pair<int, int>>{{2, 8}, {4, 4}, {2, 3}}) {
        for (const std::int64_t part : {256, 4096, 1 << 20}) {
            // GPU g-1 of a host sends to GPU 0 of the next: one rail for the purpose.
            topologies::Topology machine;
            machine.name = "flat";
            const int n = m * g;
            for (int r = 0; r < n; ++r) machine.add_node(gpu("g" + std::to_string(r)));
            for (int r = 0; r < n; ++r) {
                topologies::Link link;
                link.from = r;
                link.to = (r + 1) % n;
                const bool crosses = r % g == g - 1;
                link.bandwidth = crosses ? outside : inside;
                link.latency = crosses ? Time{2'000'000} : Time{600'000};
                machine.add_link(link, true);
            }
            machine.finish("flat");
            const double s = static_cast<double>(part), c1 = 0.6e-6 + s / 400e9, c2 = 2e-6 + s / 50e9;
            const double expected =
                std::max(2 * (n - 1) * s / 50e9 + 2e-6, 2 * m * c2 + (2 * (n - 1) - 2 * m) * c1);
            CAPTURE(m);
            CAPTURE(g);
            check_time(machine, ring_all_reduce(n), part * n, expected, 2 * n);
        }
    }
}
