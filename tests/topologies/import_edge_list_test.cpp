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
