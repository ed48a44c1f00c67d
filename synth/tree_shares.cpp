#include <baton/synth/tree_shares.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/linear_program.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace baton::synth {
namespace {

using topologies::LinkShare;
using topologies::Routes;
using topologies::Topology;

constexpr std::size_t kMostSharedTrees = 2000;
constexpr std::int64_t kShareWork = 20'000'000;
constexpr std::int64_t kFewShares = 64, kManyShares = 1 << 14;  // of a root
constexpr double kShareLoss = 2e-4, kShareGain = 5e-4;

// What a byte along each tree takes of the links and limits, in seconds.
class TreeLoads {
public:
    TreeLoads(const Topology& topology, const Routes& routes, bool turned, const WayNumbers& ways)
        : routes_(routes),
          turned_(turned),
          ways_(ways),
          limits_of_(limits_of_links(topology)),
          capacity_(resource_capacities(topology)) {}

    std::map<int, double> of(const PackedTree& tree) {
        std::map<int, double> seconds;
        for (std::size_t e = 0; e < tree.edges.size(); ++e) {
            auto [sender, receiver] = tree.edges[e];
            if (turned_) std::swap(sender, receiver);
            for (const LinkShare& use : uses(sender, receiver, tree.ways.empty() ? -1 : tree.ways[e]))
                seconds[use.link] += use.share / capacity_[at(use.link)];
        }
        return seconds;
    }

private:
    const std::vector<LinkShare>& uses(int sender, int receiver, int way) {
        const auto [place, fresh] =
            known_.emplace(std::tuple(sender, receiver, way), std::vector<LinkShare>());
        if (fresh)
            place->second =
                resource_uses(way < 0 ? routes_.between(sender, receiver)
                                      : routes_.via(sender, receiver, ways_.all().at(place->first)),
                              limits_of_);
        return place->second;
    }

    const Routes& routes_;
    bool turned_;
    const WayNumbers& ways_;
    std::vector<std::vector<int>> limits_of_;
    std::vector<double> capacity_;
    std::map<std::tuple<int, int, int>, std::vector<LinkShare>> known_;
};

// Per tree, its part of its root's data; empty where the program is not solved.
std::vector<double> best_shares(const std::vector<PackedTree>& trees, TreeLoads& loads) {
    LinearProgram lp(false);
    const int time = lp.add_variable(1);
    std::map<int, std::vector<std::pair<int, double>>> roots, busy;  // terms by root, and by resource
    for (const PackedTree& tree : trees) {
        const int share = lp.add_variable(0);
        roots[tree.root].push_back({share, 1});
        for (const auto& [resource, seconds] : loads.of(tree)) busy[resource].push_back({share, seconds});
    }
    double scale = 0;
    for (const auto& [resource, terms] : busy) {
        for (const auto& [share, seconds] : terms) scale = std::max(scale, seconds);
    }
    for (const auto& [root, terms] : roots) lp.add_row(1, 1, terms);
    for (auto& [resource, terms] : busy) {
        for (auto& [share, seconds] : terms) seconds /= scale;
        terms.push_back({time, -1});
        lp.add_row(-LinearProgram::kInfinity, 0, terms);
    }
    const LinearSolution solution = lp.solve(kShareWork);
    if (solution.status != LinearSolution::Status::optimal) return {};
    return {solution.values.begin() + 1, solution.values.end()};
}

// Whole shares of one root that sum to `count`, by largest remainder.
std::vector<std::int64_t> whole_shares(const std::vector<double>& shares, std::int64_t count) {
    const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<std::int64_t> whole;
    std::vector<std::pair<double, std::size_t>> rests;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const double part = std::max(0.0, shares[i]) / all * static_cast<double>(count);
        whole.push_back(static_cast<std::int64_t>(part + 1e-6));
        rests.push_back({part - static_cast<double>(whole.back()), i});
    }
    std::int64_t left = count - std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
    std::stable_sort(rests.begin(), rests.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; i < rests.size() && left > 0; ++i, --left) ++whole[rests[i].second];
    return whole;
}

// Trees of a root stand side by side, and stay so.
Forest with_shares(const Forest& forest, const std::vector<double>& shares, std::int64_t count) {
    Forest made;
    made.per_root = count;
    made.optimum = forest.optimum;
    for (std::size_t t = 0; t < forest.trees.size();) {
        std::size_t end = t;
        while (end < forest.trees.size() && forest.trees[end].root == forest.trees[t].root) ++end;
        const std::vector<std::int64_t> whole =
            whole_shares({shares.begin() + static_cast<std::ptrdiff_t>(t),
                          shares.begin() + static_cast<std::ptrdiff_t>(end)},
                         count);
        for (std::size_t i = 0; t < end; ++t, ++i) {
            if (whole[i] == 0) continue;
            made.trees.push_back(forest.trees[t]);
            made.trees.back().multiplicity = whole[i];
        }
    }
    return made;
}

}  // namespace

Forest reshared(const Topology& topology, const Routes& routes, Forest forest, bool turned,
                const WayNumbers& ways) {
    if (forest.trees.size() < 2 || forest.trees.size() > kMostSharedTrees) return forest;
    TreeLoads loads(topology, routes, turned, ways);
    const std::vector<double> shares = best_shares(forest.trees, loads);
    if (shares.empty()) return forest;
    const auto timed = [&](std::int64_t count) {
        Forest made = with_shares(forest, shares, count);
        made.seconds_per_byte = forest_time(topology, routes, made, turned, ways);
        return made;
    };
    const Forest fine = timed(kManyShares);
    if (fine.seconds_per_byte > forest.seconds_per_byte * (1 - kShareGain)) return forest;
    for (std::int64_t count = 2; count <= kFewShares; ++count) {
        Forest made = timed(count);
        if (made.seconds_per_byte <= fine.seconds_per_byte * (1 + kShareLoss)) return made;
    }
    return fine;
}

}  // namespace baton::synth
