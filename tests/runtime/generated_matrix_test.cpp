// Every kind of collective through lowering, emission, the host compiler and the cpu backend, compared with
// the reference bit by bit: a seeded sample of ranks, patterns, roots, modes, counts, types, operators and
// placements. All calls with one number of ranks are made on one communicator, so that plans of every sort
// follow one another.
#include <baton/base/error.hpp>
#include <baton/codegen/emit.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/codegen/prelude.hpp>
#include <baton/ir/verify.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/trial.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <support/full.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <thread>

using namespace baton;
using namespace baton::runtime;

namespace {

struct Emitted {
    codegen::Module module;
    std::vector<codegen::EntryRequest> entries;
    std::string words;
};

template <class T>
const T& pick(std::mt19937& random, const std::vector<T>& list) {
    return list[random() % list.size()];
}

std::vector<codegen::EntryRequest> sample_entries(std::mt19937& random, ir::CollectiveKind kind, int count) {
    std::vector<codegen::EntryRequest> entries;
    while (static_cast<int>(entries.size()) < count) {
        codegen::EntryRequest entry{pick(random, ir::all_data_types()), pick(random, ir::all_reduce_ops()),
                                    random() % 4 == 0 ? ir::NanMode::ignore : ir::NanMode::propagate};
        if (ir::reduces(kind) && !ir::valid(entry.op, entry.type)) continue;
        if (ir::reduces(kind) && ir::always_wide(entry.op, entry.type))
            continue;  // asked for with wide programs, below
        entries.push_back(entry);
    }
    return entries;
}

/// A random pattern that serves the kind on `ranks` ranks, lowered and emitted; nothing when none does.
std::optional<Emitted> sample(std::mt19937& random, ir::CollectiveKind kind, int ranks) {
    synth::PatternOptions options;
    options.collective.kind = kind;
    options.collective.ranks = ranks;
    if (ir::has_root(kind))
        options.collective.root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    std::vector<std::string> names;
    for (const synth::PatternInfo& info : synth::fixed_patterns()) {
        if (synth::serves(info.name, options)) names.push_back(info.name);
    }
    if (names.empty()) return std::nullopt;
    const std::string name = pick(random, names);
    codegen::LowerOptions lower;
    lower.mode = pick<codegen::ModePreference>(
        random,
        {codegen::ModePreference::staged, codegen::ModePreference::put, codegen::ModePreference::get});
    lower.wide = random() % 3 == 0;
    lower.threadblocks = random() % 2 == 0 ? 32 : 2;
    lower.channels = random() % 3 == 0 ? 2 : 1;
    codegen::EmitOptions emit;
    emit.straight = random() % 2 == 0 ? 40 : 0;
    emit.instances = random() % 4 == 0 ? 2 : 1;
    Emitted result;
    emit.entries = result.entries = sample_entries(random, kind, test::full() ? 3 : 1);
    if (lower.wide && ir::reduces(kind))
        emit.entries.push_back({ir::DataType::f8e4m3, ir::ReduceOp::avg}), result.entries = emit.entries;
    result.module = codegen::emit(codegen::lower(synth::fixed_pattern(name, options), lower), emit);
    result.words = fmt::format("{} of {} ranks by {}, root {}, mode {}{}{}", to_string(kind), ranks, name,
                               options.collective.root, to_string(lower.mode), lower.wide ? ", wide" : "",
                               emit.instances > 1 ? ", 2 instances" : "");
    return result;
}

/// One shared object of several modules: the prelude once, then the own text of each.
std::vector<std::shared_ptr<const Module>> compile_together(const std::vector<Emitted>& list) {
    std::string source = codegen::prelude_source();
    for (const Emitted& each : list) {
        const std::string own = each.module.source.substr(codegen::prelude_source().size());
        if (source.find(own) == std::string::npos) source += own;
    }
    std::vector<std::shared_ptr<const Module>> modules;
    for (const Emitted& each : list)
        modules.push_back(Module::from_source(each.module.manifest, source, {{"-O1"}, BinaryCache::user()}));
    return modules;
}

/// Runs a call of all ranks from this thread, or each rank from its own with one of them late.
void call(Communicator& communicator, const Plan& plan, Trial& trial, std::mt19937& random) {
    if (random() % 4 != 0) {
        communicator.run(plan, trial.arguments(), trial.buffers());
        return;
    }
    const int late = static_cast<int>(random() % static_cast<unsigned>(communicator.ranks()));
    std::vector<std::string> failures(communicator.ranks());
    std::vector<std::thread> threads;
    for (int r = 0; r < communicator.ranks(); ++r) {
        threads.emplace_back([&, r] {
            if (r == late) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            trial.reset(r);  // what came before the rank had entered is lost
            try {
                communicator.run_rank(r, plan, trial.arguments(), trial.buffers()[r]);
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (const std::string& failure : failures) REQUIRE(failure == "");
}

struct Item {
    const Emitted* emitted;
    Plan plan;
    codegen::EntryRequest entry;
    std::int64_t count;
    bool in_place;
};

std::vector<Item> items(std::mt19937& random, const std::vector<Emitted>& list, int ranks) {
    const auto modules = compile_together(list);
    std::vector<Item> all;
    for (std::size_t m = 0; m < list.size(); ++m) {
        const ir::CollectiveKind kind = list[m].module.manifest.collective.kind;
        const std::int64_t large = ir::has_shards(kind) ? 1'000'003 / ranks / ranks : 1'000'003 / ranks;
        for (const codegen::EntryRequest& entry : list[m].entries) {
            for (const std::int64_t count : std::vector<std::int64_t>{0, 1, 7, ranks - 1, large}) {
                for (const bool in_place : {false, true}) {
                    if (in_place && kind == ir::CollectiveKind::send_recv) continue;
                    all.push_back({&list[m], {modules[m]}, entry, count, in_place});
                    all.back().plan.tiles = static_cast<std::int64_t>(random() % 4);
                }
            }
        }
    }
    std::shuffle(all.begin(), all.end(), random);
    return all;
}

}  // namespace

TEST_CASE(
    "all kinds on all numbers of ranks give the reference result, calls of different plans one after the "
    "other") {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 12, 16}) {
        std::mt19937 random(static_cast<std::uint32_t>(ranks) * 7919);
        std::vector<Emitted> list;
        const int rounds = test::full() ? 6 : 1;
        for (int round = 0; round < rounds; ++round) {
            for (const ir::CollectiveKind kind : ir::standard_kinds()) {
                if (kind == ir::CollectiveKind::send_recv && ranks == 1) continue;
                if (auto emitted = sample(random, kind, ranks)) list.push_back(std::move(*emitted));
            }
        }
        CommunicatorOptions options;
        options.ranks = ranks;
        options.slot_bytes = 16 << 10;
        options.workspace = 64 << 10;
        Communicator communicator(cpu_backend(), options);
        int calls = 0;
        for (const Item& item : items(random, list, ranks)) {
            const CallArguments arguments{item.count, item.entry.type, item.entry.op, item.entry.nan};
            INFO(item.emitted->words << ": " << item.count << " " << to_string(item.entry.type) << " "
                                     << to_string(item.entry.op) << (item.in_place ? " in place" : ""));
            TrialOptions trial_options;
            trial_options.in_place = item.in_place;
            trial_options.seed = random();
            trial_options.shift = static_cast<int>(random() % 3);
            Trial trial(item.emitted->module.manifest.collective, arguments, trial_options);
            call(communicator, item.plan, trial, random);
            const auto wrong = trial.wrong();
            REQUIRE_MESSAGE(!wrong, wrong.value_or(""));
            ++calls;
        }
        CHECK(calls > 50);
    }
}

TEST_CASE("a large count, in segments of a small workspace and without") {
    std::mt19937 random(5);
    for (const auto kind : {ir::CollectiveKind::all_reduce, ir::CollectiveKind::reduce_scatter}) {
        synth::PatternOptions pattern;
        pattern.collective.kind = kind;
        pattern.collective.ranks = 4;
        Emitted emitted;
        codegen::EmitOptions emit;
        emit.entries = emitted.entries = {{ir::DataType::i32, ir::ReduceOp::sum}};
        const std::string name =
            kind == ir::CollectiveKind::all_reduce ? "rabenseifner" : "recursive_halving";
        emitted.module = codegen::emit(codegen::lower(synth::fixed_pattern(name, pattern)), emit);
        Plan plan{compile_together({emitted})[0]};
        const CallArguments arguments{1'000'003, ir::DataType::i32, ir::ReduceOp::sum};
        for (const std::int64_t workspace : {std::int64_t{100'000}, std::int64_t{1} << 30}) {
            CommunicatorOptions options;
            options.ranks = 4;
            options.workspace = workspace;
            Communicator communicator(cpu_backend(), options);
            Trial trial(plan.module->manifest().collective, arguments);
            const CallReport report = communicator.run(plan, arguments, trial.buffers());
            if (communicator.workspace_bytes(plan, 0, arguments) > 0)
                CHECK((report.segments > 1) == (workspace == 100'000));
            CHECK(report.scratch_bytes <= workspace);
            CHECK(trial.wrong().value_or("") == "");
        }
    }
}

TEST_CASE("different roots on two ranks are an error on every rank") {
    CommunicatorOptions options;
    options.ranks = 3;
    Communicator communicator(cpu_backend(), options);
    std::vector<Emitted> list;
    for (const int root : {0, 1}) {
        synth::PatternOptions pattern;
        pattern.collective.kind = ir::CollectiveKind::reduce;
        pattern.collective.ranks = 3;
        pattern.collective.root = root;
        Emitted emitted;
        codegen::EmitOptions emit;
        emit.entries = {{ir::DataType::i32, ir::ReduceOp::sum}};
        emitted.module = codegen::emit(codegen::lower(synth::fixed_pattern("binomial", pattern)), emit);
        list.push_back(std::move(emitted));
    }
    for (const auto& module : compile_together(list)) communicator.add_plan({module});
    const CallArguments arguments{1000, ir::DataType::i32, ir::ReduceOp::sum};
    std::vector<std::vector<std::int32_t>> input(3, std::vector<std::int32_t>(1000, 1)), output = input;
    std::vector<std::string> failures(3);
    std::vector<std::thread> threads;
    for (int r = 0; r < 3; ++r) {
        threads.emplace_back([&, r] {
            try {
                const CollectiveCall mine{ir::CollectiveKind::reduce, r == 2 ? 1 : 0, -1, arguments};
                communicator.run_rank(r, communicator.choose(mine), arguments,
                                      {input[r].data(), output[r].data()});
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (int r = 0; r < 3; ++r) {
        // A leaf may have been done before the others called: then its next call tells.
        if (failures[r].empty()) {
            try {
                communicator.run_rank(r, communicator.choose({ir::CollectiveKind::reduce, 0, -1, arguments}),
                                      arguments, {input[r].data(), output[r].data()});
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        }
        INFO(failures[r]);
        CHECK((failures[r].find("differs from that of rank") != std::string::npos ||
               failures[r].find("another call") != std::string::npos));
    }
}
