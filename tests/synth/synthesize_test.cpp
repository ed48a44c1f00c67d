// The portfolio: nothing beats the bound, the best wins, plans cover all sizes.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "support/full.hpp"
#include "support/random_topology.hpp"

using namespace baton;
using topologies::Topology;

namespace {

ir::Collective collective(ir::CollectiveKind kind, int ranks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.root = root;
    return c;
}

// Simulated times are never below the bound, beyond the rounding of the simulator's rates.
void check_not_below(const synth::Synthesis& result) {
    for (const synth::Choice& choice : result.choices) {
        CAPTURE(choice.size.count);
        for (const synth::Timing& timing : choice.timings) {
            CAPTURE(result.candidates[static_cast<std::size_t>(timing.candidate)].label());
            CHECK(static_cast<double>(timing.time.picoseconds) * (1 + 1e-9) + 1 >=
                  static_cast<double>(choice.bound.picoseconds));
            CHECK(timing.time >= choice.best().time);
        }
    }
}

std::string message_of(const Topology& topology, const ir::Collective& c,
                       const synth::SynthesisOptions& options) {
    try {
        synth::synthesize(topology, c, options);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("no simulated schedule beats the bound on any preset") {
    for (const topologies::Nameable& named : topologies::nameables()) {
        if (named.generator) continue;
        const Topology topology = topologies::load(named.name);
        if (topology.rank_count() > (test::full() ? 128 : 16)) continue;
        CAPTURE(named.name);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            CAPTURE(ir::to_string(kind));
            // Larger presets take most of the time.
            if (!test::full() && topology.rank_count() > 8 && kind != ir::CollectiveKind::all_gather &&
                kind != ir::CollectiveKind::all_to_all)
                continue;
            synth::SynthesisOptions options;
            options.sizes = {Bytes{4096}, Bytes{1 << 18}, Bytes{16 << 20}};
            if (test::full()) options.sizes = parse_sizes("1KiB..1GiB*4");
            options.most_tiles = 16;
            options.effort = 500'000;
            try {
                check_not_below(synth::synthesize(
                    topology, collective(kind, topology.rank_count(), topology.rank_count() / 2), options));
            } catch (const Error& error) {
                // Direct networks, where messages between distant ranks would need relays.
                CHECK(error.kind() == ErrorKind::input);
                CHECK(std::string(error.what()).find("cannot reach") != std::string::npos);
            }
        }
    }
}

TEST_CASE("no simulated schedule beats the bound on random machines") {
    const int seeds = test::full() ? 300 : 25;
    for (int seed = 0; seed < seeds; ++seed) {
        CAPTURE(seed);
        test::RandomTopologyOptions random;
        random.most_ranks = 10;
        const Topology topology = test::random_topology(static_cast<std::uint64_t>(seed) + 31, random);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            CAPTURE(ir::to_string(kind));
            synth::SynthesisOptions options;
            options.sizes = {Bytes{100}, Bytes{1 << 16}, Bytes{4 << 20}};
            options.most_tiles = 16;
            options.effort = 500'000;
            check_not_below(synth::synthesize(
                topology, collective(kind, topology.rank_count(), seed % topology.rank_count()), options));
        }
    }
}

TEST_CASE("a named algorithm is the only candidate, and the automatic choice is at least as good") {
    const Topology topology = topologies::load("dgx_h100");
    const ir::Collective c = collective(ir::CollectiveKind::all_reduce, 8);
    synth::SynthesisOptions options;
    options.sizes = {Bytes{4096}, Bytes{64 << 20}};
    const synth::Synthesis all = synth::synthesize(topology, c, options);
    CHECK(all.candidates.size() > 3);
    CHECK_FALSE(all.stopped_early);
    for (const char* name : {"ring", "all_pairs", "double_binary_tree"}) {
        options.algorithm = name;
        const synth::Synthesis one = synth::synthesize(topology, c, options);
        REQUIRE(one.choices.size() == 2);
        for (const synth::Candidate& candidate : one.candidates) CHECK(candidate.name == name);
        for (std::size_t s = 0; s < 2; ++s)
            CHECK(one.choices[s].best().time.seconds() >= all.choices[s].best().time.seconds() * 0.98);
    }
    options.algorithm = "auto";
    options.tiles = 3;
    for (const synth::Choice& choice : synth::synthesize(topology, c, options).choices)
        CHECK(choice.best().tiles == 3);
}

TEST_CASE("plans serve every size with the winner there, and are read back alike") {
    const Topology topology = topologies::load("dgx_h100");
    synth::SynthesisOptions options;
    options.sizes = parse_sizes("1KiB..256MiB*4");
    const synth::Synthesis result =
        synth::synthesize(topology, collective(ir::CollectiveKind::all_reduce, 8), options);
    const ir::PlanSet plans = result.plans(topology);
    const ir::PlanSet again = ir::parse_plan_set(ir::to_json(plans));
    CHECK(again.topology_hash == topology.hash());
    CHECK(again.plans.size() == plans.plans.size());
    for (const ir::PlanSet* set : {&plans, &again}) {
        for (const synth::Choice& choice : result.choices) {
            const ir::Plan* plan = set->find({ir::CollectiveKind::all_reduce, 0, choice.size});
            REQUIRE(plan != nullptr);
            CHECK(plan->tiles == choice.best().tiles);
            const ir::Schedule schedule = set->schedule_of(*plan);
            CHECK(ir::name_of(schedule) ==
                  result.candidates[static_cast<std::size_t>(choice.best().candidate)].algorithm->name);
        }
        CHECK(set->find({ir::CollectiveKind::all_reduce, 0, Bytes{1}}) != nullptr);
        CHECK(set->find({ir::CollectiveKind::all_reduce, 0, Bytes{std::int64_t{1} << 40}}) != nullptr);
    }
}

// Everything that a synthesis decided, in words.
static std::string decisions(const synth::Synthesis& result) {
    std::string text = result.model + "\n";
    for (const synth::Candidate& candidate : result.candidates)
        text += candidate.label() + " " + std::to_string(candidate.steps) + " " +
                ir::to_json(*candidate.algorithm);
    for (const synth::Refusal& refusal : result.refusals) text += refusal.name + ": " + refusal.why + "\n";
    for (const synth::Choice& choice : result.choices) {
        for (const synth::Timing& timing : choice.timings) {
            text += to_string(choice.size) + " " + std::to_string(timing.candidate) + " " +
                    std::to_string(timing.tiles) + " " + std::to_string(timing.time.picoseconds) + "\n";
        }
    }
    return text;
}

TEST_CASE("any number of threads gives the same result, for every kind") {
    for (const char* machine : {"dgx1_v100", "mesh:2x3"}) {
        CAPTURE(machine);
        const Topology topology = topologies::load(machine);
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            if (std::string(machine) != "mesh:2x3" && kind != ir::CollectiveKind::all_reduce && !test::full())
                continue;
            CAPTURE(ir::to_string(kind));
            synth::SynthesisOptions options;
            options.sizes = {Bytes{1024}, Bytes{1 << 18}, Bytes{1 << 26}};
            options.effort = 200'000;
            const ir::Collective all = collective(kind, topology.rank_count());
            const std::string one = decisions(synth::synthesize(topology, all, options));
            for (const int threads : {4, 2}) {
                if (threads == 2 && kind != ir::CollectiveKind::all_reduce && !test::full()) continue;
                options.threads = threads;
                CHECK(decisions(synth::synthesize(topology, all, options)) == one);
            }
        }
    }
}

