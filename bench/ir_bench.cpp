// Walking, verifying and lowering schedules: looped beside explicit, and growth with the number of ranks.
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>

#include <benchmark/benchmark.h>

#include "support/small_algorithms.hpp"

namespace {

using namespace baton;

ir::Algorithm looped_ring(int ranks) {
    ir::LoadOptions options;
    options.ranks = ranks;
    return ir::load_algorithm(BATON_SOURCE_DIR "/examples/algorithms/ring_all_reduce.json", options);
}

void walk(benchmark::State& state, const ir::Algorithm& algorithm) {
    std::int64_t steps = 0;
    for (auto _ : state) {
        ir::StepCursor cursor = algorithm.steps();
        ir::Step step;
        while (cursor.next(step)) ++steps;
    }
    state.SetItemsProcessed(steps);
}

void walk_looped(benchmark::State& state) { walk(state, looped_ring(static_cast<int>(state.range(0)))); }
void walk_explicit(benchmark::State& state) {
    walk(state, test::ring_all_reduce(static_cast<int>(state.range(0))));
}

void verify_ring(benchmark::State& state) {
    const ir::Algorithm algorithm = looped_ring(static_cast<int>(state.range(0)));
    std::int64_t steps = 0;
    for (auto _ : state) steps += ir::verify(algorithm).steps;
    state.SetItemsProcessed(steps);
}

void lower_ring(benchmark::State& state) {
    const ir::Algorithm algorithm = looped_ring(static_cast<int>(state.range(0)));
    std::int64_t instructions = 0;
    for (auto _ : state) instructions += codegen::lower(algorithm).instruction_count();
    state.SetItemsProcessed(instructions);
}

BENCHMARK(walk_looped)->Arg(8)->Arg(64)->Arg(512);
BENCHMARK(walk_explicit)->Arg(8)->Arg(64)->Arg(512);
BENCHMARK(verify_ring)->Arg(8)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(lower_ring)->Arg(8)->Arg(64)->Arg(128)->Unit(benchmark::kMillisecond);

}  // namespace
