// baton synth: the best schedule per size for a collective on a topology, beside the bound.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/parallel.hpp>
#include <baton/base/progress.hpp>
#include <baton/cli/collective_options.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/interrupt.hpp>
#include <baton/cli/machine_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/sim/step_bytes.hpp>
#include <baton/synth/synthesize.hpp>
#include <baton/synth/tree_rate.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

void write_algorithm(const std::string& path, const ir::Algorithm& algorithm) {
    write_file(path, ends_with(path, ".cbor") ? ir::to_cbor(algorithm) : ir::to_json(algorithm));
}

double gigabytes(Bytes size, Time time) {
    return time.picoseconds > 0 ? static_cast<double>(size.count) / time.seconds() * 1e-9 : 0;
}

// How far above the bound, "+7.2%"; "-" when nothing bounds.
std::string gap(Time time, Time bound) {
    if (bound.picoseconds == 0) return "-";
    const double ratio = time.seconds() / bound.seconds();
    return ratio < 10 ? fmt::format("+{:.1f}%", (ratio - 1) * 100) : fmt::format("x{:.1f}", ratio);
}

class SynthCommand final : public Command {
public:
    std::string name() const override { return "synth"; }
    std::string summary() const override {
        return "finds the best schedule per size and shows how far it is from the bound";
    }
    std::vector<std::string> examples() const override {
        return {"baton synth dgx_h100 --collective all_gather",
                "baton synth dgx1_v100 --size 64MiB -o all_reduce.json",
                "baton synth dgx_h100:hosts=2 --sizes 64KiB..1GiB*16 --plans plans.json",
                "baton synth dgx1_v100 --collective all_gather --size 64MiB --without 'gpu0<>gpu4'",
                "baton synth dgx_h100:hosts=16 --time-limit 20 --plans plans.json",
                "baton synth dgx_h100 --collective broadcast --root 3 --algorithm chain --sizes 1MiB"};
    }
    void declare(CLI::App& app) override {
        machine_options_.declare(app);
        options_.declare(app);
        app.add_option("--algorithm", algorithm_, "auto (default), or one of: " + names());
        app.add_option("--size", size_, "look at one size only, instead of --sizes")->excludes("--sizes");
        app.add_option("--tiles", tiles_, "parts that every chunk is cut into; 0 (default): chosen per size");
        app.add_option("--policy", policy_, "routing: spread (default), static or ecmp:SEED");
        app.add_option("--trees", trees_, "forest: exactly so many trees per root; 0 (default): chosen");
        app.add_option("--max-depth", max_depth_,
                       "families of trees: hops of the deepest tree; 0 (default): no bound");
        app.add_option("--repair", repair_,
                       "mend this schedule, made for the machine before links failed or slowed, instead of a "
                       "search; see --without");
        app.add_option("--seed", seed_, "greedy: of its choices among equals")->capture_default_str();
        time_limit_given_ =
            app.add_option("--time-limit,--budget", time_limit_,
                           "seconds (wall clock) after which the best so far is the result, as on Ctrl-C; "
                           "default: none, and the same result on any machine");
        app.add_option("--threads", threads_,
                       "0 (default): as many as the machine runs at once; the result is the same");
        app.add_option("-o,--output", output_,
                       "write the algorithm (JSON, or CBOR for .cbor); where several win, say which --size");
        app.add_option("--plans", plans_,
                       "write the winners of all sizes as a plan set; large schedules go to files beside it");
        app.add_flag("--explain", explain_, "list the synthesizers that have nothing to offer, and why");
    }
    int run() override;

private:
    static std::string names() {
        std::string text;
        for (const synth::SynthesizerInfo& info : synth::synthesizers())
            text += (text.empty() ? "" : " ") + info.name;
        return text;
    }
    synth::Synthesis synthesize();
    void find_tree_optimum(const ir::Collective& collective, const StopToken& stop);
    Time yardstick(const synth::Synthesis& result, const synth::Choice& choice) const;
    std::string trees_in_words() const;
    std::string ending(const synth::Synthesis& result) const;
    void print(const synth::Synthesis& result) const;
    void print_json(const synth::Synthesis& result) const;
    void write(const synth::Synthesis& result) const;
    void write_plans(const synth::Synthesis& result) const;
    std::string next(const synth::Synthesis& result) const;

