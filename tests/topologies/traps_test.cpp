// Mistakes that tools of this kind have made with topologies, each as a test.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../support/imported.hpp"

using namespace baton;
using namespace baton::topologies;
using test::says;

namespace {

std::string all(const std::vector<std::string>& sentences) {
    std::string text;
    for (const std::string& s : sentences) text += s + "\n";
    return text;
}

double share_of(const Topology& t, const Route& route, const char* id) {
    for (const LinkShare& l : route.links) {
        if (t.links[at(l.link)].id == id) return l.share;
    }
    return 0;
}

}  // namespace

TEST_CASE("no real preset and no direct generator is suspicious") {
    for (const char* spec :
         {"dgx1_v100:hosts=2", "dgx_a100:hosts=2", "dgx_h100:hosts=2", "gb200_nvl72", "mi300x:hosts=2",
          "pcie_8gpu:hosts=2", "tpu_torus_3d", "paper/mi250", "paper/dgx1-25", "torus:4x4", "mesh:8x8",
          "mesh:32x32", "ring:8", "fat_tree:4"}) {
        CAPTURE(spec);
        const Topology t = load(spec);
        CHECK(all(warnings(t)) == "");
        CHECK(all(problems(t)) == "");
    }
}

TEST_CASE("parallel links are all used, in proportion to what they carry") {
    const Topology t = parse_topology(
        R"({"baton": "topology/1", "nodes": [{"id": "a", "type": "gpu"}, {"id": "b", "type": "gpu"}], "links": [
        {"from": "a", "to": "b", "bandwidth": "10GB/s", "latency": "1us"}, {"from": "a", "to": "b", "bandwidth": "30GB/s", "latency": "1us"},
        {"from": "a", "to": "b", "bandwidth": "20GB/s", "count": 3, "latency": "1us"}]})");
    const Routes routes(t);
    const Route& route = routes.between(0, 1);
    CHECK(route.links.size() == 3);
    CHECK(share_of(t, route, "a>b") == doctest::Approx(0.1));
    CHECK(share_of(t, route, "a>b#2") == doctest::Approx(0.3));
    CHECK(share_of(t, route, "a>b#3") == doctest::Approx(0.6));
}

TEST_CASE("of parallel links and switches only those of least latency carry traffic") {
    const Topology t = parse_topology(R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"},
        {"id": "near", "type": "switch", "latency": "100ns"}, {"id": "far", "type": "switch", "latency": "101ns"}], "links": [
        {"from": "gpu*", "to": ["near", "far"], "bandwidth": "10GB/s", "latency": "300ns"}]})");
    const Routes routes(t);
    const Route& route = routes.between(0, 1);
    CHECK(share_of(t, route, "gpu0>near") == 1);
    CHECK(share_of(t, route, "gpu0>far") == 0);
    CHECK(route.latency.picoseconds == 700'000);
    // Each direction has its own latency.
    const Topology skewed =
        parse_topology(R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..1}", "type": "gpu"}], "links": [
        {"from": "gpu0", "to": "gpu1", "bandwidth": "10GB/s", "latency": "1us", "oneway": true},
        {"from": "gpu1", "to": "gpu0", "bandwidth": "10GB/s", "latency": "9us", "oneway": true}]})");
    const Routes both(skewed);
    CHECK(both.between(0, 1).latency.picoseconds == 1'000'000);
    CHECK(both.between(1, 0).latency.picoseconds == 9'000'000);
}

TEST_CASE("any subset of a cube mesh is routed, and its lack of NVLink is visible") {
    int without = 0;
    for (int mask = 1; mask < 256; ++mask) {
        Topology t = load("dgx1_v100");
        for (int g = 0; g < 8; ++g) {
            if ((mask >> g & 1) == 0) fail(t, "gpu" + std::to_string(g));
        }
        CAPTURE(mask);
        REQUIRE(t.rank_count() == __builtin_popcount(static_cast<unsigned>(mask)));
        CHECK(problems(t).empty());
        const Routes routes(t);
        for (int a = 0; a < t.rank_count(); ++a) {
            for (int b = 0; b < t.rank_count(); ++b) CHECK(routes.between(a, b).reachable);
        }
        // The same subset on NVLink alone may have pairs that need a relay.
        Topology links_only = load("paper/dgx1-25");
        for (int g = 0; g < 8; ++g) {
            if ((mask >> g & 1) == 0) fail(links_only, "gpu" + std::to_string(g));
        }
        without += summarize(links_only).pairs_without_route > 0 ? 1 : 0;
    }
    CHECK(without > 100);
    // {0, 5}: no NVLink, so NVLink alone is two machines and the whole host goes over PCIe, which is said.
    Topology apart = load("paper/dgx1-25");
    for (const char* gpu : {"gpu1", "gpu2", "gpu3", "gpu4", "gpu6", "gpu7"}) fail(apart, gpu);
    CHECK(says(problems(apart), "rank 0 (gpu0) cannot reach rank 1 (gpu5) by any path"));
}

