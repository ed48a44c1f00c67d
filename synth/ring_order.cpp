#include <baton/synth/ring_order.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/ring_network.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace baton::synth {
namespace {

Rate rate_of(double rate) {
    return {rate >= 9e18 ? std::int64_t{9'000'000'000'000'000'000} : std::llround(rate)};
}

/// No ring is better: every rank has a fastest and a nearest next one among its direct neighbors, if it has
/// any.
bool is_best(const RingNetwork& network, const Quality& quality) {
    const auto& topology = network.topology();
    const auto is_rank = [&](int link) {
        return topology.nodes[static_cast<std::size_t>(topology.links[static_cast<std::size_t>(link)].to)]
            .rank;
    };
    double rate = 0;
    std::int64_t latency = 0;
    std::vector<int> number(static_cast<std::size_t>(topology.rank_count()), -1);
    for (int i = 0; i < network.size(); ++i) number[static_cast<std::size_t>(network.rank(i))] = i;
    for (int i = 0; i < network.size(); ++i) {
        Hop best{0, -1};
        const auto node =
            static_cast<std::size_t>(topology.rank_nodes[static_cast<std::size_t>(network.rank(i))]);
        for (const int link : topology.out_links[node]) {
            const int to = is_rank(link) < 0 ? -1 : number[static_cast<std::size_t>(is_rank(link))];
            if (to < 0) return false;
            const Hop hop = network.hop(i, to);
            if (hop.rate <= 0) continue;
            best.rate = std::max(best.rate, hop.rate);
            best.latency = best.latency < 0 ? hop.latency : std::min(best.latency, hop.latency);
        }
        if (best.latency < 0) return false;
        rate = i == 0 ? best.rate : std::min(rate, best.rate);
        latency += best.latency;
    }
    return at_least(quality.rate, rate) && quality.latency <= latency;
}

/// Moves parts of the ring elsewhere, turned round or not, while that makes it better.
void improve(const RingNetwork& network, std::uint64_t seed, std::vector<int>& order, Quality& quality) {
    const auto n = static_cast<std::int64_t>(order.size());
    std::mt19937_64 random(seed);
    const std::int64_t budget = std::clamp<std::int64_t>(1'000'000 / n, 200, 8000);
    for (std::int64_t i = 0; i < budget; ++i) {
        stop_point();
        const auto length =
            1 + static_cast<std::int64_t>(
                    random() % static_cast<std::uint64_t>(std::min<std::int64_t>(n - 1, i % 2 ? 3 : n / 2)));
        const auto from = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n - length + 1));
        std::vector<int> part(order.begin() + from, order.begin() + from + length), other = order;
        other.erase(other.begin() + from, other.begin() + from + length);
        if (random() % 2) std::reverse(part.begin(), part.end());
        other.insert(
            other.begin() + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n - length + 1)),
            part.begin(), part.end());
        const Quality found = network.measure(other);
        if (!found.better_than(quality)) continue;
        quality = found;
        order = std::move(other);
    }
}

std::vector<int> large_ring(const RingNetwork& network, const RingOptions& options, Quality& quality) {
    std::vector<std::vector<int>> candidates(1, std::vector<int>(static_cast<std::size_t>(network.size())));
    std::iota(candidates[0].begin(), candidates[0].end(), 0);
    std::vector<Quality> measured{network.measure(candidates[0])};
    double most = measured[0].rate;
    const auto add = [&](std::vector<int> order) {
        if (order.empty()) return false;
        measured.push_back(network.measure(order));
        candidates.push_back(std::move(order));
        most = std::max(most, measured.back().rate);
        return is_best(network, measured.back());
    };
    // The first that cannot be bettered ends the search.
    const bool over_hosts = !add(ring_over_hosts(network, options.slack)) && candidates.size() > 1;
    bool found = is_best(network, measured.back());
    if (!found && !over_hosts) {
        for (auto& ring : grid_rings(network.size())) found = found || add(std::move(ring));
        found = found || add(neighbor_ring(network, options.seed));
    }
    std::size_t best = found ? measured.size() - 1 : 0;
    for (std::size_t i = 0; !found && i < measured.size(); ++i) {
        if (!at_least(measured[i].rate, most * (1 - options.slack))) continue;
        const bool worse = !at_least(measured[best].rate, most * (1 - options.slack));
        if (worse || measured[i].latency < measured[best].latency) best = i;
    }
    quality = measured[best];
    if (!found) improve(network, options.seed, candidates[best], quality);
    return candidates[best];
}

std::vector<int> search(const RingNetwork& network, const RingOptions& options, Quality& quality) {
    return network.size() <= kMostExact ? exact_ring(network, options.slack, quality)
                                        : large_ring(network, options, quality);
}

Ring as_ring(const RingNetwork& network, const std::vector<int>& order, const Quality& quality) {
    Ring ring;
    for (const int i : order) ring.order.push_back(network.rank(i));
    ring.rate = rate_of(quality.rate);
    ring.latency = {quality.latency};
    return ring;
}

}  // namespace

Ring measure_ring(const topologies::Topology& topology, const std::vector<int>& order,
                  topologies::RoutePolicy policy) {
    RingOptions options;
    options.ranks = order;
    options.policy = policy;
    if (order.empty()) throw input_error("a ring of no ranks", topology.name);
    const RingNetwork network(topology, options);
    std::vector<int> places(order.size());
    std::iota(places.begin(), places.end(), 0);
    return as_ring(network, places, network.measure(places));
}

std::vector<Ring> ring_orders(const topologies::Topology& topology, const RingOptions& options) {
    RingNetwork network(topology, options);
    RingOptions checked = options;
    checked.slack = std::clamp(options.slack, 0.0, 0.9);
    std::vector<Ring> rings;
    double first = 0;
    const int most = std::max(options.most_rings, 1);
    while (static_cast<int>(rings.size()) < most) {
        Quality quality;
        const auto order = search(network, checked, quality);
        if (rings.empty()) {
            first = quality.rate;
            if (network.size() > 1 && quality.rate <= 0)
                throw input_error(
                    fmt::format("no ring through all {} ranks found: some rank has no route to any next one",
                                network.size()),
                    topology.name, "take other ranks, or a pattern other than a ring");
        } else if (!at_least(quality.rate, first / 4)) {
            break;
        }
        rings.push_back(as_ring(network, order, quality));
        if (network.size() < 2) break;
        network.take(order, quality.rate);
    }
    return rings;
}

std::vector<std::int64_t> ring_weights(const std::vector<Ring>& rings) {
    constexpr double kFinest = 24;  // weight of the fastest before common factors go
    Rate most{1};
    for (const Ring& ring : rings) most = std::max(most, ring.rate);
    std::vector<std::int64_t> weights;
    std::int64_t common = 0;
    for (const Ring& ring : rings) {
        weights.push_back(
            std::max<std::int64_t>(1, std::llround(kFinest * ring.rate.value() / most.value())));
        common = std::gcd(common, weights.back());
    }
    for (auto& weight : weights) weight /= common;
    return weights;
}

Ring best_ring(const topologies::Topology& topology, const RingOptions& options) {
    RingOptions one = options;
    one.most_rings = 1;
    return ring_orders(topology, one).front();
}

std::vector<int> ring_order(const topologies::Topology& topology, const RingOptions& options) {
    return best_ring(topology, options).order;
}

}  // namespace baton::synth
