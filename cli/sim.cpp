// baton sim: how long a collective, or a given schedule, takes on a topology.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/progress.hpp>
#include <baton/cli/collective_options.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/machine_options.hpp>
#include <baton/cli/options.hpp>
#include <baton/cli/schedule_choice.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/sim/link_report.hpp>
#include <baton/sim/measurements.hpp>
#include <baton/sim/trace.hpp>
#include <baton/synth/bound.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

/// One size: what ran, and how it did.
struct Row {
    std::string schedule;
    std::shared_ptr<const ir::Algorithm> algorithm;
    sim::SimulationResult result;
    std::optional<Time> bound;
    std::optional<double> measured;  ///< seconds, of a log

    bool finished() const { return result.outcome == sim::Outcome::finished; }
    double over_bound() const { return result.time.seconds() / bound->seconds(); }
    bool compares() const { return finished() && bound && bound->picoseconds > 0; }
};

std::string gigabytes(Rate rate) { return fmt::format("{:.2f}", rate.value() * 1e-9); }

class SimCommand final : public Command {
public:
    std::string name() const override { return "sim"; }
    std::string summary() const override {
        return "simulates a collective or a schedule on a topology: time, bandwidth, busy links";
    }
    std::vector<std::string> examples() const override {
        return {"baton sim dgx_h100:hosts=2 --sizes 1KiB..1GiB*16",
                "baton sim torus:8 --collective all_gather --algorithm ring",
                "baton sim dgx_h100 --schedule examples/algorithms/ring_all_reduce.json --sizes 64MiB "
                "--trace trace.json --csv links.csv"};
    }
    void declare(CLI::App& app) override {
        machine_.declare(app);
        collective_.declare(app);
        app.add_option("--schedule", schedule_,
                       "simulate this algorithm, JSON or CBOR; - reads standard input");
        app.add_option("--algorithm", algorithm_,
                       "without --schedule: a synthesizer, or auto: the fastest per size")
            ->capture_default_str();
        app.add_option("--ranks", ranks_, "with --schedule: number of ranks, instead of the file's");
        app.add_option("--param", params_,
                       "with --schedule: NAME=INTEGER, instead of the file's; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--model", model_, "flow: links are shared fairly; alpha_beta: no contention")
            ->capture_default_str();
        app.add_option("--tiles", tiles_,
                       "parts that every chunk is cut into; 0: the best power of two up to 128")
            ->capture_default_str();
        app.add_option("--policy", policy_, "routing: spread, static or ecmp:SEED")->capture_default_str();
        app.add_option("--trace", trace_, "write a trace of the largest size, for ui.perfetto.dev");
        app.add_option("--csv", csv_, "write bytes, busy time and utilization of every link, for every size");
        app.add_option("--measured", measured_,
                       "log of nccl-tests for the same collective: its sizes, and how the model compares");
        app.add_flag("--rebind", rebind_, "accept a schedule that was made for another topology");
        app_ = &app;
    }
    int run() override;

private:
    std::shared_ptr<const ir::Algorithm> load() const;
    void simulate();
    void read_log();
    void add_measured(Row& row) const;
    void trace(const Row& row);
    void print() const;
    void print_json() const;
    std::string next() const;

    MachineOptions machine_;
    std::string schedule_, algorithm_ = "auto", model_ = "flow", policy_ = "spread", trace_, csv_, measured_;
    CollectiveOptions collective_;
    std::optional<int> ranks_;
    std::vector<std::string> params_;
    int tiles_ = 0;
    bool rebind_ = false;
    CLI::App* app_ = nullptr;

    topologies::Topology topology_;
    sim::SimulationOptions options_;
    sim::Measurements log_;
    std::vector<Row> rows_;
    std::vector<std::string> warnings_;
};

std::shared_ptr<const ir::Algorithm> SimCommand::load() const {
    ir::LoadOptions options;
    options.params = parse_params(params_);
    options.ranks = ranks_;
    if (app_->count("--root") > 0) options.root = collective_.root;
    ir::Schedule schedule = ir::load_schedule(schedule_, options);
    auto* algorithm = std::get_if<ir::Algorithm>(&schedule);
    if (!algorithm)
        throw input_error("a Program cannot be simulated", schedule_,
                          "give the algorithm that it was lowered from");
    collective_.check_agrees(algorithm->collective, schedule_);
    if (!algorithm->topology_hash.empty() && algorithm->topology_hash != topology_.hash() && !rebind_)
        throw input_error(
            fmt::format("made for the topology {} ({}), not for {} ({})", algorithm->topology_name,
                        algorithm->topology_hash, topology_.name, topology_.hash()),
            schedule_, "use that topology, or --rebind");
    return std::make_shared<const ir::Algorithm>(std::move(*algorithm));
}

