// What synthesis costs at scale: one run a row, CPU time of the process, the limit that is set for it beside.
// Counters: ranks, trees per root, depth of the deepest tree in hops (all_reduce: both phases), gap_% (time
// on links above the tightest cut, or above the optimum over trees).
#include <baton/base/error.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/bandwidth_bound.hpp>
#include <baton/synth/compose.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/repair.hpp>
#include <baton/topologies/load.hpp>

#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace baton;
using Kind = ir::CollectiveKind;
using topologies::Topology;

struct Row {
    const char* machine;
    double limit;  // CPU seconds
};

ir::Collective collective_on(const Topology& topology, Kind kind) {
    ir::Collective collective;
    collective.kind = kind;
    collective.ranks = topology.rank_count();
    return collective;
}

void describe(benchmark::State& state, const Row& row, const Topology& topology) {
    state.counters["ranks"] = topology.rank_count();
    state.SetLabel(fmt::format("{}, at most {:g} s", row.machine, row.limit));
}

// Runs the body once and turns what it throws into an error of the row.
template <class Body>
void measure(benchmark::State& state, const Body& body) {
    for (auto _ : state) {
        try {
            body();
        } catch (const Error& error) {
            state.SkipWithError(error.what());
            return;
        }
    }
}

// What the portfolio would do next, beside the row's time: verification, in CPU seconds.
void verify(benchmark::State& state, const ir::Algorithm& algorithm) {
    const std::clock_t start = std::clock();
    const ir::AlgorithmReport report = ir::verify(algorithm);
    state.counters["verify_s"] = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    state.counters["steps"] = static_cast<double>(report.steps);
    if (report.assurance == ir::Assurance::not_proven) state.SkipWithError("too large to verify");
}

// The tightest cut of an all_gather; the optimum of an all_to_all by multicommodity flow.
void optimum(benchmark::State& state, Row row, Kind kind) {
    const Topology topology = topologies::load(row.machine);
    synth::BandwidthBound bound;
    measure(state, [&] { bound = synth::bandwidth_bound(topology, collective_on(topology, kind)); });
    state.counters["proved"] = bound.best_cut ? 1 : 0;
    state.counters["s_per_GB"] = bound.seconds_per_byte.value() * 1e9;
    describe(state, row, topology);
}

void forest(benchmark::State& state, Row row) {
    const Topology topology = topologies::load(row.machine);
    std::optional<synth::ForestAlgorithm> made;
    measure(state, [&] {
        made = synth::forest(topology, collective_on(topology, Kind::all_gather), synth::TreeLimits(64));
    });
    describe(state, row, topology);
    if (!made) return;
    state.counters["trees"] = static_cast<double>(made->trees_per_root);
    state.counters["depth"] = made->depth;
    state.counters["gap_%"] = 100 * made->loss;
    verify(state, made->algorithm);
}

void joint(benchmark::State& state, Row row) {
    const Topology topology = topologies::load(row.machine);
    std::optional<synth::JointAlgorithm> made;
    measure(state, [&] { made = synth::joint(topology, collective_on(topology, Kind::all_reduce)); });
    describe(state, row, topology);
    if (!made) return;
    state.counters["trees"] = static_cast<double>(made->trees);
    state.counters["depth"] = made->depth;
    state.counters["gap_%"] = 100 * (made->optimum / made->rate - 1);
    verify(state, made->algorithm);
}

// All compositions that are made when they are asked for by name.
void composition(benchmark::State& state, Row row, Kind kind) {
    const Topology topology = topologies::load(row.machine);
    std::vector<ir::Algorithm> made;
    measure(state, [&] {
        synth::ComposeOptions options;
        options.take = [&](synth::Composition&& one) { made.push_back(std::move(one.algorithm)); };
        synth::compose(topology, collective_on(topology, kind), options);
    });
    describe(state, row, topology);
    state.counters["schedules"] = static_cast<double>(made.size());
    if (!made.empty()) verify(state, made.front());
}

// One GPU's link to its rail fails; the old schedule's trees are mended.
void repair(benchmark::State& state, Row row) {
    Topology topology = topologies::load(row.machine);
    const synth::ForestAlgorithm old =
        synth::forest(topology, collective_on(topology, Kind::all_gather), synth::TreeLimits(64));
    std::optional<synth::Repaired> made;
    measure(state, [&] {
        topologies::fail(topology, "h0/gpu0<>rail0");
        made = synth::repair(topology, old.algorithm);
    });
    describe(state, row, topology);
    if (!made) return;
    state.counters["moved"] = static_cast<double>(made->moved);
    state.counters["depth"] = made->depth;
    state.counters["gap_%"] = 100 * made->loss;
    verify(state, made->algorithm);
}

// Rows once each: what is made takes longer than what repeating would show.
#define BATON_ROW(...) \
    BENCHMARK_CAPTURE(__VA_ARGS__)->Iterations(1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()

BATON_ROW(optimum, all_gather_1024, Row{"paper/h100-rail:hosts=128", 1.0}, Kind::all_gather);
BATON_ROW(optimum, all_to_all_64, Row{"paper/a100-oddeven:hosts=8", 2}, Kind::all_to_all);
BATON_ROW(forest, all_gather_64, Row{"paper/a100-oddeven:hosts=8", 0.3});
BATON_ROW(forest, all_gather_128, Row{"paper/a100-oddeven:hosts=16", 1.5});
BATON_ROW(forest, all_gather_512, Row{"paper/a100-oddeven:hosts=64", 30});
BATON_ROW(forest, all_gather_1024, Row{"paper/h100-rail:hosts=128", 60});
BATON_ROW(forest, all_gather_torus_256, Row{"torus:16x16", 20});
BATON_ROW(joint, all_reduce_a100_16, Row{"paper/a100-oddeven:hosts=2", 0.5});
BATON_ROW(joint, all_reduce_h100_16, Row{"paper/h100-rail:hosts=2", 0.5});
BATON_ROW(joint, all_reduce_mesh_16, Row{"mesh:4x4", 0.5});
BATON_ROW(composition, all_reduce_8192, Row{"paper/h100-rail:hosts=1024", 10}, Kind::all_reduce);
BATON_ROW(composition, all_gather_8192, Row{"paper/h100-rail:hosts=1024", 10}, Kind::all_gather);
BATON_ROW(repair, all_gather_64, Row{"paper/a100-oddeven:hosts=8", 0.1});

}  // namespace
