// Bounds on random machines: witnesses hold, and no cut of small machines is better.
#include <baton/ir/collective.hpp>
#include <baton/synth/bound.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "bound_check.hpp"
#include "support/full.hpp"
#include "support/random_groups.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

void check_all_kinds(const Topology& topology, int root, bool every_cut) {
    for (const ir::CollectiveKind kind : ir::standard_kinds()) {
        ir::Collective c;
        c.kind = kind;
        c.ranks = topology.rank_count();
        c.root = root;
        CAPTURE(ir::to_string(kind));
        const synth::Bound bound = synth::bound(topology, c);
        CHECK(test::check_latency(topology, bound) == "");
        CHECK(test::check_bandwidth(topology, bound) == "");
        if (topology.nodes.size() < 40)
            CHECK(bound.latency.time.picoseconds == test::longest_latency(topology, c));
        if (!every_cut) continue;
        const Rational best = test::best_of_all_cuts(topology, c);
        if (bound.bandwidth.best_cut && bound.bandwidth.witness.kind == synth::WitnessKind::cut)
            CHECK(bound.bandwidth.seconds_per_byte == best);
        else if (bound.bandwidth.best_cut)
            CHECK(bound.bandwidth.seconds_per_byte >= best);
        else if (bound.bandwidth.witness.kind == synth::WitnessKind::cut)
            CHECK(bound.bandwidth.seconds_per_byte <= best);
    }
}

// Joint limits on the links of single nodes, no link under two at one end.
void add_limits(Topology& topology, test::detail::Dice& dice) {
    for (int v = 0; v < static_cast<int>(topology.nodes.size()) && topology.limits.size() < 4; ++v) {
        if (!dice.chance(50)) continue;
        const bool out = dice.chance(50);
        const std::vector<int>& links = out ? topology.out_links[static_cast<std::size_t>(v)]
                                            : topology.in_links[static_cast<std::size_t>(v)];
        if (links.size() < 2) continue;
        topologies::Limit limit;
        limit.id = "limit" + std::to_string(v);
        limit.links = {links[0], links[1]};
        limit.bandwidth = {std::int64_t{dice.between(1, 30)} * 2'500'000'000};
        // The other end of these links must not be under a limit of the same direction.
        const bool taken =
            std::any_of(topology.limits.begin(), topology.limits.end(), [&](const topologies::Limit& other) {
                return std::any_of(other.links.begin(), other.links.end(),
                                   [&](int l) { return l == links[0] || l == links[1]; });
            });
        if (!taken) topology.limits.push_back(limit);
    }
    topology.finish("limits");
}

}  // namespace

TEST_CASE("no cut of small random machines is better than the bound, and every witness holds") {
    const int seeds = test::full() ? 600 : 60;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = 6;
        options.routed = seed % 2 == 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed), options);
        if (topology.nodes.size() > 11) continue;
        check_all_kinds(topology, seed % topology.rank_count(), true);
    }
}

TEST_CASE("joint limits on one node's links bind in every cut") {
    const int seeds = test::full() ? 300 : 30;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 3;
        options.most_ranks = 5;
        Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 5000, options);
        if (topology.nodes.size() > 9) continue;
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        add_limits(topology, dice);
        check_all_kinds(topology, 0, true);
    }
}

TEST_CASE("witnesses hold on larger random machines and on every preset") {
    const int seeds = test::full() ? 400 : 60;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.routed = seed % 3 != 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 900, options);
        check_all_kinds(topology, seed % topology.rank_count(), false);
    }
    for (const topologies::Nameable& named : topologies::nameables()) {
        if (named.generator) continue;
        CAPTURE(named.name);
        check_all_kinds(topologies::load(named.name), 0, false);
    }
}

TEST_CASE("groups share the network: joint demand is counted, and relays outside of groups are used") {
    const Topology ring = topologies::load("ring:6");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 6;
    c.groups = {{0, 3}, {1, 4}, {2, 5}};
    const synth::Bound all = synth::bound(ring, c);
    CHECK(test::check_bandwidth(ring, all) == "");
    c.groups = {{0, 3}};
    const synth::Bound one = synth::bound(ring, c);
    // Alone, two ways round of 50 GB/s; together, the three cross the middle of the ring, 100 GB/s.
    CHECK(one.bandwidth.seconds_per_byte == Rational(1, 100'000'000'000));
    CHECK(all.bandwidth.seconds_per_byte == Rational(3, 100'000'000'000));
    for (int seed = 0; seed < 30; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 6;
        options.most_ranks = 12;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 70, options);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            ir::Collective grouped;
            grouped.kind = kind;
            grouped.ranks = topology.rank_count();
            grouped.groups = {{4, 1}, {0, 5}};
            grouped.root = 1;
            CAPTURE(ir::to_string(kind));
            const synth::Bound bound = synth::bound(topology, grouped);
            CHECK(test::check_bandwidth(topology, bound) == "");
            for (const auto& group : grouped.groups) {
                ir::Collective single = grouped;
                single.groups = {group};
                CHECK(synth::bound(topology, single).bandwidth.seconds_per_byte <=
                      bound.bandwidth.seconds_per_byte);
            }
        }
    }
}

TEST_CASE("witnesses hold for random groups of ranks, and no cut of small machines is better") {
    const int seeds = test::full() ? 600 : 60;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 3;
        options.most_ranks = seed % 2 == 0 ? 6 : 16;
        options.routed = seed % 3 != 0;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 2100, options);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        ir::Collective c;
        c.ranks = topology.rank_count();
        c.groups = test::random_groups(dice, c.ranks);
        int least = c.ranks;
        for (int g = 0; g < c.group_count(); ++g) least = std::min(least, c.group_size(g));
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            c.kind = kind;
            c.root = ir::has_root(kind) ? dice.between(0, least - 1) : 0;
            CAPTURE(ir::describe(c));
            const synth::Bound bound = synth::bound(topology, c);
            CHECK(test::check_latency(topology, bound) == "");
            CHECK(test::check_bandwidth(topology, bound) == "");
            CHECK(bound.latency.time.picoseconds == test::longest_latency(topology, c));
            if (topology.nodes.size() > 10 || !bound.bandwidth.best_cut) continue;
            CHECK(bound.bandwidth.seconds_per_byte >= test::best_of_all_cuts(topology, c));
        }
    }
}

