// The table of what `--algorithm auto` reaches: per machine, collective and size the schedule that won, its
// simulated time, the bound, the gap, the depth, and what it cost to find.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longest_chain.hpp"

namespace baton::bench {
namespace {

using Kind = ir::CollectiveKind;

constexpr Kind kKinds[] = {Kind::all_gather, Kind::reduce_scatter, Kind::broadcast, Kind::reduce,
                           Kind::all_reduce, Kind::all_to_all,     Kind::scatter,   Kind::gather};

std::vector<std::string> machines() {
    std::vector<std::string> all;
    for (const char* preset : {"dgx1_v100", "dgx_a100", "dgx_h100", "mi300x", "pcie_8gpu", "gb200_nvl72",
                               "paper/a100-oddeven", "paper/h100-flat", "paper/h100-rail", "paper/mi250"}) {
        for (const int hosts : {1, 2, 8}) all.push_back(fmt::format("{}:hosts={}", preset, hosts));
    }
    for (const char* one : {"paper/dgx1-25", "paper/torus-50", "tpu_torus_2d", "tpu_torus_3d", "torus:8x8",
                            "torus:4x4x4", "mesh:8x8", "dragonfly:9"})
        all.emplace_back(one);
    return all;
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// The worst gaps at the largest size, per kind.
struct Summary {
    int cases = 0, within_1 = 0, within_5 = 0;
    double worst = 0;
    std::string worst_machine;
};

class Table {
public:
    void add(const std::string& machine, Kind kind) {
        std::fprintf(stderr, "%s %s\n", machine.c_str(), std::string(ir::to_string(kind)).c_str());
        try {
            rows(machine, kind);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            line(
                fmt::format("| {} | {} | | {} | | | | | | |", machine, ir::to_string(kind), error.message()));
        }
    }
    std::string text() const {
        std::string all =
            "| machine | collective | size | schedule | tiles | time | bound | gap | depth | CPU s |\n"
            "|---|---|---|---|---|---|---|---|---|---|\n" +
            lines_ + "\n| collective | cases at 1 GiB | within 1% | within 5% | worst gap | on |\n" +
            "|---|---|---|---|---|---|\n";
        for (const auto& [kind, sum] : summaries_) {
            all += fmt::format("| {} | {} | {} | {} | {:.1f}% | {} |\n", ir::to_string(kind), sum.cases,
                               sum.within_1, sum.within_5, 100 * sum.worst, sum.worst_machine);
        }
        return all;
    }

private:
    void line(const std::string& text) { lines_ += text + "\n"; }

    void rows(const std::string& machine, Kind kind) {
        const double start = cpu_seconds();
        const topologies::Topology topology = topologies::load(machine);
        ir::Collective collective;
        collective.kind = kind;
        collective.ranks = topology.rank_count();
        synth::SynthesisOptions options;
        options.sizes = {{1 << 10}, {1 << 20}, {1 << 30}};
        const synth::Synthesis made = synth::synthesize(topology, collective, options);
        const double spent = cpu_seconds() - start;
        const std::optional<double> trees = synth::tree_optimum_rate(topology, collective);
        for (const synth::Choice& choice : made.choices) {
            const synth::Timing& best = choice.best();
            const synth::Candidate& candidate = made.candidates[static_cast<std::size_t>(best.candidate)];
            // Trees cannot be faster than their optimum, which stands in place of the bound then.
            double limit = choice.bound.seconds();
            if (trees) limit = std::max(limit, static_cast<double>(choice.size.count) / *trees);
            const bool of_trees = limit > choice.bound.seconds();
            const double gap = limit > 0 ? best.time.seconds() / limit - 1 : 0;
            line(fmt::format("| {} | {} | {} | {} | {} | {} | {}{} | {:.1f}% | {} | {} |", machine,
                             ir::to_string(kind), to_string(choice.size), candidate.label(), best.tiles,
                             to_string(best.time), to_string(Time{static_cast<std::int64_t>(limit * 1e12)}),
                             of_trees ? " (trees)" : "", 100 * gap, longest_chain(*candidate.algorithm),
                             &choice == made.choices.data() ? fmt::format("{:.2f}", spent) : ""));
            if (&choice == &made.choices.back()) sum_up(kind, machine, gap);
        }
    }

    void sum_up(Kind kind, const std::string& machine, double gap) {
        Summary& sum = summaries_[kind];
        ++sum.cases;
        if (gap <= 0.01) ++sum.within_1;
        if (gap <= 0.05) ++sum.within_5;
        if (gap > sum.worst) sum.worst = gap, sum.worst_machine = machine;
    }

    std::string lines_;
    std::map<Kind, Summary> summaries_;
};

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

int run(int count, char** words) {
    std::vector<std::string> on = machines();
    std::vector<Kind> kinds(std::begin(kKinds), std::end(kKinds));
    std::string output;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string option = words[i], value = words[i + 1];
        if (option == "--machines") {
            on = split(value);
        } else if (option == "--collectives") {
            kinds.clear();
            for (const std::string& name : split(value)) kinds.push_back(ir::parse_collective_kind(name));
        } else if (option == "--output") {
            output = value;
        } else {
            count = 0;
        }
    }
    if (count % 2 == 0) {
        std::fputs("usage: baton_quality [--machines 'A;B'] [--collectives 'A;B'] [--output FILE]\n", stderr);
        return 2;
    }
    Table table;
    for (const std::string& machine : on) {
        for (const Kind kind : kinds) table.add(machine, kind);
        if (!output.empty()) write_file(output, table.text());
    }
    if (output.empty()) std::fputs(table.text().c_str(), stdout);
    return 0;
}

}  // namespace
}  // namespace baton::bench

int main(int count, char** words) {
    try {
        return baton::bench::run(count, words);
    } catch (const baton::Error& error) {
        std::fprintf(stderr, "baton_quality: %s\n", error.what());
        return 2;
    }
}
