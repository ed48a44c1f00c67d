// baton verify: proves an algorithm and the program it lowers to.
#include <baton/base/error.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostSlots = 1024, kMostRanks = 1 << 20;

std::string words(ir::Order order) {
    switch (order) {
        case ir::Order::any: return "any: may differ from run to run";
        case ir::Order::fixed: return "fixed: the same from run to run";
        case ir::Order::replicas_equal: return "replicas_equal: fixed, and all ranks hold the same bits";
        case ir::Order::rank_order: return "rank_order: the left fold over ranks 0..N-1";
    }
    return "?";
}

/// The second part: what was found about a Program, or why there is none.
struct ProgramFindings {
    bool lowered = false;  ///< from an algorithm, with defaults
    std::string refused;   ///< why the algorithm does not lower; then the rest is empty
    std::int64_t instructions = 0, threadblocks = 0, connections = 0;
    std::string modes, slots_as_declared;
    bool reduces = false;
    ir::ProgramReport report;
};

/// Everything the command found about one schedule.
struct Findings {
    std::string name;
    ir::Collective collective;
    std::optional<ir::AlgorithmReport> algorithm;
    ProgramFindings program;

    /// The weaker of the two results.
    ir::Assurance assurance() const {
        ir::Assurance weakest = algorithm ? algorithm->assurance : ir::Assurance::proved;
        if (program.refused.empty()) weakest = std::max(weakest, program.report.assurance);
        return weakest;
    }
    std::vector<std::string> warnings() const {
        std::vector<std::string> all;
        if (algorithm) all = algorithm->warnings;
        all.insert(all.end(), program.report.warnings.begin(), program.report.warnings.end());
        return all;
    }
};

ProgramFindings check(const ir::Program& program, int slots) {
    ProgramFindings found;
    ir::VerifyOptions options;
    options.slots = slots;
    found.report = ir::verify(program, options);
    found.instructions = program.instruction_count();
    found.connections = static_cast<std::int64_t>(program.connections.size());
    for (const auto& rank : program.ranks)
        found.threadblocks += static_cast<std::int64_t>(rank.threadblocks.size());
    std::set<std::string> modes;
    std::set<int> depths;
    for (const auto& connection : program.connections) {
        modes.insert(std::string(ir::to_string(connection.mode)));
        if (connection.mode == ir::Mode::staged) depths.insert(slots > 0 ? slots : connection.slots);
    }
    found.modes = fmt::format("{}", fmt::join(modes, ", "));
    if (!depths.empty())
        found.slots_as_declared = *depths.begin() == *depths.rbegin()
                                      ? fmt::format("{}", *depths.begin())
                                      : fmt::format("{} to {}", *depths.begin(), *depths.rbegin());
    found.reduces =
        ir::reduces(program.collective.kind) || program.collective.kind == ir::CollectiveKind::custom;
    return found;
}

Findings check(const ir::Algorithm& algorithm, int slots) {
    Findings found;
    found.algorithm = ir::verify(algorithm);
    codegen::LowerOptions options;
    options.slots = slots;
    std::optional<ir::Program> program;
    try {
        program = codegen::lower(algorithm, options);
    } catch (const Error& error) {
        // What flat lowering cannot express is no fault of the algorithm; a failed check is.
        if (error.kind() != ErrorKind::input) throw;
        found.program.refused = error.what();
        return found;
    }
    found.program = check(*program, slots);
    found.program.lowered = true;
    return found;
}

Findings check(const ir::Schedule& schedule, int slots) {
    Findings found;
    if (const auto* program = std::get_if<ir::Program>(&schedule))
        found.program = check(*program, slots);
    else
        found = check(std::get<ir::Algorithm>(schedule), slots);
    found.name = ir::name_of(schedule);
    found.collective = ir::collective_of(schedule);
    return found;
}

std::string smallest_words(const ProgramFindings& program) {
    if (program.report.smallest_slots == 0) return "no connection has slots";
    std::string text = fmt::format("{} on all connections", program.report.smallest_slots);
    int low = 0, high = 0;
    for (const int slots : program.report.smallest_per_connection) {
        if (slots == 0) continue;
        low = low == 0 ? slots : std::min(low, slots);
        high = std::max(high, slots);
    }
    if (high > 0)
        text += low == high ? fmt::format("; {} on any one alone", low)
                            : fmt::format("; {} to {} on one alone", low, high);
    return text + fmt::format(" (checked with {})", program.slots_as_declared);
}