TEST_CASE("little effort of simulation still leaves a schedule for every size") {
    synth::SynthesisOptions options;
    options.sizes = parse_sizes("1KiB..1GiB");
    options.effort = 0;
    const synth::Synthesis result = synth::synthesize(topologies::load("dgx_h100"),
                                                      collective(ir::CollectiveKind::all_reduce, 8), options);
    CHECK_FALSE(result.stopped_early);
    CHECK(result.choices.size() == options.sizes.size());
    check_not_below(result);
}

TEST_CASE("a synthesis that is stopped before anything was verified says so") {
    synth::SynthesisOptions options;
    options.sizes = {Bytes{1024}};
    options.stop.request_stop();
    try {
        synth::synthesize(topologies::load("dgx_h100"), collective(ir::CollectiveKind::all_reduce, 8),
                          options);
        FAIL("not stopped");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::check_failed);
        CHECK(error.message().find("stopped before any schedule") != std::string::npos);
    }
}

TEST_CASE("a synthesis that is stopped on its way returns what was verified and simulated") {
    const Topology topology = topologies::load("dgx1_v100");
    synth::SynthesisOptions options;
    options.sizes = parse_sizes("1KiB..1GiB*32");
    int calls = 0;
    int answers = 0;
    // Stops after so many reports of progress: at every stage of the work.
    for (const int last : {2, 12, 20, 26, 30}) {
        CAPTURE(last);
        options.stop = StopToken();
        calls = 0;
        options.progress = [&](const std::string&, double) {
            if (++calls == last) options.stop.request_stop();
        };
        try {
            const synth::Synthesis result =
                synth::synthesize(topology, collective(ir::CollectiveKind::all_reduce, 8), options);
            // What was verified serves all sizes.
            CHECK(result.choices.size() == options.sizes.size());
            check_not_below(result);
            ++answers;
            if (calls > last) CHECK(result.stopped_early);
            for (const synth::Candidate& candidate : result.candidates)
                CHECK(ir::verify(*candidate.algorithm).assurance == ir::Assurance::proved);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::check_failed);
        }
    }
    CHECK(answers > 2);
}

