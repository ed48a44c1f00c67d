#include <baton/synth/rate_division.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/linear_program.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

namespace baton::synth {
namespace {

// Sets of ranks with too little rate out of them.
class CutFinder {
public:
    CutFinder(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots)
        : ranks_(ranks), edges_(edges), roots_(roots), flow_(ranks + 1) {
        for (const RankEdge& edge : edges) flow_.add(edge.from, edge.to, 0);
        for (const int root : roots) flow_.add(ranks, root, 0);
    }
    // Rates in units in which the largest is 2^30.
    std::set<std::vector<char>> violated(const std::vector<double>& rates, double per_root) {
        const double largest = *std::max_element(rates.begin(), rates.end());
        const double unit = std::max(largest, per_root) / (1 << 30);
        for (std::size_t e = 0; e < edges_.size(); ++e)
            flow_.set_capacity(static_cast<int>(e), static_cast<std::int64_t>(rates[e] / unit));
        // A little less is asked for than promised, so that rounding alone violates nothing.
        const auto wanted = static_cast<std::int64_t>(per_root / unit * (1 - 1e-6)) - ranks_;
        if (wanted <= 0) return {};
        for (std::size_t i = 0; i < roots_.size(); ++i)
            flow_.set_capacity(static_cast<int>(edges_.size() + i), wanted);
        const std::int64_t all = wanted * static_cast<std::int64_t>(roots_.size());
        std::set<std::vector<char>> found;
        int holder = -1;
        for (int v = 0; v < ranks_; ++v) {
            const std::int64_t reached = holder < 0 ? flow_.run(ranks_, v, all) : flow_.move(holder, v, all);
            holder = reached < all ? -1 : v;
            if (reached == all) continue;
            std::vector<char> inside(at(ranks_));
            for (int x = 0; x < ranks_; ++x) inside[at(x)] = flow_.source_side(x);
            for (const int root : roots_) {
                // `move` tells all but the source itself; a set without roots says nothing.
                if (inside[at(root)]) {
                    found.insert(inside);
                    break;
                }
            }
        }
        return found;
    }

private:
    int ranks_;
    const std::vector<RankEdge>& edges_;
    const std::vector<int>& roots_;
    MaxFlow<std::int64_t> flow_;
};

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

    RateDivision solve(double seconds) {
        const auto start = std::chrono::steady_clock::now();
        CutFinder cuts(ranks_, edges_, roots_);
        RateDivision division;
        constexpr int kRounds = 400;
        for (int round = 0; round < kRounds; ++round) {
            const double spent =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            if (spent > seconds) return division;
            const LinearSolution solution = program_.solve(seconds - spent);
            if (solution.status != LinearSolution::Status::optimal || solution.values[0] <= 0)
                return division;
            std::vector<double> rates(edges_.size());
            for (std::size_t e = 0; e < edges_.size(); ++e)
                rates[e] = std::max(0.0, solution.values[at(variable(e))]) * unit_;
            bool more = false;
            for (const auto& inside : cuts.violated(rates, solution.values[0] * unit_))
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
                          double seconds) {
    if (ranks < 2 || edges.empty() || roots.empty()) return {};
    return Division(ranks, edges, uses, capacities, roots).solve(seconds);
}

}  // namespace baton::synth
