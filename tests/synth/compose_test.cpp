// Hierarchical composition: equal hosts are found, whatever the order of their ranks; compositions are right
// and beat no bound.
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/compose.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"

using namespace baton;
using test::collective_of;
using topologies::Topology;

namespace {

using Kind = ir::CollectiveKind;

constexpr Kind kServed[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                            Kind::broadcast,  Kind::reduce,     Kind::all_to_all};

topologies::Node node(std::string id, topologies::NodeType type, std::string host = {}) {
    topologies::Node made;
    made.id = std::move(id);
    made.type = type;
    made.host = std::move(host);
    return made;
}

/// Copies of one random host on rails: a cable from local rank l of every host to rail l (or one switch for
/// all). With `shuffled`, the GPUs of each host stand in an order of their own.
struct HostMachine {
    Topology topology;
    int hosts = 0, locals = 0;
    bool rails = true;
};

HostMachine host_machine(std::uint64_t seed, int most_hosts, bool shuffled) {
    test::detail::Dice dice(seed);
    HostMachine machine;
    machine.hosts = dice.between(2, most_hosts);
    machine.locals = dice.between(2, 6);
    machine.rails = dice.chance(70);
    const int locals = machine.locals;
    struct Cable {
        int a, b;
        std::int64_t rate;
    };
    std::vector<Cable> inside;
    const bool switched = dice.chance(50);
    if (!switched) {
        for (int l = 0; l < locals; ++l)
            if (locals > 2 || l == 0) inside.push_back({l, (l + 1) % locals, dice.between(1, 9)});
        for (int i = dice.between(0, 2 * locals); i > 0; --i) {
            const int a = dice.between(0, locals - 1), b = dice.between(0, locals - 1);
            if (a != b) inside.push_back({a, b, dice.between(1, 9)});
        }
    }
    const std::int64_t port = dice.between(4, 40), nic = dice.between(1, 6);
    const bool with_nics = dice.chance(50);
    Topology& t = machine.topology;
    const int rails = machine.rails ? locals : 1;
    for (int r = 0; r < rails; ++r)
        t.add_node(node("rail" + std::to_string(r), topologies::NodeType::switch_node));
    for (int h = 0; h < machine.hosts; ++h) {
        const std::string host = "h" + std::to_string(h);
        std::vector<int> order(static_cast<std::size_t>(locals)), gpu(order.size());
        std::iota(order.begin(), order.end(), 0);
        for (int i = locals - 1; i > 0 && shuffled && h > 0; --i)
            std::swap(order[static_cast<std::size_t>(i)],
                      order[static_cast<std::size_t>(dice.between(0, i))]);
        for (const int l : order)
            gpu[static_cast<std::size_t>(l)] =
                t.add_node(node(host + "/gpu" + std::to_string(l), topologies::NodeType::gpu, host));
        const auto cable = [&](int a, int b, std::int64_t rate, topologies::LinkKind kind) {
            topologies::Link link;
            link.from = a;
            link.to = b;
            link.bandwidth = {rate * 10'000'000'000};
            link.latency = {500'000};
            link.kind = kind;
            t.add_link(link);
        };
        for (const Cable& c : inside)
            cable(gpu[static_cast<std::size_t>(c.a)], gpu[static_cast<std::size_t>(c.b)], c.rate,
                  topologies::LinkKind::custom);
        if (switched) {
            const int hub = t.add_node(node(host + "/switch", topologies::NodeType::switch_node, host));
            for (const int g : gpu) cable(g, hub, port, topologies::LinkKind::custom);
        }
        for (int l = 0; l < locals; ++l) {
            int from = gpu[static_cast<std::size_t>(l)];
            if (with_nics) {
                const int card =
                    t.add_node(node(host + "/nic" + std::to_string(l), topologies::NodeType::nic, host));
                cable(from, card, nic, topologies::LinkKind::custom);
                from = card;
            }
            cable(from, machine.rails ? l : 0, nic, topologies::LinkKind::custom);
        }
    }
    t.finish("hosts");
    return machine;
}

std::vector<int> all_ranks(int count) {
    std::vector<int> ranks(static_cast<std::size_t>(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

synth::SynthesisOptions options(std::vector<Bytes> sizes) {
    synth::SynthesisOptions made;
    made.algorithm = "compose";
    made.sizes = std::move(sizes);
    made.most_tiles = 8;
    return made;
}

}  // namespace

TEST_CASE("equal hosts are found in every order of their ranks, and corresponding ranks share a rail") {
    for (int seed = 0; seed < (test::full() ? 300 : 40); ++seed) {
        CAPTURE(seed);
        const HostMachine machine = host_machine(static_cast<std::uint64_t>(seed), 6, true);
        const Topology& t = machine.topology;
        const synth::HostRails rails = synth::host_rails(t, all_ranks(t.rank_count()));
        CHECK(rails.hosts() == machine.hosts);
        CHECK(rails.locals() == machine.locals);
        if (!machine.rails) continue;
        CHECK(rails.classes() == 1);
        for (int l = 0; l < rails.locals(); ++l) {
            std::set<char> digits;
            for (const auto& host : rails.ranks)
                digits.insert(
                    t.nodes[static_cast<std::size_t>(
                                t.rank_nodes[static_cast<std::size_t>(host[static_cast<std::size_t>(l)])])]
                        .id.back());
            CHECK(digits.size() == 1);
        }
    }
}

TEST_CASE("a host with a slower link is a class of its own") {
    HostMachine machine = host_machine(3, 6, false);
    Topology t = machine.topology;
    for (topologies::Link& link : t.links)
        if (t.nodes[static_cast<std::size_t>(link.from)].host == "h1") {
            link.bandwidth.bytes_per_second /= 2;
            link.goodput = {};
            break;
        }
    t.finish("slower");
    const synth::HostRails rails = synth::host_rails(t, all_ranks(t.rank_count()));
    CHECK(rails.classes() == 2);
    CHECK(rails.class_of[0] != rails.class_of[1]);
}

TEST_CASE("compositions on random equal hosts are right and beat no bound") {
    for (int seed = 0; seed < (test::full() ? 400 : 36); ++seed) {
        CAPTURE(seed);
        const HostMachine machine = host_machine(static_cast<std::uint64_t>(seed) + 1000, 5, seed % 2 == 1);
        const int ranks = machine.topology.rank_count();
        const ir::Collective c = collective_of(kServed[seed % 6], ranks, seed % ranks);
        const synth::Synthesis made =
            synth::synthesize(machine.topology, c, options({Bytes{4096}, Bytes{std::int64_t{8} << 20}}));
        for (const synth::Candidate& candidate : made.candidates)
            CHECK(candidate.assurance == ir::Assurance::proved);
        for (const synth::Choice& choice : made.choices)
            for (const synth::Timing& timing : choice.timings) CHECK(timing.time >= choice.bound);
    }
}

TEST_CASE("compositions serve a group of some ranks of every host, in any order") {
    const Topology t = topologies::load("paper/h100-rail:hosts=3");
    for (const Kind kind : kServed) {
        CAPTURE(to_string(kind));
        ir::Collective c = collective_of(kind, t.rank_count(), 2);
        c.groups = {{17, 3, 9, 1, 11, 19, 8, 0, 16}};
        const synth::Synthesis made = synth::synthesize(t, c, options({Bytes{1 << 20}}));
        CHECK(!made.candidates.empty());
        for (const synth::Candidate& candidate : made.candidates)
            CHECK(candidate.assurance == ir::Assurance::proved);
    }
}

TEST_CASE("every kind is composed on hundreds of ranks") {
    const Topology t = topologies::load("paper/h100-rail:hosts=40");
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast}) {
        CAPTURE(to_string(kind));
        int count = 0;
        synth::ComposeOptions compose_options;
        compose_options.take = [&](synth::Composition&& made) {
            if (made.words.find("ring") != std::string::npos) return;
            CHECK(ir::verify(made.algorithm).assurance == ir::Assurance::proved);
            ++count;
        };
        synth::compose(t, collective_of(kind, t.rank_count(), 5), compose_options);
        CHECK(count >= 2);
    }
}

TEST_CASE("broadcast and reduce keep all rails of the root's host at work") {
    const Topology t = topologies::load("paper/h100-rail:hosts=8");
    for (const Kind kind : {Kind::broadcast, Kind::reduce}) {
        CAPTURE(to_string(kind));
        synth::SynthesisOptions wanted = options({Bytes{std::int64_t{1} << 30}});
        wanted.tiles = 256;
        const synth::Synthesis made = synth::synthesize(t, collective_of(kind, t.rank_count(), 11), wanted);
        const synth::Choice& choice = made.choices.front();
        CHECK(choice.best().time >= choice.bound);
        CHECK(choice.best().time.seconds() < 1.025 * choice.bound.seconds());
    }
}

TEST_CASE("compose says why it does not serve") {
    const auto refusal = [](const char* spec, Kind kind) -> std::string {
        const Topology t = topologies::load(spec);
        synth::ComposeOptions compose_options;
        compose_options.take = [](synth::Composition&&) {};
        try {
            synth::compose(t, collective_of(kind, t.rank_count(), 0), compose_options);
        } catch (const Error& error) {
            return error.message();
        }
        return "";
    };
    CHECK(refusal("dgx_h100", Kind::all_reduce) == "all ranks are on one host");
    CHECK(refusal("torus:2x2", Kind::all_gather).find("host") != std::string::npos);
    CHECK(refusal("dgx_h100:hosts=2", Kind::scatter) == "compose is not made for scatter");
    CHECK(refusal("paper/h100-rail:hosts=1024", Kind::all_to_all).find("steps") != std::string::npos);
}
