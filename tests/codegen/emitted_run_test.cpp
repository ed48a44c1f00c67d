// Emitted modules on teams of threads: right results and no race.
#include <baton/codegen/emit.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <support/full.hpp>
#include <support/module_runner.hpp>
#include <support/module_sampler.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::test;

namespace {

constexpr codegen::ModePreference kModes[] = {codegen::ModePreference::staged, codegen::ModePreference::put,
                                              codegen::ModePreference::get};

void run_all(ModuleRunner& runner, const ModuleCases& cases, const std::vector<int>& threads) {
    runner.build(cases);
    for (const int each : threads) {
        const Outcome outcome = runner.run(each);
        INFO(each << " threads: " << outcome.text);
        CHECK(outcome.status == 0);
    }
}

/// A collective of irregular places: rank r's second chunk goes to its right, its first one two further.
ir::Algorithm custom_shift(int n) {
    auto places = std::make_shared<ir::CustomPlaces>();
    ir::Collective c;
    c.kind = ir::CollectiveKind::custom;
    c.ranks = n;
    c.chunks = 3;
    for (int r = 0; r < n; ++r) {
        places->inputs.push_back({{0, 2}, {1, 0}, {1, 1}});
        places->outputs.push_back(
            {{2, {{(r + n - 2) % n, 0}}}, {0, {{(r + n - 1) % n, 1}}}, {1, {{(r + n - 1) % n, 1}}}});
    }
    c.custom = places;
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("custom shift", c);
    b.begin_par();
    for (int r = 0; r < n; ++r) {
        b.send({r, input, 0}, {(r + 2) % n, output, 0});
        b.send({r, input, 1}, {(r + 1) % n, output, 1}, 2);
    }
    b.end_par();
    return b.build();
}

/// A ring of chunks of unequal weights.
ir::Algorithm weighted_ring(int n) {
    using enum ir::Buffer;
    ir::Collective c = collective(ir::CollectiveKind::all_reduce, n, n);
    for (int k = 0; k < n; ++k) c.weights.push_back(1 + k * k);
    ir::AlgorithmBuilder b("weighted ring", c);
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, 0}, n);
    for (int s = 0; s < n - 1; ++s)
        for (int r = 0; r < n; ++r)
            b.send_reduce({r, output, (r - s + n) % n}, {(r + 1) % n, output, (r - s + n) % n});
    for (int s = 0; s < n - 1; ++s)
        for (int r = 0; r < n; ++r)
            b.send({r, output, (r + 1 - s + n) % n}, {(r + 1) % n, output, (r + 1 - s + n) % n});
    return b.build();
}

/// All-gather in one instruction a rank: it writes its shard to everybody's output, and nobody waits.
ir::Program written_all_gather(int n, std::int64_t chunks) {
    using enum ir::Buffer;
    const auto count = static_cast<std::int32_t>(chunks);
    ir::Program program;
    program.name = "written all-gather";
    program.collective = collective(ir::CollectiveKind::all_gather, n, chunks);
    program.ranks.resize(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) {
        const ir::Operand source{ir::OperandKind::local, input, -1, 0, count};
        std::vector<ir::Operand> destinations;
        for (int p = 0; p < n; ++p)
            destinations.push_back({ir::OperandKind::remote, output, p, r * count, count});
        program.ranks[static_cast<std::size_t>(r)].threadblocks.emplace_back().add({&source, 1},
                                                                                   destinations);
    }
    return program;
}

/// All-reduce in which each rank packs its input into scratch, and reads everybody's when that is done.
ir::Program read_all_reduce(int n) {
    using enum ir::Buffer;
    ir::Program program;
    program.name = "read all-reduce";
    program.collective = collective(ir::CollectiveKind::all_reduce, n, 2);
    program.ranks.resize(static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r) {
        ir::RankProgram& rank = program.ranks[static_cast<std::size_t>(r)];
        rank.scratch_classes = {0, 1};
        const ir::Operand in{ir::OperandKind::local, input, -1, 0, 2};
        const ir::Operand packed{ir::OperandKind::local, scratch, -1, 0, 2};
        const ir::Operand out{ir::OperandKind::local, output, -1, 0, 2};
        rank.threadblocks.resize(2);
        rank.threadblocks[0].add({&in, 1}, {&packed, 1});
        std::vector<ir::Operand> sources;
        std::vector<ir::Need> needs;
        for (int p = 0; p < n; ++p) {
            sources.push_back({ir::OperandKind::remote, scratch, p, 0, 2});
            needs.push_back({p, 0, 0, ir::Event::completed});
        }
        rank.threadblocks[1].add(sources, {&out, 1}, needs, -1, n > 1);
    }
    ir::mark_posts(program);
    return program;
}

}  // namespace

TEST_CASE("programs that read and write places of other ranks give exact results and no race") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    ModuleRunner runner;
    ModuleCases cases;
    std::uint32_t seed = 5;
    for (const int n : {1, 2, 5})
        for (const ir::Program& program :
             {written_all_gather(n, 1), written_all_gather(n, 3), read_all_reduce(n)}) {
            CAPTURE(program.name);
            REQUIRE(ir::verify(program).assurance == ir::Assurance::proved);
            codegen::EmitOptions options;
            options.entries = {{ir::DataType::u32, ir::ReduceOp::sum}};
            options.instances = 1 + static_cast<int>(seed % 2);
            const codegen::Module module = codegen::emit(program, options);
            cases.add(fmt::format("{} {}", program.name, n), module, module.manifest.entries.at(0),
                      {{301, 3}, {7, 2}, {90, 4, 3, true}}, 4096, ++seed);
        }
    run_all(runner, cases, {2});
}

