// Linear programs that grow: variables and rows are added, solved, and added again (cutting planes, columns).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace baton::synth {

/// What came out of a solve. Numbers are floating point and right to about 1e-9 relative: results that are
/// asserted are rounded and checked again in integers by the caller.
struct LinearSolution {
    enum class Status : std::uint8_t {
        optimal,
        infeasible,
        unbounded,
        stopped  ///< the limit of work ended it: `values` mean nothing
    };
    Status status = Status::stopped;
    double objective = 0;
    std::vector<double> values;  ///< per variable
    std::vector<double> duals;   ///< per row: change of the objective per unit of the bound that binds
};

/// Minimizes or maximizes a linear function. The simplex methods of COIN-OR Clp; a solve after rows or
/// columns were added starts from the last basis, by the dual method, after columns by the primal one.
class LinearProgram {
public:
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();

    explicit LinearProgram(bool maximize);
    ~LinearProgram();
    LinearProgram(LinearProgram&&) noexcept;
    LinearProgram& operator=(LinearProgram&&) noexcept;

    /// A variable in [low, high] that the objective counts `cost` times; returns its number. Bounds may be
    /// infinite.
    int add_variable(double cost, double low = 0, double high = kInfinity);
    /// A variable that joins rows that are there: `terms` has (row, factor), a row at most once.
    int add_column(double cost, double low, double high, const std::vector<std::pair<int, double>>& terms);
    /// low <= sum of factor * variable <= high; returns the row's number. A variable stands in `terms` at
    /// most once.
    int add_row(double low, double high, const std::vector<std::pair<int, double>>& terms);
    void set_bounds(int variable, double low, double high);
    void set_row_bounds(int row, double low, double high);
    void set_cost(int variable, double cost);
    int variables() const;
    int rows() const;

    /// Solves, with at most `most_work` of work: pivots times the number of variables and rows, some 50
    /// million of it in a second. Same program, same solution. Throws Stopped when this thread's
    /// stop token ends it.
    LinearSolution solve(std::int64_t most_work = INT64_MAX);
    /// Work of all solves so far.
    std::int64_t work() const;

private:
    struct Clp;
    std::unique_ptr<Clp> clp_;
};

}  // namespace baton::synth
