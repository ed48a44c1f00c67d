// Countable facts of generators and fabrics: nodes, links, degrees, diameters, capacities.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <string>

using namespace baton;
using namespace baton::topologies;

namespace {

int count_nodes(const Topology& t, NodeType type) {
    return static_cast<int>(
        std::count_if(t.nodes.begin(), t.nodes.end(), [&](const Node& n) { return n.type == type; }));
}

// Fewest links from a node to all others.
std::vector<int> hops_from(const Topology& t, int source) {
    std::vector<int> hops(t.nodes.size(), -1);
    std::queue<int> queue;
    queue.push(source);
    hops[at(source)] = 0;
    while (!queue.empty()) {
        const int u = queue.front();
        queue.pop();
        for (const int l : t.out_links[at(u)]) {
            const int v = t.links[at(l)].to;
            if (hops[at(v)] >= 0) continue;
            hops[at(v)] = hops[at(u)] + 1;
            queue.push(v);
        }
    }
    return hops;
}

int diameter(const Topology& t) {
    int most = 0;
    for (const int r : t.rank_nodes) {
        const std::vector<int> hops = hops_from(t, r);
        for (const int s : t.rank_nodes) {
            REQUIRE(hops[at(s)] >= 0);
            most = std::max(most, hops[at(s)]);
        }
    }
    return most;
}

std::set<std::size_t> degrees(const Topology& t, NodeType type) {
    std::set<std::size_t> found;
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
        if (t.nodes[i].type == type) found.insert(t.out_links[i].size());
    }
    return found;
}

std::int64_t rate_between(const Topology& t, const std::string& a, const std::string& b) {
    std::int64_t sum = 0;
    for (const Link& l : t.links) {
        if (t.nodes[at(l.from)].id == a && t.nodes[at(l.to)].id == b)
            sum += l.bandwidth.bytes_per_second * l.count;
    }
    return sum;
}

}  // namespace

TEST_CASE("rings have n links each way, and two ranks one cable") {
    for (const int n : {1, 2, 3, 4, 9}) {
        const Topology t = load("ring:" + std::to_string(n));
        CHECK(t.rank_count() == n);
        CHECK(static_cast<int>(t.links.size()) == (n == 1 ? 0 : n == 2 ? 2 : 2 * n));
        CHECK(diameter(t) == n / 2);
        if (n < 2) continue;
        const Topology one_way = load("ring:" + std::to_string(n) + ",oneway=true");
        CHECK(static_cast<int>(one_way.links.size()) == n);
        CHECK(diameter(one_way) == n - 1);
    }
}

TEST_CASE("meshes and tori have the links and diameters of their sides") {
    const std::vector<std::vector<int>> shapes = {{1},    {2},    {5},       {2, 2},    {3, 4},
                                                  {4, 4}, {1, 6}, {2, 3, 4}, {3, 3, 3}, {2, 2, 2, 2}};
    for (const std::vector<int>& shape : shapes) {
        std::string name;
        int n = 1, mesh_links = 0, torus_links = 0, mesh_diameter = 0, torus_diameter = 0;
        for (const int side : shape) {
            name += (name.empty() ? "" : "x") + std::to_string(side);
            n *= side;
            mesh_diameter += side - 1;
            torus_diameter += side / 2;
        }
        for (const int side : shape) {
            mesh_links += 2 * (n / side) * (side - 1);
            // A side of two has one cable, not two; a side of one has none.
            torus_links += side == 1 ? 0 : side == 2 ? n : 2 * n;
        }
        CAPTURE(name);
        const Topology mesh = load("mesh:" + name), torus = load("torus:" + name);
        CHECK(mesh.rank_count() == n);
        CHECK(torus.rank_count() == n);
        CHECK(static_cast<int>(mesh.links.size()) == mesh_links);
        CHECK(static_cast<int>(torus.links.size()) == torus_links);
        CHECK(diameter(mesh) == mesh_diameter);
        CHECK(diameter(torus) == torus_diameter);
    }
    // The last dimension runs fastest.
    const Topology torus = load("torus:3x4");
    CHECK(torus.link_index("gpu0>gpu1") >= 0);
    CHECK(torus.link_index("gpu0>gpu3") >= 0);
    CHECK(torus.link_index("gpu0>gpu4") >= 0);
    CHECK(torus.link_index("gpu0>gpu8") >= 0);
    CHECK(torus.link_index("gpu0>gpu5") < 0);
}

TEST_CASE("GPUs of a torus do not forward and chips do") {
    const Topology gpus = load("torus:4x4"), chips = load("torus:4x4,forward=true");
    CHECK(!Routes(gpus).between(0, 10).reachable);
    const Routes routes(chips);
    CHECK(routes.between(0, 10).reachable);
    CHECK(routes.between(0, 10).hops == 4);
    std::vector<int> all(16);
    std::iota(all.begin(), all.end(), 0);
    routes.require_connected(all);
}