TEST_CASE("emitted algorithms give exact results and no race, in every mode and with random options") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    ModuleRunner runner;
    std::mt19937 random(1);
    if (!full()) {
        ModuleCases cases;
        for (int i = 0; i < 36; ++i) {
            const int n = std::uniform_int_distribution<int>(2, 8)(random);
            const std::vector<NamedAlgorithm> pool = all_algorithms(n);
            const auto& algorithm =
                pool[std::uniform_int_distribution<std::size_t>(0, pool.size() - 1)(random)];
            CAPTURE(algorithm.name);
            add_random_case(cases, algorithm, kModes[i % 3], random);
        }
        run_all(runner, cases, {2});
        return;
    }
    for (int n = 1; n <= 8; ++n) {
        ModuleCases cases;
        for (const NamedAlgorithm& algorithm : all_algorithms(n)) {
            for (const auto mode : kModes) {
                CAPTURE(algorithm.name);
                CAPTURE(n);
                add_random_case(cases, algorithm, mode, random);
                if (cases.size() < 40) continue;
                run_all(runner, cases, {1, 2, 3});
                cases = ModuleCases();
            }
        }
        run_all(runner, cases, {1, 2, 3});
    }
}

TEST_CASE("emitted loops, tables, weights and irregular places give exact results") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    ModuleRunner runner;
    std::mt19937 random(2);
    ModuleCases cases;
    for (const auto mode : kModes) {
        for (const ir::Algorithm& algorithm :
             {weighted_ring(4), custom_shift(5), ring_all_reduce(7), direct_all_to_all(6, 2)}) {
            codegen::LowerOptions lowering;
            lowering.mode = mode;
            codegen::EmitOptions options;
            options.entries = {{ir::DataType::u32, ir::ReduceOp::sum}};
            options.straight = 0;
            options.instances = 1 + static_cast<int>(random() % 2);
            const codegen::Module module = codegen::emit(codegen::lower(algorithm, lowering), options);
            const auto& entries = module.manifest.entries;
            const auto entry = std::find_if(entries.begin(), entries.end(),
                                            [](const auto& each) { return each.element_size() == 4; });
            REQUIRE(entry != entries.end());
            cases.add(fmt::format("{}, {}", algorithm.name, to_string(mode)), module, *entry,
                      {{301, 3}, {7, 2}, {90, 4, 2, mode == kModes[0]}}, 4096, random());
        }
    }
    CHECK(cases.source().find("for (u32 i = 0; i < ") != std::string::npos);
    CHECK(cases.source().find("kPieces[] =") != std::string::npos);
    CHECK(cases.source().find("kWeights[] =") != std::string::npos);
    run_all(runner, cases, {2});
}

TEST_CASE("every operator on every type it is defined on, narrow and wide") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    ModuleRunner runner;
    std::mt19937 random(3);
    ModuleCases cases;
    for (const bool wide : {false, true}) {
        codegen::LowerOptions lowering;
        lowering.wide = wide;
        const ir::Program program =
            codegen::lower(wide ? ring_all_reduce(3) : one_shot_all_reduce(3), lowering);
        codegen::EmitOptions options;
        int number = 0;
        for (const ir::ReduceOp op : ir::all_reduce_ops()) {
            for (const ir::DataType type : ir::valid_types(op)) {
                if (wide != ir::always_wide(op, type) && !(wide && ir::is_narrow_float(type))) continue;
                if (full() || ir::always_wide(op, type) || number++ % 3 == 0)
                    options.entries.push_back({type, op});
            }
        }
        const codegen::Module module = codegen::emit(program, options);
        CHECK(module.manifest.entries.size() == options.entries.size());
        for (const codegen::ManifestEntry& entry : module.manifest.entries) {
            cases.add(entry.name, module, entry, {{37, 2}}, 4096, random());
        }
    }
    run_all(runner, cases, {2});
}

TEST_CASE("planted: a tile cut by the run instead of the chunk is caught") {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("runs", collective(ir::CollectiveKind::broadcast, 3, 2));
    b.copy({0, input, 0}, {0, output, 0}, 2);
    b.send({0, input, 0}, {1, output, 0}, 2);
    b.send({1, output, 0}, {2, output, 0}).send({1, output, 1}, {2, output, 1});
    codegen::EmitOptions options;
    options.entries = {{ir::DataType::i32, ir::ReduceOp::sum}};
    codegen::LowerOptions one;
    one.threadblocks = 1;  // rank 1 forwards tile 0 before it takes tile 1
    const codegen::Module module = codegen::emit(codegen::lower(b.build(), one), options);
    CallShape call;
    call.count = 256;
    call.tiles = 2;
    ModuleCases cases;
    cases.add("runs", module, module.manifest.entries.at(0), {call}, 4096, 1);
    // With two tiles of a run of two equal chunks, tile t of the run is chunk t.
    const std::string right = "const Range range = tile_of(chunks, k, t);";
    const std::string wrong =
        "const Range range = t == j ? Range{tile_of(chunks, k, 0).begin, tile_of(chunks, k, 0).size + "
        "tile_of(chunks, k, 1).size} : Range{0, 0};";
    std::string source = cases.source();
    int planted = 0;
    for (std::size_t at = 0; (at = source.find("for (u32 j = 0; j < 2; ++j) {", at)) != std::string::npos;
         ++at) {
        const std::size_t line = source.find(right, at);
        REQUIRE(line != std::string::npos);
        source.replace(line, right.size(), wrong);
        ++planted;
    }
    REQUIRE(planted > 0);
    ModuleRunner runner;
    run_all(runner, cases, {2});
    runner.build(cases, {}, source);
    const Outcome outcome = runner.run(2);
    INFO(outcome.text);
    CHECK(outcome.status != 0);
}