TEST_CASE("what cannot be synthesized is refused in words") {
    synth::SynthesisOptions options;
    options.sizes = {Bytes{1024}};
    const Topology h100 = topologies::load("dgx_h100");
    options.algorithm = "rnig";
    CHECK(message_of(h100, collective(ir::CollectiveKind::all_reduce, 8), options).find("known: auto ring") !=
          std::string::npos);
    options.algorithm = "bruck";
    CHECK(message_of(h100, collective(ir::CollectiveKind::broadcast, 8), options)
              .find("bruck does not serve broadcast") != std::string::npos);
    options.algorithm = "auto";
    Topology parted = h100;
    for (const char* glob : {"gpu3>*", "*>gpu3"}) topologies::fail(parted, glob);
    parted.finish();
    CHECK(message_of(parted, collective(ir::CollectiveKind::all_reduce, 8), options)
              .find("rank 0 (gpu0) cannot reach rank 3 (gpu3)") != std::string::npos);
    options.sizes = {Bytes{2048}, Bytes{1024}};
    CHECK(message_of(h100, collective(ir::CollectiveKind::all_reduce, 8), options).find("ascending") !=
          std::string::npos);
}

TEST_CASE(
    "joint is left out of many ranks, few alike, where forests with equal shares reach the bound already") {
    const auto left_out = [](const Topology& topology) {
        synth::SynthesisOptions options;
        options.sizes = {Bytes{1 << 30}};
        options.effort = 1000;
        const synth::Synthesis made = synth::synthesize(
            topology, collective(ir::CollectiveKind::all_reduce, topology.rank_count()), options);
        return std::any_of(made.refusals.begin(), made.refusals.end(), [](const synth::Refusal& refusal) {
            return refusal.why.find("equal shares") != std::string::npos;
        });
    };
    Topology boxes = topologies::load("paper/a100-oddeven:hosts=5");
    CHECK_FALSE(left_out(boxes));  // the trees of one root serve all
    boxes.links[0].bandwidth.bytes_per_second *= 2;
    boxes.links[0].goodput.bytes_per_second *= 2;
    boxes.finish();
    CHECK(left_out(boxes));
    CHECK_FALSE(left_out(topologies::load("mesh:6x6")));
}