TEST_CASE("routes between NVLink neighbors never touch PCIe, also when ranks are renumbered") {
    Topology t = load("dgx1_v100");
    const int order[] = {3, 1, 4, 0, 6, 5, 7, 2};
    for (int g = 0; g < 8; ++g) t.nodes[at(t.node_index("gpu" + std::to_string(g)))].rank = order[g];
    t.finish();
    const Routes routes(t);
    for (const Link& link : t.links) {
        if (link.kind != LinkKind::nvlink) continue;
        for (const LinkShare& l :
             routes.between(t.nodes[at(link.from)].rank, t.nodes[at(link.to)].rank).links) {
            CHECK(t.links[at(l.link)].kind == LinkKind::nvlink);
        }
    }
}

TEST_CASE("the way between sockets has a capacity of its own, one for each direction") {
    const Topology t = load("pcie_8gpu");
    const Routes routes(t);
    CHECK(share_of(t, routes.between(0, 4), "cpu0>cpu1") == 1);
    CHECK(share_of(t, routes.between(0, 4), "cpu1>cpu0") == 0);
    CHECK(share_of(t, routes.between(4, 0), "cpu1>cpu0") == 1);
    CHECK(share_of(t, routes.between(0, 3), "cpu0>cpu1") == 0);
    CHECK(t.links[at(t.link_index("cpu0>cpu1"))].capacity().bytes_per_second == 3 * 16'600'000'000);
}

TEST_CASE("peak and goodput are kept apart") {
    const Topology t = load("dgx_a100");
    std::int64_t peak = 0, goodput = 0;
    for (const int l : t.out_links[at(t.node_index("gpu0"))]) {
        if (t.links[at(l)].kind != LinkKind::nvlink) continue;
        peak += t.links[at(l)].bandwidth.bytes_per_second * t.links[at(l)].count;
        goodput += t.links[at(l)].capacity().bytes_per_second;
    }
    CHECK(peak == 300'000'000'000);
    CHECK(goodput == 240'000'000'000);
}

TEST_CASE("a GPU that lost NVLinks is named with what it has and what its peers have") {
    Topology t = load("dgx_h100");
    fail(t, "gpu3<>nvswitch0*5");
    const std::vector<std::string> said = warnings(t);
    REQUIRE(said.size() == 1);
    CHECK(said[0].find("gpu3 differs from its 7 peers: 13 nvlink in of") == 0);
    CHECK(said[0].find("they have 18 nvlink in of") != std::string::npos);
    // One direction, or a lower rate, is noticed as well.
    Topology oneway = load("dgx_h100:hosts=2");
    fail(oneway, "h1/gpu2>h1/nvswitch1*1");
    CHECK(says(warnings(oneway), "h1/gpu2 differs from its 15 peers"));
    Topology slow = load("dgx_h100");
    degrade(slow, "gpu5<>nvswitch2", 0.5);
    CHECK(says(warnings(slow), "gpu5 differs from its 7 peers"));
    Topology all_lost = load("dgx_h100");
    fail(all_lost, "gpu6<>nvswitch*");
    CHECK(says(warnings(all_lost), "gpu6 differs from its 7 peers: 1 pcie in"));
}

TEST_CASE("what a virtual machine hides is said: unknown sockets, slow slots, GPUs without a rank") {
    const Topology t = parse_topology(R"({"baton": "topology/1", "nodes": [
        {"id": "gpu0", "type": "gpu", "attributes": {"arch": "sm_90", "numa": -1}}, {"id": "gpu1", "type": "gpu", "rank": null},
        {"id": "pcie0", "type": "pcie"}, {"id": "nic{0..1}", "type": "nic"}, {"id": "leaf", "type": "switch"}],
        "links": [{"from": ["gpu*", "nic*"], "to": "pcie0", "bandwidth": "31.5GB/s", "kind": "pcie"},
                  {"from": "nic1", "to": "leaf", "bandwidth": "50GB/s", "kind": "infiniband"}]})");
    const std::vector<std::string> said = warnings(t);
    CAPTURE(all(said));
    CHECK(says(said, "gpu0>pcie0: 31.5GB/s of PCIe is below the 63GB/s that sm_90 devices have"));
    CHECK(says(said, "gpu0 has numa -1"));
    CHECK(says(said, "gpu1 has no rank and takes no part"));
    CHECK(says(said, "nic0 has no link to the fabric"));
    CHECK(t.rank_count() == 1);
}

TEST_CASE("switches are never ranks") {
    const Topology t = parse_topology(
        R"({"baton": "topology/1", "nodes": [{"id": "gpu{0..31}", "type": "gpu"}, {"id": "s{0..15}", "type": "switch"}],
        "links": [{"from": "gpu*", "to": "s*", "bandwidth": "25GB/s"}]})");
    CHECK(t.nodes.size() == 48);
    CHECK(t.rank_count() == 32);
    const Routes routes(t);
    const Route& route = routes.between(0, 31);
    // Traffic is spread over all parallel switches.
    CHECK(route.links.size() == 32);
    for (const LinkShare& l : route.links) CHECK(l.share == doctest::Approx(1.0 / 16));
}

