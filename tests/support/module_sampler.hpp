// Random plans of many algorithms, for tests that emit, compile and run them.
#pragma once

#include <baton/base/error.hpp>
#include <baton/codegen/emit.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <support/module_cases.hpp>
#include <support/small_algorithms.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace baton::test {

/// Small hand-written algorithms, the example files and the fixed patterns, as far as they serve n ranks.
inline std::vector<NamedAlgorithm> all_algorithms(int n) {
    std::vector<NamedAlgorithm> list;
    const auto add = [&](ir::Algorithm algorithm) {
        std::string name = algorithm.name;
        list.push_back({std::move(name), std::move(algorithm)});
    };
    for (ir::Algorithm& each : std::vector<ir::Algorithm>{
             ring_all_reduce(n), ring_all_gather(n), ring_all_gather(n, 3), one_shot_all_reduce(n),
             reduce_to_root(n, n / 2), chain_broadcast(n, n - 1, 5), direct_all_to_all(n),
             direct_all_to_all(n, 2), scratch_reduce_scatter(n)}) {
        add(std::move(each));
    }
    if ((n & (n - 1)) == 0) add(recursive_doubling(n, 3));
    for (const auto& entry : std::filesystem::directory_iterator(BATON_SOURCE_DIR "/examples/algorithms")) {
        if (entry.path().extension() != ".json") continue;
        try {
            ir::LoadOptions options;
            options.ranks = n;
            list.push_back(
                {entry.path().stem().string(), ir::load_algorithm(entry.path().string(), options)});
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;  // a file that does not serve n ranks
        }
    }
    for (const synth::PatternInfo& pattern : synth::fixed_patterns()) {
        for (const ir::CollectiveKind kind : ir::standard_kinds()) {
            if (!synth::serves(pattern.name, kind)) continue;
            synth::PatternOptions options;
            options.collective = collective(kind, n, 1, n / 2);
            if (pattern.name == "hierarchical") {
                for (int r = 0; r < n; ++r) options.hosts.push_back(r * 2 / n);
            }
            if (pattern.name == "multi_ring") {
                std::vector<int> order, reversed;
                for (int r = 0; r < n; ++r) order.push_back(r), reversed.insert(reversed.begin(), r);
                options.rings = {{order, 2}, {reversed, 1}};
            }
            if (!synth::serves(pattern.name, options)) continue;
            list.push_back({fmt::format("{} {}", pattern.name, to_string(kind)),
                            synth::fixed_pattern(pattern.name, options)});
        }
    }
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return list;
}

/// Lowers and emits with random options and adds calls of random shapes.
inline void add_random_case(ModuleCases& cases, const NamedAlgorithm& algorithm, codegen::ModePreference mode,
                            std::mt19937& random) {
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    codegen::LowerOptions lowering;
    lowering.mode = mode;
    lowering.slots = draw(1, 4);
    lowering.channels = draw(1, 2);
    lowering.threadblocks = draw(0, 2) == 0 ? 1 : 4;
    const ir::DataType types[] = {ir::DataType::u32, ir::DataType::f16, ir::DataType::f32, ir::DataType::i8,
                                  ir::DataType::f64};
    const ir::DataType type = types[draw(0, 4)];
    const ir::ReduceOp op = draw(0, 2) == 0 ? ir::ReduceOp::avg : ir::ReduceOp::sum;
    lowering.wide = draw(0, 2) == 0 || ir::always_wide(op, type);
    codegen::EmitOptions options;
    options.entries = {{type, op}};
    options.straight = draw(0, 1) == 0 ? 40 : 0;
    options.instances = draw(0, 3) == 0 ? 2 : 1;
    const ir::Program program = codegen::lower(algorithm.algorithm, lowering);
    const codegen::Module module = codegen::emit(program, options);
    const int size = static_cast<int>(ir::size_of(type));
    std::vector<CallShape> calls = {
        {draw(1, 150), draw(1, 4)},
        {draw(0, 6), draw(1, 2), 1, draw(0, 1) == 1},
        {draw(30, 90), draw(2, 4), 2, draw(0, 1) == 1, size * draw(0, 1), size * draw(0, 1)}};
    const std::string name = fmt::format(
        "{}, {} ranks, {}, {} {}, slots {}, channels {}, threadblocks {}, straight {}, instances {}{}",
        algorithm.name, program.collective.ranks, to_string(mode), to_string(op), to_string(type),
        lowering.slots, lowering.channels, lowering.threadblocks, options.straight, options.instances,
        lowering.wide ? ", wide" : "");
    cases.add(name, module, module.manifest.entries.at(0), calls, 4096, random());
}

}  // namespace baton::test
