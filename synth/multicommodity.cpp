#include <baton/synth/multicommodity.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/flow_descent.hpp>
#include <baton/synth/flow_lengths.hpp>
#include <baton/synth/flow_symmetry.hpp>
#include <baton/synth/linear_program.hpp>

#include <algorithm>
#include <cmath>

namespace baton::synth {
namespace {

// Variables: one per (source, arc) and the time; rows: conservation per (source, vertex), capacity per
// resource. Costs are not negative, so the dual simplex method starts without a first phase.
class SourceFlowProgram {
public:
    explicit SourceFlowProgram(const FlowNetwork& network) : network_(network), program_(false) {
        for (const FlowResource& resource : network.resources)
            unit_ = std::max(unit_, static_cast<double>(resource.capacity));
        time_ = program_.add_variable(1);
        load_.resize(network.resources.size());
        for (const FlowDemand& demand : network.demands) add(demand);
        for (std::size_t r = 0; r < load_.size(); ++r) {
            load_[r].push_back({time_, -static_cast<double>(network.resources[r].capacity) / unit_});
            const int row = program_.add_row(-LinearProgram::kInfinity, 0, load_[r]);
            if (r == 0) first_capacity_row_ = row;
        }
    }

    /// False when no optimum came out.
    bool solve(ConcurrentFlow& flow) {
        const LinearSolution solution = program_.solve();
        if (solution.status != LinearSolution::Status::optimal) return false;
        flow.units.clear();
        for (const std::vector<int>& variables : variable_) {
            std::vector<double> units(network_.arcs.size(), 0);
            for (std::size_t a = 0; a < units.size(); ++a) {
                if (variables[a] >= 0) units[a] = std::max(0.0, solution.values[at(variables[a])]);
            }
            flow.units.push_back(std::move(units));
        }
        flow.lengths.clear();
        for (std::size_t r = 0; r < load_.size(); ++r)
            flow.lengths.push_back(std::max(0.0, -solution.duals[at(first_capacity_row_) + r]));
        flow.bound = solution.objective / unit_;
        return true;
    }

private:
    void add(const FlowDemand& demand) {
        stop_point();
        std::vector<int>& variables = variable_.emplace_back(network_.arcs.size(), -1);
        for (std::size_t a = 0; a < variables.size(); ++a) {
            const FlowArc& arc = network_.arcs[a];
            if (arc.to == demand.source) continue;
            variables[a] = program_.add_variable(0);
            for (const int r : arc.resources) load_[at(r)].push_back({variables[a], 1});
        }
        std::vector<double> wanted(at(network_.vertices), 0);
        for (const int sink : demand.sinks) wanted[at(sink)] = 1;
        for (int v = 0; v < network_.vertices; ++v) {
            if (v == demand.source) continue;
            std::vector<std::pair<int, double>> terms;
            for (const int a : network_.in[at(v)]) {
                if (variables[at(a)] >= 0) terms.push_back({variables[at(a)], 1});
            }
            for (const int a : network_.out[at(v)]) {
                if (variables[at(a)] >= 0) terms.push_back({variables[at(a)], -1});
            }
            if (!terms.empty()) program_.add_row(wanted[at(v)], wanted[at(v)], terms);
        }
    }

    const FlowNetwork& network_;
    LinearProgram program_;
    double unit_ = 1;
    int time_ = 0, first_capacity_row_ = 0;
    std::vector<std::vector<int>> variable_;                 // [demand][arc]
    std::vector<std::vector<std::pair<int, double>>> load_;  // [resource]: terms
};

void check_reach(const FlowNetwork& network) {
    const std::vector<std::int64_t> lengths(network.arcs.size(), 1);
    for (const FlowDemand& demand : network.demands) {
        const std::vector<std::int64_t> distance = distances_from(network, lengths, demand.source);
        for (const int sink : demand.sinks) {
            if (distance[at(sink)] == kOutOfReach)
                throw input_error("a rank cannot reach another, not even through other ranks");
        }
    }
}

}  // namespace

ConcurrentFlow concurrent_flow(const FlowNetwork& network, const FlowLimits& limits) {
    check_reach(network);
    ConcurrentFlow flow = symmetric_flow(network, limits);
    const auto entries =
        static_cast<std::int64_t>(network.demands.size()) * static_cast<std::int64_t>(network.arcs.size());
    if (flow.optimal) return flow;
    if (entries > limits.most_entries) {
        descend(network, limits, flow);
        return flow;
    }
    ConcurrentFlow full;
    if (!SourceFlowProgram(network).solve(full)) return flow;
    std::vector<double> load(network.resources.size(), 0);
    for (const std::vector<double>& of_source : full.units) network.add_load(of_source, load);
    full.seconds_per_byte = network.busiest(load);
    full.optimal = full.seconds_per_byte <= full.bound * (1 + kFlowsAgree);
    if (!limits.keep_units) full.units.clear();
    return full;
}

}  // namespace baton::synth