TEST_CASE("a fabric without any rank is a topology, and says that nobody can communicate") {
    const Topology t =
        parse_topology(R"({"baton": "topology/1", "nodes": [{"id": "s{0..1}", "type": "switch"}],
        "links": [{"from": "s0", "to": "s1", "bandwidth": "1GB/s"}]})");
    CHECK(t.rank_count() == 0);
    CHECK(says(problems(t), "no node has a rank"));
    CHECK(summarize(t).ranks == 0);
}

TEST_CASE("the cube mesh without any switch has routes between neighbors and counts the rest") {
    const Topology t = load("paper/dgx1-25");
    CHECK(summarize(t).pairs_without_route == 24);
    CHECK(problems(t).empty());
}

TEST_CASE("rates are decimal, whichever way they are written") {
    for (const char* text : {R"("50GB/s")", R"("400Gb/s")", "50e9", "50000000000", R"("50000MB/s")",
                             R"({"value": "0.05TB/s"})"}) {
        const Topology t = parse_topology(
            std::string(R"({"baton": "topology/1", "generate": "ring", "n": 3, "bandwidth": )") + text + "}");
        CHECK(t.links.front().bandwidth.bytes_per_second == 50'000'000'000);
    }
    const Topology binary =
        parse_topology(R"({"baton": "topology/1", "generate": "ring", "n": 3, "bandwidth": "1GiB/s"})");
    CHECK(binary.links.front().bandwidth.bytes_per_second == 1 << 30);
}

TEST_CASE("one host is imported once and repeated over a fabric") {
    const Topology t =
        parse_topology(R"({"baton": "topology/1", "hosts": [{"use": "preset:pcie_8gpu", "repeat": 4}],
        "fabric": {"generate": "fat_tree", "leaf_ports": 4, "spines": 2, "kind": "ethernet", "bandwidth": "100Gb/s"}})");
    CHECK(t.rank_count() == 32);
    CHECK(problems(t).empty());
    const Routes routes(t);
    for (int r = 0; r < 32; ++r) {
        // NIC of the own socket.
        REQUIRE(routes.nics(r).size() == 1);
        CHECK(t.nodes[at(routes.nics(r)[0])].id ==
              "h" + std::to_string(r / 8) + "/nic" + std::to_string(r % 8 / 4));
    }
}

TEST_CASE("comments are accepted") {
    CHECK(parse_topology(
              "// what it is\n{\"baton\": \"topology/1\", /* three */ \"generate\": \"ring\", \"n\": 3}")
              .rank_count() == 3);
}
