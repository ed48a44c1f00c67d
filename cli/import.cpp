// baton import: machines and schedules from the files of other tools.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/import_log.hpp>
#include <baton/cli/import_schedule.hpp>
#include <baton/cli/options.hpp>
#include <baton/sim/measurements.hpp>
#include <baton/topologies/import/assemble.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/inspect.hpp>
#include <baton/topologies/load.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;
using topologies::Imported;
using topologies::Importer;
using topologies::Topology;

/// One file and what was made of it.
struct ReadFile {
    std::string path;
    const Importer* format = nullptr;
    bool recognized = false;  ///< the format was found from the content
    Imported imported;
};

void print_list(const char* label, const std::vector<std::string>& lines) {
    for (const std::string& line : lines) std::fputs(paragraph(label, line).c_str(), stdout);
}

Json file_json(const ReadFile& file) {
    return {{"file", file.path},
            {"format", file.format->name},
            {"recognized", file.recognized},
            {"found", file.imported.found},
            {"assumed", file.imported.assumptions},
            {"warnings", file.imported.warnings}};
}

class ImportCommand final : public Command {
public:
    std::string name() const override { return "import"; }
    std::string summary() const override { return "reads machines and schedules from files of other tools"; }
    std::vector<std::string> examples() const override {
        return {"echo 'gpu0 gpu1 50GB/s 1us' | baton import - --hosts 4 --fabric ndr-rail -o machine.json"};
    }

    std::string help_notes() const override {
        std::string lines = "Formats:\n";
        for (const Importer& format : topologies::importers())
            lines += fmt::format("  {:<14} {}\n", format.name, format.summary);
        lines += "Formats of schedules, which become programs for verify, sim, codegen and run:\n";
        for (const codegen::ScheduleFormat& format : codegen::schedule_formats())
            lines += fmt::format("  {:<14} {}\n", format.name, format.summary);
        lines += "Format of measurements, which are compared with the model by sim --measured:\n";
        lines +=
            fmt::format("  {:<14} {}\n", kLogFormat, "logs of nccl-tests and rccl-tests (-o writes CSV)");
        return lines + "\n";
    }

    void declare(CLI::App& app) override {
        app.add_option("FORMAT_AND_FILES", words_,
                       "a format and files of it, one a host; without a format it is recognized from the "
                       "content; - reads standard input")
            ->required();
        app.add_option("-o,--output", output_, "topology, program or table to write");
        app.add_option("--algorithm", algorithm_,
                       "schedules: file for the algorithm that the program is lifted to");
        app.add_option("--hosts", hosts_, "the hosts of the files, so many times over")
            ->check(CLI::Range(std::int64_t{1}, topologies::kMaxNodes));
        app.add_option("--fabric", fabric_,
                       "joins several hosts: TECHNOLOGY-SHAPE[,property=value...], as ndr-rail");
        app.add_option("--nvlink-status", nvlink_status_,
                       "text of `nvidia-smi nvlink -s` of the same host: rates of its NVLinks");
        app.add_option("--arch", arch_,
                       "architecture of the GPUs where the file does not say: sm_90, gfx942, ...");
    }

    int run() override {
        try {
            return import_files();
        } catch (const Error& error) {
            const std::string other = error.kind() == ErrorKind::input ? other_format() : "";
            if (other.empty() || std::string(error.what()).find(other) != std::string::npos) throw;
            throw Error(error.kind(), error.message(), error.where(),
                        fmt::format("it looks like a file of {}: baton import {} FILE", other, other));
        }
    }

private:
    int import_files() {
        check_format();
        if (const auto schedule = find_schedule()) return import_schedule(*schedule);
        if (const auto log = find_log()) return import_log(*log);
        if (!algorithm_.empty())
            throw input_error("--algorithm is for schedules, and this is a machine", words_.back());
        const std::vector<ReadFile> files = read_files();
        std::vector<Topology> hosts;
        for (const ReadFile& file : files) hosts.push_back(file.imported.topology);
        const Topology machine = topologies::assemble_hosts(hosts, static_cast<int>(hosts_), fabric_);
        const std::string text = topologies::to_json(machine);
        if (!output_.empty()) write_file(output_, text);
        if (json) {
            report_json(files, machine, text);
            return 0;
        }
        for (const ReadFile& file : files) report(file);
        std::fputs(fmt::format("\n{}: {} rank{}, {} nodes, {} directed links, hash {}\n",
                               output_.empty() ? machine.name : output_, machine.rank_count(),
                               machine.rank_count() == 1 ? "" : "s", machine.nodes.size(),
                               machine.links.size(), machine.hash())
                       .c_str(),
                   stdout);
        print_list("problem: ", topologies::problems(machine));
        const std::string next = output_.empty() ? fmt::format("baton import{} -o machine.json", as_typed())
                                                 : fmt::format("baton topo show {}", shell_word(output_));
        std::fputs(fmt::format("next: {}\n", next).c_str(), stdout);
        return 0;
    }

