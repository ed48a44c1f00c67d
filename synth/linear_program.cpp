#include <baton/synth/linear_program.hpp>

#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>

namespace baton::synth {

namespace {

double bound(double value) {
    if (value == LinearProgram::kInfinity) return COIN_DBL_MAX;
    if (value == -LinearProgram::kInfinity) return -COIN_DBL_MAX;
    return value;
}

// Ends a solve when the stop token of its thread says so.
class StopHandler final : public ClpEventHandler {
public:
    int event(Event which) override {
        const bool often = which == endOfIteration || which == endOfFactorization;
        return often && current_stop().stop_requested() ? 0 : -1;
    }
    ClpEventHandler* clone() const override { return new StopHandler(*this); }
};

}  // namespace

/// Variables and rows wait here until a solve: Clp takes many at once much faster than one by one.
struct LinearProgram::Clp {
    ClpSimplex model;
    struct Variable {
        double cost, low, high;
    };
    std::vector<Variable> columns;
    int columns_there = 0, row_count = 0;
    std::vector<double> row_low, row_high, factors;  // of rows that wait
    std::vector<int> indices;
    std::vector<CoinBigIndex> starts{0};
    bool solved = false;
    std::int64_t work = 0;
    bool grown = false;  // columns with entries have come since the last solve

    void flush() {
        if (const int more = static_cast<int>(columns.size()) - columns_there; more > 0) {
            std::vector<double> low, high, cost;
            for (std::size_t i = at(columns_there); i < columns.size(); ++i) {
                low.push_back(bound(columns[i].low));
                high.push_back(bound(columns[i].high));
                cost.push_back(columns[i].cost);
            }
            // Without entries, which rows bring; Clp wants arrays all the same.
            const std::vector<CoinBigIndex> empty(at(more) + 1, 0);
            const int no_index = 0;
            const double no_factor = 0;
            model.addColumns(more, low.data(), high.data(), cost.data(), empty.data(), &no_index, &no_factor);
            columns_there += more;
        }
        if (row_low.empty()) return;
        indices.reserve(1), factors.reserve(1);
        model.addRows(static_cast<int>(row_low.size()), row_low.data(), row_high.data(), starts.data(),
                      indices.data(), factors.data());
        row_low.clear(), row_high.clear(), indices.clear(), factors.clear();
        starts.assign(1, 0);
    }
};

LinearProgram::LinearProgram(bool maximize) : clp_(std::make_unique<Clp>()) {
    clp_->model.setLogLevel(0);
    const StopHandler handler;
    clp_->model.passInEventHandler(&handler);  // copies it
    clp_->model.setOptimizationDirection(maximize ? -1 : 1);
}
LinearProgram::~LinearProgram() = default;
LinearProgram::LinearProgram(LinearProgram&&) noexcept = default;
LinearProgram& LinearProgram::operator=(LinearProgram&&) noexcept = default;

int LinearProgram::add_variable(double cost, double low, double high) {
    clp_->columns.push_back({cost, low, high});
    return static_cast<int>(clp_->columns.size()) - 1;
}

int LinearProgram::add_column(double cost, double low, double high,
                              const std::vector<std::pair<int, double>>& terms) {
    clp_->flush();
    clp_->columns.push_back({cost, low, high});
    clp_->columns_there = static_cast<int>(clp_->columns.size());
    std::vector<int> rows;
    std::vector<double> factors;
    for (const auto& [row, factor] : terms) {
        rows.push_back(row);
        factors.push_back(factor);
    }
    clp_->model.addColumn(static_cast<int>(rows.size()), rows.data(), factors.data(), bound(low), bound(high),
                          cost);
    clp_->grown = true;
    return clp_->columns_there - 1;
}

int LinearProgram::add_row(double low, double high, const std::vector<std::pair<int, double>>& terms) {
    for (const auto& [column, factor] : terms) {
        clp_->indices.push_back(column);
        clp_->factors.push_back(factor);
    }
    clp_->starts.push_back(static_cast<CoinBigIndex>(clp_->indices.size()));
    clp_->row_low.push_back(bound(low));
    clp_->row_high.push_back(bound(high));
    return clp_->row_count++;
}

void LinearProgram::set_bounds(int variable, double low, double high) {
    auto& column = clp_->columns[at(variable)];
    column.low = low, column.high = high;
    if (variable < clp_->columns_there) clp_->model.setColumnBounds(variable, bound(low), bound(high));
}

void LinearProgram::set_row_bounds(int row, double low, double high) {
    clp_->flush();
    clp_->model.setRowBounds(row, bound(low), bound(high));
}

void LinearProgram::set_cost(int variable, double cost) {
    clp_->columns[at(variable)].cost = cost;
    if (variable < clp_->columns_there) clp_->model.setObjectiveCoefficient(variable, cost);
}

int LinearProgram::variables() const { return static_cast<int>(clp_->columns.size()); }
int LinearProgram::rows() const { return clp_->row_count; }

std::int64_t LinearProgram::work() const { return clp_->work; }

LinearSolution LinearProgram::solve(std::int64_t most_work) {
    stop_point();
    clp_->flush();
    ClpSimplex& model = clp_->model;
    const std::int64_t size = std::int64_t{1} + variables() + rows();
    model.setMaximumIterations(static_cast<int>(std::clamp<std::int64_t>(most_work / size, 1, INT32_MAX)));
    if (clp_->solved && clp_->grown)
        model.primal();
    else if (clp_->solved)
        model.dual();
    else
        model.initialSolve();
    clp_->solved = true;
    clp_->work += size * (1 + model.numberIterations());
    stop_point();
    clp_->grown = false;
    LinearSolution solution;
    switch (model.status()) {
        case 0: solution.status = LinearSolution::Status::optimal; break;
        case 1: solution.status = LinearSolution::Status::infeasible; return solution;
        case 2: solution.status = LinearSolution::Status::unbounded; return solution;
        default: return solution;
    }
    solution.objective = model.objectiveValue();
    solution.values.assign(model.primalColumnSolution(), model.primalColumnSolution() + variables());
    solution.duals.assign(model.dualRowSolution(), model.dualRowSolution() + rows());
    return solution;
}

}  // namespace baton::synth