    MachineOptions machine_options_;
    std::string algorithm_ = "auto", size_, policy_ = "spread", output_, plans_, repair_;
    CollectiveOptions options_;
    int tiles_ = 0, max_depth_ = 0;
    std::int64_t trees_ = 0;
    std::int64_t seed_ = 0;
    CLI::Option* time_limit_given_ = nullptr;
    double time_limit_ = 0;
    int threads_ = 0;
    std::optional<synth::TreeRate> trees_found_;
    bool all_reduce_ = false;
    bool interrupted_ = false;
    bool explain_ = false;
    topologies::Topology machine_;
};

synth::Synthesis SynthCommand::synthesize() {
    synth::SynthesisOptions options;
    options.algorithm = algorithm_;
    options.sizes = size_.empty() ? options_.size_list() : std::vector<Bytes>{parse_bytes(size_, "--size")};
    std::sort(options.sizes.begin(), options.sizes.end());
    options.sizes.erase(std::unique(options.sizes.begin(), options.sizes.end()), options.sizes.end());
    options.tiles = tiles_;
    if (trees_ < 0 || trees_ > 1024) throw input_error("the number of trees must be 0 to 1024", "--trees");
    if (max_depth_ < 0) throw input_error("the depth must not be negative", "--max-depth");
    options.trees = trees_;
    options.most_depth = max_depth_;
    // CLI11 takes the largest number for all that are above it.
    if (seed_ < 0 || seed_ == INT64_MAX) throw input_error("the seed must be 0 to 2^63 - 2", "--seed");
    options.greedy_seed = static_cast<std::uint64_t>(seed_);
    const topologies::NamedPolicy policy = topologies::parse_policy(policy_);
    options.policy = policy.policy;
    options.seed = policy.seed;
    if (!repair_.empty()) {
        if (algorithm_ != "auto")
            throw input_error("--repair and --algorithm exclude each other", "--repair");
        ir::Schedule old = ir::load_schedule(repair_, {});
        auto* algorithm = std::get_if<ir::Algorithm>(&old);
        if (!algorithm)
            throw input_error("a Program cannot be repaired", repair_,
                              "give the algorithm that it was lowered from");
        options.repair = std::make_shared<const ir::Algorithm>(std::move(*algorithm));
    }
    if (threads_ < 0 || threads_ > 64)
        throw input_error("the number of threads must be 0 to 64", "--threads");
    options.threads = threads_ > 0 ? threads_ : hardware_threads();
    options.stop = Interrupt::token();
    if (time_limit_given_->count() > 0) {
        if (!(time_limit_ >= 0)) throw input_error("the time must not be negative", "--time-limit");
        options.stop = options.stop.within(time_limit_);
    }
    Progress progress("synth");
    options.progress = [&](const std::string& stage, double fraction) { progress.update(stage, fraction); };
    const ir::Collective collective = options_.collective(machine_.rank_count());
    synth::Synthesis result = synth::synthesize(machine_, collective, options);
    progress.update("the optimum of trees");
    if (collective.kind == ir::CollectiveKind::all_reduce) find_tree_optimum(collective, options.stop);
    return result;
}

void SynthCommand::find_tree_optimum(const ir::Collective& collective, const StopToken& stop) {
    all_reduce_ = true;
    try {
        const StopScope scope(stop);
        stop_point();
        trees_found_ = synth::tree_rate(machine_, collective);
    } catch (const Stopped&) {
    }
}

Time SynthCommand::yardstick(const synth::Synthesis& result, const synth::Choice& choice) const {
    const synth::Candidate& candidate = result.candidates[static_cast<std::size_t>(choice.best().candidate)];
    return synth::yardstick(choice.bound, trees_found_, *candidate.algorithm, choice.size);
}

std::string SynthCommand::trees_in_words() const {
    if (trees_found_)
        return "trees:           " + tree_rate_in_words(*trees_found_) +
               "\n                 (gap is what the time is above this and the bound, for steps of switches "
               "above the bound)\n";
    if (all_reduce_)
        return "trees:           no optimum over tree schedules here (made up to 128 ranks; where nothing "
               "looks alike, to 64 and 400 links); "
               "gap "
               "is what the time is above the bound\n";
    return {};
}

