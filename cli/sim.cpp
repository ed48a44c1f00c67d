// baton sim: how long a schedule takes on a topology.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/progress.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/options.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/sim/link_report.hpp>
#include <baton/sim/trace.hpp>
#include <baton/topologies/load.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string gigabytes(Rate rate) { return fmt::format("{:.2f}", rate.value() * 1e-9); }

class SimCommand final : public Command {
public:
    std::string name() const override { return "sim"; }
    std::string summary() const override {
        return "simulates a schedule on a topology: time, bandwidth, busy links";
    }
    std::vector<std::string> examples() const override {
        return {"baton sim dgx_h100 --schedule examples/algorithms/ring_all_reduce.json",
                "baton sim dgx_h100 --schedule examples/algorithms/ring_all_reduce.json --sizes 64MiB "
                "--trace trace.json "
                "--csv links.csv"};
    }
    void declare(CLI::App& app) override {
        app.add_option("TOPO", topology_, "a topology file, a preset or a generator")->required();
        app.add_option("--schedule", schedule_, "an algorithm, JSON or CBOR; - reads standard input")
            ->required();
        app.add_option("--ranks", ranks_, "number of ranks, instead of the file's");
        app.add_option("--root", root_, "root, instead of the file's");
        app.add_option("--param", params_, "NAME=INTEGER, instead of the file's; may be repeated")
            ->allow_extra_args(false);
        app.add_option("--sizes", sizes_, "A..B doubles, A..B*4 steps by 4, or a list (default 1KiB..1GiB)");
        app.add_option("--model", model_, "flow (default) or alpha_beta: no contention");
        app.add_option("--tiles", tiles_,
                       "parts that every chunk is cut into; 0 (default): the best power of two to 128");
        app.add_option("--policy", policy_, "routing: spread (default), static or ecmp:SEED");
        app.add_option("--trace", trace_, "write a trace of the largest size for ui.perfetto.dev");
        app.add_option("--csv", csv_, "write bytes, busy time and utilization of every link, for every size");
        app.add_flag("--rebind", rebind_, "accept a schedule that was made for another topology");
    }
    int run() override;

private:
    ir::Algorithm load() const;
    std::vector<sim::SimulationResult> simulate(const topologies::Topology& topology,
                                                const ir::Algorithm& algorithm);
    void print(const topologies::Topology& topology, const ir::Algorithm& algorithm,
               const std::vector<sim::SimulationResult>& results) const;
    void print_json(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                    const std::vector<sim::SimulationResult>& results) const;
    std::string next() const;

    std::string topology_, schedule_, sizes_ = "1KiB..1GiB", model_ = "flow", policy_ = "spread", trace_,
                                      csv_;
    std::optional<int> ranks_, root_;
    std::vector<std::string> params_, warnings_;
    int tiles_ = 0;
    bool rebind_ = false;
};

ir::Algorithm SimCommand::load() const {
    ir::LoadOptions options;
    options.params = parse_params(params_);
    options.ranks = ranks_;
    options.root = root_;
    ir::Schedule schedule = ir::load_schedule(schedule_, options);
    if (auto* algorithm = std::get_if<ir::Algorithm>(&schedule)) return std::move(*algorithm);
    throw input_error("a Program cannot be simulated yet", schedule_,
                      "give the algorithm that it was lowered from");
}

std::vector<sim::SimulationResult> SimCommand::simulate(const topologies::Topology& topology,
                                                        const ir::Algorithm& algorithm) {
    const std::vector<Bytes> sizes = parse_sizes(sizes_);
    const topologies::NamedPolicy policy = topologies::parse_policy(policy_);
    sim::SimulationOptions options;
    options.model = sim::parse_model(model_);
    options.tiles = tiles_;
    options.policy = policy.policy;
    options.seed = policy.seed;
    const sim::PreparedAlgorithm prepared(topology, algorithm, policy.policy, policy.seed);
    warnings_.insert(warnings_.end(), prepared.warnings().begin(), prepared.warnings().end());
    std::vector<sim::SimulationResult> results;
    Progress progress("sim");
    const Bytes largest = *std::max_element(sizes.begin(), sizes.end());
    bool traced = false;
    for (const Bytes size : sizes) {
        progress.update(to_string(size),
                        static_cast<double>(results.size()) / static_cast<double>(sizes.size()));
        options.size = size;
        options.trace = !trace_.empty() && size == largest && !traced;
        results.push_back(prepared.run(options));
        if (!options.trace) continue;
        traced = true;
        sim::SimulationResult& result = results.back();
        write_file(trace_, sim::chrome_trace(topology, algorithm.name, result));
        if (result.trace_truncated)
            warnings_.push_back(
                fmt::format("the trace ends after its first {} operations", options.trace_limit));
        result.trace = {};
        result.busy_periods = {};
    }
    return results;
}

