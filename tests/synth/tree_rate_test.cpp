// The optimum over tree schedules: its witness, checked apart from the library, and its faults.
#include <baton/synth/bound.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/tree_rate.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include "support/full.hpp"
#include "support/gpu_graph.hpp"
#include "support/random_topology.hpp"
#include "support/synthesis_checks.hpp"
#include "tree_rate_check.hpp"

using namespace baton;
using Json = nlohmann::ordered_json;

namespace {

ir::Collective whole_machine(const topologies::Topology& topology) {
    return test::collective_of(ir::CollectiveKind::all_reduce, topology.rank_count());
}

Json witness_of(const topologies::Topology& topology) {
    const auto rate = synth::tree_rate(topology, whole_machine(topology));
    REQUIRE(rate);
    return Json::parse(to_json(topology, *rate));
}

}  // namespace

TEST_CASE("optima over trees are exact fractions with proofs") {
    struct Known {
        const char* machine;
        std::int64_t rate;
    };
    for (const Known& known : {Known{"mesh:4x4", 80}, Known{"mesh:3x3", 75}}) {
        CAPTURE(known.machine);
        topologies::Topology topology = topologies::load(known.machine);
        for (topologies::Link& link : topology.links) link.goodput = {50'000'000'000};
        const auto rate = synth::tree_rate(topology, whole_machine(topology));
        REQUIRE(rate);
        CHECK(rate->at_most == Rational(known.rate * 1'000'000'000));
        CHECK(rate->at_least == rate->at_most);
        const Json witness = Json::parse(to_json(topology, *rate));
        CHECK(test::TreeRateCheck(topology, whole_machine(topology)).fault(witness) == "");
    }
}

TEST_CASE("witnesses of the optimum over trees hold on presets, limits and switches among them") {
    for (const char* machine :
         {"paper/dgx1-25", "paper/a100-oddeven:hosts=2", "paper/mi250", "dgx_a100", "dgx_h100", "mi300x",
          "dgx1_v100", "dgx1_v100:hosts=2", "pcie_8gpu", "torus:4x4"}) {
        CAPTURE(machine);
        const topologies::Topology topology = topologies::load(machine);
        const auto rate = synth::tree_rate(topology, whole_machine(topology));
        REQUIRE(rate);
        CHECK(rate->loss() < 1e-6);
        CHECK(rate->loss() >= 0);
        const Json witness = Json::parse(to_json(topology, *rate));
        CHECK(test::TreeRateCheck(topology, whole_machine(topology)).fault(witness) == "");
        // Trees are methods too: no faster than the bound.
        const synth::Bound bound = synth::bound(topology, whole_machine(topology));
        CHECK(rate->time(Bytes{1 << 30}) >= bound.bandwidth_time(Bytes{1 << 30}));
    }
}

TEST_CASE("optima over trees of eight hosts are proved, above the bound where ranks are the narrowest") {
    struct Known {
        const char* machine;
        double gigabytes;
    };
    for (const Known& known : {Known{"dgx_h100:hosts=8", 214.349}, Known{"dgx_a100:hosts=8", 113.565},
                               Known{"dgx1_v100:hosts=8", 27.4286}, Known{"mi300x:hosts=8", 196.673},
                               Known{"pcie_8gpu:hosts=8", 12.6984}, Known{"paper/mi250:hosts=8", 146.286}}) {
        CAPTURE(known.machine);
        const topologies::Topology topology = topologies::load(known.machine);
        const auto rate = synth::tree_rate(topology, whole_machine(topology));
        REQUIRE(rate);
        CHECK(rate->at_most.value() == doctest::Approx(known.gigabytes * 1e9).epsilon(1e-5));
        CHECK(rate->loss() < 1e-6);
        const Json witness = Json::parse(to_json(topology, *rate));
        CHECK(test::TreeRateCheck(topology, whole_machine(topology)).fault(witness) == "");
    }
}

TEST_CASE("what looks alike but is not symmetric does not mislead the optimum over trees") {
    // Every rank has three links, so color refinement tells nothing apart; but three blocks of five hang on
    // one rank by one link each, and with equal rates of a phase on all links only 8/11 would come out.
    constexpr std::int64_t kLink = 10'000'000'000;
    topologies::Topology topology = test::loose_gpus("blocks", 16);
    const auto join = [&](int a, int b) { test::join(topology, a, b, Rate{kLink}); };
    for (int first = 1; first < 16; first += 5) {
        join(0, first);
        for (const auto& [a, b] : {std::pair(0, 1), {0, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 4}})
            join(first + a, first + b);
    }
    topology.finish("blocks");
    const auto rate = synth::tree_rate(topology, whole_machine(topology));
    REQUIRE(rate);
    CHECK(rate->at_most == Rational(kLink));
    CHECK(rate->loss() < 1e-6);
}

TEST_CASE("witnesses of the optimum over trees hold on random machines with joint limits") {
    const int seeds = test::full() ? 200 : 40;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions shape;
        shape.fewest_ranks = 2;
        shape.most_ranks = 12;
        shape.routed = seed % 3 != 0;
        topologies::Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 9300, shape);
        test::detail::Dice dice(static_cast<std::uint64_t>(seed));
        for (int extra = dice.between(0, 2); extra > 0; --extra) {
            topologies::Limit limit;
            limit.id = "joint" + std::to_string(extra);
            for (int l = dice.between(2, 5); l > 0; --l)
                limit.links.push_back(dice.between(0, static_cast<int>(topology.links.size()) - 1));
            limit.bandwidth = {std::int64_t{dice.between(1, 40)} * 2'500'000'000};
            topology.limits.push_back(limit);
        }
        topology.finish("random topology");
        const ir::Collective collective = whole_machine(topology);
        const auto rate = synth::tree_rate(topology, collective);
        REQUIRE(rate);
        CHECK(rate->loss() < 1e-5);
        const Json witness = Json::parse(to_json(topology, *rate));
        CHECK(test::TreeRateCheck(topology, collective).fault(witness) == "");
        CHECK(rate->time(Bytes{1 << 30}) >=
              synth::bound(topology, collective).bandwidth_time(Bytes{1 << 30}));
    }
}

TEST_CASE("the check of the optimum over trees finds planted faults") {
    const topologies::Topology topology = topologies::load("mesh:3x3");
    const test::TreeRateCheck check(topology, whole_machine(topology));
    const Json good = witness_of(topology);
    REQUIRE(check.fault(good) == "");
    REQUIRE(good["at_most"] == good["at_least"]);
    const auto planted = [&](const auto& change) {
        Json bad = good;
        change(bad);
        REQUIRE(bad != good);
        return check.fault(bad);
    };
    const std::string most = good["at_most"];
    CHECK(planted([&](Json& w) { w["at_most"] = std::to_string(std::stoll(most) / 2); }) ==
          "prices allow more than at_most");
    CHECK(planted([&](Json& w) { w["at_most"] = std::to_string(std::stoll(most) * 2); }) ==
          "prices prove less than at_most");
    CHECK(planted([&](Json& w) { w["at_least"] = std::to_string(std::stoll(most) * 2); }) ==
          "shares sum to less");
    CHECK(planted([&](Json& w) { w["at_most"] = "fast"; }) == "a number is no fraction");
    CHECK(planted([&](Json& w) { w["link_prices"]["no such link"] = 1; }) != "");
    for (const auto& [id, price] : good["link_prices"].items()) {
        CAPTURE(id);
        CHECK(planted([&](Json& w) { w["link_prices"][id] = price.get<std::int64_t>() * 2 + 1; }) != "");
        CHECK(planted([&](Json& w) { w["link_prices"].erase(id); }) != "");
        CHECK(planted([&](Json& w) { w["link_prices"][id] = -1; }) != "");
    }
    for (const char* phase : {"reduce", "broadcast"}) {
        for (const auto& [id, rate] : good[phase].items()) {
            CAPTURE(id);
            CHECK(planted([&](Json& w) { w[phase][id] = rate.get<std::int64_t>() * 1000; }) ==
                  "a link is overloaded");
        }
        CHECK(planted([&](Json& w) { w[phase] = Json::object(); }) == "a cut does not suffice");
    }
    for (std::size_t r = 0; r < good["shares"].size(); ++r)
        CHECK(planted([&](Json& w) { w["shares"][r] = w["shares"][r].get<std::int64_t>() + 1; }) ==
              "a cut does not suffice");
    CHECK(planted([&](Json& w) { w["shares"].erase(0); }) == "another number of shares");
}

TEST_CASE("the optimum over trees finds planted faults at switches and limits") {
    const topologies::Topology topology = topologies::load("pcie_8gpu");
    const test::TreeRateCheck check(topology, whole_machine(topology));
    const Json good = witness_of(topology);
    REQUIRE(check.fault(good) == "");
    for (const char* phase : {"reduce", "broadcast"}) {
        Json bad = good;
        const std::string id = good[phase].items().begin().key();
        bad[phase].erase(id);
        CHECK(check.fault(bad) == "a node passes on another amount than it receives");
    }
}
