// Networks of other simulators and synthesizers: small inputs for each trap, and the files of the field.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/load.hpp>

#include "../support/field.hpp"
#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

using namespace baton::topologies;
using baton::test::says;

namespace {

Imported import_network(const std::string& format, const std::string& text) {
    const ImportSource source{text, "net"};
    CHECK(std::string(recognize(source).name) == format);
    return importer(format).read(source, {});
}

std::string failure(const std::string& format, const std::string& text) {
    try {
        importer(format).read({text, "net"}, {});
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

// Rate out of a rank over all its links.
std::int64_t rate_of_rank(const Topology& topology, int rank) {
    std::int64_t sum = 0;
    for (const int link :
         topology.out_links[static_cast<std::size_t>(topology.rank_nodes[static_cast<std::size_t>(rank)])]) {
        const Link& out = topology.links[static_cast<std::size_t>(link)];
        sum += out.bandwidth.bytes_per_second * out.count;
    }
    return sum;
}

constexpr const char* kHtsimHead = "Nodes 8\nTiers 3\nPodsize 4\n";
constexpr const char* kHtsimTiers =
    "Tier 0\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 1000\n"
    "Tier 1\nDownlink_speed_Gbps 200\nRadix_Down 2\nRadix_Up 4\nDownlink_Latency_ns 1000\n"
    "Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 4\nDownlink_Latency_ns 1000\nBundle 2\n";

}  // namespace

TEST_CASE("astra-sim: dimensions multiply, the first is the innermost, and units are GB/s and ns") {
    const Imported got = import_network("astra-sim",
                                        "# 24 NPUs\ntopology: [ Ring, FullyConnected, Switch ]\n"
                                        "npus_count: [ 2, 3, 4 ]\nbandwidth: [ 200.0, 100, 50.5 ]  # GB/s\n"
                                        "latency: [ 50, 500.25, 2000 ] # ns\nnon_recursive_topo: [0]\n");
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 24);
    CHECK(topology.nodes.size() == 24 + 6);
    // 12 rings of two, 8 meshes of three, 6 switches of four.
    CHECK(topology.links.size() == 2 * (12 + 8 * 3 + 24));
    const int ring = topology.link_index("npu0>npu1"), mesh = topology.link_index("npu0>npu4"),
              up = topology.link_index("npu18>switch3.0");
    REQUIRE(ring >= 0);
    REQUIRE(mesh >= 0);
    REQUIRE(up >= 0);
    CHECK(topology.links[static_cast<std::size_t>(ring)].bandwidth.bytes_per_second == 200'000'000'000);
    CHECK(topology.links[static_cast<std::size_t>(mesh)].latency.picoseconds == 500'250);
    CHECK(topology.links[static_cast<std::size_t>(up)].bandwidth.bytes_per_second == 50'500'000'000);
    CHECK(says(got.warnings, "non_recursive_topo (line 6)"));
    CHECK(says(got.assumptions, "GB/s of 1e9 bytes"));
}

TEST_CASE("astra-sim: the JSON of version 1 has links for each NPU and latencies of NICs and routers") {
    const Imported got = import_network(
        "astra-sim",
        "{\n  \"topology-name\": \"Hierarchical\",\n  \"topologies-per-dim\": [\"Ring\", \"FullyConnected\", "
        "\"Switch\"],\n  \"dimensions-count\": 3,\n  \"units-count\": [4, 3, 2],\n  \"links-count\": [4, 3, "
        "2],\n"
        "  \"link-latency\": [500, 600, 700],\n  \"link-bandwidth\": [250, 20, 12.5],\n"
        "  \"nic-latency\": [0, 10, 20],\n  \"router-latency\": [0, 1, 30],\n  \"hbm-scale\": [0, 0, "
        "0]\n}\n");
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 24);
    const Link& ring = baton::test::link_between(topology, "npu0", "npu1");
    CHECK(ring.count == 2);
    CHECK(ring.bandwidth.bytes_per_second == 250'000'000'000);
    // Three links for two neighbors.
    const Link& mesh = baton::test::link_between(topology, "npu0", "npu4");
    CHECK(mesh.count == 1);
    CHECK(mesh.bandwidth.bytes_per_second == 30'000'000'000);
    CHECK(mesh.latency.picoseconds == 621'000);
    const Link& up = baton::test::link_between(topology, "npu12", "switch3.0");
    CHECK(up.count == 2);
    CHECK(up.latency.picoseconds == 720'000);
    CHECK(topology.nodes[static_cast<std::size_t>(topology.node_index("switch3.0"))].latency.picoseconds ==
          30'000);
    CHECK(says(got.warnings, "3 links for 2 neighbors"));
    CHECK(says(got.warnings, "topology-name (line 2), hbm-scale (line 11)"));
    CHECK(failure("astra-sim",
                  "{\"topologies-per-dim\": [\"Ring\"], \"units-count\": [4], \"link-bandwidth\": [1],\n"
                  " \"link-latency\": [1], \"links-count\": [1, 2]}") ==
          "net:2 links-count: 2 values for 1 dimension");
}

TEST_CASE("a format that is named for a file of another one is told what the file looks like") {
    const auto told = [](const std::string& format, const std::string& text) {
        try {
            read_named(importer(format), {text, "net"}, {});
        } catch (const baton::Error& error) {
            return std::string(error.what());
        }
        return std::string("it was read");
    };
    CHECK(told("taccl", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]\n")
              .find("it looks like a file of astra-sim: baton import astra-sim FILE") != std::string::npos);
    CHECK(told("taccl", "{\"nnodes\": 2, \"intranode_sketch\": {}}").find("sketch of TACCL") !=
          std::string::npos);
    CHECK(told("astra-sim", "topology: [Ring]\nnpus_count: [4, 4]\nbandwidth: [1]\nlatency: [1]\n")
              .find("looks like") == std::string::npos);
}

TEST_CASE("astra-sim: what does not fit together is named with its line") {
    const std::string tail = "\nbandwidth: [400]\nlatency: [1]\n";
    CHECK(failure("astra-sim", "topology: [Ring]\nnpus_count: [4, 4]" + tail) ==
          "net:2 npus_count: 2 values for 1 dimension of 'topology'; give one value a dimension");
    CHECK(failure("astra-sim", "topology: [Torus]\nnpus_count: [4]" + tail) ==
          "net:1 topology[0]: 'Torus' is no shape that is known; Ring, FullyConnected and Switch are");
    CHECK(failure("astra-sim", "topology: [Ring]\nnpus_count: [0]" + tail).find("net:2") == 0);
    CHECK(failure("astra-sim", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [1]\n") ==
          "net:3 bandwidth[0]: '0' is no rate in GB/s");
    CHECK(failure("astra-sim", "topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\n") ==
          "net:1: 'latency' is missing");
    // 2^40 NPUs take no memory before they are refused, nor does a mesh of a million.
    CHECK(failure("astra-sim",
                  "topology: [Ring,Ring]\nnpus_count: [1048576,1048576]\nbandwidth: [1,1]\n"
                  "latency: [1,1]\n")
              .find("at most") != std::string::npos);
    CHECK(failure("astra-sim", "topology: [FullyConnected]\nnpus_count: [1048576]" + tail).find("at most") !=
          std::string::npos);
}

TEST_CASE("YAML that could grow or exhaust the stack is refused") {
    CHECK(failure("astra-sim", "a: &x [1,1]\ntopology: *x\n").find("anchors") != std::string::npos);
    CHECK(failure("astra-sim", std::string(100000, '[')).find("net:1") == 0);
    CHECK(failure("astra-sim", "topology: [Ring\n").find("not YAML") != std::string::npos);
    CHECK(failure("astra-sim", "topology: Ring\ntopology: Ring\n") ==
          "net:2: the key 'topology' comes twice");
    CHECK(failure("astra-sim", "").find("empty") != std::string::npos);
    CHECK(failure("astra-sim", "topology: Ring\n---\ntopology: Ring\n").find("second document") !=
          std::string::npos);
}

TEST_CASE("ns-3: no switch, an empty line for them, and rates and times with their units") {
    const Imported got = import_network("ns3",
                                        "3 0 3\n\n0 1 200Gbps 0.005ms 0\n1 2 25GBps 1us 0.01\n"
                                        "2 0 100000Mbps 10ns 0\n");
    CHECK(got.topology.rank_count() == 3);
    REQUIRE(got.topology.links.size() == 6);
    CHECK(got.topology.links[0].bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(got.topology.links[0].latency.picoseconds == 5'000'000);
    CHECK(got.topology.links[2].bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(got.topology.links[2].loss == doctest::Approx(0.01));
    CHECK(got.topology.links[4].bandwidth.bytes_per_second == 12'500'000'000);
    CHECK(got.warnings.empty());
}

TEST_CASE("ns-3: counts of the first line that the file does not keep are errors with a line") {
    CHECK(failure("ns3", "3 0 3\n\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n") ==
          "net:4: the file ends after 2 of the 3 links that the first line promises");
    CHECK(failure("ns3", "3 0 1\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n") ==
          "net:3: a link more than the 1 of the first line");
    CHECK(failure("ns3", "3 2 1\n2\n0 1 1Gbps 1us 0\n") ==
          "net:3: more switches than the 2 of the first line");
    CHECK(failure("ns3", "3 2 1\n2 x\n0 1 1Gbps 1us 0\n") == "net:2: 'x' is no number of a switch");
    CHECK(failure("ns3", "3 1 1\n1 2\n0 1 1Gbps 1us 0\n") ==
          "net:2: more switches than the 1 of the first line");
    CHECK(failure("ns3", "3 1 1\n7\n0 1 1Gbps 1us 0\n").find("net:2: switch 7 is not among the 3 nodes") ==
          0);
    CHECK(failure("ns3", "3 3 1\n0 1 2\n0 1 1Gbps 1us 0\n").find("no GPU is left") != std::string::npos);
    CHECK(failure("ns3", "2 0 1\n0 2 1Gbps 1us 0\n").find("net:2: node 2 is not among the 2 nodes") == 0);
    CHECK(failure("ns3", "2 0 1\n0 1 fast 1us 0\n") == "net:2: 'fast' is no rate; as 400Gbps");
    CHECK(failure("ns3", "2 0 1\n0 1 1Gbps 1us 1\n").find("'1' is no error rate") != std::string::npos);
    // HPCC's files end with a description, which ns-3 never reads.
    const Imported got = import_network("ns3", "2 0 1\n\n0 1 1Gbps 1us 0\n\nFirst line: total node #\n");
    CHECK(says(got.warnings, "text after the last link: 1 line from line 5"));
}

TEST_CASE("simai: NVSwitches are no ranks, servers are hosts, and a pair of lines is two links") {
    const Imported got = import_network("simai",
                                        "6 2 2 0 7 H100\n4 5 \n0 4 1440Gbps 25ns 0\n1 4 1440Gbps 25ns 0\n"
                                        "2 5 1440Gbps 25ns 0\n3 5 1440Gbps 25ns 0\n"
                                        "0 2 100Gbps 1us 0\n1 3 100Gbps 1us 0\n3 1 100Gbps 2us 0\n");
    CHECK(got.topology.rank_count() == 4);
    CHECK(got.topology.links.size() == 14);
    CHECK(got.topology.nodes[0].host == "server0");
    CHECK(got.topology.nodes[3].host == "server1");
    CHECK(got.topology.nodes[5].host == "server1");
    CHECK(got.topology.nodes[5].type == NodeType::switch_node);
    CHECK(got.topology.links[0].kind == LinkKind::nvlink);
    CHECK(got.topology.links[0].goodput.bytes_per_second == 180'000'000'000);
    REQUIRE(got.warnings.size() == 1);
    CHECK(got.warnings[0].find("lines 8 and 9 both join 3 and 1") != std::string::npos);
    CHECK(got.warnings[0].find("parallel two-way links") != std::string::npos);
}

TEST_CASE("htsim: tiers are wired pod by pod, and a bundle is parallel links") {
    const Imported got = import_network("htsim", std::string("# comment\n") + kHtsimHead + kHtsimTiers);
    CHECK(got.topology.rank_count() == 8);
    CHECK(got.topology.nodes.size() == 8 + 4 + 4 + 4);
    CHECK(got.topology.links.size() == 2 * (8 + 8 + 8));
    const int core = got.topology.link_index("agg3>core1");
    REQUIRE(core >= 0);
    CHECK(got.topology.links[static_cast<std::size_t>(core)].count == 2);
    CHECK(got.topology.links[static_cast<std::size_t>(core)].bandwidth.bytes_per_second == 12'500'000'000);
    // Switch 1 of tier 1 of both pods leads to cores 1 and 3.
    CHECK(got.topology.link_index("agg1>core3") >= 0);
    CHECK(got.topology.link_index("agg1>core0") < 0);

    const Imported leaf = import_network(
        "htsim",
        "nodes 32\ntiers 2\npodsize 32\ntier 0\ndownlink_speed_gbps 100\nradix_down 8\nradix_up 2\n"
        "oversubscribed 4\ntier 1\ndownlink_speed_gbps 100\nradix_down 4\nqueue_down 200\n");
    CHECK(leaf.topology.nodes.size() == 32 + 4 + 2);
    CHECK(leaf.topology.links.size() == 2 * (32 + 8));
    CHECK(says(leaf.assumptions, "1000 ns, htsim's default"));
    CHECK(says(leaf.warnings, "queue_down (line 12)"));
    CHECK_FALSE(says(leaf.warnings, "Oversubscribed"));
}

TEST_CASE("htsim: tiers that do not fit are refused with the line of the tier") {
    CHECK(failure("htsim", "Nodes 8\nTiers 3\n") == "net: tier 0 is missing");
    CHECK(failure("htsim", "Nodes 8\nTiers 4\n").find("net:2: 4 tiers") == 0);
    CHECK(failure("htsim", std::string("Nodes 6\nTiers 3\nPodsize 4\n") + kHtsimTiers) ==
          "net:3: 6 nodes are no multiple of Podsize 4");
    std::string tiers = kHtsimTiers;
    tiers.replace(tiers.find("Radix_Down 4"), 12, "Radix_Down 3");
    CHECK(failure("htsim", kHtsimHead + tiers).find("net:14: 16 links from below do not fill") == 0);
    CHECK(failure("htsim", std::string(kHtsimHead) + "Radix_Down 4\n") ==
          "net:4: 'Radix_Down' stands before the first tier");
    CHECK(failure("htsim", std::string(kHtsimHead) + "Tier 0\nRadix_Down 4\nRadix_Down 4\n") ==
          "net:6: 'Radix_Down' comes twice");
    CHECK(failure("htsim", "Nodes 1e300\nTiers 2\n").find("net:1") == 0);
}

TEST_CASE("taccl: inverse rates in us per MB of 2^20 bytes, a switch for one beta, a mesh for two") {
    const std::string remote = R"(, "nics_per_node": 2, "remote_alpha": 2.6, "remote_beta": 105)";
    const Imported one = import_network(
        "taccl", R"({"name": "n", "gpus_per_node": 4, "alpha": 0.3, "node_betas_list": [8])" + remote + "}");
    CHECK(one.topology.rank_count() == 4);
    CHECK(one.topology.nodes.size() == 4 + 1 + 2);
    CHECK(one.topology.links[0].bandwidth.bytes_per_second == 131'072'000'000);
    CHECK(one.topology.links[0].latency.picoseconds == 150'000);
    CHECK(one.topology.link_index("gpu1>nic0") >= 0);
    CHECK(one.topology.link_index("gpu2>nic1") >= 0);
    REQUIRE(one.topology.limits.size() == 4);
    CHECK(one.topology.limits[0].bandwidth.bytes_per_second == 9'986'438'095);

    const Imported many = import_network(
        "taccl", R"({"gpus_per_node": 2, "alpha": 0.3, "node_betas_list": [8], "nics_per_node": 5,
                     "remote_alpha": 2.6, "remote_beta": 105})");
    CHECK(says(many.warnings, "5 NICs for 2 GPUs: 3 NICs have no GPU here and no link"));

    const Imported matrix = import_network(
        "taccl", R"({"gpus_per_node": 2, "alpha": 1, "links": [[0, 1], [0, 0]], "betas": [[0, 10], [0, 0]],
                     "invbws": [[0, 11], [0, 0]], "color": 1})");
    // [destination][source]: from 1 to 0 only.
    REQUIRE(matrix.topology.links.size() == 1);
    CHECK(matrix.topology.links[0].from == 1);
    CHECK(says(matrix.warnings, "differ: rates follow betas"));
    CHECK(says(matrix.warnings, "color"));

    CHECK(failure("taccl", R"({"gpus_per_node": 4, "alpha": 0.3, "node_betas_list": [23, 46]})")
              .find("net#/node_betas_list: two betas are TACCL's NDv2, which has 8 GPUs") == 0);
    CHECK(failure("taccl", R"({"gpus_per_node": 4, "alpha": 0.3, "node_betas_list": [0]})")
              .find("net#/node_betas_list/0") == 0);
    CHECK(failure("taccl", R"({"gpus_per_node": 2, "alpha": 1, "links": [[0, 1]], "betas": [[0]]})") ==
          "net#/links: 1 row for 2 GPUs");
}

TEST_CASE("files of other simulators from the field are read as they are meant") {
    if (!baton::test::field_present()) return;
    const auto read = [](const std::string& path, const std::string& format) -> std::optional<Imported> {
        const auto text = baton::test::field_file("sim/" + path);
        if (!text) return std::nullopt;
        return import_network(format, *text);
    };
    if (const auto got = read("astra-hgx-h100.yml", "astra-sim")) {
        CHECK(got->topology.rank_count() == 8);
        CHECK(got->topology.nodes.size() == 9);
        CHECK(rate_of_rank(got->topology, 0) == 400'000'000'000);
        CHECK(got->topology.links[0].latency.picoseconds == 936'250);
    }
    if (const auto got = read("ns3-dgx1-no-switch.txt", "ns3")) {
        CHECK(got->topology.rank_count() == 8);
        CHECK(got->topology.nodes.size() == 8);
        std::map<std::int64_t, int> rates;
        for (const Link& link : got->topology.links) ++rates[link.bandwidth.bytes_per_second];
        CHECK(rates == std::map<std::int64_t, int>{{25'000'000'000, 16}, {50'000'000'000, 16}});
        for (int rank = 0; rank < 8; ++rank) CHECK(rate_of_rank(got->topology, rank) == 6 * 25'000'000'000);
        CHECK(got->topology.links[0].latency.picoseconds == 5'000'000);
    }
    if (const auto got = read("simai-h100-4-nvswitches.txt", "simai")) {
        CHECK(got->topology.rank_count() == 8);
        for (int rank = 0; rank < 8; ++rank) CHECK(rate_of_rank(got->topology, rank) == 450'000'000'000);
        CHECK(got->topology.links.size() == 64);
    }
    if (const auto got = read("simai-rail-32g.txt", "simai")) {
        CHECK(got->topology.rank_count() == 32);
        CHECK(got->topology.nodes.size() == 48);
        CHECK(got->topology.links.size() == 192);
        CHECK(says(got->found, "32 ranks in 4 hosts, 16 switches"));
        CHECK(says(got->found, "180GB/s, 25ns, nvlink"));
        CHECK(says(got->found, "50GB/s, 500ns, roce_v2"));
    }
    if (const auto got = read("simai-6gpu-two-way-links.txt", "simai")) {
        CHECK(got->topology.rank_count() == 6);
        CHECK(got->topology.nodes.size() == 7);
        CHECK(got->topology.links.size() == 28);
        CHECK(says(got->warnings, "lines 11 and 16 both join 5 and 4"));
    }
    if (const auto got = read("htsim-8nodes-bundle.topo", "htsim")) {
        CHECK(got->topology.rank_count() == 8);
        CHECK(rate_of_rank(got->topology, 0) == 25'000'000'000);
        CHECK(says(got->found, "2 units of 12.5GB/s"));
    }
    if (const auto got = read("taccl-ndv2-1mb.json", "taccl")) {
        CHECK(got->topology.rank_count() == 8);
        CHECK(says(got->found, "8 two-way links, rank to rank: 45.59GB/s, 300ns"));
        CHECK(says(got->found, "8 two-way links, rank to rank: 22.8GB/s, 300ns"));
        CHECK(says(got->found, "1 NIC at 9.986GB/s and 2.6us between nodes"));
    }
}
