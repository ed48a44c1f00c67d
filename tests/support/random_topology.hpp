// Random machines for property tests: seeded, small, and odd on purpose.
#pragma once

#include <baton/topologies/topology.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace baton::test {

/// What a random machine may hold.
struct RandomTopologyOptions {
    int fewest_ranks = 1, most_ranks = 24;
    /// true: a route exists between every two ranks. false: ranks are only strongly connected, so that a
    /// message may have to be relayed by other ranks (GPUs do not forward).
    bool routed = true;
};

namespace detail {

// The standard's distributions differ between libraries; these do not.
class Dice {
public:
    explicit Dice(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15ULL + 1) {}
    int between(int low, int high) {
        return low + static_cast<int>(engine_() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool chance(int percent) { return between(1, 100) <= percent; }

private:
    std::mt19937_64 engine_;
};

inline topologies::Link random_link(Dice& dice, int from, int to) {
    constexpr topologies::LinkKind kKinds[] = {topologies::LinkKind::nvlink, topologies::LinkKind::pcie,
                                               topologies::LinkKind::infiniband,
                                               topologies::LinkKind::roce_v2, topologies::LinkKind::custom};
    topologies::Link link;
    link.from = from;
    link.to = to;
    link.count = dice.chance(25) ? dice.between(2, 4) : 1;
    link.bandwidth = {std::int64_t{dice.between(1, 40)} * 2'500'000'000};
    link.latency = {std::int64_t{dice.between(0, 20)} * 100'000};
    link.kind = kKinds[dice.between(0, 4)];
    return link;
}

// Both directions, alike or each of its own.
inline void connect(Dice& dice, topologies::Topology& topology, int a, int b) {
    if (dice.chance(70)) {
        topology.add_link(random_link(dice, a, b));
        return;
    }
    topology.add_link(random_link(dice, a, b), true);
    topology.add_link(random_link(dice, b, a), true);
}

}  // namespace detail

/// The same seed and options give the same machine everywhere. Shapes: a direct network, a star, a tree of
/// switches, hosts with NICs on a fabric; with one-way, parallel, unequal and slow links among them.
inline topologies::Topology random_topology(std::uint64_t seed, RandomTopologyOptions options = {}) {
    detail::Dice dice(seed);
    topologies::Topology topology;
    topology.name = "random " + std::to_string(seed);
    const int ranks = dice.between(options.fewest_ranks, options.most_ranks);
    const int shape = dice.between(0, 3);
    const auto node = [&](std::string id, topologies::NodeType type, std::string host = {}) {
        topologies::Node made;
        made.id = std::move(id);
        made.type = type;
        made.host = std::move(host);
        if (type == topologies::NodeType::switch_node)
            made.latency = {std::int64_t{dice.between(0, 3)} * 50'000};
        return topology.add_node(std::move(made));
    };
    const int hosts = shape == 3 ? dice.between(1, 4) : 1;
    std::vector<int> gpus;
    for (int r = 0; r < ranks; ++r) {
        const std::string host = shape == 3   ? "h" + std::to_string(r * hosts / ranks)
                                 : shape == 1 ? "h0"
                                              : "";
        gpus.push_back(node("g" + std::to_string(r), topologies::NodeType::gpu, host));
    }
    if (shape == 0 || (shape != 3 && dice.chance(40))) {
        // A Hamiltonian cycle in random order keeps it strongly connected; chords make it irregular.
        std::vector<int> order = gpus;
        for (std::size_t i = order.size(); i > 1; --i) {
            std::swap(order[i - 1],
                      order[static_cast<std::size_t>(dice.between(0, static_cast<int>(i) - 1))]);
        }
        for (std::size_t i = 0; i < order.size() && ranks > 1; ++i) {
            topology.add_link(detail::random_link(dice, order[i], order[(i + 1) % order.size()]),
                              dice.chance(50));
        }
        for (int i = 0; i < ranks; ++i) {
            const int a = dice.between(0, ranks - 1), b = dice.between(0, ranks - 1);
            if (a != b)
                topology.add_link(detail::random_link(dice, gpus[static_cast<std::size_t>(a)],
                                                      gpus[static_cast<std::size_t>(b)]),
                                  dice.chance(60));
        }
    }
    if (shape != 3 && (shape != 0 || options.routed)) {
        const int leaves = shape == 2 ? dice.between(2, 4) : 1;
        std::vector<int> switches;
        for (int s = 0; s < leaves; ++s)
            switches.push_back(node("s" + std::to_string(s), topologies::NodeType::switch_node));
        for (int s = 1; s < leaves; ++s) {
            detail::connect(dice, topology, switches[static_cast<std::size_t>(s)],
                            switches[static_cast<std::size_t>(dice.between(0, s - 1))]);
        }
        for (const int gpu : gpus) {
            const int uplinks = dice.chance(20) ? 2 : 1;
            for (int u = 0; u < uplinks; ++u) {
                detail::connect(dice, topology, gpu,
                                switches[static_cast<std::size_t>(dice.between(0, leaves - 1))]);
            }
        }
    }
    if (shape == 3) {
        const int fabric = node("fabric", topologies::NodeType::switch_node);
        for (int h = 0; h < hosts; ++h) {
            const std::string host = "h" + std::to_string(h);
            const int inside = node(host + "/sw", topologies::NodeType::pcie, host);
            const int nics = dice.between(1, 3);
            for (int n = 0; n < nics; ++n) {
                const int nic = node(host + "/nic" + std::to_string(n), topologies::NodeType::nic, host);
                detail::connect(dice, topology, inside, nic);
                detail::connect(dice, topology, nic, fabric);
            }
            for (int r = 0; r < ranks; ++r) {
                if (topology.nodes[static_cast<std::size_t>(gpus[static_cast<std::size_t>(r)])].host ==
                    host) {
                    detail::connect(dice, topology, gpus[static_cast<std::size_t>(r)], inside);
                }
            }
        }
    }
    topology.finish("random topology");
    return topology;
}

}  // namespace baton::test