TEST_CASE("hypercubes have d links a rank and a diameter of d, complete networks a link for each pair") {
    for (int d = 0; d <= 6; ++d) {
        const Topology t = load("hypercube:" + std::to_string(d));
        CHECK(t.rank_count() == 1 << d);
        CHECK(static_cast<int>(t.links.size()) == d << d);
        CHECK(diameter(t) == d);
        for (const Link& l : t.links) CHECK(__builtin_popcount(static_cast<unsigned>(l.from ^ l.to)) == 1);
    }
    for (const int n : {1, 2, 7}) {
        const Topology t = load("fully_connected:" + std::to_string(n));
        CHECK(static_cast<int>(t.links.size()) == n * (n - 1));
        CHECK(diameter(t) == (n > 1 ? 1 : 0));
    }
}

TEST_CASE("a fat tree of k-port switches has k^3/4 ranks, 5k^2/4 switches and no more than six hops") {
    for (const int k : {2, 4, 6}) {
        const Topology t = load("fat_tree:" + std::to_string(k));
        CHECK(t.rank_count() == k * k * k / 4);
        CHECK(count_nodes(t, NodeType::switch_node) == 5 * k * k / 4);
        CHECK(static_cast<int>(t.links.size()) == 2 * 3 * k * k * k / 4);
        CHECK(diameter(t) == 6);
        CHECK(degrees(t, NodeType::switch_node) == std::set<std::size_t>{at(k)});
        // Between pods there are (k/2)^2 shortest ways, all of them used alike.
        const Route route = Routes(t).between(0, t.rank_count() - 1);
        double widest = 0;
        for (const LinkShare& l : route.links) {
            if (t.nodes[at(t.links[at(l.link)].to)].id.rfind("core", 0) == 0)
                widest = std::max(widest, l.share);
        }
        CHECK(widest == doctest::Approx(4.0 / (k * k)));
    }
}

TEST_CASE("leaves have as much capacity up as down, divided by the oversubscription") {
    for (const int ratio : {1, 2, 4}) {
        const Topology t =
            load("fat_tree:ranks=64,leaf_ports=16,spines=4,bandwidth=100Gb/s,oversubscription=" +
                 std::to_string(ratio));
        CHECK(count_nodes(t, NodeType::switch_node) == 4 + 4);
        std::int64_t up = 0;
        for (int s = 0; s < 4; ++s) up += rate_between(t, "leaf0", "spine" + std::to_string(s));
        CHECK(up == 16 * 12'500'000'000 / ratio);
        CHECK(diameter(t) == 4);
    }
    // One leaf needs no spine.
    CHECK(count_nodes(load("fat_tree:ranks=16,leaf_ports=16"), NodeType::switch_node) == 1);
}

TEST_CASE("rails join the GPUs of equal number, and spines join the rails") {
    const Topology t = load("rail_optimized:6,gpus=4,hosts_per_leaf=3,spines=2");
    CHECK(t.rank_count() == 24);
    CHECK(count_nodes(t, NodeType::switch_node) == 6 + 4 * 2 + 2);
    const std::vector<int> hosts = t.rank_hosts();
    for (int r = 0; r < 24; ++r) CHECK(hosts[at(r)] == r / 4);
    const Routes routes(t);
    CHECK(routes.between(0, 4).hops == 2);   // same rail, same leaf
    CHECK(routes.between(0, 12).hops == 4);  // same rail, over a spine
    CHECK(routes.between(0, 1).hops == 2);   // the host's own switch
    const Topology fewer = load("rail_optimized:2,gpus=4,rails=2");
    CHECK(fewer.link_index("h0/gpu3>rail1") >= 0);
    CHECK(fewer.link_index("h0/gpu3>rail3") < 0);
}

TEST_CASE("dragonflies join every two routers of a group and every two groups") {
    const int groups = 9, routers = 4, terminals = 2;
    const Topology t = load("dragonfly:9,routers=4,terminals=2,global=1");
    CHECK(t.rank_count() == groups * routers * terminals);
    CHECK(count_nodes(t, NodeType::switch_node) == groups * routers);
    const int local = groups * routers * (routers - 1) / 2, global = groups * (groups - 1) / 2;
    CHECK(static_cast<int>(t.links.size()) == 2 * (t.rank_count() + local + global));
    CHECK(diameter(t) <= 5);
    std::map<std::pair<std::string, std::string>, int> between;
    for (const Link& l : t.links) {
        const std::string a = t.nodes[at(l.from)].id, b = t.nodes[at(l.to)].id;
        if (a.rfind("group", 0) == 0 && b.rfind("group", 0) == 0)
            ++between[{a.substr(0, a.find('.')), b.substr(0, b.find('.'))}];
    }
    CHECK(between.size() == static_cast<std::size_t>(groups * groups));
    for (const auto& [ends, number] : between)
        CHECK(number == (ends.first == ends.second ? routers * (routers - 1) : 1));
    // Two global cables on each router, none has more.
    CHECK(degrees(t, NodeType::switch_node) == std::set<std::size_t>{at(terminals + routers - 1 + 2)});
}

TEST_CASE("a host file is repeated over a fabric with ids, ranks and rails of its own") {
    const Topology t = parse_topology(R"({"baton": "topology/1", "name": "two",
        "hosts": [{"use": "preset:dgx_h100", "repeat": 2}, {"use": "preset:dgx_a100", "name": "a"}],
        "fabric": {"generate": "rail_optimized", "rails": 8, "kind": "infiniband", "bandwidth": "400Gb/s", "latency": "1us"},
        "attach": "rail"})");
    CHECK(t.rank_count() == 24);
    CHECK(t.nodes[at(t.rank_nodes[0])].id == "h0/gpu0");
    CHECK(t.nodes[at(t.rank_nodes[15])].id == "h1/gpu7");
    CHECK(t.nodes[at(t.rank_nodes[16])].id == "a2/gpu0");
    for (int i = 0; i < 8; ++i) {
        CHECK(rate_between(t, "h1/nic" + std::to_string(i), "rail" + std::to_string(i)) == 50'000'000'000);
        // The slower card sets its cable.
        CHECK(rate_between(t, "a2/nic" + std::to_string(i), "rail" + std::to_string(i)) == 25'000'000'000);
    }
    std::vector<int> all(24);
    std::iota(all.begin(), all.end(), 0);
    Routes(t).require_connected(all);
}

TEST_CASE("ranks of a host file go by rank, then device, then bus id") {
    const Topology t =
        parse_topology(R"({"baton": "topology/1", "hosts": [{"use": {"baton": "topology/1", "nodes": [
        {"id": "w", "type": "gpu", "attributes": {"bus_id": "0000:b0:00.0"}}, {"id": "x", "type": "gpu", "attributes": {"bus_id": "0000:1b:00.0"}},
        {"id": "y", "type": "gpu", "attributes": {"device": 3}}, {"id": "z", "type": "gpu", "rank": 7}]}}]})");
    std::string order;
    for (const int node : t.rank_nodes) order += t.nodes[at(node)].id;
    CHECK(order == "h0/zh0/yh0/xh0/w");
}

