// Platforms of SimGrid: routes with shared links, zones, clusters, and what has no reading.
#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/routes.hpp>

#include "../support/imported.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton::topologies;
using baton::test::link_between;
using baton::test::says;

namespace {

Imported read_platform(const std::string& body) {
    const std::string text =
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"simgrid.dtd\">\n"
        "<platform version=\"4.1\">\n" +
        body + "</platform>\n";
    const ImportSource source{text, "p"};
    CHECK(std::string(recognize(source).name) == "simgrid");
    return importer("simgrid").read(source, {});
}

std::string platform_failure(const std::string& body) {
    try {
        read_platform(body);
    } catch (const baton::Error& error) {
        CHECK(error.kind() == baton::ErrorKind::input);
        return error.what();
    }
    return "it was read";
}

std::string zone(const std::string& routing, const std::string& body) {
    return "<zone id=\"z\" routing=\"" + routing + "\">\n" + body + "</zone>\n";
}

std::string cluster(const std::string& attributes, const std::string& id = "c") {
    return "<cluster id=\"" + id + "\" prefix=\"" + id +
           "\" suffix=\".x\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" " + attributes + "/>\n";
}

const Limit* limit_of(const Topology& topology, const std::string& id) {
    for (const Limit& limit : topology.limits)
        if (limit.id == id) return &limit;
    return nullptr;
}

const std::string kThreeHosts =
    "<host id=\"a\" speed=\"1Gf\" core=\"4\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\"/>\n"
    "<link id=\"la\" bandwidth=\"1Gbps\" latency=\"50us\"/><link id=\"lb\" bandwidth=\"1Gbps\" "
    "latency=\"10us\"/>\n"
    "<link id=\"lc\" bandwidth=\"100MiBps\" latency=\"0\"/>\n"
    "<link id=\"mid\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"SHARED\"/>\n";

}  // namespace

TEST_CASE("simgrid: routes of a full zone are direct links, and shared links are limits over them") {
    const Imported got = read_platform(
        zone("Full",
             kThreeHosts +
                 "<route src=\"a\" dst=\"b\"><link_ctn id=\"la\"/><link_ctn id=\"mid\"/><link_ctn id=\"lb\" "
                 "direction=\"DOWN\"/></route>\n"
                 "<route src=\"a\" dst=\"c\"><link_ctn id=\"la\"/><link_ctn id=\"lc\" "
                 "direction=\"DOWN\"/></route>\n"
                 "<route src=\"b\" dst=\"c\" symmetrical=\"NO\"><link_ctn id=\"lb\"/></route>\n"));
    const Topology& topology = got.topology;
    CHECK(topology.rank_count() == 3);
    CHECK(topology.nodes[0].attributes.at("core") == "4");
    REQUIRE(topology.links.size() == 5);
    CHECK(link_between(topology, "a", "b").bandwidth.bytes_per_second == 125'000'000);
    CHECK(link_between(topology, "a", "b").latency.picoseconds == 61'000'000);
    CHECK(link_between(topology, "a", "c").bandwidth.bytes_per_second == 104'857'600);
    CHECK(topology.link_index("c>b") < 0);
    // a>b and a>c use la upwards, b>a and c>a downwards; b>a and b>c use lb upwards; mid carries both ways.
    const Limit* up = limit_of(topology, "link.la.up");
    REQUIRE(up != nullptr);
    CHECK(up->links == std::vector<int>{topology.link_index("a>b"), topology.link_index("a>c")});
    CHECK(up->bandwidth.bytes_per_second == 125'000'000);
    REQUIRE(limit_of(topology, "link.mid") != nullptr);
    CHECK(limit_of(topology, "link.mid")->links.size() == 2);
    REQUIRE(limit_of(topology, "link.lb.up") != nullptr);
    CHECK(limit_of(topology, "link.lb.down") == nullptr);  // one route only
    CHECK(says(got.assumptions, "LV08"));
    CHECK(says(got.assumptions, "one direct link"));
}

TEST_CASE("simgrid: in zones of shortest paths hosts with several links are passed") {
    const Imported got = read_platform(
        zone("Floyd", kThreeHosts + "<route src=\"a\" dst=\"b\"><link_ctn id=\"la\"/></route>\n"
                                    "<route src=\"b\" dst=\"c\"><link_ctn id=\"lb\"/></route>\n"));
    const Routes routes(got.topology);
    REQUIRE(routes.between(0, 2).reachable);
    CHECK(routes.between(0, 2).latency.picoseconds == 60'000'000);
    CHECK(got.topology.node_index("b/port") >= 0);
    CHECK(got.topology.node_index("a/port") < 0);
    CHECK(says(got.assumptions, "Floyd and Dijkstra zones"));
}

