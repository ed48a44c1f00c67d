// The table of what `--algorithm auto` reaches: per machine, collective and size the schedule that won, its
// simulated time, the bound, the gap, the depth, and what it cost to find.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/synth/tree_rate.hpp>
#include <baton/topologies/load.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "longest_chain.hpp"
#include "quality_table.hpp"

namespace baton::bench {
namespace {

using Kind = ir::CollectiveKind;

constexpr Kind kKinds[] = {Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce,
                           Kind::all_reduce, Kind::all_to_all,     Kind::scatter,   Kind::gather};

constexpr const char* kUsage =
    "usage: baton_quality [--machines 'A;B'] [--collectives 'A;B'] [--output FILE] [--threads N]\n"
    "                     [--limit SECONDS] [--machine-limit SECONDS]\n"
    "Prints what --algorithm auto reaches at 1 KiB, 1 MiB and 1 GiB: one table per machine as it is done, "
    "then\n"
    "a matrix of all machines and a summary.\n"
    "  --output FILE    tables go there; what stands there already is not run again, so that a run can be\n"
    "                   ended and begun again, and a machine run anew once its rows are removed\n"
    "  --limit          CPU seconds for one collective on one machine (300): the best by then is printed\n"
    "  --machine-limit  CPU seconds for one machine (900): collectives that are left are not run\n"
    "Whatever a limit cut is named at the end.\n";

// Small machines first: a run that is ended early has most rows.
std::vector<std::string> machines() {
    std::vector<std::string> all;
    for (const int hosts : {1, 2, 8}) {
        for (const char* preset : {"dgx1_v100", "dgx_a100", "dgx_h100", "mi300x", "pcie_8gpu",
                                   "paper/a100-oddeven", "paper/h100-flat", "paper/h100-rail", "paper/mi250"})
            all.push_back(fmt::format("{}:hosts={}", preset, hosts));
        if (hosts > 1) continue;
        for (const char* one : {"paper/dgx1-25", "paper/torus-50", "tpu_torus_2d", "tpu_torus_3d",
                                "torus:8x8", "torus:4x4x4", "mesh:8x8", "dragonfly:9"})
            all.emplace_back(one);
    }
    for (const int hosts : {1, 2, 8}) all.push_back(fmt::format("gb200_nvl72:hosts={}", hosts));
    return all;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Sets a flag when this process has used so much CPU time more.
class CpuLimit {
public:
    explicit CpuLimit(double seconds)
        : end_(cpu_seconds() + seconds), thread_([this] {
              while (!done_) {
                  if (cpu_seconds() >= end_) over_ = true;
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
              }
          }) {}
    ~CpuLimit() {
        done_ = true;
        thread_.join();
    }
    CpuLimit(const CpuLimit&) = delete;
    CpuLimit& operator=(const CpuLimit&) = delete;
    const std::atomic<bool>& over() const { return over_; }

private:
    double end_;
    std::atomic<bool> over_ = false, done_ = false;
    std::thread thread_;
};

struct RunOptions {
    std::vector<std::string> machines = bench::machines();
    std::vector<Kind> kinds{std::begin(kKinds), std::end(kKinds)};
    std::string output;
    double limit = 300, machine_limit = 900;
    int threads = 1;
};

// One row per size.
void run_case(const std::string& machine, Kind kind, double limit, int threads, QualityTable& table) {
    QualityRow row;
    row.machine = machine;
    row.collective = ir::to_string(kind);
    const double start = cpu_seconds();
    const CpuLimit watch(limit);
    try {
        const topologies::Topology topology = topologies::load(machine);
        ir::Collective collective;
        collective.kind = kind;
        collective.ranks = topology.rank_count();
        synth::SynthesisOptions options;
        options.sizes = {{1 << 10}, {1 << 20}, {1 << 30}};
        options.threads = threads;
        options.stop = options.stop.with_flag(watch.over());
        const synth::Synthesis made = synth::synthesize(topology, collective, options);
        const double spent = cpu_seconds() - start;
        row.cpu = made.stopped_early ? fmt::format("cut at {:.0f}", limit) : fmt::format("{:.2f}", spent);
        // What schedules on end points can reach where trees are the limit, not cuts.
        const std::optional<synth::TreeRate> trees = synth::tree_rate(topology, collective);
        for (const synth::Choice& choice : made.choices) {
            const synth::Timing& best = choice.best();
            const synth::Candidate& candidate = made.candidates[static_cast<std::size_t>(best.candidate)];
            const Time against = synth::yardstick(choice.bound, trees, *candidate.algorithm, choice.size);
            row.size = to_string(choice.size);
            row.schedule = candidate.label();
            row.tiles = std::to_string(best.tiles);
            row.time = to_string(best.time);
            row.bound = to_string(against);
            if (against > choice.bound) row.bound += fmt::format(" (trees; {})", to_string(choice.bound));
            row.gap = against.picoseconds > 0 ? best.time.seconds() / against.seconds() - 1 : 0;
            row.depth = std::to_string(longest_chain(*candidate.algorithm));
            table.add(row);
            row.cpu.clear();
        }
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input && !watch.over()) throw;
        row.schedule = watch.over() ? "not run to an end" : error.message();
        if (watch.over()) row.cpu = fmt::format("cut at {:.0f}", limit);
        table.add(row);
    }
}

int run_all(const RunOptions& options) {
    QualityTable table;
    if (!options.output.empty() && std::filesystem::exists(options.output))
        table = QualityTable(read_file(options.output));
    for (const std::string& machine : options.machines) {
        const double start = cpu_seconds();
        bool ran = false;
        for (const Kind kind : options.kinds) {
            const std::string name(ir::to_string(kind));
            if (table.has(machine, name)) continue;
            const double left = options.machine_limit - (cpu_seconds() - start);
            std::fprintf(stderr, "%s %s\n", machine.c_str(), name.c_str());
            ran = true;
            if (left > 0) {
                run_case(machine, kind, std::min(options.limit, left), options.threads, table);
            } else {
                QualityRow row;
                row.machine = machine;
                row.collective = name;
                row.schedule =
                    fmt::format("not run: over {:.0f} CPU s on this machine", options.machine_limit);
                table.add(row);
            }
            if (!options.output.empty()) write_file(options.output, table.text());
        }
        if (ran) std::fputs(table.machine_text(machine).c_str(), stdout);
        std::fflush(stdout);
    }
    std::fputs(("At 1 GiB:\n\n" + table.matrix() + "\n" + table.summary()).c_str(), stdout);
    const std::string cut = table.cut();
    if (!cut.empty()) std::fputs(("\nCut by a limit:\n" + cut).c_str(), stdout);
    return 0;
}

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ';')
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

// False for words that are no options.
bool parse(int count, char** words, RunOptions& options) {
    if (count % 2 == 0) return false;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string option = words[i], value = words[i + 1];
        if (option == "--machines") {
            options.machines = split(value);
        } else if (option == "--collectives") {
            options.kinds.clear();
            for (const std::string& name : split(value))
                options.kinds.push_back(ir::parse_collective_kind(name));
        } else if (option == "--output") {
            options.output = value;
        } else if (option == "--limit") {
            options.limit = std::strtod(value.c_str(), nullptr);
        } else if (option == "--machine-limit") {
            options.machine_limit = std::strtod(value.c_str(), nullptr);
        } else if (option == "--threads") {
            options.threads = std::max(1, std::atoi(value.c_str()));
        } else {
            return false;
        }
    }
    return true;
}

}  // namespace
}  // namespace baton::bench

int main(int count, char** words) {
    try {
        baton::bench::RunOptions options;
        if (count == 2 && std::string(words[1]) == "--help") {
            std::fputs(baton::bench::kUsage, stdout);
            return 0;
        }
        if (baton::bench::parse(count, words, options)) return baton::bench::run_all(options);
        std::fputs(baton::bench::kUsage, stderr);
        return 2;
    } catch (const baton::Error& error) {
        std::fprintf(stderr, "baton_quality: %s\n", error.what());
        return 2;
    }
}