TEST_CASE("goodput follows kind and MTU unless it is stated") {
    const auto goodput = [](const std::string& properties) {
        return load("ring:3,bandwidth=400Gb/s," + properties).links.front().goodput.bytes_per_second;
    };
    CHECK(goodput("kind=infiniband") == 50'000'000'000 * 4096 / 4122);
    CHECK(goodput("kind=roce_v1") == 50'000'000'000 * 4096 / 4190);
    CHECK(goodput("kind=roce_v2") == 50'000'000'000 * 4096 / 4178);
    CHECK(goodput("kind=ethernet") == 50'000'000'000 * 1460 / 1538);
    CHECK(goodput("kind=roce_v2,mtu=1024") == 50'000'000'000 * 1024 / 1106);
    CHECK(goodput("kind=nvlink") == 50'000'000'000);
    CHECK(goodput("kind=infiniband,goodput=46GB/s") == 46'000'000'000);
}

TEST_CASE("overrides fail, degrade and add, in order") {
    const auto with = [](const std::string& overrides) {
        return parse_topology(
            R"({"baton": "topology/1", "generate": "fully_connected", "n": 4, "count": 3, "bandwidth": "10GB/s",
                                  "overrides": )" +
            overrides + "}");
    };
    CHECK(with(R"({"fail": "gpu1"})").rank_count() == 3);
    CHECK(with(R"({"fail": "gpu1"})").links.size() == 6);
    const Topology one = with(R"({"fail": "gpu0>gpu1"})");
    CHECK(one.link_index("gpu0>gpu1") < 0);
    CHECK(one.link_index("gpu1>gpu0") >= 0);
    CHECK(with(R"({"fail": "gpu0<>gpu1"})").links.size() == 10);
    const Topology units = with(R"({"fail": "gpu0<>gpu1*2"})");
    CHECK(units.links[at(units.link_index("gpu0>gpu1"))].count == 1);
    CHECK(units.links[at(units.link_index("gpu1>gpu0"))].count == 1);
    const Topology slow = with(R"([{"degrade": {"gpu0>*": 0.5}}, {"degrade": {"gpu0>gpu1": 0.5}}])");
    CHECK(slow.links[at(slow.link_index("gpu0>gpu1"))].goodput.bytes_per_second == 2'500'000'000);
    CHECK(slow.links[at(slow.link_index("gpu0>gpu2"))].goodput.bytes_per_second == 5'000'000'000);
    CHECK(slow.links[at(slow.link_index("gpu0>gpu2"))].bandwidth.bytes_per_second == 10'000'000'000);
    CHECK(slow.links[at(slow.link_index("gpu1>gpu0"))].goodput.bytes_per_second == 10'000'000'000);
    const Topology more = with(
        R"({"add": {"nodes": [{"id": "gpu4", "type": "gpu"}], "links": [{"from": "gpu4", "to": "gpu{0..3}", "bandwidth": "1GB/s"}]}})");
    CHECK(more.rank_count() == 5);
}
