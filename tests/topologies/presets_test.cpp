// Presets: all load, have their ranks, are connected, and reach the published all-gather optima.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

using namespace baton;
using namespace baton::topologies;

namespace {

// Maximum flow by shortest augmenting paths; graphs here have below a hundred nodes.
class Flow {
public:
    explicit Flow(std::size_t nodes) : out_(nodes) {}
    void edge(std::size_t a, std::size_t b, std::int64_t capacity) {
        out_[a].push_back(edges_.size());
        edges_.push_back({b, capacity});
        out_[b].push_back(edges_.size());
        edges_.push_back({a, 0});
    }
    std::int64_t run(std::size_t s, std::size_t t) {
        std::int64_t total = 0;
        while (true) {
            std::vector<std::int64_t> by(out_.size(), -1);
            std::queue<std::size_t> queue;
            queue.push(s);
            while (!queue.empty() && by[t] < 0) {
                const std::size_t u = queue.front();
                queue.pop();
                for (const std::size_t e : out_[u]) {
                    if (edges_[e].second == 0 || by[edges_[e].first] >= 0 || edges_[e].first == s) continue;
                    by[edges_[e].first] = static_cast<std::int64_t>(e);
                    queue.push(edges_[e].first);
                }
            }
            if (by[t] < 0) return total;
            std::int64_t least = INT64_MAX;
            for (std::size_t v = t; v != s; v = edges_[static_cast<std::size_t>(by[v]) ^ 1].first)
                least = std::min(least, edges_[static_cast<std::size_t>(by[v])].second);
            for (std::size_t v = t; v != s; v = edges_[static_cast<std::size_t>(by[v]) ^ 1].first) {
                edges_[static_cast<std::size_t>(by[v])].second -= least;
                edges_[static_cast<std::size_t>(by[v]) ^ 1].second += least;
            }
            total += least;
        }
    }

private:
    std::vector<std::vector<std::size_t>> out_;
    std::vector<std::pair<std::size_t, std::int64_t>> edges_;
};

// Can every rank send `rate` units to all others when links carry GB/s * scale? (Edmonds: each rank must be
// able to receive all of it at once.)
bool all_gather_feasible(const Topology& t, std::int64_t scale, std::int64_t rate) {
    for (const int sink : t.rank_nodes) {
        Flow flow(t.nodes.size() + 1);
        for (const Link& l : t.links)
            flow.edge(at(l.from), at(l.to), l.capacity().bytes_per_second / 1'000'000'000 * scale);
        for (const int source : t.rank_nodes) flow.edge(t.nodes.size(), at(source), rate);
        if (flow.run(t.nodes.size(), at(sink)) < rate * t.rank_count()) return false;
    }
    return true;
}

// Optimum 1/x* = p/q seconds per GB: x = q/p works and nothing larger does.
void check_optimum(const std::string& spec, std::int64_t p, std::int64_t q) {
    CAPTURE(spec);
    const Topology t = load(spec);
    CHECK(all_gather_feasible(t, p, q));
    CHECK(!all_gather_feasible(t, p * 1000, q * 1000 + 1));
}

double goodput_between(const Topology& t, const char* a, const char* b) {
    double sum = 0;
    for (const Link& l : t.links) {
        if (t.nodes[at(l.from)].id == a && t.nodes[at(l.to)].id == b) sum += l.capacity().value();
    }
    return sum;
}

}  // namespace

TEST_CASE("the paper presets reach the published all-gather optima") {
    check_optimum("paper/dgx1-25", 7, 150);
    check_optimum("paper/mi250", 7, 150);
    check_optimum("paper/torus-50", 3, 40);
    check_optimum("paper/torus-50:3x3x3", 13, 150);
    check_optimum("mesh:4x4", 3, 20);
    check_optimum("paper/a100-oddeven:boxes=1", 7, 300);
    check_optimum("paper/a100-oddeven", 3, 65);
    check_optimum("paper/a100-oddeven:boxes=4", 3, 25);
    check_optimum("paper/h100-rail", 3, 100);
    check_optimum("paper/h100-flat:boxes=2", 3, 100);
}

TEST_CASE("every preset loads, numbers its ranks and names its sources") {
    const std::map<std::string, int> ranks = {
        {"dgx1_v100", 8},           {"dgx_a100", 8},         {"dgx_h100", 8},
        {"gb200_nvl72", 72},        {"mi300x", 8},           {"pcie_8gpu", 8},
        {"tpu_torus_2d", 16},       {"tpu_torus_3d", 64},    {"paper/dgx1-25", 8},
        {"paper/a100-oddeven", 16}, {"paper/h100-rail", 16}, {"paper/h100-flat", 16},
        {"paper/mi250", 16},        {"paper/torus-50", 16}};
    std::size_t presets = 0;
    for (const Nameable& named : nameables()) {
        if (named.generator) continue;
        ++presets;
        CAPTURE(named.name);
        const Topology t = load(named.name);
        REQUIRE(ranks.count(named.name) == 1);
        CHECK(t.rank_count() == ranks.at(named.name));
        CHECK(!named.summary.empty());
        if (named.name.rfind("paper/", 0) == 0) continue;
        for (const Link& l : t.links) CHECK(!l.provenance.source.empty());
    }
    CHECK(presets == ranks.size());
}

TEST_CASE("hosts of real machines reach each other at one host and at several, by their own NICs") {
    for (const char* name : {"dgx1_v100", "dgx_a100", "dgx_h100", "mi300x", "pcie_8gpu", "gb200_nvl72"}) {
        for (const int hosts : {1, 2, 3}) {
            const Topology t = load(std::string(name) + ":hosts=" + std::to_string(hosts));
            CAPTURE(t.name);
            std::vector<int> all(at(t.rank_count()));
            std::iota(all.begin(), all.end(), 0);
            const Routes routes(t);
            routes.require_connected(all);
            CHECK(routes.warnings().empty());
            if (hosts > 1) {
                for (const int r : all) CHECK(routes.nics(r).size() == 1);
            }
        }
    }
}

TEST_CASE("every fabric technology and shape attaches to a host preset") {
    for (const char* technology : {"edr", "hdr", "ndr", "xdr", "roce_v1", "roce_v2", "ethernet"}) {
        for (const char* shape : {"rail", "rail_only", "tree", "fat_tree", "dragonfly"}) {
            const Topology t = load(std::string("dgx_h100:hosts=2,fabric=") + technology + "-" + shape);
            CAPTURE(t.name);
            Routes(t).require_connected({0, 1, 7, 8, 15});
        }
    }
    const Topology slow = load("dgx_a100:hosts=2,fabric=ndr-rail");
    for (const Link& l : slow.links) {
        // The NIC's own 200 Gb/s hold, whatever the switch can do.
        if (slow.nodes[at(l.from)].type == NodeType::nic && l.kind == LinkKind::infiniband)
            CHECK(l.bandwidth.bytes_per_second == 25'000'000'000);
    }
}

TEST_CASE("GPUs of a DGX H100 reach each other over NVLink only and other hosts over their own NIC") {
    const Topology t = load("dgx_h100:hosts=2");
    const Routes routes(t);
    for (int b = 1; b < 8; ++b) {
        const Route& route = routes.between(0, b);
        CHECK(route.hops == 2);
        CHECK(route.links.size() == 8);
        for (const LinkShare& l : route.links) {
            CHECK(t.links[at(l.link)].kind == LinkKind::nvlink);
            CHECK(l.share == doctest::Approx(t.links[at(l.link)].count / 18.0).epsilon(1e-12));
        }
    }
    for (int r = 0; r < 16; ++r) {
        REQUIRE(routes.nics(r).size() == 1);
        const std::string expected = "h" + std::to_string(r / 8) + "/nic" + std::to_string(r % 8);
        CHECK(t.nodes[at(routes.nics(r)[0])].id == expected);
    }
    bool by_rail = false;
    for (const LinkShare& l : routes.between(3, 11).links)
        by_rail = by_rail || t.links[at(l.link)].id == "h0/nic3>rail3";
    CHECK(by_rail);
    CHECK(routes.between(3, 11).hops == 6);
}

TEST_CASE("rails without a spine carry traffic between unlike ranks through another NIC of a host") {
    const Topology t = load("dgx_h100:hosts=2,fabric=ndr-rail_only");
    const Routes routes(t);
    CHECK(routes.between(0, 8).hops == 6);
    const Route& across = routes.between(0, 9);
    REQUIRE(across.reachable);
    CHECK(across.hops == 6);
}

TEST_CASE("the cube mesh has the published wiring and falls back to PCIe between distant GPUs") {
    const Topology t = load("dgx1_v100");
    CHECK(goodput_between(t, "gpu0", "gpu3") == 40e9);
    CHECK(goodput_between(t, "gpu0", "gpu1") == 20e9);
    CHECK(goodput_between(t, "gpu0", "gpu5") == 0);
    const Routes routes(t);
    CHECK(routes.between(0, 3).hops == 1);
    for (const LinkShare& l : routes.between(0, 5).links) CHECK(t.links[at(l.link)].kind != LinkKind::nvlink);
}

TEST_CASE("trays of an NVL72 are hosts and NVLink joins all of them") {
    const Topology t = load("gb200_nvl72");
    const std::vector<int> hosts = t.rank_hosts();
    CHECK(hosts[0] == hosts[3]);
    CHECK(hosts[3] != hosts[4]);
    CHECK(hosts[71] == 17);
    const Routes routes(t);
    const Route& route = routes.between(0, 71);
    CHECK(route.hops == 2);
    CHECK(route.links.size() == 36);
}

TEST_CASE("wrong names and parameters are refused in words") {
    const auto message = [](const std::string& spec) -> std::string {
        try {
            load(spec);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::input);
            return error.what();
        }
        return "accepted";
    };
    CHECK(message("dgx_h10").find("dgx_h100") != std::string::npos);
    CHECK(message("dgx_h100:hosts=0").find("number of hosts") != std::string::npos);
    CHECK(message("dgx_h100:hosts=2,fabric=ndr-ring").find("ndr-ring") != std::string::npos);
    CHECK(message("dgx_h100:hosts=2,oversubscripton=2").find("oversubscription") != std::string::npos);
    CHECK(message("paper/dgx1-25:boxes=2").find("fabric") != std::string::npos);
    CHECK(message("torus:4x").find("shape") != std::string::npos);
    CHECK(message("ring:8,bandwith=1GB/s").find("bandwidth") != std::string::npos);
    CHECK(message("ring:").find("parameter") != std::string::npos);
    CHECK(message("nothing.json").find("no such file") != std::string::npos);
    CHECK(message("dgx_h100:hosts=1000000").find("at most") != std::string::npos);
}