TEST_CASE("the check of bounds finds planted faults") {
    int caught = 0;
    for (const char* spec : {"mesh:3x3", "pcie_8gpu", "paper/a100-oddeven:hosts=2", "ring:6"}) {
        const Topology topology = topologies::load(spec);
        ir::Collective c;
        c.ranks = topology.rank_count();
        for (const bool grouped : {false, true}) {
            if (grouped) c.groups = {{0, 3}, {5, 1}};
            for (const ir::CollectiveKind kind : ir::standard_kinds()) {
                c.kind = kind;
                CAPTURE(spec);
                CAPTURE(ir::describe(c));
                const synth::Bound good = synth::bound(topology, c);
                REQUIRE(test::check_bandwidth(topology, good) == "");
                const auto planted = [&](const auto& change) {
                    synth::Bound bad = good;
                    change(bad.bandwidth.witness);
                    const synth::BandwidthWitness& w = bad.bandwidth.witness;
                    bad.bandwidth.seconds_per_byte = Rational(w.demand, w.capacity);
                    ++caught;
                    return test::check_bandwidth(topology, bad);
                };
                using Witness = synth::BandwidthWitness;
                CHECK(planted([](Witness& w) { ++w.demand; }) != "");
                CHECK(planted([](Witness& w) { --w.capacity; }) != "");
                // A link left out with its capacity is a faster claim than the machine bears.
                const auto& links = good.bandwidth.witness.links;
                for (std::size_t l = 0; l < links.size(); ++l) {
                    if (!good.bandwidth.witness.link_lengths.empty()) break;
                    CHECK(planted([&](Witness& w) {
                              w.capacity -= topology.links[static_cast<std::size_t>(links[l])]
                                                .capacity()
                                                .bytes_per_second;
                              w.links.erase(w.links.begin() + static_cast<std::ptrdiff_t>(l));
                              if (w.capacity <= 0) w.capacity = 1;
                          }) != "");
                }
                for (std::size_t l = 0; l < good.bandwidth.witness.link_lengths.size(); ++l)
                    CHECK(planted([&](Witness& w) { w.link_lengths[l] += 1 + w.link_lengths[l]; }) != "");
                synth::Bound slow = good;
                slow.bandwidth.seconds_per_byte = slow.bandwidth.seconds_per_byte * Rational(2);
                CHECK(test::check_bandwidth(topology, slow) != "");
                if (good.latency.links.empty()) continue;
                synth::Bound late = good;
                ++late.latency.time.picoseconds;
                CHECK(test::check_latency(topology, late) != "");
                late = good;
                late.latency.links.pop_back();
                CHECK(test::check_latency(topology, late) != "");
            }
        }
    }
    CHECK(caught > 300);
}

TEST_CASE("GPUs outside of the communicator neither relay nor count") {
    const Topology ring = topologies::load("ring:4");
    ir::Collective c;
    c.kind = ir::CollectiveKind::all_gather;
    c.ranks = 3;  // gpu3 is out: 0 - 1 - 2 is a line
    const synth::Bound bound = synth::bound(ring, c);
    CHECK(bound.bandwidth.seconds_per_byte == Rational(2, 50'000'000'000));
    CHECK(bound.latency.time.picoseconds == 2 * ring.links[0].latency.picoseconds);
}

TEST_CASE("bounds in words and JSON name the same figures") {
    for (const char* spec : {"paper/a100-oddeven:hosts=4", "torus:3x3", "dgx_h100:hosts=2"}) {
        const Topology topology = topologies::load(spec);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            ir::Collective c;
            c.kind = kind;
            c.ranks = topology.rank_count();
            const synth::Bound bound = synth::bound(topology, c);
            CHECK(!latency_in_words(topology, bound).empty());
            CHECK(bandwidth_in_words(topology, bound).find("s/GB") != std::string::npos);
            const auto json = nlohmann::json::parse(synth::to_json(topology, bound));
            CHECK(json["latency"]["picoseconds"] == bound.latency.time.picoseconds);
            CHECK(json["bandwidth"]["seconds_per_byte"] == to_string(bound.bandwidth.seconds_per_byte));
            CHECK(json["bandwidth"]["witness"]["units"] == bound.bandwidth.witness.demand);
        }
    }
}