int SimCommand::run() {
    const topologies::Topology topology = topologies::load(topology_);
    const ir::Algorithm algorithm = load();
    if (!algorithm.topology_hash.empty() && algorithm.topology_hash != topology.hash() && !rebind_)
        throw input_error(
            fmt::format("made for the topology {} ({}), not for {} ({})", algorithm.topology_name,
                        algorithm.topology_hash, topology.name, topology.hash()),
            schedule_, "use that topology, or --rebind");
    const ir::AlgorithmReport report = ir::verify(algorithm);
    if (report.assurance == ir::Assurance::not_proven)
        warnings_.push_back("the schedule is too large to be verified");
    const std::vector<sim::SimulationResult> results = simulate(topology, algorithm);
    if (!csv_.empty()) write_file(csv_, sim::link_report_csv(topology, results));
    json ? print_json(topology, algorithm, results) : print(topology, algorithm, results);
    for (const sim::SimulationResult& result : results) {
        if (result.outcome != sim::Outcome::finished) return 1;
    }
    return 0;
}

void SimCommand::print(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                       const std::vector<sim::SimulationResult>& results) const {
    std::printf("%s on %s: %s\n\n", algorithm.name.empty() ? "schedule" : algorithm.name.c_str(),
                topology.name.empty() ? topology_.c_str() : topology.name.c_str(),
                ir::describe(algorithm.collective).c_str());
    Table table({"size", "time", "algbw GB/s", "busbw GB/s", "tiles", "busiest link", "used"});
    for (const sim::SimulationResult& result : results) {
        if (result.outcome != sim::Outcome::finished) {
            table.row({to_string(result.size), std::string(to_string(result.outcome)), "", "",
                       std::to_string(result.tiles), "", ""});
            continue;
        }
        const auto busiest = sim::busiest_links(topology, result, 1);
        table.row({to_string(result.size), to_string(result.time), gigabytes(result.algbw),
                   gigabytes(result.busbw), std::to_string(result.tiles),
                   busiest.empty() ? "" : busiest[0].id,
                   busiest.empty() ? "" : fmt::format("{:.0f}%", 100 * busiest[0].utilization)});
    }
    std::printf("%s\n", table.text().c_str());
    for (const sim::SimulationResult& result : results) {
        if (result.outcome == sim::Outcome::finished) continue;
        std::printf("%s: %s\n", std::string(to_string(result.outcome)).c_str(), result.reason.c_str());
        break;
    }
    std::printf("model: %s\n", results.front().model_in_words.c_str());
    for (const std::string& warning : warnings_) std::printf("warning: %s\n", warning.c_str());
    if (!trace_.empty()) std::printf("trace: %s (open it in ui.perfetto.dev)\n", trace_.c_str());
    if (!csv_.empty()) std::printf("links: %s\n", csv_.c_str());
    std::printf("next: %s\n", next().c_str());
}

void SimCommand::print_json(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                            const std::vector<sim::SimulationResult>& results) const {
    Json rows = Json::array();
    for (const sim::SimulationResult& result : results) {
        Json row{
            {"size", result.size.count}, {"outcome", to_string(result.outcome)}, {"tiles", result.tiles}};
        if (result.outcome == sim::Outcome::finished) {
            row["time_ps"] = result.time.picoseconds;
            row["algbw_bytes_per_second"] = result.algbw.bytes_per_second;
            row["busbw_bytes_per_second"] = result.busbw.bytes_per_second;
            row["messages"] = result.messages;
            row["operations"] = result.operations;
            Json links = Json::array();
            for (const auto& link : sim::busiest_links(topology, result, 8))
                links.push_back({{"id", link.id},
                                 {"bytes", link.bytes},
                                 {"busy", link.busy},
                                 {"utilization", link.utilization}});
            row["busiest_links"] = std::move(links);
        } else {
            row["reason"] = result.reason;
        }
        rows.push_back(std::move(row));
    }
    const Json out{{"name", algorithm.name},
                   {"topology", {{"name", topology.name}, {"hash", topology.hash()}}},
                   {"collective", ir::describe(algorithm.collective)},
                   {"model", std::string(to_string(sim::parse_model(model_)))},
                   {"model_in_words", results.front().model_in_words},
                   {"results", std::move(rows)},
                   {"warnings", warnings_},
                   {"next", next()}};
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

std::string SimCommand::next() const {
    if (trace_.empty())
        return fmt::format("baton sim {} --schedule {} --sizes 64MiB --trace trace.json",
                           shell_word(topology_), shell_word(schedule_));
    return fmt::format("baton lower {}", shell_word(schedule_));
}

}  // namespace

std::unique_ptr<Command> sim_command() { return std::make_unique<SimCommand>(); }

}  // namespace baton::cli