void SimCommand::simulate() {
    const std::vector<Bytes> sizes = collective_.size_list();
    Progress progress("sim");
    ScheduleChoice choice;
    if (!schedule_.empty()) {
        const std::shared_ptr<const ir::Algorithm> given = load();
        if (ir::verify(*given).assurance == ir::Assurance::not_proven)
            warnings_.push_back("the schedule is too large to be verified");
        // Times of a part of a machine are easily taken for times of all of it.
        if (given->collective.ranks < topology_.rank_count())
            warnings_.push_back(
                fmt::format("the schedule is for {} ranks, the topology has {}: ranks {} to {} take no part",
                            given->collective.ranks, topology_.rank_count(), given->collective.ranks,
                            topology_.rank_count() - 1));
        choice.schedules.assign(sizes.size(), {given->name, given, tiles_});
    } else {
        if (ranks_ || !params_.empty())
            throw input_error("--ranks and --param go with --schedule", {},
                              "the collective is on all ranks of the topology");
        choice = choose_schedules(
            topology_, collective_.collective(topology_.rank_count()), algorithm_, sizes, options_,
            [&](const std::string& stage, double fraction) { progress.update(stage, fraction); });
        warnings_ = choice.warnings;
    }
    const ir::Collective& collective = choice.schedules.front().algorithm->collective;
    std::optional<synth::Bound> bound;
    if (collective.kind != ir::CollectiveKind::custom) {
        try {
            bound = synth::bound(topology_, collective);
        } catch (const Error& error) {  // ranks that cannot be reached: the rows say so too
            if (error.kind() != ErrorKind::input) throw;
        }
    }
    std::map<const ir::Algorithm*, sim::PreparedAlgorithm> prepared;
    for (std::size_t s = 0; s < sizes.size(); ++s) {
        progress.update(to_string(sizes[s]), static_cast<double>(s) / static_cast<double>(sizes.size()));
        const sim::ChosenSchedule& chosen = choice.schedules[s];
        auto place = prepared.find(chosen.algorithm.get());
        if (place == prepared.end()) {
            place =
                prepared
                    .emplace(chosen.algorithm.get(), sim::PreparedAlgorithm(topology_, *chosen.algorithm,
                                                                            options_.policy, options_.seed))
                    .first;
            for (const std::string& warning : place->second.warnings()) {
                if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
                    warnings_.push_back(warning);
            }
        }
        options_.size = sizes[s];
        options_.tiles = chosen.tiles;
        Row row{chosen.name, chosen.algorithm, place->second.run(options_), {}, {}};
        if (bound) row.bound = bound->at(sizes[s]);
        add_measured(row);
        rows_.push_back(std::move(row));
    }
}

/// The log that --measured names gives the sizes where --sizes does not.
void SimCommand::read_log() {
    log_ = sim::read_measurements(read_file(measured_), measured_);
    const ir::Collective asked = collective_.collective(topology_.rank_count());
    if (log_.kind && *log_.kind != asked.kind)
        throw input_error(fmt::format("measured {} ({}), and this is {}", to_string(*log_.kind),
                                      log_.why_kind, to_string(asked.kind)),
                          measured_, fmt::format("give --collective {}", to_string(*log_.kind)));
    if (log_.ranks > 0 && log_.ranks != topology_.rank_count())
        throw input_error(
            fmt::format("measured {} ranks, and the topology has {}", log_.ranks, topology_.rank_count()),
            measured_);
    if (app_->count("--sizes") > 0) return;
    collective_.sizes.clear();
    for (const sim::MeasuredRow& row : log_.rows)
        if (row.size > 0)
            collective_.sizes += fmt::format("{}{}", collective_.sizes.empty() ? "" : ",", row.size);
    if (collective_.sizes.empty()) throw input_error("no row has a size above 0", measured_);
}

/// The faster of the placements that were measured for the size.
void SimCommand::add_measured(Row& row) const {
    for (const sim::MeasuredRow& measured : log_.rows) {
        if (measured.size != row.result.size.count) continue;
        for (const auto* call : {&measured.out_of_place, &measured.in_place})
            if (*call && (*call)->microseconds > 0)
                row.measured = std::min(row.measured.value_or(1e300), (*call)->microseconds * 1e-6);
    }
}

void SimCommand::trace(const Row& row) {
    sim::SimulationOptions options = options_;
    options.size = row.result.size;
    options.tiles = row.result.tiles;
    options.trace = true;
    const sim::SimulationResult result = sim::simulate(topology_, *row.algorithm, options);
    write_file(trace_, sim::chrome_trace(topology_, row.algorithm->name, result));
    if (result.trace_truncated)
        warnings_.push_back(fmt::format("the trace ends after the first {} operations", options.trace_limit));
}

int SimCommand::run() {
    topology_ = machine_.load();
    const topologies::NamedPolicy policy = topologies::parse_policy(policy_);
    options_.model = sim::parse_model(model_);
    options_.tiles = tiles_;
    options_.policy = policy.policy;
    options_.seed = policy.seed;
    if (!measured_.empty()) read_log();
    simulate();
    if (!trace_.empty())
        trace(*std::max_element(rows_.begin(), rows_.end(),
                                [](const Row& a, const Row& b) { return a.result.size < b.result.size; }));
    if (!csv_.empty()) {
        std::vector<sim::SimulationResult> results;
        for (const Row& row : rows_) results.push_back(row.result);
        write_file(csv_, sim::link_report_csv(topology_, results));
    }
    json ? print_json() : print();
    return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.finished(); }) ? 0 : 1;
}

