// Routes on random machines: shares form a flow, rules hold, latency is what the links say.
#include <baton/base/index.hpp>
#include <baton/topologies/routes.hpp>

#include "support/random_topology.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace baton;
using namespace baton::topologies;

namespace {

// Net outflow of each node under the shares.
std::vector<double> net_flow(const Topology& t, const Route& route) {
    std::vector<double> net(t.nodes.size(), 0);
    for (const LinkShare& l : route.links) {
        net[at(t.links[at(l.link)].from)] += l.share;
        net[at(t.links[at(l.link)].to)] -= l.share;
    }
    return net;
}

void check_route(const Topology& t, const Route& route, int source, int destination) {
    const std::vector<double> net = net_flow(t, route);
    for (std::size_t n = 0; n < net.size(); ++n) {
        const double expected = static_cast<int>(n) == t.rank_nodes[at(source)]        ? 1
                                : static_cast<int>(n) == t.rank_nodes[at(destination)] ? -1
                                                                                       : 0;
        CHECK(std::abs(net[n] - expected) < 1e-12);
    }
    for (const LinkShare& l : route.links) {
        CHECK(l.share > 0);
        CHECK(l.share <= 1 + 1e-12);
        const int tail = t.links[at(l.link)].from;
        CHECK((t.nodes[at(tail)].type != NodeType::gpu || tail == t.rank_nodes[at(source)]));
    }
}

}  // namespace

TEST_CASE(
    "every pair of a routed random machine has a route whose shares are a unit flow that no GPU forwards") {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        const Topology t = test::random_topology(seed);
        for (const RoutePolicy policy : {RoutePolicy::spread, RoutePolicy::ecmp, RoutePolicy::fixed}) {
            const Routes routes(t, policy, seed);
            for (int a = 0; a < t.rank_count(); ++a) {
                for (int b = 0; b < t.rank_count(); ++b) {
                    const Route& route = routes.between(a, b);
                    REQUIRE(route.reachable);
                    if (a == b)
                        CHECK(route.links.empty());
                    else
                        check_route(t, route, a, b);
                }
            }
        }
    }
}

TEST_CASE("route latency equals that of a plain search over all paths") {
    // Without hosts, the rules only forbid GPUs to forward: Bellman-Ford over that is an independent oracle.
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const Topology t = test::random_topology(seed, {1, 12, true});
        bool hosted = false;
        for (const Node& n : t.nodes) hosted = hosted || !n.host.empty();
        if (hosted) continue;
        CAPTURE(seed);
        const Routes routes(t);
        for (int a = 0; a < t.rank_count(); ++a) {
            const int source = t.rank_nodes[at(a)];
            std::vector<std::int64_t> distance(t.nodes.size(), INT64_MAX);
            distance[at(source)] = 0;
            for (std::size_t round = 0; round < t.nodes.size(); ++round) {
                for (const Link& l : t.links) {
                    if (distance[at(l.from)] == INT64_MAX ||
                        (l.from != source && t.nodes[at(l.from)].type == NodeType::gpu))
                        continue;
                    const std::int64_t through =
                        l.from == source ? 0 : t.nodes[at(l.from)].latency.picoseconds;
                    distance[at(l.to)] =
                        std::min(distance[at(l.to)], distance[at(l.from)] + through + l.latency.picoseconds);
                }
            }
            for (int b = 0; b < t.rank_count(); ++b) {
                if (a != b)
                    CHECK(routes.between(a, b).latency.picoseconds == distance[at(t.rank_nodes[at(b)])]);
            }
        }
    }
}

TEST_CASE("unrouted random machines are strongly connected between ranks") {
    int relayed = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const Topology t = test::random_topology(seed, {1, 24, false});
        const Routes routes(t);
        for (const bool forward : {true, false}) {
            std::vector<bool> seen(t.nodes.size(), false);
            std::vector<int> stack{t.rank_nodes[0]};
            seen[at(stack[0])] = true;
            while (!stack.empty()) {
                const int u = stack.back();
                stack.pop_back();
                for (const int l : forward ? t.out_links[at(u)] : t.in_links[at(u)]) {
                    const int v = forward ? t.links[at(l)].to : t.links[at(l)].from;
                    if (seen[at(v)]) continue;
                    seen[at(v)] = true;
                    stack.push_back(v);
                }
            }
            for (const int n : t.rank_nodes) CHECK(seen[at(n)]);
        }
        for (int b = 0; b < t.rank_count(); ++b) relayed += !routes.between(0, b).reachable;
    }
    CHECK(relayed > 0);
}
