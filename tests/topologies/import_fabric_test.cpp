// InfiniBand fabrics as tools discover them: small inputs for each trap, and the file of the field.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>

#include "../support/field.hpp"
#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

using namespace baton::topologies;
using baton::test::says;

namespace {

// Two switches joined by two cables, an aggregation node on each side's switch, and adapters.
const std::string kFabric =
    "# Topology file\nvendid=0x2c9\nsysimgguid=0x1\nswitchguid=0x1(1)\n"
    "Switch\t65 \"S-1\"\t\t# \"MF0;leaf01:MQM9701/U1\" enhanced port 0 lid 1 lmc 0\n"
    "[1]\t\"H-10\"[1](10) \t\t# \"node2 mlx5_10\" lid 2 4xNDR\n"
    "[2]\t\"H-11\"[1](11) \t\t# \"node2 mlx5_9\" lid 3 4xNDR\n"
    "[35]\t\"S-2\"[32]\t\t# \"spine 4xSDR\" lid 4 4xNDR\n"
    "[36][ext 5]\t\"S-2\"[31][ext 6]\t\t# \"spine\" lid 4 4xNDR\n"
    "[65]\t\"H-1a\"[1](1a) \t\t# \"Mellanox Technologies Aggregation Node\" lid 9 4xNDR\n"
    "\nsysimgguid=0x2\nswitchguid=0x2(2)\n"
    "Switch\t65 \"S-2\"\t\t# \"spine\" enhanced port 0 lid 4 lmc 0\n"
    "[1]\t\"H-12\"[1](12) \t\t# \"MT4129 ConnectX7   Mellanox Technologies\" lid 5 4xHDR\n"
    "[2]\t\"H-13\"[2](13) \t\t# \"MT4129 ConnectX7   Mellanox Technologies\" lid 6 4xHDR\n"
    "[31]\t\"S-1\"[36]\t\t# \"leaf\" lid 1 4xNDR\n"
    "[32]\t\"S-1\"[35]\t\t# \"leaf\" lid 1 4xNDR\n"
    "\ncaguid=0x1a\nCa\t1 \"H-1a\"\t\t# \"Mellanox Technologies Aggregation Node\"\n"
    "[1](1a) \t\"S-1\"[65]\t\t# lid 9 lmc 0 \"leaf\" lid 1 4xNDR\n"
    "\nsysimgguid=0x10\ncaguid=0x10\nCa\t1 \"H-10\"\t\t# \"node2 mlx5_10\"\n"
    "[1](10) \t\"S-1\"[1]\t\t# lid 2 lmc 0 \"leaf\" lid 1 4xNDR\n"
    "\nsysimgguid=0x11\ncaguid=0x11\nCa\t1 \"H-11\"\t\t# \"node2 mlx5_9\"\n"
    "[1](11) \t\"S-1\"[2]\t\t# lid 3 lmc 0 \"leaf\" lid 1 4xNDR\n"
    "\nsysimgguid=0x77\ncaguid=0x12\nCa\t1 \"H-12\"\t\t# \"MT4129 ConnectX7   Mellanox Technologies\"\n"
    "[1](12) \t\"S-2\"[1]\t\t# lid 5 lmc 0 \"spine\" lid 4 4xHDR\n"
    "\nsysimgguid=0x77\ncaguid=0x13\nCa\t2 \"H-13\"\t\t# \"MT4129 ConnectX7   Mellanox Technologies\"\n"
    "[2](13) \t\"S-2\"[2]\t\t# lid 6 lmc 0 \"spine\" lid 4 4xHDR\n";

Imported read_fabric(const std::string& text) {
    const ImportSource source{text, "fabric"};
    CHECK(std::string(recognize(source).name) == "ibnetdiscover");
    return importer("ibnetdiscover").read(source, {});
}

std::string fabric_failure(const std::string& text) {
    try {
        importer("ibnetdiscover").read({text, "fabric"}, {});
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const std::size_t place = text.find(what);
    REQUIRE(place != std::string::npos);
    return text.replace(place, what.size(), by);
}

}  // namespace

TEST_CASE(
    "ibnetdiscover: adapters are ranks, aggregation nodes are not, and two cables are one link of two") {
    const Imported got = read_fabric(kFabric);
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 4);
    CHECK(topology.nodes.size() == 6);
    const int trunk = topology.link_index("S-1>S-2");
    REQUIRE(trunk >= 0);
    CHECK(topology.links[static_cast<std::size_t>(trunk)].count == 2);
    CHECK(topology.links[static_cast<std::size_t>(trunk)].bandwidth.bytes_per_second == 50'000'000'000);
    const int slow = topology.link_index("H-12>S-2");
    REQUIRE(slow >= 0);
    CHECK(topology.links[static_cast<std::size_t>(slow)].bandwidth.bytes_per_second == 25'000'000'000);
    CHECK(topology.nodes[static_cast<std::size_t>(topology.node_index("S-1"))].reduce);
    CHECK_FALSE(topology.nodes[static_cast<std::size_t>(topology.node_index("S-2"))].reduce);
    // Ranks by host and adapter number; the default name is no host, one sysimgguid is.
    CHECK(topology.nodes[static_cast<std::size_t>(topology.rank_nodes[0])].id == "H-11");
    CHECK(topology.nodes[static_cast<std::size_t>(topology.rank_nodes[1])].id == "H-10");
    const Node& unnamed = topology.nodes[static_cast<std::size_t>(topology.rank_nodes[2])];
    CHECK(unnamed.host == "system-0x77");
    CHECK(says(got.found, "4 ranks in 2 hosts, 2 switches"));
    CHECK(got.warnings.empty());
}

TEST_CASE("ibnetdiscover: a name that comes twice is no host, and odd parts are said") {
    const Imported twice = read_fabric(replaced(kFabric, "# \"node2 mlx5_9\"\n", "# \"node2 mlx5_10\"\n"));
    CHECK(says(twice.found, "4 ranks in 3 hosts"));
    const Imported rates = read_fabric(replaced(kFabric, "\"leaf\" lid 1 4xNDR\n\nsysimgguid=0x11",
                                                "\"leaf\" lid 1 4xEDR\n\nsysimgguid=0x11"));
    CHECK(says(rates.warnings, "the ends of 1 cable differ in rate"));
    const Imported half = read_fabric(kFabric.substr(0, kFabric.rfind("[2](13)")));
    CHECK(says(half.warnings, "1 cable is named by one end only"));
    const Imported more = read_fabric(kFabric + "Chassis 1 (guid 0x1)\n");
    CHECK(says(more.warnings, "left out: 1 line"));
}

TEST_CASE("ibnetdiscover: a fabric that contradicts itself is refused with the line") {
    CHECK(fabric_failure("Switch 1 S-1\n").find("fabric:1: 'Switch' without a GUID") == 0);
    CHECK(fabric_failure(replaced(kFabric, "\"H-10\"[1](10)", "\"H-99\"[1](99)"))
              .find("fabric:6: 'H-99' is not in the file") == 0);
    CHECK(fabric_failure(replaced(kFabric, "[1](10) \t\"S-1\"[1]", "[1](10) \t\"S-1\"[9]"))
              .find("another port") != std::string::npos);
    CHECK(fabric_failure(replaced(kFabric, "[2]\t\"H-11\"", "[1]\t\"H-11\""))
              .find("fabric:7: port 1 comes twice") == 0);
    CHECK(fabric_failure(replaced(kFabric, "[35]\t", "[x]\t")).find("fabric:8") == 0);
    CHECK(fabric_failure("[1]\t\"S-1\"[1]\n").find("before the first switch") != std::string::npos);
    CHECK(fabric_failure("switchguid=1\nSwitch 1 \"S-1\"\n").find("no channel adapter") != std::string::npos);
}

TEST_CASE("the fabric of the field has 40 switches, 542 ranks and 269 pairs of switches") {
    const std::string path = "ib/superpod-40switch.ibnetdiscover";
    const auto text = baton::test::field_file(path);
    if (!text) return;
    const Imported got = read_fabric(*text);
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 542);
    CHECK(topology.nodes.size() == 582);
    CHECK(says(got.found, "40 switches, 582 channel adapters, 2228 ends of cables"));
    CHECK(says(got.found, "40 adapters are aggregation nodes"));
    std::map<int, int> pairs;
    int ports = 0, reducing = 0;
    for (const Link& link : topology.links) {
        CHECK(link.bandwidth.bytes_per_second == 50'000'000'000);
        ports += link.count;
        const auto is_switch = [&](int node) {
            return topology.nodes[static_cast<std::size_t>(node)].type == NodeType::switch_node;
        };
        if (is_switch(link.from) && is_switch(link.to)) ++pairs[link.count];
    }
    for (const Node& node : topology.nodes) reducing += node.reduce;
    // 2228 port lines less both ends of 40 aggregation nodes' cables.
    CHECK(ports == 2228 - 80);
    CHECK(pairs == std::map<int, int>{{1, 2 * 6}, {2, 2 * 263}});
    CHECK(reducing == 40);
    CHECK(got.warnings.empty());
}
