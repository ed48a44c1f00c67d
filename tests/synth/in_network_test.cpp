// Steps of switches: all_reduce by domains, and trees whose messages share links.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/in_network.hpp>
#include <baton/synth/switch_pruning.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using topologies::Topology;

namespace {

// Sets of ranks, each under a switch of its own that reduces and multicasts, joined by rails, by one fabric
// or by links between the switches; rates and latencies differ everywhere, some directions are slower.
Topology random_domains(test::detail::Dice& dice) {
    Topology topology;
    topology.name = "random domains";
    const int domains = dice.between(1, 4), places = dice.between(2, 6);
    const auto node = [&](const std::string& id, topologies::NodeType type, bool capable) {
        topologies::Node made;
        made.id = id;
        made.type = type;
        made.multicast = made.reduce = capable;
        if (type == topologies::NodeType::switch_node)
            made.latency = {std::int64_t{dice.between(0, 3)} * 50'000};
        return topology.add_node(std::move(made));
    };
    std::vector<int> switches, gpus;
    for (int d = 0; d < domains; ++d) {
        switches.push_back(node("s" + std::to_string(d), topologies::NodeType::switch_node, true));
        for (int p = 0; p < places; ++p) {
            gpus.push_back(
                node("g" + std::to_string(d) + "." + std::to_string(p), topologies::NodeType::gpu, false));
            test::detail::connect(dice, topology, gpus.back(), switches.back());
        }
    }
    const int between = dice.between(0, 2);
    if (between == 0 && domains > 1) {
        for (int p = 0; p < places; ++p) {
            const int rail = node("r" + std::to_string(p), topologies::NodeType::switch_node, false);
            for (int d = 0; d < domains; ++d)
                test::detail::connect(dice, topology, gpus[static_cast<std::size_t>(d * places + p)], rail);
        }
    } else if (between == 1) {
        const int fabric = node("fabric", topologies::NodeType::switch_node, dice.chance(30));
        for (const int one : switches) test::detail::connect(dice, topology, one, fabric);
    } else {
        for (int d = 1; d < domains; ++d)
            test::detail::connect(dice, topology, switches[static_cast<std::size_t>(d)],
                                  switches[static_cast<std::size_t>(dice.between(0, d - 1))]);
    }
    topology.finish("random domains");
    return topology;
}

void check_verified_and_above_bound(const Topology& topology, const ir::Collective& c,
                                    const ir::Algorithm& made) {
    CHECK(ir::verify(made).assurance == ir::Assurance::proved);
    const synth::Bound bound = synth::bound(topology, c);
    test::check_above_bound(topology, made, bound, {{0, 1}, {1024, 1}, {64 << 20, 16}});
}

std::vector<sim::ResourceUse> use_of_links(const Topology& topology, const ir::Algorithm& algorithm) {
    sim::SimulationOptions simulation;
    simulation.size = {1 << 20};
    return sim::simulate(topology, algorithm, simulation).links;
}

// Eight ranks under one switch; what they send and what they receive at rates of their own.
Topology star(std::int64_t up, std::int64_t down) {
    Topology topology;
    topology.name = "star";
    topologies::Node hub;
    hub.id = "s";
    hub.type = topologies::NodeType::switch_node;
    hub.multicast = hub.reduce = true;
    const int center = topology.add_node(hub);
    for (int r = 0; r < 8; ++r) {
        topologies::Node gpu;
        gpu.id = "g" + std::to_string(r);
        gpu.type = topologies::NodeType::gpu;
        topologies::Link link;
        link.from = topology.add_node(gpu);
        link.to = center;
        link.bandwidth = {up};
        link.latency = {500'000};
        topology.add_link(link, true);
        std::swap(link.from, link.to);
        link.bandwidth = {down};
        topology.add_link(link, true);
    }
    topology.finish("star");
    return topology;
}

Time time_of(const Topology& topology, ir::CollectiveKind kind, const std::string& algorithm) {
    synth::SynthesisOptions options;
    options.algorithm = algorithm;
    options.sizes = {{1 << 30}};
    return synth::synthesize(topology, test::collective_of(kind, topology.rank_count()), options)
        .choices.front()
        .best()
        .time;
}

}  // namespace

TEST_CASE("switches reduce and multicast for one host and several, verified and above the bound") {
    for (const int hosts : {1, 2, 3}) {
        CAPTURE(hosts);
        const topologies::Topology topology = topologies::load("dgx_h100:hosts=" + std::to_string(hosts));
        ir::Collective c;
        c.ranks = topology.rank_count();
        const synth::InNetworkAlgorithm made = synth::in_network(topology, c);
        CHECK(made.domains == hosts);
        CHECK(made.per_domain == 8);
        test::check_right_and_above_bound(topology, c, made.algorithm, 64 << 20, 16);
    }
}

TEST_CASE("in-network all_reduce is refused without such switches and never chosen among others") {
    ir::Collective c;
    c.ranks = 8;
    CHECK_THROWS_AS(synth::in_network(topologies::load("dgx1_v100"), c), Error);
    c.kind = ir::CollectiveKind::all_gather;
    CHECK_THROWS_AS(synth::in_network(topologies::load("dgx_h100"), c), Error);
    c.kind = ir::CollectiveKind::all_reduce;
    synth::SynthesisOptions options;
    options.sizes = {Bytes{1 << 20}};
    const synth::Synthesis all = synth::synthesize(topologies::load("dgx_h100"), c, options);
    CHECK(std::none_of(all.candidates.begin(), all.candidates.end(),
                       [](const synth::Candidate& candidate) { return candidate.name == "in_network"; }));
}

TEST_CASE(
    "in-network all_reduce on random machines whose switches reduce verifies and never beats the bound") {
    const int seeds = test::full() ? 600 : 60;
    int served = 0, several = 0, refused = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed) + 8100);
        Topology topology;
        if (seed % 3 == 2) {
            // Any machine, some of whose switches reduce: often no sets of equal size.
            topology = test::random_topology(static_cast<std::uint64_t>(seed) + 8100, {2, 12, true});
            for (topologies::Node& node : topology.nodes) {
                if (node.type == topologies::NodeType::switch_node && dice.chance(80))
                    node.multicast = node.reduce = true;
            }
        } else {
            topology = random_domains(dice);
        }
        const ir::Collective c = test::collective_of(ir::CollectiveKind::all_reduce, topology.rank_count());
        synth::InNetworkAlgorithm made;
        try {
            made = synth::in_network(topology, c);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            ++refused;
            continue;
        }
        ++served;
        several += made.domains > 1 ? 1 : 0;
        CHECK(made.domains * made.per_domain == topology.rank_count());
        check_verified_and_above_bound(topology, c, made.algorithm);
    }
    CHECK(served > seeds / 3);
    CHECK(several > seeds / 10);
    CHECK(refused > 0);
}

