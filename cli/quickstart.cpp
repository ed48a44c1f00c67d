// baton quickstart: the main job once, on an embedded machine, with what to try next.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/progress.hpp>
#include <baton/cli/chart.hpp>
#include <baton/cli/command.hpp>
#include <baton/codegen/emit.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/module.hpp>
#include <baton/runtime/trial.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/topologies/load.hpp>

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace baton::cli {
namespace {

constexpr const char* kMachine = "dgx_h100:hosts=2";
constexpr const char* kSizes = "1KiB..1GiB*32";
constexpr const char* kChartSizes = "1KiB..1GiB*4";
constexpr std::int64_t kRunSize = 1 << 20;

/// What the generated code did on the CPU.
struct RunFindings {
    bool right = false;
    std::string difference;
    double milliseconds = 0;
};

struct Findings {
    topologies::Topology topology;
    synth::Synthesis synthesis;
    const synth::Candidate* chosen = nullptr;  ///< for kRunSize
    ir::Program program;
    ir::ProgramReport proof;
    codegen::Module module;
    RunFindings run;

    std::vector<Time> ring;  ///< of one ring or several at once, the better, at each size
};

RunFindings run_on_cpu(const codegen::Module& emitted, const ir::Collective& collective) {
    runtime::CommunicatorOptions options;
    options.ranks = collective.ranks;
    runtime::Communicator communicator(runtime::cpu_backend(), options);
    runtime::Plan plan;
    plan.module = runtime::Module::from_source(emitted.manifest, emitted.source);
    runtime::CallArguments call;
    call.count = kRunSize / 4;
    runtime::Trial trial(collective, call);
    communicator.run(plan, call, trial.buffers());  // compiles, and warms up
    trial.reset();
    RunFindings found;
    const auto start = std::chrono::steady_clock::now();
    communicator.run(plan, call, trial.buffers());
    found.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const std::optional<std::string> wrong = trial.wrong();
    found.right = !wrong;
    found.difference = wrong.value_or("");
    return found;
}

Findings work(const char* sizes) {
    Progress progress("quickstart");
    Findings found;
    progress.update("reading the machine");
    found.topology = topologies::load(kMachine);
    ir::Collective collective;
    collective.kind = ir::CollectiveKind::all_reduce;
    collective.ranks = found.topology.rank_count();
    synth::SynthesisOptions options;
    options.sizes = parse_sizes(sizes);
    options.progress = [&](const std::string& stage, double fraction) { progress.update(stage, fraction); };
    found.synthesis = synth::synthesize(found.topology, collective, options);
    for (const synth::Choice& choice : found.synthesis.choices) {
        if (choice.size.count != kRunSize) continue;
        found.chosen = &found.synthesis.candidates[static_cast<std::size_t>(choice.best().candidate)];
    }
    if (!found.chosen) throw internal_error("no schedule was chosen for the size that is run");
    // What the field would run: one ring, or as many at once as the links hold.
    for (const char* name : {"ring", "multi_ring"}) {
        options.algorithm = name;
        const synth::Synthesis rings = synth::synthesize(found.topology, collective, options);
        found.ring.resize(std::min(rings.choices.size(), found.synthesis.choices.size()), Time::max());
        for (std::size_t i = 0; i < found.ring.size(); ++i)
            found.ring[i] = std::min(found.ring[i], rings.choices[i].best().time);
    }
    if (found.ring.size() != found.synthesis.choices.size())
        throw internal_error("the simulation of the quickstart ran out of time");
    progress.update("lowering and verifying");
    found.program = codegen::lower(*found.chosen->algorithm);
    found.proof = ir::verify(found.program);
    progress.update("generating");
    found.module = codegen::emit(found.program, {}, &found.proof);
    progress.update("compiling and running");
    found.run = run_on_cpu(found.module, found.program.collective);
    return found;
}

std::string table(const Findings& found) {
    Table rows({"size", "rings", "Baton", "schedule", "tiles", "bound", "rings / Baton"});
    for (std::size_t i = 0; i < found.ring.size(); ++i) {
        const synth::Choice& choice = found.synthesis.choices[i];
        const synth::Timing& best = choice.best();
        rows.row({to_string(choice.size), to_string(found.ring[i]), to_string(best.time),
                  found.synthesis.candidates[static_cast<std::size_t>(best.candidate)].label(),
                  fmt::format("{}", best.tiles), to_string(choice.bound),
                  fmt::format("{:.2f}", found.ring[i].seconds() / best.time.seconds())});
    }
    return rows.text();
}

/// What a reader must know to type `baton`: where it is, unless a search of PATH finds it.
std::string way_to_baton() {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (access((folder + "/baton").c_str(), X_OK) == 0) return "";
    }
    std::error_code ignored;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    if (ignored) return "";
    const std::string near = self.lexically_proximate(std::filesystem::current_path(ignored)).string();
    return fmt::format(" (baton is {})", near.starts_with("..") ? self.string() : near);
}

void print(const Findings& found) {
    const synth::Bound& bound = found.synthesis.bound;
    fmt::print("all_reduce on two DGX H100 hosts: {} ranks, {} links ({})\n\n", found.topology.rank_count(),
               found.topology.links.size(), kMachine);
    fmt::print("The lower bound, which no method beats:\n  {}\n  {}\n\n",
               synth::latency_in_words(found.topology, bound),
               synth::bandwidth_in_words(found.topology, bound));
    fmt::print("Simulated with max-min fair sharing of every link (docs/models.md):\n{}\n", table(found));
    fmt::print("Verified: {}, {} steps; result {}, no race, no deadlock, order {}, smallest slots {}\n",
               found.chosen->label(), found.chosen->steps, ir::to_string(found.proof.assurance),
               ir::to_string(found.proof.order), found.proof.smallest_slots);
    fmt::print(
        "Generated: {} lines of source for CUDA and C++, {} threadblocks, hash {}\n",
        std::count(found.module.source.begin(), found.module.source.end(), '\n'),
        [&] {
            std::size_t blocks = 0;
            for (const auto& rank : found.program.ranks) blocks += rank.threadblocks.size();
            return blocks;
        }(),
        found.module.manifest.hash.substr(0, 12));
    if (found.run.right) {
        fmt::print(
            "Ran on the CPU: {} ranks, {} of f32 each, sum: equal to the reference bit for bit, {:.3g} ms\n",
            found.program.collective.ranks, to_string(Bytes{kRunSize}), found.run.milliseconds);
    } else {
        fmt::print("Ran on the CPU: WRONG, {}\n", found.run.difference);
    }
    fmt::print(
        "\nTry next{1}:\n"
        "  baton topo list                      machines to start from, and how to describe your own\n"
        "  baton synth {0} --size 64MiB -o best.json   the best schedule for a size\n"
        "  baton run best.json --backend cpu    run it here on real data, against the reference\n"
        "  baton whatif {0} --fail 'h0/nic0*'   what a broken NIC costs\n"
        "  baton codegen best.json -o best/     source, manifest and, with a CUDA Toolkit, cubins\n"
        "  baton verify examples/algorithms/ring_all_reduce.json --ranks 12   a schedule written by hand\n",
        kMachine, way_to_baton());
}

void print_json(const Findings& found) {
    nlohmann::ordered_json out;
    out["topology"] = kMachine;
    for (std::size_t i = 0; i < found.ring.size(); ++i) {
        const synth::Choice& choice = found.synthesis.choices[i];
        const synth::Timing& best = choice.best();
        nlohmann::ordered_json row;
        row["size"] = choice.size.count;
        row["schedule"] = found.synthesis.candidates[static_cast<std::size_t>(best.candidate)].label();
        row["tiles"] = best.tiles;
        row["seconds"] = best.time.seconds();
        row["ring_seconds"] = found.ring[i].seconds();
        row["bound_seconds"] = choice.bound.seconds();
        out["sizes"].push_back(row);
    }
    out["verified"] = ir::to_string(found.proof.assurance);
    out["order"] = ir::to_string(found.proof.order);
    out["right"] = found.run.right;
    out["cpu_milliseconds"] = found.run.milliseconds;
    fmt::print("{}\n", out.dump(2));
}

std::string chart_of(const Findings& found) {
    Series ring{"rings (one, or several at once)", {}, false}, best{"Baton", {}, false},
        bound{"lower bound", {}, true};
    for (std::size_t i = 0; i < found.ring.size(); ++i) {
        const synth::Choice& choice = found.synthesis.choices[i];
        ring.points.emplace_back(choice.size, found.ring[i]);
        best.points.emplace_back(choice.size, choice.best().time);
        bound.points.emplace_back(choice.size, choice.bound);
    }
    return time_chart(fmt::format("all_reduce on {}, simulated", kMachine), {ring, best, bound});
}

class QuickstartCommand : public Command {
public:
    std::string name() const override { return "quickstart"; }
    std::string summary() const override {
        return "the main job once: bound, synthesize, simulate, verify, generate, run";
    }
    std::vector<std::string> examples() const override { return {"baton quickstart"}; }
    void declare(CLI::App& app) override {
        app.add_option("--chart", chart_, "also write time against size as an SVG picture");
    }
    int run() override {
        const Findings found = work(chart_.empty() ? kSizes : kChartSizes);
        if (!chart_.empty()) write_file(chart_, chart_of(found));
        if (json)
            print_json(found);
        else
            print(found);
        return found.run.right ? 0 : 1;
    }

private:
    std::string chart_;
};

}  // namespace

std::unique_ptr<Command> quickstart_command() { return std::make_unique<QuickstartCommand>(); }

}  // namespace baton::cli
