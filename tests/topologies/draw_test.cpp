#include <baton/base/error.hpp>
#include <baton/base/svg.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/topologies/draw.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>

using namespace baton;
using namespace baton::topologies;

namespace {

/// Elements of a picture by their class.
std::map<std::string, int> shapes(const std::string& svg) {
    const XmlDocument document = XmlDocument::parse(svg, "picture");
    CHECK(document.root().name() == "svg");
    std::map<std::string, int> counts;
    for (const XmlReader& each : document.root().children())
        if (const auto kind = each.find("class")) ++counts[*kind];
    return counts;
}

/// Two-way lines: pairs of nodes and kinds, where both directions are alike.
int pairs(const Topology& machine) {
    std::set<std::tuple<int, int, LinkKind>> found;
    for (const Link& link : machine.links)
        found.insert({std::min(link.from, link.to), std::max(link.from, link.to), link.kind});
    return static_cast<int>(found.size());
}

std::size_t count(const std::string& text, const std::string& word) {
    std::size_t n = 0;
    for (std::size_t place = text.find(word); place != std::string::npos; place = text.find(word, place + 1))
        ++n;
    return n;
}

}  // namespace

TEST_CASE("A picture has a box for each node and a line for each pair that is linked") {
    for (const char* name :
         {"ring:4", "torus:4x4", "torus:2x3x4", "mesh:3x5", "dgx1_v100", "dgx_h100:hosts=2", "fat_tree:4",
          "mi300x", "pcie_8gpu", "hypercube:4", "fully_connected:8"}) {
        CAPTURE(name);
        const Topology machine = load(name);
        const std::string picture = to_svg(machine);
        auto found = shapes(picture);
        std::map<std::string, int> nodes;
        std::set<std::string> hosts;
        for (const Node& node : machine.nodes) {
            ++nodes[std::string(to_string(node.type))];
            if (!node.host.empty()) hosts.insert(node.host);
        }
        for (const auto& [type, number] : nodes) CHECK(found[type] == number);
        CHECK(found["link"] == pairs(machine));
        CHECK(found["host"] == static_cast<int>(hosts.size()));
        CHECK(found["legend"] >= 1);
        CHECK(picture == to_svg(machine));
    }
}

TEST_CASE("Lines of a picture are labeled by rate where rates differ") {
    const std::string picture = to_svg(load("dgx1_v100"));
    CHECK(count(picture, ">2 x 20GB/s</text>") == 8);
    CHECK(count(picture, ">20GB/s</text>") == 8);
    CHECK(picture.find("nvlink: 2 x 20GB/s (8 lines)") != std::string::npos);
    // One rate only: the legend says it once.
    const std::string torus = to_svg(load("torus:4x4"));
    CHECK(count(torus, "50GB/s</text>") == 0);
    CHECK(count(torus, "50GB/s (32 lines)") == 1);
}

TEST_CASE("Boxes of a picture do not cover each other") {
    for (const char* name : {"torus:4x4", "torus:4x4x4", "dgx_h100:hosts=2", "fat_tree:4", "dgx1_v100",
                             "ring:13", "dragonfly:3,routers=2,terminals=2,global=1"}) {
        CAPTURE(name);
        struct Box {
            double left, top, right, bottom;
        };
        std::vector<Box> boxes;
        const XmlDocument document = XmlDocument::parse(to_svg(load(name)), "picture");
        const double wide = *document.root().find_number("width"),
                     high = *document.root().find_number("height");
        for (const XmlReader& each : document.root().children("rect")) {
            const auto kind = each.find("class");
            if (!kind || *kind == "host") continue;
            const double x = *each.find_number("x"), y = *each.find_number("y");
            boxes.push_back({x, y, x + *each.find_number("width"), y + *each.find_number("height")});
        }
        REQUIRE(boxes.size() > 3);
        for (std::size_t a = 0; a < boxes.size(); ++a) {
            CHECK(boxes[a].left >= 0);
            CHECK(boxes[a].top >= 0);
            CHECK(boxes[a].right <= wide);
            CHECK(boxes[a].bottom <= high);
            for (std::size_t b = 0; b < a; ++b) {
                const bool apart = boxes[a].right < boxes[b].left || boxes[b].right < boxes[a].left ||
                                   boxes[a].bottom < boxes[b].top || boxes[b].bottom < boxes[a].top;
                CHECK(apart);
            }
        }
    }
}

TEST_CASE("Large machines are drawn with hosts, then with what is alike, as one box, or refused in words") {
    const std::string hosts = to_svg(load("dgx_h100:hosts=16"));
    auto found = shapes(hosts);
    CHECK(found["gpu"] == 16);
    CHECK(found["nic"] == 0);
    CHECK(count(hosts, "8 gpu, 8 nic, 4 switch") == 16);
    CHECK(hosts.find("ranks 120-127") != std::string::npos);
    CHECK(hosts.find("a thick frame for several nodes") != std::string::npos);
    // 1024 ranks below 128 leaves: the ranks of a leaf are alike.
    const std::string tree = to_svg(load("fat_tree:ranks=512,leaf_ports=32,spines=4"));
    CHECK(shapes(tree)["gpu"] == 16);
    CHECK(tree.find("ranks 0-31") != std::string::npos);
    CHECK_THROWS_WITH_AS(to_svg(load("torus:32x32")), doctest::Contains("too many for a picture"), Error);
}

TEST_CASE("Names of any bytes leave a picture well-formed") {
    Topology machine = load("ring:2");
    machine.name = "a <b> & \"c\" '\xff\x01\xed\xa0\x80 ü";
    machine.nodes[0].id = "\"&amp;'";
    for (Node& node : machine.nodes) node.host = "]]>";
    machine.finish();
    const std::string picture = to_svg(machine);
    const XmlDocument document = XmlDocument::parse(picture, "picture");
    CHECK(document.root().children("title").front().text() == "a <b> & \"c\" '????? ü");
    CHECK(shapes(picture)["gpu"] == 2);
    CHECK(xml_escaped("\xf4\x90\x80\x80") == "????");
    CHECK(xml_escaped("\xef\xbf\xbf") == "???");
}

TEST_CASE("A picture shows links of one direction, and links between hosts without a switch") {
    Topology machine;
    machine.name = "pair";
    const auto node = [&](const char* id, NodeType type, const char* host) {
        Node made;
        made.id = id;
        made.type = type;
        made.host = host;
        return machine.add_node(made);
    };
    const auto link = [&](int from, int to, LinkKind kind, bool oneway) {
        Link made;
        made.from = from;
        made.to = to;
        made.bandwidth = {1000};
        made.kind = kind;
        machine.add_link(made, oneway);
    };
    const int a = node("h0/gpu", NodeType::gpu, "h0"), b = node("h0/nic", NodeType::nic, "h0");
    const int c = node("h1/gpu", NodeType::gpu, "h1"), d = node("h1/nic", NodeType::nic, "h1");
    link(a, b, LinkKind::pcie, false);
    link(c, d, LinkKind::pcie, false);
    link(b, d, LinkKind::infiniband, false);
    link(a, c, LinkKind::nvlink, true);
    machine.finish();
    const std::string picture = to_svg(machine);
    CHECK(shapes(picture)["link"] == 4);
    CHECK(count(picture, "marker-end") == 1);
    CHECK(count(picture, "marker-start") == 0);
}
