// Greedy search of an all_gather on large tori: CPU time, and the planned time against the discrete bound.
#include <baton/synth/greedy_search.hpp>
#include <baton/topologies/load.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace baton;

// Shards of 4 MiB, links of 50 GiB/s and 0.5 us, as published results of this family have them.
void greedy_all_gather(benchmark::State& state, const char* spec, const char* limit = "") {
    topologies::Topology topology = topologies::load(spec);
    for (topologies::Link& link : topology.links) {
        link.bandwidth = {std::int64_t{50} << 30};
        link.goodput = {std::int64_t{50} << 30};
        link.latency = {500'000};
    }
    topology.finish("bench");
    ir::Collective collective;
    collective.kind = ir::CollectiveKind::all_gather;
    collective.ranks = topology.rank_count();
    const Bytes shard{std::int64_t{4} << 20};
    synth::GreedySchedule found;
    Time bound{}, published{};
    for (auto _ : state) {
        const synth::GreedyNetwork network(topology, collective.ranks, topologies::RoutePolicy::spread, 0);
        const synth::GreedyDemand demand = synth::greedy_demand(network, collective, shard);
        synth::GreedySearchOptions options;
        options.bytes = shard;
        found = synth::greedy_search(network, demand, options);
        state.PauseTiming();
        bound = synth::discrete_bound(network, demand, shard);
        published = synth::discrete_bound(network, demand, shard, true);
        state.ResumeTiming();
    }
    state.counters["ranks"] = topology.rank_count();
    state.counters["messages"] = static_cast<double>(found.messages.size());
    state.counters["us"] = found.time.seconds() * 1e6;
    state.counters["ratio"] = found.time.seconds() / bound.seconds();
    state.counters["ratio_busy_latency"] = found.time.seconds() / published.seconds();
    state.counters["search_MB"] = static_cast<double>(found.state_bytes) * 1e-6;
    state.SetLabel(limit);
}

BENCHMARK_CAPTURE(greedy_all_gather, torus_8x8, "torus:8x8")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(greedy_all_gather, torus_16x16, "torus:16x16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(greedy_all_gather, torus_8x8x8, "torus:8x8x8")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(greedy_all_gather, torus_32x32, "torus:32x32", "at most 1 s, ratio 1.01")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(greedy_all_gather, torus_64x64, "torus:64x64",
                  "at most 12 s, ratio 1.01, 200 MB of search state")
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

}  // namespace
