#include <baton/base/error.hpp>
#include <baton/topologies/import/assemble.hpp>
#include <baton/topologies/import/importer.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace baton::topologies;

namespace {

Imported import_text(const std::string& text) {
    const ImportSource source{text, "edges.txt"};
    return recognize(source).read(source, {});
}

}  // namespace

TEST_CASE("an edge list gives ranks, switches and what was assumed") {
    const Imported got = import_text("# a ring over a switch\n0 1 25\n1 2 200Gb/s 2us\r\n2,sw0\n");
    CHECK(got.topology.rank_count() == 3);
    CHECK(got.topology.nodes.size() == 4);
    CHECK(got.topology.nodes[3].type == NodeType::switch_node);
    REQUIRE(got.topology.links.size() == 6);
    CHECK(got.topology.links[0].bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(got.topology.links[2].bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(got.topology.links[2].latency.picoseconds == 2'000'000);
    CHECK(got.topology.links[4].provenance.assumed);
    CHECK(got.assumptions.size() == 3);
}

TEST_CASE("a table of edges is read by the names of its columns") {
    const Imported got = import_text(
        "Source,Target,Delay (ns),Bandwidth (Gb/s),Color\nleft gpu,sw1,700,400,red\nright "
        "gpu,sw1,1us,50GB/s,\n");
    CHECK(got.topology.rank_count() == 2);
    REQUIRE(got.topology.links.size() == 4);
    CHECK(got.topology.nodes[0].id == "left_gpu");
    CHECK(got.topology.links[0].bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(got.topology.links[0].latency.picoseconds == 700'000);
    CHECK(got.topology.links[2].bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(got.topology.links[2].latency.picoseconds == 1'000'000);
    CHECK(got.warnings == std::vector<std::string>{"left out, columns without a counterpart: Color"});
    const Imported bare = import_text("from to\na b\nb a\n");
    CHECK(bare.topology.links[0].bandwidth.bytes_per_second == 50'000'000'000);
    REQUIRE(bare.warnings.size() == 1);
    CHECK(bare.warnings[0].find("lines 2 and 3 both join b and a") != std::string::npos);
    CHECK_THROWS_WITH(import_text("from,to,bandwidth (furlongs)\na,b,1\n"),
                      "edges.txt:1: the unit of latency or bandwidth is not known; as (ns) and (GB/s)");
    CHECK_THROWS_WITH(import_text("from,to\na\n"), "edges.txt:2: an end of the edge is not there");
}

TEST_CASE("rates may be written as networks write them") {
    const Imported got = import_text("gpu0 gpu1 100Gbps 1us\n");
    CHECK(got.topology.links[0].bandwidth.bytes_per_second == 12'500'000'000);
}

TEST_CASE("an edge that cannot be read is named by its line") {
    const ImportSource source{"0 1\n1 1\n", "edges.txt"};
    CHECK_THROWS_WITH(importer("edge-list").read(source, {}), "edges.txt:2: '1' is linked to itself");
    const ImportSource rate{"0 1 fast\n", "edges.txt"};
    CHECK_THROWS_AS(importer("edge-list").read(rate, {}), baton::Error);
    const ImportSource none{"# nothing\n", "edges.txt"};
    CHECK_THROWS_AS(importer("edge-list").read(none, {}), baton::Error);
}

TEST_CASE("hosts are joined by a fabric, each as many times as asked") {
    const Imported host = import_text("0 1\n1 2\n");
    CHECK_THROWS_WITH(assemble_hosts({host.topology}, 2, ""),
                      "--hosts: nothing joins the 2 hosts; name a fabric, for example --fabric ndr-rail");
    const Topology one = assemble_hosts({host.topology}, 4, "ndr-rail");
    CHECK(one.rank_count() == 12);
    const Topology two = assemble_hosts({host.topology, host.topology}, 2, "roce_v2-tree");
    CHECK(two.rank_count() == 12);
    CHECK_THROWS_AS(assemble_hosts({host.topology}, 2, "fast-rail"), baton::Error);
}

TEST_CASE("what is no machine is named for what it is") {
    const std::string graph = "<graphs version=\"1\"><graph id=\"0\"/></graphs>";
    try {
        import_text(graph);
        FAIL("a graph file was read");
    } catch (const baton::Error& error) {
        CHECK(std::string(error.what()).find("graph file of NCCL") != std::string::npos);
    }
}
