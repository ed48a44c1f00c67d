// to_json and parse_topology are inverse: presets, generators, compositions, overrides and random machines.
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using namespace baton::topologies;

namespace {

void check_round_trip(const Topology& topology) {
    CAPTURE(topology.name);
    const std::string text = to_json(topology);
    const Topology again = parse_topology(text, "again");
    CHECK(again.name == topology.name);
    CHECK(again.hash() == topology.hash());
    CHECK(to_json(again) == text);
    CHECK(again.rank_nodes == topology.rank_nodes);
    REQUIRE(again.links.size() == topology.links.size());
    REQUIRE(again.limits.size() == topology.limits.size());
    for (std::size_t i = 0; i < again.links.size(); ++i) {
        CHECK(again.links[i].id == topology.links[i].id);
        CHECK(again.links[i].goodput == topology.links[i].goodput);
    }
    for (std::size_t i = 0; i < again.nodes.size(); ++i)
        CHECK(again.nodes[i].attributes == topology.nodes[i].attributes);
}

}  // namespace

TEST_CASE("presets and generators written out load back equal") {
    for (const char* spec : {"dgx1_v100",
                             "dgx_a100:hosts=2",
                             "dgx_h100",
                             "dgx_h100:hosts=3,fabric=roce_v2-tree,oversubscription=2",
                             "gb200_nvl72",
                             "mi300x:hosts=2",
                             "pcie_8gpu:hosts=2",
                             "tpu_torus_2d",
                             "tpu_torus_3d:2x3x4",
                             "paper/dgx1-25",
                             "paper/a100-oddeven",
                             "paper/h100-rail",
                             "paper/mi250:hosts=2",
                             "paper/torus-50",
                             "ring:1",
                             "ring:2",
                             "ring:5,oneway=true",
                             "ring:2,oneway=true",
                             "mesh:3x4",
                             "torus:2x2x2",
                             "hypercube:4,kind=nvlink,count=3",
                             "fully_connected:6,kind=ethernet,loss=0.001",
                             "fat_tree:4",
                             "fat_tree:ranks=20,leaf_ports=8,spines=3",
                             "rail_optimized:3,gpus=4",
                             "dragonfly:5"}) {
        check_round_trip(load(spec));
    }
}

TEST_CASE("parallel, one-way, unequal and named links, limits and ranks of odd nodes load back equal") {
    check_round_trip(parse_topology(R"({"baton": "topology/1", "name": "odd", "nodes": [
        {"id": "a", "type": "gpu", "rank": 2, "attributes": {"numa": -1, "bus_id": "0000:1b:00.0", "quoted": "\"\\ \u00e4"}},
        {"id": "b", "type": "cpu", "rank": 0, "host": "h"}, {"id": "c", "type": "gpu", "rank": null}, {"id": "d", "type": "gpu"},
        {"id": "s", "type": "switch", "latency": "123.456ns", "buffer": "12345B", "multicast": true, "reduce": "99.5GB/s"},
        {"id": "n", "type": "nic", "message_overhead": "1.5us", "reduce": true}],
      "links": [
        {"from": "a", "to": "b", "bandwidth": "50GB/s"}, {"from": "a", "to": "b", "bandwidth": "50GB/s", "count": 2},
        {"from": "a", "to": "b", "bandwidth": "50GB/s", "oneway": true}, {"from": "b", "to": "a", "bandwidth": 33333333333, "oneway": true},
        {"from": "c", "to": "s", "id": "named", "bandwidth": "400Gb/s", "kind": "roce_v1", "mtu": 1024, "latency": "1ps", "loss": 1e-9},
        {"from": "d", "to": "s", "id": "d>s#7", "bandwidth": "1B/s", "oneway": true},
        {"from": "d", "to": "s", "bandwidth": {"value": "12.5e9B/s", "source": "a table", "assumed": true}, "goodput": "11GB/s"},
        {"from": "n", "to": "s", "kind": "infiniband", "bandwidth": "400Gb/s"}],
      "limits": [{"links": ["*>s"], "bandwidth": "20GB/s"}, {"id": "l", "links": "a<>b", "bandwidth": 7}],
      "machine": {"launch": "2.3us", "reduction": "1.1TB/s", "step_latency": {"nvlink/ll": "601ns"}},
      "overrides": [{"fail": "a>b*1"}, {"degrade": {"named": 0.3}}]})"));
}

TEST_CASE("failed and degraded machines load back equal") {
    for (const char* pattern : {"gpu3", "gpu0<>gpu1", "gpu*>pcie0", "gpu0>gpu3*1", "nic*", "cpu1"}) {
        Topology topology = load("dgx1_v100");
        fail(topology, pattern);
        check_round_trip(topology);
        degrade(topology, "gpu0", 0.37);
        check_round_trip(topology);
    }
}

TEST_CASE("random machines load back equal, whole, failed and degraded") {
    const int seeds = test::full() ? 5000 : 250;
    for (int seed = 0; seed < seeds; ++seed) {
        Topology topology = test::random_topology(static_cast<std::uint64_t>(seed));
        check_round_trip(topology);
        if (topology.links.empty()) continue;
        fail(topology, topology.links[static_cast<std::size_t>(seed) % topology.links.size()].id);
        check_round_trip(topology);
        if (topology.links.empty()) continue;
        degrade(topology, topology.links[static_cast<std::size_t>(seed) % topology.links.size()].id, 0.5);
        check_round_trip(topology);
    }
}

TEST_CASE("the hash follows what changes results and nothing else") {
    const std::string base = load("dgx1_v100").hash();
    Topology renamed = load("dgx1_v100");
    renamed.name = "mine";
    renamed.nodes[0].attributes["note"] = "x";
    renamed.links[0].provenance.source = "elsewhere";
    renamed.finish();
    CHECK(renamed.hash() == base);
    const auto changed = [&](auto change) {
        Topology topology = load("dgx1_v100");
        change(topology);
        topology.finish();
        return topology.hash() != base;
    };
    CHECK(changed([](Topology& t) { t.links[3].latency.picoseconds += 1; }));
    CHECK(changed([](Topology& t) { t.links[3].goodput.bytes_per_second -= 1; }));
    CHECK(changed([](Topology& t) { t.links[3].count += 1; }));
    CHECK(changed([](Topology& t) { t.links[3].loss = 1e-6; }));
    CHECK(changed([](Topology& t) { std::swap(t.nodes[0].rank, t.nodes[1].rank); }));
    CHECK(changed([](Topology& t) { t.nodes[0].host = "other"; }));
    CHECK(changed([](Topology& t) { t.limits.push_back({"l", {0}, {1}}); }));
    CHECK(changed([](Topology& t) { t.machine.launch.picoseconds += 1; }));
}