std::string SynthCommand::ending(const synth::Synthesis& result) const {
    if (!result.stopped_early) return {};
    const std::size_t sizes = size_.empty() ? options_.size_list().size() : 1;
    return fmt::format(
        "note: {} before the work was done: the best of {} verified schedule{}, {} of {} size{}\n",
        interrupted_ ? "interrupted" : fmt::format("the time limit of {} s ended", time_limit_),
        result.candidates.size(), result.candidates.size() == 1 ? "" : "s", result.choices.size(), sizes,
        sizes == 1 ? "" : "s");
}

void SynthCommand::print(const synth::Synthesis& result) const {
    const ir::Collective& collective = result.bound.collective;
    std::string text = fmt::format("{} on {}: {} candidate{}\n", title(collective),
                                   machine_.name.empty() ? "the topology" : machine_.name,
                                   result.candidates.size(), result.candidates.size() == 1 ? "" : "s");
    text += "latency bound:   " + latency_in_words(machine_, result.bound) + "\n";
    text += "bandwidth bound: " + bandwidth_in_words(machine_, result.bound) + "\n";
    text += trees_in_words() + "\n";
    std::vector<std::string> heads = {"size", "algorithm", "tiles", "time", "bound"};
    if (trees_found_) heads.push_back("trees");
    heads.insert(heads.end(), {"gap", "algbw GB/s", "busbw GB/s"});
    Table table(heads);
    const double factor = sim::bus_factor(collective);
    for (const synth::Choice& choice : result.choices) {
        const synth::Timing& best = choice.best();
        const double algbw = gigabytes(choice.size, best.time);
        std::vector<std::string> row = {
            to_string(choice.size), result.candidates[static_cast<std::size_t>(best.candidate)].label(),
            std::to_string(best.tiles), to_string(best.time), to_string(choice.bound)};
        if (trees_found_) row.push_back(to_string(trees_found_->time(choice.size)));
        row.insert(row.end(), {gap(best.time, yardstick(result, choice)), fmt::format("{:.2f}", algbw),
                               fmt::format("{:.2f}", algbw * factor)});
        table.row(row);
    }
    text += table.text();
    for (const synth::Candidate& candidate : result.candidates) {
        if (candidate.assurance != ir::Assurance::proved)
            text += fmt::format("note: {} is {}\n", candidate.label(), ir::to_string(candidate.assurance));
    }
    if (explain_) {
        for (const synth::Refusal& refusal : result.refusals)
            text += fmt::format("no candidate: {}: {}\n", refusal.name, refusal.why);
    }
    for (const std::string& warning : result.warnings) text += "warning: " + warning + "\n";
    text += ending(result);
    if (!output_.empty()) text += "written: " + output_ + "\n";
    if (!plans_.empty()) text += "written: " + plans_ + "\n";
    text += "\nnext: " + next(result) + "\n";
    std::fputs(text.c_str(), stdout);
}

