// baton bound: the time that no method can beat, and why.
#include <baton/cli/collective_options.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/machine_options.hpp>
#include <baton/sim/step_bytes.hpp>
#include <baton/synth/bound.hpp>
#include <baton/synth/tree_rate.hpp>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
    Bytes size;
    Time latency, bandwidth, time;
    double algbw = 0, busbw = 0;  // GB/s; 0 when no time is needed
};

std::vector<Row> rows_of(const synth::Bound& bound, const std::vector<Bytes>& sizes) {
    std::vector<Row> rows;
    for (const Bytes size : sizes) {
        Row row{size, bound.latency.time, bound.bandwidth_time(size), bound.at(size)};
        if (row.time.picoseconds > 0) row.algbw = static_cast<double>(size.count) / row.time.seconds() * 1e-9;
        row.busbw = row.algbw * sim::bus_factor(bound.collective);
        rows.push_back(row);
    }
    return rows;
}

void print(const topologies::Topology& topology, const synth::Bound& bound,
           const std::optional<synth::TreeRate>& trees, const std::vector<Row>& rows,
           const std::string& next) {
    std::string text = fmt::format("{} on {}\n\n", title(bound.collective),
                                   topology.name.empty() ? "the topology" : topology.name);
    text += "latency:   " + latency_in_words(topology, bound) + "\n";
    text += "bandwidth: " + bandwidth_in_words(topology, bound) + "\n";
    if (!bound.bandwidth.best_cut) text += "           (the best argument found; a better one may exist)\n";
    if (trees) text += "trees:     " + tree_rate_in_words(*trees) + "\n";
    Table table({"size", "no method is below", "because of", "algbw GB/s", "busbw GB/s"});
    for (const Row& row : rows) {
        table.row({to_string(row.size), to_string(row.time),
                   row.bandwidth > row.latency ? "bandwidth" : "latency", fmt::format("{:.2f}", row.algbw),
                   fmt::format("{:.2f}", row.busbw)});
    }
    text += "\n" + table.text() + "\nnext: " + next + "\n";
    std::fputs(text.c_str(), stdout);
}

Json to_json(const topologies::Topology& topology, const synth::Bound& bound,
             const std::optional<synth::TreeRate>& trees, const std::vector<Row>& rows) {
    Json json = {{"topology", {{"name", topology.name}, {"hash", topology.hash()}}},
                 {"collective", ir::to_string(bound.collective.kind)},
                 {"ranks", bound.collective.ranks}};
    if (ir::has_root(bound.collective.kind)) json["root"] = bound.collective.root;
    json.update(Json::parse(synth::to_json(topology, bound)));
    json["in_words"] = {{"latency", latency_in_words(topology, bound)},
                        {"bandwidth", bandwidth_in_words(topology, bound)}};
    if (trees) {
        json["tree_optimum"] = trees->at_most.value();
        json["tree_witness"] = Json::parse(to_json(topology, *trees));
    }
    json["sizes"] = Json::array();
    for (const Row& row : rows) {
        json["sizes"].push_back({{"size", row.size.count},
                                 {"time", row.time.seconds()},
                                 {"picoseconds", row.time.picoseconds},
                                 {"because_of", row.bandwidth > row.latency ? "bandwidth" : "latency"},
                                 {"algbw", row.algbw * 1e9},
                                 {"busbw", row.busbw * 1e9}});
    }
    return json;
}

class BoundCommand final : public Command {
public:
    std::string name() const override { return "bound"; }
    std::string summary() const override { return "the time that no method can beat on a topology, and why"; }
    std::vector<std::string> examples() const override {
        return {"baton bound dgx_h100:hosts=2",
                "baton bound torus:4x4 --collective all_gather --sizes 1KiB..1GiB*4",
                "baton bound dgx1_v100 --collective broadcast --root 3 --without 'gpu0<>gpu4' --json"};
    }
    void declare(CLI::App& app) override {
        machine_.declare(app);
        options_.declare(app);
    }
    int run() override {
        const topologies::Topology topology = machine_.load();
        const synth::Bound bound = synth::bound(topology, options_.collective(topology.rank_count()));
        const std::vector<Row> rows = rows_of(bound, options_.size_list());
        const std::optional<synth::TreeRate> trees = synth::tree_rate(topology, bound.collective);
        if (json) {
            const Json all = to_json(topology, bound, trees, rows);
            std::printf("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
        } else {
            print(topology, bound, trees, rows, "baton synth" + machine_.as_typed() + options_.as_typed());
        }
        return 0;
    }

private:
    MachineOptions machine_;
    CollectiveOptions options_;
};

}  // namespace

std::unique_ptr<Command> bound_command() { return std::make_unique<BoundCommand>(); }

}  // namespace baton::cli