void SimCommand::print() const {
    const ir::Collective& collective = rows_.front().algorithm->collective;
    std::string text = fmt::format("{} of {} ranks on {}\n\n", ir::to_string(collective.kind),
                                   collective.ranks, topology_.name.empty() ? machine_.spec : topology_.name);
    std::vector<std::string> heads{"size",       "time",     "bound", "x bound",      "algbw GB/s",
                                   "busbw GB/s", "schedule", "tiles", "busiest link", "used"};
    if (!measured_.empty()) heads.insert(heads.end(), {"measured", "x time"});
    Table table(heads);
    for (const Row& row : rows_) {
        const std::string bound = row.bound ? to_string(*row.bound) : "";
        if (!row.finished()) {
            table.row({to_string(row.result.size), std::string(to_string(row.result.outcome)), bound, "", "",
                       "", row.schedule});
            continue;
        }
        const auto busiest = sim::busiest_links(topology_, row.result, 1);
        std::vector<std::string> cells{
            to_string(row.result.size),
            to_string(row.result.time),
            bound,
            row.compares() ? fmt::format("{:.2f}", row.over_bound()) : "",
            gigabytes(row.result.algbw),
            gigabytes(row.result.busbw),
            row.schedule,
            std::to_string(row.result.tiles),
            busiest.empty() ? "" : busiest[0].id,
            busiest.empty() ? "" : fmt::format("{:.0f}%", 100 * busiest[0].utilization)};
        if (row.measured) {
            cells.push_back(to_string(Time{std::llround(*row.measured * 1e12)}));
            cells.push_back(fmt::format("{:.2f}", *row.measured / row.result.time.seconds()));
        }
        table.row(std::move(cells));
    }
    text += table.text() + "\n";
    for (const Row& row : rows_) {
        if (row.finished()) continue;
        text += fmt::format("{}: {}\n", to_string(row.result.outcome), row.result.reason);
        break;
    }
    text += paragraph("model: ", rows_.front().result.model_in_words);
    if (!measured_.empty())
        text += paragraph("measured: ",
                          measured_ + ": the faster of the placements; x time is measured over simulated");
    for (const std::string& warning : warnings_) text += "warning: " + warning + "\n";
    if (!trace_.empty()) text += fmt::format("trace: {} (open it in ui.perfetto.dev)\n", trace_);
    if (!csv_.empty()) text += fmt::format("links: {}\n", csv_);
    text += "next: " + next() + "\n";
    std::fputs(text.c_str(), stdout);
}

void SimCommand::print_json() const {
    Json rows = Json::array();
    for (const Row& row : rows_) {
        const sim::SimulationResult& result = row.result;
        Json out{
            {"size", result.size.count}, {"outcome", to_string(result.outcome)}, {"schedule", row.schedule}};
        if (row.bound) out["bound_picoseconds"] = row.bound->picoseconds;
        if (!row.finished()) {
            out["reason"] = result.reason;
            rows.push_back(std::move(out));
            continue;
        }
        out["picoseconds"] = result.time.picoseconds;
        if (row.measured) out["measured_picoseconds"] = std::llround(*row.measured * 1e12);
        if (row.compares()) out["over_bound"] = row.over_bound();
        out["algbw"] = result.algbw.bytes_per_second;
        out["busbw"] = result.busbw.bytes_per_second;
        out["tiles"] = result.tiles;
        out["messages"] = result.messages;
        out["busiest_links"] = Json::array();
        for (const auto& link : sim::busiest_links(topology_, result, 8))
            out["busiest_links"].push_back({{"id", link.id},
                                            {"bytes", link.bytes},
                                            {"busy", link.busy},
                                            {"utilization", link.utilization}});
        rows.push_back(std::move(out));
    }
    const Json out{{"topology", {{"name", topology_.name}, {"hash", topology_.hash()}}},
                   {"collective", ir::to_string(rows_.front().algorithm->collective.kind)},
                   {"ranks", rows_.front().algorithm->collective.ranks},
                   {"model", to_string(options_.model)},
                   {"model_in_words", rows_.front().result.model_in_words},
                   {"sizes", std::move(rows)},
                   {"warnings", warnings_},
                   {"next", next()}};
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

std::string SimCommand::next() const {
    if (!schedule_.empty()) {
        std::string line = "baton lower " + shell_word(schedule_);
        if (ranks_) line += fmt::format(" --ranks {}", *ranks_);
        for (const std::string& param : params_) line += " --param " + shell_word(param);
        return line;
    }
    return fmt::format("baton whatif {}{} --sizes 64MiB --degrade {}=0.5", shell_word(machine_.spec),
                       collective_.as_typed(),
                       topology_.links.empty() ? "LINK" : shell_word(topology_.links.front().id));
}

}  // namespace

std::unique_ptr<Command> sim_command() { return std::make_unique<SimCommand>(); }

}  // namespace baton::cli