void SynthCommand::print_json(const synth::Synthesis& result) const {
    const ir::Collective& collective = result.bound.collective;
    const double factor = sim::bus_factor(collective);
    Json document = {{"topology", {{"name", machine_.name}, {"hash", machine_.hash()}}},
                     {"collective", ir::to_string(collective.kind)},
                     {"ranks", collective.ranks},
                     {"bound", Json::parse(synth::to_json(machine_, result.bound))},
                     {"model", result.model}};
    if (ir::has_root(collective.kind)) document["root"] = collective.root;
    if (trees_found_) document["tree_optimum"] = trees_found_->at_most.value();
    document["candidates"] = Json::array();
    for (const synth::Candidate& candidate : result.candidates) {
        document["candidates"].push_back({{"name", candidate.name},
                                          {"variant", candidate.variant},
                                          {"steps", candidate.steps},
                                          {"result", ir::to_string(candidate.assurance)}});
        if (candidate.depth > 0) document["candidates"].back()["depth"] = candidate.depth;
    }
    document["refused"] = Json::array();
    for (const synth::Refusal& refusal : result.refusals)
        document["refused"].push_back({{"name", refusal.name}, {"why", refusal.why}});
    document["sizes"] = Json::array();
    for (const synth::Choice& choice : result.choices) {
        const synth::Timing& best = choice.best();
        const double algbw = gigabytes(choice.size, best.time) * 1e9;
        Json row = {{"size", choice.size.count},
                    {"algorithm", result.candidates[static_cast<std::size_t>(best.candidate)].label()},
                    {"tiles", best.tiles},
                    {"time", best.time.seconds()},
                    {"picoseconds", best.time.picoseconds},
                    {"bound", choice.bound.seconds()}};
        if (trees_found_) row["tree_time"] = trees_found_->time(choice.size).seconds();
        if (choice.bound.picoseconds > 0) {
            row["gap"] = best.time.seconds() / yardstick(result, choice).seconds() - 1;
            row["gap_to_bound"] = best.time.seconds() / choice.bound.seconds() - 1;
        }
        row["algbw"] = algbw;
        row["busbw"] = algbw * factor;
        row["others"] = Json::array();
        for (std::size_t i = 1; i < choice.timings.size(); ++i) {
            const synth::Timing& other = choice.timings[i];
            row["others"].push_back(
                {{"algorithm", result.candidates[static_cast<std::size_t>(other.candidate)].label()},
                 {"tiles", other.tiles},
                 {"time", other.time.seconds()}});
        }
        document["sizes"].push_back(std::move(row));
    }
    document["warnings"] = result.warnings;
    document["stopped_early"] = result.stopped_early;
    if (result.stopped_early) document["stopped_by"] = interrupted_ ? "signal" : "time limit";
    document["next"] = next(result);
    std::printf("%s\n", document.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void SynthCommand::write(const synth::Synthesis& result) const {
    std::set<int> winners;
    for (const synth::Choice& choice : result.choices) winners.insert(choice.best().candidate);
    if (winners.size() > 1) {
        throw input_error(
            fmt::format("{} algorithms win at different sizes, but one file holds one", winners.size()), "-o",
            "choose one with --size or --algorithm, or write all with --plans FILE");
    }
    write_algorithm(output_, *result.candidates[static_cast<std::size_t>(*winners.begin())].algorithm);
}

void SynthCommand::write_plans(const synth::Synthesis& result) const {
    constexpr std::int64_t kInlineSteps = 256;  // explicit steps above this make a plan set unreadable
    const std::filesystem::path path(plans_);
    std::set<std::string> used;
    const auto file = [&](const synth::Candidate& candidate) -> std::string {
        const std::string text = ir::to_json(*candidate.algorithm);
        if (static_cast<std::int64_t>(std::count(text.begin(), text.end(), '\n')) <= kInlineSteps) return {};
        std::string label;
        for (const char c : candidate.label()) {
            if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
                label += c;
            else if (!label.empty() && label.back() != '-')
                label += '-';
        }
        while (!label.empty() && label.back() == '-') label.pop_back();
        std::string name = path.stem().string() + "." + label + ".json";
        for (int n = 2; !used.insert(name).second; ++n)
            name = path.stem().string() + "." + label + fmt::format("-{}.json", n);
        write_file((path.parent_path() / name).string(), text);
        return name;
    };
    write_file(plans_, ir::to_json(result.plans(machine_, file)));
}

std::string SynthCommand::next(const synth::Synthesis& result) const {
    if (!output_.empty()) return "baton verify " + shell_word(output_);
    const std::string kind = options_.kind + ".json";
    std::string line = "baton synth" + machine_options_.as_typed() + options_.as_typed();
    if (algorithm_ != "auto") line += " --algorithm " + shell_word(algorithm_);
    if (!repair_.empty()) line += " --repair " + shell_word(repair_);
    if (policy_ != "spread") line += " --policy " + shell_word(policy_);
    if (trees_ != 0) line += fmt::format(" --trees {}", trees_);
    if (max_depth_ != 0) line += fmt::format(" --max-depth {}", max_depth_);
    if (seed_ != 0) line += fmt::format(" --seed {}", seed_);
    if (tiles_ != 0) line += fmt::format(" --tiles {}", tiles_);
    return line + fmt::format(" --size {} -o {}", to_string(result.choices.back().size), kind);
}

int SynthCommand::run() {
    const Interrupt interrupt;
    // Known before the work, not after it.
    if (!output_.empty()) check_writable(output_);
    if (!plans_.empty()) check_writable(plans_);
    if (!output_.empty() && output_ == plans_)
        throw input_error("-o and --plans name the same file", output_, "give two names");
    machine_ = machine_options_.load();
    const synth::Synthesis result = synthesize();
    interrupted_ = Interrupt::happened();
    if (!output_.empty()) write(result);
    if (!plans_.empty()) write_plans(result);
    if (json)
        print_json(result);
    else
        print(result);
    return 0;
}

}  // namespace

std::unique_ptr<Command> synth_command() { return std::make_unique<SynthCommand>(); }

}  // namespace baton::cli