TEST_CASE("trees through switches verify, load no link more and never beat the bound on random machines") {
    const int seeds = test::full() ? 400 : 15;
    std::int64_t multicasts = 0, sums = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed) + 8700);
        Topology topology =
            seed % 3 == 2 ? test::random_topology(static_cast<std::uint64_t>(seed) + 8700, {2, 10, true})
                          : random_domains(dice);
        // Some switches can do one of both only, some nothing.
        for (topologies::Node& node : topology.nodes) {
            if (node.type != topologies::NodeType::switch_node) continue;
            node.multicast = dice.chance(80);
            node.reduce = dice.chance(80);
        }
        constexpr ir::CollectiveKind kKinds[] = {
            ir::CollectiveKind::broadcast, ir::CollectiveKind::reduce, ir::CollectiveKind::all_gather,
            ir::CollectiveKind::reduce_scatter, ir::CollectiveKind::all_reduce};
        const ir::CollectiveKind kind = kKinds[seed % 5];
        CAPTURE(ir::to_string(kind));
        const ir::Collective c = test::collective_of(kind, topology.rank_count());
        const topologies::Routes routes(topology);
        for (const char* family : {"shortest_paths", "forest"}) {
            synth::SynthesisOptions options;
            options.algorithm = family;
            options.sizes = {{1 << 20}};
            for (const synth::Candidate& tree : synth::make_candidates(topology, c, options).candidates) {
                CAPTURE(tree.label());
                const synth::PrunedAlgorithm made =
                    synth::with_switch_steps(topology, routes, *tree.algorithm);
                CHECK(made.algorithm.step_count() == tree.steps - made.replaced + made.switched);
                for (const ir::Step& step : ir::expand(made.algorithm)) {
                    multicasts += step.op == ir::StepOp::multicast ? 1 : 0;
                    sums += step.op == ir::StepOp::switch_reduce ? 1 : 0;
                }
                check_verified_and_above_bound(topology, c, made.algorithm);
                const auto before = use_of_links(topology, *tree.algorithm),
                           after = use_of_links(topology, made.algorithm);
                for (std::size_t l = 0; l < before.size(); ++l)
                    CHECK(after[l].bytes <= before[l].bytes * (1 + 1e-9) + 1);
            }
        }
    }
    CHECK(multicasts > seeds);
    CHECK(sums > seeds);
}