std::string result_words(ir::Assurance assurance) {
    switch (assurance) {
        case ir::Assurance::proved: return "proved, in place and out of place";
        case ir::Assurance::hashed: return "hashed: counts and 128-bit sums of contributions agree";
        case ir::Assurance::sampled: return "sampled: part of the chunks was followed";
        case ir::Assurance::not_proven: return "not proven";
    }
    return "?";
}

void print(const Findings& found) {
    std::printf("%s\n", fmt::format("{}: {}\n", found.name.empty() ? "schedule" : found.name,
                                    ir::describe(found.collective))
                            .c_str());
    Table table({"check", "result"});
    if (found.algorithm) {
        table.row({"algorithm", fmt::format("{} steps", found.algorithm->steps)});
        table.row({"result", result_words(found.algorithm->assurance)});
    }
    const ProgramFindings& program = found.program;
    if (!program.refused.empty()) {
        table.row({"program", "not lowered: " + program.refused});
    } else {
        table.row({"program", fmt::format("{}{} instructions, {} threadblocks, {} connections{}",
                                          program.lowered ? "lowered with defaults: " : "",
                                          program.instructions, program.threadblocks, program.connections,
                                          program.modes.empty() ? "" : " (" + program.modes + ")")});
        const bool proven = program.report.assurance != ir::Assurance::not_proven;
        table.row({"program result", result_words(program.report.assurance)});
        table.row({"races, deadlock", proven ? "none" : "not proven"});
        table.row(
            {"order of reduction", program.reduces ? words(program.report.order) : "nothing is reduced"});
        table.row({"smallest slots", smallest_words(program)});
    }
    const auto warnings = found.warnings();
    for (std::size_t i = 0; i < warnings.size(); ++i) table.row({i == 0 ? "warnings" : "", warnings[i]});
    if (warnings.empty()) table.row({"warnings", "none"});
    std::printf("%s\n", table.text().c_str());
}

Json to_json(const Findings& found) {
    Json json;
    json["name"] = found.name;
    json["collective"] = ir::describe(found.collective);
    json["ranks"] = found.collective.ranks;
    json["result"] = ir::to_string(found.assurance());
    if (found.algorithm)
        json["algorithm"] = {{"steps", found.algorithm->steps},
                             {"result", ir::to_string(found.algorithm->assurance)}};
    const ProgramFindings& program = found.program;
    Json part;
    part["lowered_with_defaults"] = program.lowered;
    if (!program.refused.empty()) {
        part["refused"] = program.refused;
    } else {
        part["result"] = ir::to_string(program.report.assurance);
        part["instructions"] = program.instructions;
        part["threadblocks"] = program.threadblocks;
        part["connections"] = program.connections;
        if (program.reduces) part["order"] = ir::to_string(program.report.order);
        part["smallest_slots"] = program.report.smallest_slots;
        part["smallest_per_connection"] = program.report.smallest_per_connection;
    }
    json["program"] = std::move(part);
    json["warnings"] = found.warnings();
    return json;
}

