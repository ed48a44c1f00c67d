// Channels of trees: within their limit, and schedules at the bound where pairs of unequal load share ports.
#include <baton/ir/verify.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/synth/tree_lanes.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Collective collective_of(ir::CollectiveKind kind, int ranks) {
    ir::Collective collective;
    collective.kind = kind;
    collective.ranks = ranks;
    return collective;
}

// Channels by sender and by receiver, over all peers.
std::map<std::pair<bool, int>, int> channels_of(const ir::Algorithm& algorithm) {
    std::set<std::tuple<int, int, int>> lanes;
    for (const ir::Step& step : ir::expand(algorithm)) {
        if (step.crosses()) lanes.insert({step.src_rank, step.dst_rank, std::max<int>(step.channel, 0)});
    }
    std::map<std::pair<bool, int>, int> count;
    for (const auto& [sender, receiver, channel] : lanes) {
        ++count[{true, sender}];
        ++count[{false, receiver}];
    }
    return count;
}

// How far the best forest simulates above the bound at 1 GiB.
double gap_of(const std::string& machine, ir::CollectiveKind kind) {
    const Topology topology = topologies::load(machine);
    synth::SynthesisOptions options;
    options.algorithm = "forest";
    options.sizes = {Bytes{std::int64_t{1} << 30}};
    const synth::Synthesis made =
        synth::synthesize(topology, collective_of(kind, topology.rank_count()), options);
    const synth::Choice& choice = made.choices.front();
    return choice.timings.front().time.seconds() / choice.bound.seconds() - 1;
}

}  // namespace

TEST_CASE("a pair with twice the load of its neighbor on a shared port gets twice the channels") {
    // Rank 0 sends two thirds to rank 1 and one third to rank 2 through one port.
    const Topology topology = topologies::parse_topology(R"({"baton": "topology/1", "name": "port",
        "nodes": [{"id": "a", "type": "gpu"}, {"id": "b", "type": "gpu"}, {"id": "c", "type": "gpu"},
                  {"id": "s", "type": "switch"}],
        "links": [{"from": "a", "to": "s", "bandwidth": "30GB/s", "goodput": "30GB/s"},
                  {"from": ["b", "c"], "to": "s", "bandwidth": "60GB/s", "goodput": "60GB/s"}]})");
    synth::Forest forest;
    forest.per_root = 3;
    forest.seconds_per_byte = 1 / 30e9;
    forest.trees = {{0, 2, {{0, 1}, {1, 2}}}, {0, 1, {{0, 2}, {2, 1}}}};
    const topologies::Routes routes(topology);
    SUBCASE("within the limit") {
        synth::assign_lanes(topology, routes, {{&forest, false}}, {});
        std::map<std::pair<int, int>, std::map<int, std::int64_t>> load;
        std::int64_t trees = 0;
        for (const synth::PackedTree& tree : forest.trees) {
            trees += tree.multiplicity;
            REQUIRE(tree.ways.size() == tree.edges.size());
            for (std::size_t e = 0; e < tree.edges.size(); ++e)
                load[tree.edges[e]][tree.ways[e]] += tree.multiplicity;
        }
        CHECK(trees == forest.per_root);
        CHECK(load[{0, 1}].size() == 2);
        CHECK(load[{0, 2}].size() == 1);
        for (const auto& [channel, amount] : load[{0, 1}]) CHECK(3 * amount == forest.per_root);
    }
    SUBCASE("without room for more channels") {
        synth::LaneLimits limits;
        limits.most_per_rank = 2;
        CHECK(synth::assign_lanes(topology, routes, {{&forest, false}}, {}, limits).empty());
        for (const synth::PackedTree& tree : forest.trees) CHECK(tree.ways.empty());
    }
}

TEST_CASE(
    "trees use no more channels per rank than the limit, and none beyond one lane per way without need") {
    using Kind = ir::CollectiveKind;
    const int seeds = test::full() ? 120 : 12;
    for (int seed = 0; seed < seeds; ++seed) {
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 4200);
        CAPTURE(seed);
        for (const Kind kind : {Kind::all_gather, Kind::reduce}) {
            const ir::Collective c = collective_of(kind, topology.rank_count());
            const synth::ForestAlgorithm made = synth::forest(topology, c, 16);
            CHECK_NOTHROW(ir::verify(made.algorithm));
            for (const auto& [rank, count] : channels_of(made.algorithm))
                CHECK(count <= synth::LaneLimits{}.most_per_rank);
        }
    }
}

TEST_CASE("forests that need ports and detours together simulate within 1% of the bound") {
    using Kind = ir::CollectiveKind;
    const std::vector<Kind> all = {Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce};
    const std::vector<std::string> machines = {"dgx1_v100:hosts=1", "dgx_a100:hosts=1", "dgx_h100:hosts=1"};
    // By default one kind on each machine; the full run has them all.
    for (std::size_t m = 0; m < machines.size(); ++m) {
        for (std::size_t k = 0; k < all.size(); ++k) {
            if (!test::full() && k != m) continue;
            CAPTURE(machines[m]);
            CAPTURE(ir::to_string(all[k]));
            CHECK(gap_of(machines[m], all[k]) < 0.01);
        }
    }
    CHECK(gap_of("mi300x:hosts=1", Kind::all_gather) < 0.01);
    CHECK(gap_of("mi300x:hosts=1", Kind::reduce_scatter) < 0.01);
    CHECK(gap_of("dgx1_v100:hosts=1", Kind::reduce) < 0.01);
    // Trees of several hosts are cut at the ends of channels too, however many steps that makes.
    CHECK(gap_of("mi300x:hosts=2", Kind::reduce_scatter) < 0.01);
    CHECK(gap_of("mi300x:hosts=8", Kind::all_gather) < 0.01);
}