TEST_CASE("where ranks send slower than they receive, multicast makes up for it, and sums for the reverse") {
    // Without switches 7 shards leave every rank at 25 GB/s; the bound is 7 shards that enter at 100 GB/s.
    const std::int64_t slow = 25'000'000'000, fast = 100'000'000'000;
    const double bound = 7.0 / 8 * (1 << 30) / 100e9;
    for (const auto& [kind, machine] : {std::pair(ir::CollectiveKind::all_gather, star(slow, fast)),
                                        std::pair(ir::CollectiveKind::reduce_scatter, star(fast, slow))}) {
        CAPTURE(ir::to_string(kind));
        const double through_switch = time_of(machine, kind, "in_network").seconds();
        CHECK(through_switch >= bound);
        CHECK(through_switch < bound * 1.05);
        CHECK(time_of(machine, kind, "auto").seconds() > bound * 3.9);
    }
}

TEST_CASE("messages part only at switches that multicast") {
    // Two plain switches in a row before one that can: the ways part at the last or not at all.
    const auto merged = [](bool first, bool second) {
        Topology topology;
        std::vector<int> nodes;
        for (const char* id : {"g0", "g1", "g2", "s0", "s1"}) {
            topologies::Node node;
            node.id = id;
            const bool gpu = id[0] == 'g';
            node.type = gpu ? topologies::NodeType::gpu : topologies::NodeType::switch_node;
            node.multicast = gpu ? false : id[1] == '0' ? first : second;
            nodes.push_back(topology.add_node(std::move(node)));
        }
        for (const auto& [a, b] : {std::pair(0, 3), {3, 4}, {4, 1}, {4, 2}}) {
            topologies::Link link;
            link.from = nodes[static_cast<std::size_t>(a)];
            link.to = nodes[static_cast<std::size_t>(b)];
            link.bandwidth = {10'000'000'000};
            topology.add_link(link);
        }
        topology.finish("row");
        ir::AlgorithmBuilder builder("", test::collective_of(ir::CollectiveKind::broadcast, 3));
        builder.copy({0, ir::Buffer::input, 0}, {0, ir::Buffer::output, 0});
        for (const int to : {1, 2}) builder.send({0, ir::Buffer::input, 0}, {to, ir::Buffer::output, 0});
        return synth::with_switch_steps(topology, topologies::Routes(topology), builder.build()).switched;
    };
    CHECK(merged(false, true) == 1);
    CHECK(merged(true, true) == 1);
    CHECK(merged(true, false) == 0);
    CHECK(merged(false, false) == 0);
}
