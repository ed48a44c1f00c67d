// Schedules of trees that no memory holds are refused before anything is looked for.
#include <baton/base/error.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/synth/tree_schedules.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "support/synthesis_checks.hpp"

using namespace baton;
using ir::CollectiveKind;
using test::collective_of;
using topologies::Topology;

namespace {

std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const Error& error) {
        return error.message();
    }
    return "";
}

}  // namespace

TEST_CASE("trees of more steps than the limit are refused with their size") {
    // 8192 ranks: a search would take many gigabytes and minutes.
    CHECK(message_of([] {
              synth::require_few_steps(collective_of(CollectiveKind::all_gather, 8192), 4'000'000);
          }).find("67100672 steps, 2.1 GB") != std::string::npos);
    CHECK_NOTHROW(synth::require_few_steps(collective_of(CollectiveKind::broadcast, 8192), 8191));
    CHECK_THROWS_AS(synth::require_few_steps(collective_of(CollectiveKind::broadcast, 8192), 8190), Error);
    // Both phases of an all_reduce.
    CHECK_NOTHROW(synth::require_few_steps(collective_of(CollectiveKind::all_reduce, 10), 180));
    CHECK_THROWS_AS(synth::require_few_steps(collective_of(CollectiveKind::all_reduce, 10), 179), Error);
    // Of several groups, each its own.
    ir::Collective grouped = collective_of(CollectiveKind::all_gather, 10);
    grouped.groups = {{0, 1, 2}, {3, 4}};
    CHECK_NOTHROW(synth::require_few_steps(grouped, 8));
    CHECK_THROWS_AS(synth::require_few_steps(grouped, 7), Error);
}

TEST_CASE("every tree family refuses a schedule above the limit of steps at once") {
    const Topology torus = topologies::load("torus:6x6");
    for (const char* family : {"forest", "bfb", "rerouted", "shortest_paths"}) {
        CAPTURE(family);
        synth::SynthesisOptions options;
        options.algorithm = family;
        options.sizes = {Bytes{1024}};
        options.step_limit = 36 * 35 - 1;
        const std::string said = message_of(
            [&] { synth::synthesize(torus, collective_of(CollectiveKind::all_gather, 36), options); });
        CHECK(said.find("one tree per root takes at least 1260 steps") != std::string::npos);
    }
}

TEST_CASE("of trees that are cut too finely for the limit of steps, fewer are made") {
    const Topology boxes = topologies::load("dgx_h100:hosts=2");
    const ir::Collective collective = collective_of(CollectiveKind::all_gather, 16);
    const synth::ForestAlgorithm free = synth::forest(boxes, collective, synth::TreeLimits(64));
    REQUIRE(free.algorithm.step_count() > 16 * 15);
    synth::TreeLimits few(64);
    few.most_steps = free.algorithm.step_count() - 16 - 1;  // each rank copies its own shard besides
    synth::ForestAlgorithm made;
    const std::string said = message_of([&] { made = synth::forest(boxes, collective, few); });
    if (said.empty())
        CHECK(made.algorithm.step_count() <= few.most_steps + 16);
    else
        CHECK(said.find("more than the limit") != std::string::npos);
}
