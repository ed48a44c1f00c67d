#include <baton/synth/ring_order.hpp>

#include <baton/base/error.hpp>
#include <baton/topologies/load.hpp>
#include <support/full.hpp>
#include <support/random_topology.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <string>

using namespace baton;
using namespace baton::synth;

namespace {

bool is_permutation_of(std::vector<int> order, std::vector<int> ranks) {
    std::sort(order.begin(), order.end());
    std::sort(ranks.begin(), ranks.end());
    return order == ranks;
}

std::vector<int> all_ranks(const topologies::Topology& topology) {
    std::vector<int> ranks(static_cast<std::size_t>(topology.rank_count()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

/// Hops that leave a host.
int crossings(const topologies::Topology& topology, const std::vector<int>& order) {
    const auto hosts = topology.rank_hosts();
    int count = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
        count += hosts[static_cast<std::size_t>(order[i])] !=
                 hosts[static_cast<std::size_t>(order[(i + 1) % order.size()])];
    return count;
}

/// The best of all orders, by measure_ring alone.
Ring brute_force(const topologies::Topology& topology) {
    auto order = all_ranks(topology);
    Ring best;
    do {
        const Ring ring = measure_ring(topology, order);
        const bool first = best.order.empty();
        if (first || ring.rate > best.rate || (ring.rate == best.rate && ring.latency < best.latency))
            best = ring;
    } while (std::next_permutation(order.begin() + 1, order.end()));
    return best;
}

}  // namespace

TEST_CASE("rings of a DGX-1 run over NVLink alone and use all of it") {
    const auto topology = topologies::load("preset:dgx1_v100");
    const auto rings = ring_orders(topology);
    REQUIRE(rings.size() == 4);
    CHECK(to_string(rings[0].rate) == "40GB/s");
    CHECK(to_string(rings[1].rate) == "40GB/s");
    CHECK(to_string(rings[2].rate) == "20GB/s");
    CHECK(to_string(rings[3].rate) == "20GB/s");
    CHECK(rings[0].order == std::vector<int>{0, 3, 2, 1, 5, 6, 7, 4});
    // Six links of 20 GB/s a GPU: nothing is left.
    std::int64_t sum = 0;
    for (const Ring& ring : rings) {
        CHECK(is_permutation_of(ring.order, all_ranks(topology)));
        CHECK(measure_ring(topology, ring.order).rate >= ring.rate);
        sum += ring.rate.bytes_per_second;
    }
    CHECK(sum == 120'000'000'000);
}

TEST_CASE("rings of part of a DGX-1 keep to NVLink wherever a ring of NVLinks exists") {
    const auto topology = topologies::load("preset:dgx1_v100");
    const auto nvlink = [&](int a, int b) {
        const auto& links =
            topology.out_links[static_cast<std::size_t>(topology.rank_nodes[static_cast<std::size_t>(a)])];
        return std::any_of(links.begin(), links.end(), [&](int link) {
            return topology.links[static_cast<std::size_t>(link)].to ==
                   topology.rank_nodes[static_cast<std::size_t>(b)];
        });
    };
    int with_ring = 0;
    for (unsigned mask = 1; mask < 256; ++mask) {
        RingOptions options;
        for (int r = 0; r < 8; ++r)
            if (mask >> r & 1U) options.ranks.push_back(r);
        const auto n = options.ranks.size();
        auto order = options.ranks;
        bool exists = false;
        do {
            bool all = true;
            for (std::size_t i = 0; n > 1 && i < n; ++i) all = all && nvlink(order[i], order[(i + 1) % n]);
            exists = exists || all;
        } while (!exists && std::next_permutation(order.begin() + 1, order.end()));
        const auto found = ring_order(topology, options);
        CAPTURE(options.ranks);
        CAPTURE(found);
        CHECK(is_permutation_of(found, options.ranks));
        if (!exists) continue;
        ++with_ring;
        for (std::size_t i = 0; n > 1 && i < n; ++i) CHECK(nvlink(found[i], found[(i + 1) % n]));
    }
    CHECK(with_ring > 60);
}

TEST_CASE("rings of several hosts enter and leave every host once") {
    struct Machine {
        std::string spec, rate;
        std::size_t rings;
    };
    for (const Machine& machine : {Machine{"preset:dgx_a100:hosts=2", "24.84GB/s", 8},
                                   {"preset:dgx_h100:hosts=2", "49.68GB/s", 8},
                                   {"preset:dgx_h100:hosts=3", "49.68GB/s", 8},
                                   {"preset:dgx_a100:hosts=8", "24.84GB/s", 8},
                                   {"preset:dgx1_v100:hosts=4", "12GB/s", 4},
                                   {"preset:mi300x:hosts=2", "48GB/s", 6}}) {
        CAPTURE(machine.spec);
        const auto topology = topologies::load(machine.spec);
        const auto hosts = topology.rank_hosts();
        const auto rings = ring_orders(topology);
        CHECK(rings.size() >= machine.rings);
        for (const Ring& ring : rings) {
            CHECK(to_string(ring.rate) == machine.rate);
            CHECK(is_permutation_of(ring.order, all_ranks(topology)));
            CHECK(crossings(topology, ring.order) == *std::max_element(hosts.begin(), hosts.end()) + 1);
        }
    }
}

TEST_CASE("rings of tori, grids and cubes are made of neighbors") {
    for (const char* spec :
         {"torus:4x4", "torus:3x3", "torus:5x5", "torus:3x5", "torus:6x7", "torus:3x3x3", "torus:4x4x4",
          "torus:5x3x7", "torus:8x8", "mesh:4x4", "mesh:5x6", "mesh:6x5", "mesh:3x4x5", "ring:7", "ring:40",
          "hypercube:3", "hypercube:5", "torus:32x32"}) {
        CAPTURE(spec);
        const auto topology = topologies::load(spec);
        const Ring ring = best_ring(topology);
        CHECK(is_permutation_of(ring.order, all_ranks(topology)));
        CHECK(ring.rate == topology.links[0].capacity());
        CHECK(ring.latency.picoseconds == topology.links[0].latency.picoseconds * topology.rank_count());
    }
}

TEST_CASE("up to seven ranks no order beats the one found") {
    const int seeds = test::full() ? 3000 : 250;
    int shared = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        test::RandomTopologyOptions options;
        options.most_ranks = 7;
        const auto topology = test::random_topology(static_cast<std::uint64_t>(seed), options);
        CAPTURE(seed);
        const Ring best = brute_force(topology);
        RingOptions strict;
        strict.slack = 0;
        const Ring found = best_ring(topology, strict), loose = best_ring(topology);
        CHECK(loose.rate.value() >= 0.95 * best.rate.value() - 1);
        CHECK(loose.latency <= best.latency);
        CHECK(found.rate == best.rate);
        CHECK(found.latency == best.latency);
        const Ring again = measure_ring(topology, found.order);
        CHECK(again.rate == found.rate);
        CHECK(again.latency == found.latency);
        for (std::size_t i = 0; i < found.order.size() && found.order.size() > 1; ++i)
            if (measure_ring(topology, {found.order[i], found.order[(i + 1) % found.order.size()]}).rate >
                found.rate)
                ++shared;
    }
    CHECK(shared > 0);
}

TEST_CASE("several rings never ask more of a link than it has") {
    for (int seed = 0; seed < 40; ++seed) {
        const auto topology = test::random_topology(static_cast<std::uint64_t>(seed));
        CAPTURE(seed);
        const auto rings = ring_orders(topology);
        const topologies::Routes routes(topology);
        std::vector<double> load(topology.links.size());
        for (const Ring& ring : rings) {
            CHECK(is_permutation_of(ring.order, all_ranks(topology)));
            for (std::size_t i = 0; ring.order.size() > 1 && i < ring.order.size(); ++i)
                for (const auto& part :
                     routes.between(ring.order[i], ring.order[(i + 1) % ring.order.size()]).links)
                    load[static_cast<std::size_t>(part.link)] += part.share * ring.rate.value();
        }
        for (std::size_t i = 0; i < load.size(); ++i)
            CHECK(load[i] <= topology.links[i].capacity().value() * (1 + 1e-6) + 1);
        CHECK(ring_orders(topology).back().order == rings.back().order);
    }
}

TEST_CASE("a thousand ranks take seconds") {
    for (const char* spec : {"preset:dgx_h100:hosts=128", "torus:10x10x10"}) {
        CAPTURE(spec);
        const auto topology = topologies::load(spec);
        const auto start = std::chrono::steady_clock::now();
        const Ring ring = best_ring(topology);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        CHECK(is_permutation_of(ring.order, all_ranks(topology)));
        CHECK(seconds < 20);
    }
}

TEST_CASE("rings that cannot be are refused in words") {
    const auto topology = topologies::load("mesh:2x2");
    RingOptions options;
    options.ranks = {0, 3};  // GPUs do not forward
    CHECK_THROWS_WITH_AS(ring_order(topology, options),
                         doctest::Contains("no ring through all 2 ranks found"), Error);
    options.ranks = {0, 4};
    CHECK_THROWS_WITH_AS(ring_order(topology, options),
                         doctest::Contains("rank 4 of a ring, but there are 4 ranks"), Error);
    options.ranks = {1, 1};
    CHECK_THROWS_WITH_AS(ring_order(topology, options), doctest::Contains("rank 1 is twice in a ring"),
                         Error);
    options.ranks = {2};
    CHECK(ring_order(topology, options) == std::vector<int>{2});
}
