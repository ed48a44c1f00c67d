// GraphML: values by their names and units, what is assumed, and what is refused.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>

#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton::topologies;
using baton::test::link_between;
using baton::test::says;

namespace {

const std::string kGraphHead =
    "<?xml version=\"1.0\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n";

Imported read_graph(const std::string& body) {
    const std::string text = kGraphHead + body + "</graphml>\n";
    const ImportSource source{text, "g"};
    CHECK(std::string(recognize(source).name) == "graphml");
    return importer("graphml").read(source, {});
}

std::string graph_failure(const std::string& body) {
    try {
        read_graph(body);
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

}  // namespace

TEST_CASE("graphml: types, hosts, rates and latencies by their keys, with defaults") {
    const Imported got = read_graph(
        "<key id=\"d0\" for=\"node\" attr.name=\"type\" attr.type=\"string\"><default>gpu</default></key>\n"
        "<key id=\"d1\" for=\"node\" attr.name=\"host\" attr.type=\"string\"/>\n"
        "<key id=\"d2\" for=\"edge\" attr.name=\"bandwidth_Gbps\" attr.type=\"double\">"
        "<default>400</default></key>\n"
        "<key id=\"d3\" for=\"edge\" attr.name=\"Latency (us)\" attr.type=\"double\"/>\n"
        "<key id=\"d4\" for=\"edge\" attr.name=\"count\" attr.type=\"int\"/>\n"
        "<key id=\"d5\" for=\"edge\" attr.name=\"kind\" attr.type=\"string\"/>\n"
        "<key id=\"d6\" for=\"edge\" attr.name=\"weight\" attr.type=\"int\"/>\n"
        "<graph edgedefault=\"undirected\">\n<node id=\"a\"><data key=\"d1\">h0</data></node>\n"
        "<node id=\"b\"><data key=\"d1\">h1</data></node>\n"
        "<node id=\"x\"><data key=\"d0\">Leaf</data></node>\n"
        "<edge source=\"a\" target=\"x\"><data key=\"d3\">1.5</data><data key=\"d4\">2.0</data>"
        "<data key=\"d5\">infiniband</data></edge>\n"
        "<edge source=\"x\" target=\"b\" directed=\"true\"><data key=\"d2\">25GB/s</data>"
        "<data key=\"d3\">700ns</data><data key=\"d6\">3</data></edge>\n</graph>\n");
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 2);
    CHECK(topology.nodes[0].host == "h0");
    CHECK(topology.nodes[2].type == NodeType::switch_node);
    REQUIRE(topology.links.size() == 3);
    const Link& up = link_between(topology, "a", "x");
    CHECK(up.bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(up.latency.picoseconds == 1'500'000);
    CHECK(up.count == 2);
    CHECK(up.kind == LinkKind::infiniband);
    CHECK(link_between(topology, "x", "b").bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(link_between(topology, "x", "b").latency.picoseconds == 700'000);
    CHECK(got.assumptions.empty());
    REQUIRE(got.warnings.size() == 1);
    CHECK(says(got.warnings, "weight (1)"));
}

TEST_CASE("graphml: a bare graph gives ranks, switches by name, and says what it assumed") {
    const Imported got = read_graph(
        "<key id=\"l\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n"
        "<key id=\"r\" for=\"edge\" attr.name=\"LinkSpeedRaw\" attr.type=\"double\"/>\n"
        "<key id=\"w\" for=\"all\" attr.name=\"capacity\" attr.type=\"double\"/>\n"
        "<graph edgedefault=\"directed\"><node id=\"0\"/><node id=\"1\"/>"
        "<node id=\"2\"><data key=\"l\">Switch A</data></node>\n"
        "<edge source=\"0\" target=\"2\"><data key=\"r\">1e10</data></edge>\n"
        "<edge source=\"2\" target=\"1\"><data key=\"w\">12.5</data></edge>\n"
        "<edge source=\"1\" target=\"0\"/><edge source=\"1\" target=\"1\"/></graph>\n");
    CHECK(got.topology.rank_count() == 2);
    REQUIRE(got.topology.links.size() == 3);
    CHECK(got.topology.links[0].bandwidth.bytes_per_second == 1'250'000'000);
    CHECK(got.topology.links[1].bandwidth.bytes_per_second == 12'500'000'000);
    CHECK(got.topology.links[2].bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(got.topology.links[2].provenance.assumed);
    CHECK(says(got.found, "3 one-way links") == false);  // three sets of figures
    CHECK(says(got.assumptions, "1 edge without a rate"));
    CHECK(says(got.assumptions, "3 edges without a latency"));
    CHECK(says(got.assumptions, "rates without a unit are GB/s"));
    CHECK(says(got.assumptions, "1 switch by their names"));
    CHECK(says(got.assumptions, "does not say what its nodes are"));
    CHECK(says(got.warnings, "1 edge from a node to itself"));
}

TEST_CASE("graphml: types that say nothing, labels in drawings and ports are told") {
    const Imported got = read_graph(
        "<key id=\"t\" for=\"node\" attr.name=\"type\" attr.type=\"string\"/>\n"
        "<key id=\"y\" for=\"node\" yfiles.type=\"nodegraphics\"/>\n"
        "<graph edgedefault=\"undirected\"><node id=\"n0\"><data key=\"t\">Red Dot</data></node>\n"
        "<node id=\"n1\"><data key=\"y\"><y:ShapeNode><y:NodeLabel>switch1</y:NodeLabel></y:ShapeNode>"
        "</data></node>\n<node id=\"n2\"/>"
        "<edge source=\"n0\" target=\"n1\" sourceport=\"p\"/><edge source=\"n1\" target=\"n2\"/></graph>\n");
    CHECK(got.topology.rank_count() == 2);
    CHECK(got.topology.nodes[1].type == NodeType::switch_node);
    CHECK(got.topology.nodes[1].attributes.at("name") == "switch1");
    CHECK(says(got.warnings, "type 'Red Dot' of 1 node"));
    CHECK(says(got.warnings, "the ports of 1 edge"));
    CHECK(says(got.warnings, "nodegraphics (1)"));
}

TEST_CASE("graphml: a drawing tells rates by labels and directions by arrows") {
    const auto edge = [](const std::string& ends, const std::string& arrows, const std::string& label) {
        return "<edge " + ends + "><data key=\"e\"><y:PolyLineEdge><y:Arrows " + arrows + "/><y:EdgeLabel>" +
               label + "<y:LabelModel/></y:EdgeLabel></y:PolyLineEdge></data></edge>\n";
    };
    const Imported got = read_graph(
        "<key id=\"e\" for=\"edge\" yfiles.type=\"edgegraphics\"/>\n<graph edgedefault=\"directed\">\n"
        "<node id=\"a\"/><node id=\"b\"/><node id=\"c\"/>\n" +
        edge("source=\"a\" target=\"b\"", "source=\"none\" target=\"none\"", "400Gb/s\n2us, spare") +
        edge("source=\"b\" target=\"c\"", "source=\"none\" target=\"standard\"", "200Gbps") +
        edge("source=\"c\" target=\"a\"", "source=\"standard\" target=\"standard\"", "") + "</graph>\n");
    CHECK(link_between(got.topology, "b", "a").bandwidth.bytes_per_second == 50'000'000'000);
    CHECK(link_between(got.topology, "a", "b").latency.picoseconds == 2'000'000);
    CHECK(link_between(got.topology, "b", "c").bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(got.topology.link_index("c>b") < 0);
    CHECK(link_between(got.topology, "a", "c").provenance.assumed);
    CHECK(got.topology.links.size() == 5);
    CHECK(says(got.found, "3 figures of edges from their labels"));
    CHECK(says(got.assumptions, "2 edges drawn without an arrow"));
    CHECK(says(got.assumptions, "1 edge without a rate"));
    CHECK(says(got.warnings, "label ' spare' (1)"));
}

TEST_CASE("graphml: what cannot be read is named with its element") {
    const auto graph = [](const std::string& inside) {
        return "<graph edgedefault=\"undirected\"><node id=\"a\"/><node id=\"b\"/>\n" + inside + "</graph>\n";
    };
    const std::string key =
        "<key id=\"k\" for=\"edge\" attr.name=\"bandwidth\"/>"
        "<key id=\"l\" for=\"edge\" attr.name=\"delay\"/>\n";
    const auto edge = [&](const std::string& data) {
        return key + graph("<edge source=\"a\" target=\"b\">" + data + "</edge>");
    };
    CHECK(graph_failure(graph("<edge source=\"a\" target=\"c\"/>")) == "g:4 <edge>: there is no node 'c'");
    CHECK(graph_failure(graph("<node id=\"b\"/>")) == "g:4 <node>: the node 'b' comes twice");
    CHECK(graph_failure(graph("<hyperedge/>")).find("g:4 <hyperedge>: a hyperedge has no reading") == 0);
    CHECK(graph_failure(graph("<node id=\"c\"><graph/></node>")).find("a graph inside a node") !=
          std::string::npos);
    CHECK(graph_failure(graph("<edge source=\"a\"/>")) == "g:4 <edge>: the attribute 'target' is missing");
    CHECK(graph_failure(edge("<data key=\"k\">400Gx</data>"))
              .find("g:5 <data>: bandwidth '400Gx' is no rate") == 0);
    CHECK(graph_failure(edge("<data key=\"k\">50000000000</data>")).find("has no unit") != std::string::npos);
    CHECK(graph_failure(edge("<data key=\"k\">0</data>")).find("is no rate") != std::string::npos);
    CHECK(graph_failure(edge("<data key=\"l\">5</data>")).find("latency_us") != std::string::npos);
    CHECK(graph_failure(edge("<data key=\"q\">5</data>")) == "g:5 <data>: there is no <key> 'q'");
    CHECK(graph_failure("") == "g:2 <graphml>: there is no <graph>");
}
