// Switches removed in whole trees: what is left carries the trees, on routes that exist, within every link.
#include <baton/synth/switch_removal.hpp>

#include <baton/synth/tree_count.hpp>
#include <baton/topologies/load.hpp>

#include "support/full.hpp"
#include "support/random_topology.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton;
using topologies::Topology;

namespace {

// Whether direct links were found; all that is claimed of them is checked.
bool removed(const Topology& topology, bool turned, bool rooted) {
    const topologies::Routes routes(topology);
    const int ranks = topology.rank_count();
    const synth::ForwardGraph graph(topology, routes, ranks, turned);
    std::vector<synth::RankEdge> arcs;
    for (const synth::ForwardArc& arc : graph.arcs()) arcs.push_back({arc.from, arc.to, arc.rate});
    std::vector<int> roots;
    for (int rank = 0; rank < (rooted ? 1 : ranks); ++rank) roots.push_back(rank);
    synth::Work work{50'000'000};
    synth::ForestOptions options;
    options.most_per_root = 8;
    const synth::TreeCount count =
        synth::least_trees({ranks, graph.vertices(), arcs, roots}, 1e-15, options, work);
    REQUIRE(count.per_root > 0);
    std::vector<synth::RootDemand> demands;
    for (const int root : roots) demands.push_back({root, count.per_root});
    const auto links =
        synth::remove_switches(graph, synth::tree_capacities(arcs, count.u), demands, work.left);
    if (links.empty()) return false;
    std::vector<synth::RankEdge> edges;
    std::vector<std::int64_t> capacity;
    std::vector<double> load(topology.links.size(), 0);
    for (const synth::DirectLink& link : links) {
        CHECK(link.trees > 0);
        edges.push_back({link.from, link.to, 1});
        capacity.push_back(link.trees);
        const int sender = turned ? link.to : link.from, receiver = turned ? link.from : link.to;
        const topologies::Route route =
            link.way.standard ? routes.between(sender, receiver) : routes.via(sender, receiver, link.way.via);
        CHECK(route.reachable);
        for (const topologies::LinkShare& use : route.links)
            load[static_cast<std::size_t>(use.link)] += use.share * static_cast<double>(link.trees);
    }
    CHECK(synth::trees_fit(ranks, edges, capacity, demands));
    for (std::size_t l = 0; l < load.size(); ++l)
        CHECK(load[l] <= count.u * topology.links[l].capacity().value() * (1 + 1e-6) + 1e-6);
    return true;
}

}  // namespace

TEST_CASE("direct links in place of switches carry all trees within the capacity of every link") {
    for (const std::string spec :
         {"paper/a100-oddeven:hosts=2", "paper/h100-flat:hosts=2", "paper/mi250:hosts=2", "dgx_a100",
          "dgx_h100:hosts=2", "dragonfly:groups=3", "tpu_torus_2d"}) {
        CAPTURE(spec);
        const Topology topology = topologies::load(spec);
        CHECK(removed(topology, false, true));
        CHECK(removed(topology, true, true));
    }
    // NICs that take in more whole trees than they give out.
    CHECK(removed(topologies::load("pcie_8gpu:hosts=8"), true, true));
    CHECK(removed(topologies::load("paper/a100-oddeven:hosts=2"), false, false));
    CHECK(removed(topologies::load("dragonfly:groups=3"), true, false));
}

TEST_CASE("switches of random machines are removed without harm, or not at all") {
    const int seeds = test::full() ? 400 : 40;
    int cases = 0, found = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions options;
        options.fewest_ranks = 2;
        options.most_ranks = 10;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 31000, options);
        if (topology.rank_count() < 2) continue;
        for (const bool turned : {false, true}) {
            ++cases;
            found += removed(topology, turned, seed % 2 == 0) ? 1 : 0;
        }
    }
    CHECK(found * 3 >= cases);
    MESSAGE("switches removed on ", found, " of ", cases, " random machines");
}
