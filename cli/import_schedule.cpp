#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/import_schedule.hpp>
#include <baton/cli/options.hpp>
#include <baton/codegen/interchange/lift.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What verification says: a line, and whether the file is right.
struct Verdict {
    bool right = true;
    std::string text;
    ir::ProgramReport report;
};

Verdict judge(const ir::Program& program) {
    Verdict verdict;
    try {
        verdict.report = ir::verify(program);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed) throw;
        return {false, error.what(), {}};
    }
    verdict.right = verdict.report.assurance != ir::Assurance::not_proven;
    verdict.text = verdict.right
                       ? fmt::format("{}: right, no race, no deadlock; {} slot{} a connection suffice",
                                     to_string(verdict.report.assurance), verdict.report.smallest_slots,
                                     verdict.report.smallest_slots == 1 ? "" : "s")
                       : "not proven";
    for (const std::string& warning : verdict.report.warnings) verdict.text += "; " + warning;
    return verdict;
}

/// The algorithm of a right program, or why there is none.
struct Lifted {
    std::optional<ir::Algorithm> algorithm;
    std::string text;
};

Lifted lift(const ir::Program& program, const Verdict& verdict) {
    Lifted lifted;
    if (!verdict.right) return {std::nullopt, "no: the program is not right"};
    try {
        lifted.algorithm = codegen::lift(program);
        lifted.text = fmt::format("an algorithm of {} steps", lifted.algorithm->step_count());
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        lifted.text = "no: " + error.message();
    }
    return lifted;
}

}  // namespace

const codegen::ScheduleFormat* schedule_format(std::string_view name) {
    for (const codegen::ScheduleFormat& format : codegen::schedule_formats())
        if (name == format.name) return &format;
    return nullptr;
}

const codegen::ScheduleFormat* recognize_schedule(std::string_view text) {
    for (const codegen::ScheduleFormat& format : codegen::schedule_formats())
        if (format.recognizes(text)) return &format;
    return nullptr;
}

int import_schedule(const ScheduleImport& request) {
    const codegen::ImportedProgram imported = request.format->read(request.text, request.path);
    const Verdict verdict = judge(imported.program);
    const Lifted lifted = lift(imported.program, verdict);
    const bool writes_algorithm = !request.algorithm.empty() && lifted.algorithm;
    if (writes_algorithm) {
        const bool binary = request.algorithm.ends_with(".cbor");
        write_file(request.algorithm,
                   binary ? ir::to_cbor(*lifted.algorithm) : ir::to_json(*lifted.algorithm));
    }
    const int code = verdict.right && (request.algorithm.empty() || lifted.algorithm) ? 0 : 1;
    if (!request.output.empty()) {
        const bool binary = request.output.ends_with(".cbor");
        write_file(request.output, binary ? ir::to_cbor(imported.program) : ir::to_json(imported.program));
    }
    std::string next =
        fmt::format("baton import {} {} -o program.json", request.format->name, shell_word(request.path));
    if (!request.output.empty()) {
        next = verdict.right ? "baton run " + shell_word(request.output)
                             : "baton verify " + shell_word(request.output);
        if (verdict.right && imported.program.in_place.value_or(false)) next += " --in-place";
        // No code is generated for switches, nor for what writes its input.
        bool switches = false;
        for (const ir::RankProgram& rank : imported.program.ranks)
            for (const ir::Threadblock& block : rank.threadblocks)
                for (const ir::Operand& operand : block.operands)
                    switches = switches || operand.kind == ir::OperandKind::switch_group;
        if (verdict.right && (switches || imported.program.clobbers_input)) next += " --backend interpreter";
    }
    if (request.json) {
        Json out = {{"file", request.path},
                    {"format", request.format->name},
                    {"recognized", request.recognized},
                    {"found", imported.found},
                    {"assumed", imported.assumptions},
                    {"warnings", imported.warnings},
                    {"ranks", imported.program.collective.ranks},
                    {"instructions", imported.program.instruction_count()},
                    {"right", verdict.right},
                    {"verified", verdict.text},
                    {"lifted", lifted.text}};
        if (writes_algorithm) out["algorithm"] = request.algorithm;
        if (request.output.empty())
            out["program"] = Json::parse(ir::to_json(imported.program));
        else
            out["output"] = request.output;
        out["next"] = next;
        std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        return code;
    }
    std::string text = fmt::format("{}: {}{}\n", request.path, request.format->name,
                                   request.recognized ? " (recognized from its content)" : "");
    for (const std::string& line : imported.found) text += paragraph("found: ", line);
    for (const std::string& line : imported.assumptions) text += paragraph("assumed: ", line);
    for (const std::string& line : imported.warnings) text += paragraph("warning: ", line);
    text += paragraph(verdict.right ? "verified: " : "wrong: ", verdict.text);
    if (verdict.right || !request.algorithm.empty()) text += paragraph("lifted: ", lifted.text);
    if (!request.output.empty()) text += "\nwritten: " + request.output + "\n";
    if (writes_algorithm) text += "written: " + request.algorithm + "\n";
    text += "next: " + next + "\n";
    std::fputs(text.c_str(), stdout);
    return code;
}

}  // namespace baton::cli