    /// The format of another kind (machine, schedule, measurements) that the content is of when a format was
    /// named; empty when there is none. Machines are told from machines where they are read.
    std::string other_format() const {
        std::error_code failed;
        if (words_.size() != 2 || !std::filesystem::is_regular_file(words_.back(), failed)) return {};
        const std::string text = read_file(words_.back());
        for (const Importer& format : topologies::importers())
            if (words_.front() == format.name && format.recognizes(text)) return {};
        std::string found;
        if (const auto* schedule = recognize_schedule(text))
            found = schedule->name;
        else if (sim::recognizes_measurements(text))
            found = kLogFormat;
        else
            for (const Importer& format : topologies::importers())
                if (found.empty() && format.recognizes(text)) found = format.name;
        return found == words_.front() ? "" : found;
    }

    /// A first word that is neither a format nor a file is a format misspelled.
    void check_format() const {
        std::error_code failed;
        const std::string& word = words_.front();
        if (words_.size() < 2 || word == kLogFormat || schedule_format(word) != nullptr ||
            word.find_first_of("./") != std::string::npos || std::filesystem::exists(word, failed))
            return;
        static_cast<void>(topologies::importer(word));
    }

    /// The file as a schedule, when it is one file and of a format of schedules.
    std::optional<ScheduleImport> find_schedule() {
        const bool named = words_.size() == 2;
        if (words_.size() != 1 && !named) return std::nullopt;
        ScheduleImport schedule;
        schedule.path = words_.back();
        if (named) {
            schedule.format = schedule_format(words_.front());
            if (schedule.format == nullptr) return std::nullopt;
            schedule.text = read_file(schedule.path);
        } else {
            first_text_ = read_file(schedule.path);
            schedule.format = recognize_schedule(*first_text_);
            if (schedule.format == nullptr) return std::nullopt;
            schedule.text = *first_text_;
            schedule.recognized = true;
        }
        schedule.output = output_;
        schedule.algorithm = algorithm_;
        schedule.json = json;
        return schedule;
    }

    /// The file as a log of measurements, when it is one file and such a log, or named so.
    std::optional<LogImport> find_log() {
        const bool named = words_.size() == 2 && words_.front() == kLogFormat;
        if (words_.size() != 1 && !named) return std::nullopt;
        LogImport log{words_.back(), {}, !named, output_, json};
        if (named) {
            log.text = read_file(log.path);
            return log;
        }
        if (!first_text_ || !sim::recognizes_measurements(*first_text_)) return std::nullopt;
        log.text = *first_text_;
        return log;
    }

    std::vector<ReadFile> read_files() const {
        std::vector<std::string> paths = words_;
        const Importer* given = nullptr;
        if (paths.size() > 1) {
            for (const Importer& format : topologies::importers()) {
                if (paths.front() == format.name) given = &format;
            }
            if (given) paths.erase(paths.begin());
        }
        topologies::ImportOptions options;
        options.arch = arch_;
        const std::string status = nvlink_status_.empty() ? "" : read_file(nvlink_status_);
        options.nvlink_status = {status, nvlink_status_};
        std::vector<ReadFile> files;
        for (const std::string& path : paths) {
            const std::string text = first_text_ ? *first_text_ : read_file(path);
            const topologies::ImportSource source{text, path};
            ReadFile file{path, given ? given : &topologies::recognize(source), given == nullptr, {}};
            file.imported =
                given ? topologies::read_named(*given, source, options) : file.format->read(source, options);
            files.push_back(std::move(file));
        }
        return files;
    }

    void report(const ReadFile& file) const {
        std::fputs(fmt::format("{}: {}{}\n", file.path, file.format->name,
                               file.recognized ? " (recognized from its content)" : "")
                       .c_str(),
                   stdout);
        print_list("found: ", file.imported.found);
        print_list("assumed: ", file.imported.assumptions);
        print_list("warning: ", file.imported.warnings);
    }

    void report_json(const std::vector<ReadFile>& files, const Topology& machine,
                     const std::string& text) const {
        Json report = {{"files", Json::array()},        {"ranks", machine.rank_count()},
                       {"nodes", machine.nodes.size()}, {"links", machine.links.size()},
                       {"hash", machine.hash()},        {"problems", topologies::problems(machine)}};
        for (const ReadFile& file : files) report["files"].push_back(file_json(file));
        if (output_.empty())
            report["topology"] = Json::parse(text);
        else
            report["output"] = output_;
        std::fputs((report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
    }

    std::string as_typed() const {
        std::string typed;
        for (const std::string& word : words_) typed += " " + shell_word(word);
        if (hosts_ > 1) typed += fmt::format(" --hosts {}", hosts_);
        if (!fabric_.empty()) typed += " --fabric " + shell_word(fabric_);
        if (!nvlink_status_.empty()) typed += " --nvlink-status " + shell_word(nvlink_status_);
        if (!arch_.empty()) typed += " --arch " + shell_word(arch_);
        return typed;
    }

    std::vector<std::string> words_;
    std::string output_, algorithm_, fabric_, nvlink_status_, arch_;
    std::int64_t hosts_ = 1;
    std::optional<std::string> first_text_;  ///< of the only file, when it was read to recognize it
};

}  // namespace

std::unique_ptr<Command> import_command() { return std::make_unique<ImportCommand>(); }

}  // namespace baton::cli
