#include <baton/synth/rate_division.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/linear_program.hpp>
#include <baton/synth/rooted_cuts.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

// Rates in units in which the largest is 2^30; a little less is asked for than promised, so that rounding
// alone violates nothing.
std::set<std::vector<char>> violated_sets(RootedCuts& cuts, const std::vector<double>& rates, double per_root,
                                          int ranks, std::size_t roots) {
    const double unit = std::max(*std::max_element(rates.begin(), rates.end()), per_root) / (1 << 30);
    std::vector<std::int64_t> whole;
    for (const double rate : rates) whole.push_back(static_cast<std::int64_t>(rate / unit));
    const auto wanted = static_cast<std::int64_t>(per_root / unit * (1 - 1e-6)) - ranks;
    return cuts.violated(whole, std::vector<std::int64_t>(roots, std::max<std::int64_t>(0, wanted)));
}

class Division {
public:
    Division(int ranks, const std::vector<RankEdge>& edges,
             const std::vector<std::vector<topologies::LinkShare>>& uses,
             const std::vector<double>& capacities, const std::vector<int>& roots)
        : ranks_(ranks), edges_(edges), uses_(uses), capacities_(capacities), roots_(roots), program_(true) {
        unit_ = *std::max_element(capacities.begin(), capacities.end());
        per_root_ = program_.add_variable(1);
        for (std::size_t e = 0; e < edges.size(); ++e) program_.add_variable(-1e-9);
        std::vector<std::vector<std::pair<int, double>>> rows(capacities.size());
        for (std::size_t e = 0; e < edges.size(); ++e) {
            for (const topologies::LinkShare& use : uses[e])
                rows[at(use.link)].push_back({variable(e), use.share});
        }
        for (std::size_t r = 0; r < rows.size(); ++r) {
            if (!rows[r].empty()) program_.add_row(-LinearProgram::kInfinity, capacities[r] / unit_, rows[r]);
        }
        for (int v = 0; v < ranks; ++v) {
            std::vector<char> others(at(ranks), 1), alone(at(ranks), 0);
            others[at(v)] = 0;
            alone[at(v)] = 1;
            add_cut(others);
            add_cut(alone);
        }
    }

    RateDivision solve(std::int64_t most_work) {
        std::vector<std::pair<int, int>> arcs;
        for (const RankEdge& edge : edges_) arcs.push_back({edge.from, edge.to});
        std::vector<int> sinks(at(ranks_));
        std::iota(sinks.begin(), sinks.end(), 0);
        RootedCuts cuts(ranks_, arcs, roots_, sinks);
        RateDivision division;
        constexpr int kRounds = 400;
        for (int round = 0; round < kRounds; ++round) {
            // What a round of maximum flows takes counts too.
            const std::int64_t spent =
                program_.work() + round * ranks_ * static_cast<std::int64_t>(edges_.size());
            if (spent > most_work) return division;
            const LinearSolution solution = program_.solve(most_work - spent);
            if (solution.status != LinearSolution::Status::optimal || solution.values[0] <= 0)
                return division;
            std::vector<double> rates(edges_.size());
            for (std::size_t e = 0; e < edges_.size(); ++e)
                rates[e] = std::max(0.0, solution.values[at(variable(e))]) * unit_;
            bool more = false;
            for (const auto& inside :
                 violated_sets(cuts, rates, solution.values[0] * unit_, ranks_, roots_.size()))
                more |= add_cut(inside);
            if (more) continue;
            division.seconds_per_byte = 1 / (solution.values[0] * unit_);
            division.rates = std::move(rates);
            division.solved = true;
            spread_rest(division.rates);
            return division;
        }
        return division;
    }

private:
    static int variable(std::size_t e) { return static_cast<int>(e) + 1; }

    // False when the cut is known or says nothing.
    bool add_cut(const std::vector<char>& inside) {
        std::int64_t held = 0;
        for (const int root : roots_) held += inside[at(root)];
        if (held == 0 || !known_.insert(inside).second) return false;
        std::vector<std::pair<int, double>> terms = {{per_root_, -static_cast<double>(held)}};
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            if (inside[at(edges_[e].from)] && !inside[at(edges_[e].to)]) terms.push_back({variable(e), 1});
        }
        program_.add_row(0, LinearProgram::kInfinity, terms);
        return true;
    }

    // All rates rise evenly until a resource on the way is full.
    void spread_rest(std::vector<double>& rates) const {
        std::vector<double> rest = capacities_;
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            for (const topologies::LinkShare& use : uses_[e]) rest[at(use.link)] -= use.share * rates[e];
        }
        std::vector<char> open(edges_.size(), 1);
        for (std::size_t rounds = 0; rounds < capacities_.size(); ++rounds) {
            std::vector<double> pressure(rest.size(), 0);
            for (std::size_t e = 0; e < edges_.size(); ++e) {
                for (const topologies::LinkShare& use : uses_[e]) {
                    if (rest[at(use.link)] <= 1e-9 * capacities_[at(use.link)]) open[e] = 0;
                }
                for (const topologies::LinkShare& use : uses_[e])
                    pressure[at(use.link)] += open[e] ? use.share : 0;
            }
            double step = INFINITY;
            for (std::size_t r = 0; r < rest.size(); ++r) {
                if (pressure[r] > 1e-12) step = std::min(step, rest[r] / pressure[r]);
            }
            if (!std::isfinite(step)) break;
            for (std::size_t e = 0; e < edges_.size(); ++e) rates[e] += open[e] ? step : 0;
            for (std::size_t r = 0; r < rest.size(); ++r) rest[r] -= pressure[r] * step;
        }
    }

    int ranks_;
    const std::vector<RankEdge>& edges_;
    const std::vector<std::vector<topologies::LinkShare>>& uses_;
    const std::vector<double>& capacities_;
    const std::vector<int>& roots_;
    LinearProgram program_;
    int per_root_ = 0;
    double unit_ = 1;
    std::set<std::vector<char>> known_;
};

}  // namespace

RateDivision divide_rates(int ranks, const std::vector<RankEdge>& edges,
                          const std::vector<std::vector<topologies::LinkShare>>& uses,
                          const std::vector<double>& capacities, const std::vector<int>& roots,
                          std::int64_t most_work) {
    if (ranks < 2 || edges.empty() || roots.empty()) return {};
    return Division(ranks, edges, uses, capacities, roots).solve(most_work);
}

}  // namespace baton::synth
