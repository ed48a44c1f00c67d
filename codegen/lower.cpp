#include <baton/codegen/lower.hpp>

#include <baton/base/error.hpp>
#include <baton/codegen/passes/graph.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <optional>

namespace baton::codegen {

std::string_view to_string(ModePreference mode) {
    switch (mode) {
        case ModePreference::automatic: return "automatic";
        case ModePreference::staged: return "staged";
        case ModePreference::put: return "put";
        case ModePreference::get: return "get";
    }
    return "?";
}

ModePreference parse_mode_preference(std::string_view name, const std::string& where) {
    for (const ModePreference mode :
         {ModePreference::automatic, ModePreference::staged, ModePreference::put, ModePreference::get}) {
        if (name == to_string(mode)) return mode;
    }
    throw input_error(fmt::format("unknown transfer mode '{}'", name), where,
                      "use automatic, staged, put or get");
}

const std::vector<PassInfo>& lowering_passes() {
    static const std::vector<PassInfo> passes = {
        {"dependencies",
         "steps become sends, receives and local work, ordered by what reads and writes of a place imply"},
        {"forward", "reads look through opening copies, and copies that nobody needs go"},
        {"transfer", "messages that may are put into, or got from, the place itself"},
        {"fuse",
         "a value with one consumer becomes part of its instruction; reductions into one place become one"},
        {"threadblocks", "each connection gets its threadblock, within the budget"},
        {"waits", "needs that sequence, messages or earlier needs imply go"},
        {"reroll", "repeated bodies are marked"},
    };
    return passes;
}

namespace {

void check_options(const LowerOptions& options) {
    if (options.slots < 0 || options.slots > 1024) {
        throw input_error(fmt::format("{} slots are out of range", options.slots), "slots",
                          "use 1 to 1024, or 0 for the default");
    }
    if (options.threadblocks < 1) throw input_error("a rank needs at least one threadblock", "threadblocks");
    if (options.channels < 1 || options.channels > 1024) {
        throw input_error(fmt::format("{} channels are out of range", options.channels), "channels",
                          "use 1 to 1024");
    }
    const auto& passes = lowering_passes();
    if (!options.stop_after.empty() && std::none_of(passes.begin(), passes.end(), [&](const PassInfo& pass) {
            return pass.name == options.stop_after;
        })) {
        std::string names;
        for (const PassInfo& pass : passes) names += (names.empty() ? "" : ", ") + pass.name;
        throw input_error(fmt::format("there is no pass '{}'", options.stop_after), "pass",
                          "use one of " + names);
    }
}

/// Passes up to `options.stop_after`.
ir::Program run_passes(const ir::Algorithm& algorithm, const LowerOptions& options, bool k_way) {
    const auto& passes = lowering_passes();
    const auto last = std::find_if(passes.begin(), passes.end(),
                                   [&](const PassInfo& pass) { return pass.name == options.stop_after; });
    const auto runs = [&](std::string_view name) {
        return std::find_if(passes.begin(), passes.end(),
                            [&](const PassInfo& pass) { return pass.name == name; }) <= last;
    };
    Graph graph = extract(algorithm, options, runs("forward"), runs("transfer"));
    if (runs("forward")) remove_dead_copies(graph);
    if (runs("fuse")) fuse(graph, options, k_way);
    assign_threadblocks(graph, options, runs("threadblocks"));
    std::vector<Location> order;
    ir::Program program = to_program(graph, order);
    if (runs("waits")) minimize_waits(program, order);
    ir::mark_posts(program);
    if (runs("reroll")) reroll(program);
    return program;
}

}  // namespace

ir::Program lower(const ir::Algorithm& algorithm, const LowerOptions& options) {
    check_options(options);
    algorithm.collective.check(algorithm.name);
    // Loops of a short file may stand for more steps than can be walked, though few instructions come of
    // them.
    if (algorithm.step_count() > options.instruction_limit) {
        throw input_error(fmt::format("there are more than {} steps", options.instruction_limit),
                          algorithm.name, "use fewer ranks or chunks, or longer runs");
    }
    if (options.verify) ir::verify(algorithm);
    ir::Program program = run_passes(algorithm, options, true);
    if (!options.verify) return program;
    const ir::ProgramReport report = ir::verify(program);
    // Rounding once where another rank rounds twice would make copies of one result differ.
    if (algorithm.collective.kind == ir::CollectiveKind::all_reduce &&
        report.order < ir::Order::replicas_equal) {
        ir::Program plain = run_passes(algorithm, options, false);
        if (ir::verify(plain).order >= ir::Order::replicas_equal) return plain;
    }
    return program;
}

}  // namespace baton::codegen