TEST_CASE("simgrid: a flat cluster is hosts on a router; a backbone carries all of it once") {
    const Imported crossbar = read_platform(zone("Full", cluster("radical=\"0-2,5;7\"")));
    CHECK(crossbar.topology.rank_count() == 5);
    CHECK(crossbar.topology.links.size() == 10);
    CHECK(crossbar.topology.nodes[3].id == "c5.x");
    CHECK(link_between(crossbar.topology, "c7.x", "cc_router.x").latency.picoseconds == 50'000'000);

    const Imported bus =
        read_platform(zone("Full", cluster("radical=\"0-2\" bb_bw=\"2GBps\" bb_lat=\"1us\"")));
    const Routes routes(bus.topology);
    CHECK(routes.between(0, 2).latency.picoseconds == 101'000'000);
    CHECK(link_between(bus.topology, "c/in", "c/out").bandwidth.bytes_per_second == 2'000'000'000);
    CHECK(bus.topology.link_index("c/out>c/in") < 0);

    const Imported half = read_platform(zone(
        "Full",
        cluster("radical=\"0-1\" sharing_policy=\"SHARED\" limiter_link=\"150MBps\" loopback_bw=\"1GBps\"")));
    CHECK(half.topology.limits.size() == 4);
    CHECK(says(half.assumptions, "SHARED"));
    CHECK(says(half.warnings, "cluster loopback_bw"));
}

TEST_CASE("simgrid: tori, fat trees and dragonflies are wired as SimGrid does") {
    const Imported torus =
        read_platform(zone("Full", cluster("radical=\"0-11\" topology=\"TORUS\" topo_parameters=\"3,2,2\"")));
    CHECK(torus.topology.rank_count() == 12);
    CHECK(torus.topology.links.size() == 2 * 12 * 3);
    CHECK(torus.topology.link_index("c2.x>c0.x") >= 0);
    CHECK(torus.topology.link_index("c0.x>c6.x#2") >= 0);  // a dimension of two has two links

    // Two levels: 4 leaf switches above 4 hosts each, 2 core switches, 2 cables between.
    const Imported tree = read_platform(
        zone("Full", cluster("radical=\"0-15\" topology=\"FAT_TREE\" topo_parameters=\"2;4,4;1,2;1,2\"")));
    CHECK(tree.topology.nodes.size() == 16 + 4 + 2);
    CHECK(tree.topology.links.size() == 2 * (16 + 8));
    CHECK(tree.topology.link_index("c5.x>c/switch1.1") >= 0);
    CHECK(link_between(tree.topology, "c/switch1.3", "c/switch2.1").count == 2);
    CHECK(Routes(tree.topology).between(0, 15).latency.picoseconds == 200'000'000);
    // Three levels: nodes of a level agree in all digits but one.
    const Imported three = read_platform(zone(
        "Full", cluster("radical=\"0-7\" topology=\"FAT_TREE\" topo_parameters=\"3;2,2,2;1,2,2;1,1,1\"")));
    CHECK(three.topology.nodes.size() == 8 + 4 + 4 + 4);
    CHECK(three.topology.links.size() == 2 * (8 + 8 + 8));
    const Routes routes(three.topology);
    for (int rank = 1; rank < 8; ++rank) CHECK(routes.between(0, rank).reachable);
    CHECK(routes.between(0, 3).latency.picoseconds == 200'000'000);
    CHECK(routes.between(0, 4).latency.picoseconds == 300'000'000);

    const Imported dragonfly = read_platform(
        zone("Full", cluster("radical=\"0-59\" topology=\"DRAGONFLY\" topo_parameters=\"3,4;2,3;5,1;2\"")));
    CHECK(dragonfly.topology.nodes.size() == 60 + 30);
    CHECK(dragonfly.topology.links.size() == 2 * (60 + 6 * 10 + 3 * 5 + 3));
    CHECK(link_between(dragonfly.topology, "c/router1", "c/router10").bandwidth.bytes_per_second ==
          500'000'000);
    CHECK(link_between(dragonfly.topology, "c/router0", "c/router5").bandwidth.bytes_per_second ==
          375'000'000);
}

TEST_CASE("simgrid: zones are joined at their gateways, hosts that are gateways are passed") {
    const Imported got = read_platform(
        zone("Full", cluster("radical=\"0-1\" bb_bw=\"2GBps\" bb_lat=\"0\"", "p") +
                         cluster("radical=\"0-1\"", "q") +
                         "<zone id=\"lone\" routing=\"None\"><host id=\"h\" speed=\"1Gf\"/></zone>\n"
                         "<link id=\"w\" bandwidth=\"1GBps\" latency=\"1us\" sharing_policy=\"FATPIPE\"/>\n"
                         "<zoneRoute src=\"p\" dst=\"q\" gw_src=\"pp_router.x\" gw_dst=\"qq_router.x\">"
                         "<link_ctn id=\"w\"/></zoneRoute>\n"
                         "<ASroute src=\"q\" dst=\"lone\" gw_src=\"qq_router.x\" gw_dst=\"h\">"
                         "<link_ctn id=\"w\"/></ASroute>\n"));
    CHECK(got.topology.rank_count() == 5);
    const Routes routes(got.topology);
    for (int a = 0; a < 5; ++a)
        for (int b = 0; b < 5; ++b) CHECK(routes.between(a, b).reachable);
    CHECK(routes.between(0, 2).latency.picoseconds == 101'000'000);
    CHECK(got.topology.limits.empty());
    CHECK(says(got.assumptions, "FATPIPE"));
}

TEST_CASE("simgrid: zones of kind Cluster with links of each host, cabinets and a backbone") {
    const Imported got = read_platform(zone(
        "Cluster",
        "<router id=\"r\"/><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>\n"
        "<link id=\"l1\" bandwidth=\"125MBps\" latency=\"100us\"/>\n"
        "<link id=\"l2\" bandwidth=\"125MBps\" latency=\"100us\" sharing_policy=\"SHARED\"/>\n"
        "<host_link id=\"a\" up=\"l1_UP\" down=\"l1_DOWN\"/><host_link id=\"b\" up=\"l2\" down=\"l2\"/>\n"
        "<cabinet id=\"k\" prefix=\"k\" suffix=\"\" radical=\"1-2\" speed=\"1Gf\" bw=\"1GBps\" "
        "lat=\"1us\"/>\n"
        "<backbone id=\"bb\" bandwidth=\"2GBps\" latency=\"500us\"/>\n"));
    CHECK(got.topology.rank_count() == 4);
    CHECK(Routes(got.topology).between(0, 1).latency.picoseconds == 700'000'000);
    REQUIRE(limit_of(got.topology, "link.l2") != nullptr);
    CHECK(limit_of(got.topology, "link.l2")->links.size() == 2);
}

TEST_CASE("simgrid: what has no reading is refused by its name") {
    CHECK(platform_failure(zone("Vivaldi", "")).find("p:4 <zone>: routing=\"Vivaldi\" has no reading") == 0);
    CHECK(platform_failure(zone("Full", "<peer id=\"x\"/>\n")) == "p:5 <peer>: <peer> has no reading");
    CHECK(platform_failure(zone("Full", kThreeHosts + "<bypassRoute src=\"a\" dst=\"b\"/>\n"))
              .find("<bypassRoute>") != std::string::npos);
    CHECK(platform_failure(
              zone("Full", kThreeHosts + "<route src=\"a\" dst=\"x\"><link_ctn id=\"la\"/></route>"))
              .find("there is no host and no router 'x'") != std::string::npos);
    CHECK(platform_failure(
              zone("Full", kThreeHosts + "<route src=\"a\" dst=\"b\"><link_ctn id=\"lx\"/></route>"))
              .find("there is no link 'lx'") != std::string::npos);
    CHECK(platform_failure(zone("Full", kThreeHosts + "<route src=\"a\" dst=\"b\"/>"))
              .find("the route has no link") != std::string::npos);
    CHECK(platform_failure(zone("Full", "<link id=\"l\" bandwidth=\"1Gxps\" latency=\"0\"/>"))
              .find("is no bandwidth; as 125MBps") != std::string::npos);
    CHECK(platform_failure(
              zone("Full", "<link id=\"l\" bandwidth=\"1\" latency=\"0\" sharing_policy=\"WIFI\"/>"))
              .find("sharing_policy=\"WIFI\" has no reading") != std::string::npos);
    CHECK(
        platform_failure(zone("Full", cluster("radical=\"0-6\" topology=\"TORUS\" topo_parameters=\"2,4\"")))
            .find("has 8 hosts by its topo_parameters and 7 by its radical") != std::string::npos);
    CHECK(platform_failure(zone("Full", cluster("radical=\"0-99999999\""))).find("at most") !=
          std::string::npos);
    CHECK(platform_failure(zone("Full", cluster("radical=\"3-1\""))).find("is no range") !=
          std::string::npos);
    CHECK(platform_failure("<actor host=\"a\" function=\"f\"/>").find("deployment of SimGrid") !=
          std::string::npos);
    CHECK(platform_failure(zone("Full", "<host id=\"a\"/><host id=\"a\"/>")).find("'a' comes twice") !=
          std::string::npos);
    try {
        importer("simgrid").read({"<platform version=\"3\"/>", "p"}, {});
        FAIL("version 3 was read");
    } catch (const baton::Error& error) {
        CHECK(std::string(error.what()).find("simgrid_update_xml") != std::string::npos);
    }
}
