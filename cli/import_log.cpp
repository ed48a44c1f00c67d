#include <baton/cli/import_log.hpp>

#include <baton/base/files.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/options.hpp>
#include <baton/sim/measurements.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;
using sim::Measurements;

std::string call_text(const char* where, const std::optional<sim::MeasuredCall>& call) {
    if (!call) return "";
    return fmt::format(" {} {:g}us, algbw {:.2f} GB/s, busbw {:.2f} GB/s", where, call->microseconds,
                       call->algbw, call->busbw);
}

std::vector<std::string> log_findings(const Measurements& log) {
    std::vector<std::string> found;
    std::string ranks = log.ranks > 0 ? fmt::format(" of {} ranks", log.ranks) : "";
    if (!log.hosts.empty())
        ranks += fmt::format(" on {} host{}", log.hosts.size(), log.hosts.size() == 1 ? "" : "s");
    if (!log.gpus.empty()) ranks += fmt::format(" ({})", fmt::join(log.gpus, ", "));
    found.push_back((log.kind ? std::string(to_string(*log.kind)) : "a collective that it does not name") +
                    ranks);
    const auto by_size = [](const sim::MeasuredRow& a, const sim::MeasuredRow& b) { return a.size < b.size; };
    const auto [least, most] = std::minmax_element(log.rows.begin(), log.rows.end(), by_size);
    found.push_back(fmt::format("{} row{} of {}{}, {} to {}", log.rows.size(),
                                log.rows.size() == 1 ? "" : "s", most->type,
                                most->op.empty() || most->op == "none" ? "" : ", " + most->op,
                                to_string(Bytes{least->size}), to_string(Bytes{most->size})));
    found.push_back(fmt::format(
        "at {}:{}{}{}", to_string(Bytes{most->size}), call_text("out of place", most->out_of_place),
        most->out_of_place && most->in_place ? ";" : "", call_text("in place", most->in_place)));
    if (log.average_busbw)
        found.push_back(fmt::format("average busbw {:g} GB/s, as the test printed it", *log.average_busbw));
    return found;
}

std::vector<std::string> log_warnings(const Measurements& log) {
    std::vector<std::string> warnings;
    if (!log.broken.empty())
        warnings.push_back(fmt::format("{} row{} that other output broke: left out (first: line {})",
                                       log.broken.size(), log.broken.size() == 1 ? "" : "s",
                                       log.broken.front()));
    if (log.without_size > 0)
        warnings.push_back(
            fmt::format("{} size{} printed as 0: calls of fewer elements than ranks, which move nothing",
                        log.without_size, log.without_size == 1 ? " is" : "s are"));
    if (!log.kind) warnings.push_back("neither a name nor busbw/algbw says which collective this is");
    warnings.insert(warnings.end(), log.warnings.begin(), log.warnings.end());
    return warnings;
}

}  // namespace

int import_log(const LogImport& request) {
    const Measurements log = sim::read_measurements(request.text, request.path);
    const std::vector<std::string> found = log_findings(log), warnings = log_warnings(log);
    std::vector<std::string> assumed;
    if (log.kind) assumed.push_back(fmt::format("the collective: {}", log.why_kind));
    if (!request.output.empty()) write_file(request.output, sim::measurements_csv(log));
    const std::string next = fmt::format("baton sim TOPO{} --measured {}",
                                         log.kind && *log.kind != ir::CollectiveKind::all_reduce
                                             ? " --collective " + std::string(to_string(*log.kind))
                                             : "",
                                         shell_word(request.path));
    if (request.json) {
        Json out = {{"file", request.path}, {"format", kLogFormat},     {"recognized", request.recognized},
                    {"found", found},       {"assumed", assumed},       {"warnings", warnings},
                    {"ranks", log.ranks},   {"hosts", log.hosts.size()}};
        if (log.kind) out["collective"] = to_string(*log.kind);
        out["broken_rows"] = log.broken.size();
        out["rows"] = Json::array();
        const auto call = [](const std::optional<sim::MeasuredCall>& measured) {
            if (!measured) return Json();
            Json text = {{"microseconds", measured->microseconds},
                         {"algbw", measured->algbw},
                         {"busbw", measured->busbw}};
            if (measured->wrong) text["wrong"] = *measured->wrong;
            return text;
        };
        for (const sim::MeasuredRow& row : log.rows)
            out["rows"].push_back({{"size", row.size},
                                   {"count", row.count},
                                   {"type", row.type},
                                   {"op", row.op},
                                   {"root", row.root},
                                   {"out_of_place", call(row.out_of_place)},
                                   {"in_place", call(row.in_place)}});
        if (!request.output.empty()) out["output"] = request.output;
        out["next"] = next;
        std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        return 0;
    }
    std::string text = fmt::format("{}: {}{}\n", request.path, kLogFormat,
                                   request.recognized ? " (recognized from its content)" : "");
    for (const std::string& line : found) text += paragraph("found: ", line);
    for (const std::string& line : assumed) text += paragraph("assumed: ", line);
    for (const std::string& line : warnings) text += paragraph("warning: ", line);
    if (!request.output.empty()) text += "\nwritten: " + request.output + "\n";
    text += "next: " + next + "\n";
    std::fputs(text.c_str(), stdout);
    return 0;
}

}  // namespace baton::cli
