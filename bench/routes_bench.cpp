// Routes between all ranks: a table of shares for each pair, against the number of ranks.
#include <baton/topologies/load.hpp>
#include <baton/topologies/routes.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace baton;

void all_routes(benchmark::State& state, const char* spec) {
    const topologies::Topology topology = topologies::load(spec);
    std::int64_t pairs = 0;
    for (auto _ : state) {
        const topologies::Routes routes(topology);
        for (int a = 0; a < topology.rank_count(); ++a) {
            for (int b = 0; b < topology.rank_count(); ++b) {
                if (a == b) continue;
                benchmark::DoNotOptimize(routes.between(a, b).hops);
                ++pairs;
            }
        }
    }
    state.SetItemsProcessed(pairs);
}

BENCHMARK_CAPTURE(all_routes, torus_8x8, "torus:8x8")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_routes, torus_16x16, "torus:16x16")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_routes, h100_2_hosts, "dgx_h100:hosts=2")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(all_routes, h100_8_hosts, "dgx_h100:hosts=8")->Unit(benchmark::kMillisecond);

}  // namespace