class VerifyCommand final : public Command {
public:
    std::string name() const override { return "verify"; }
    std::string summary() const override {
        return "proves that a schedule is right, free of races and of deadlock";
    }
    std::vector<std::string> examples() const override {
        return {"baton verify examples/algorithms/ring_all_reduce.json --ranks 12",
                "baton verify examples/algorithms/ring_all_reduce.json --all-ranks 1..32"};
    }
    void declare(CLI::App& app) override {
        app.add_option("FILE", file_, "an algorithm or a program, JSON or CBOR; - reads standard input")
            ->required();
        app.add_option("--ranks", ranks_, "number of ranks, instead of the file's");
        app.add_option("--root", root_, "root, instead of the file's");
        app.add_option("--param", params_, "NAME=INTEGER, instead of the file's; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--slots", slots_,
                       "check for deadlock with this many slots on every connection (default: as declared)");
        app.add_option("--all-ranks", all_ranks_, "A..B: check every number of ranks from A to B");
    }
    int run() override {
        if (slots_ && (*slots_ < 1 || *slots_ > kMostSlots))
            throw input_error(fmt::format("{} slots are out of range", *slots_), "--slots",
                              fmt::format("use 1 to {}", kMostSlots));
        options_.params = parse_params(params_);
        options_.ranks = ranks_;
        options_.root = root_;
        if (!all_ranks_.empty()) return run_all();
        const ir::Schedule schedule = ir::load_schedule(file_, options_);
        is_program_ = std::holds_alternative<ir::Program>(schedule);
        const Findings found = check(schedule, slots_.value_or(0));
        if (json) {
            Json out = to_json(found);
            out["next"] = next();
            std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        } else {
            print(found);
            std::printf("next: %s\n", next().c_str());
        }
        return found.assurance() == ir::Assurance::not_proven ? 1 : 0;
    }

private:
    /// One row per number of ranks. A number that the file does not serve is a row, not a failure; a wrong
    /// result is.
    int run_all() {
        if (ranks_) throw input_error("--ranks and --all-ranks exclude each other", "--all-ranks");
        if (file_ == "-")
            throw input_error("standard input can be read once only", "--all-ranks", "use a file");
        const auto [from, to] = parse_count_range(all_ranks_, "--all-ranks", 1, kMostRanks);
        Table table({"ranks", "result", "order of reduction", "slots", "steps", "remark"});
        Json rows = Json::array();
        int good = 0, wrong = 0;
        std::string first_refusal;
        for (int ranks = from; ranks <= to; ++ranks) {
            options_.ranks = ranks;
            const std::string count = std::to_string(ranks);
            std::optional<ir::Schedule> schedule;
            try {
                schedule = ir::load_schedule(file_, options_);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::input) throw;
                if (first_refusal.empty()) first_refusal = error.what();
                table.row({count, "refused", "", "", "", error.message()});
                rows.push_back({{"ranks", ranks}, {"result", "refused"}, {"reason", error.message()}});
                continue;
            }
            try {
                const Findings found = check(*schedule, slots_.value_or(0));
                const ProgramFindings& program = found.program;
                const bool proven = found.assurance() != ir::Assurance::not_proven;
                ++(proven ? good : wrong);
                std::string remark = program.refused.empty() ? "" : "not lowered: " + program.refused;
                if (const auto warnings = found.warnings(); remark.empty() && !warnings.empty())
                    remark = warnings.front();
                table.row({count, std::string(ir::to_string(found.assurance())),
                           program.reduces ? std::string(ir::to_string(program.report.order)) : "",
                           std::to_string(program.report.smallest_slots),
                           found.algorithm ? std::to_string(found.algorithm->steps) : "", remark});
                rows.push_back(to_json(found));
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::check_failed) throw;
                ++wrong;
                table.row({count, "wrong", "", "", "", error.what()});
                rows.push_back({{"ranks", ranks}, {"result", "wrong"}, {"reason", error.what()}});
            }
        }
        if (good + wrong == 0)
            throw input_error("no number of ranks from " + all_ranks_ + " is served", file_,
                              "the first reason: " + first_refusal);
        if (json) {
            std::printf("%s\n", Json{{"proven", good}, {"wrong", wrong}, {"counts", rows}, {"next", next()}}
                                    .dump(2, ' ', false, Json::error_handler_t::replace)
                                    .c_str());
        } else {
            std::printf("%s\nnext: %s\n", table.text().c_str(), next().c_str());
        }
        return wrong == 0 ? 0 : 1;
    }

    std::string next() const {
        if (is_program_) return "baton run " + shell_word(file_);
        std::string line = "baton lower " + shell_word(file_);
        if (ranks_) line += fmt::format(" --ranks {}", *ranks_);
        if (root_) line += fmt::format(" --root {}", *root_);
        for (const auto& param : params_) line += " --param " + shell_word(param);
        return line;
    }

    std::string file_, all_ranks_;
    std::optional<int> ranks_, root_, slots_;
    std::vector<std::string> params_;
    bool is_program_ = false;
    ir::LoadOptions options_;
};

}  // namespace

std::unique_ptr<Command> verify_command() { return std::make_unique<VerifyCommand>(); }

}  // namespace baton::cli
