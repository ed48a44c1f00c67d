#include <baton/synth/joint_plan.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace baton::synth {
namespace {

constexpr std::int64_t kFewTrees = 64;
constexpr std::int64_t kManyTrees = 1 << 16;  // with all turned copies

// Edges of the graph by their ends and way.
class EdgeNumbers {
public:
    explicit EdgeNumbers(const RankGraph& graph) {
        for (std::size_t e = 0; e < graph.edges().size(); ++e) {
            const RankEdge& edge = graph.edges()[e];
            numbers_[{edge.from, edge.to, edge.way}] = static_cast<int>(e);
        }
    }
    int at(int from, int to, int way) const { return numbers_.at({from, to, way}); }

private:
    std::map<std::tuple<int, int, int>, int> numbers_;
};

void settle_depths(PlannedTree& tree) {
    std::map<int, int> depth = {{tree.root, 0}};
    for (PlannedTree::Hop& hop : tree.hops) {
        hop.depth = depth[hop.child] = depth[hop.parent] + 1;
        tree.depth = std::max(tree.depth, hop.depth);
    }
}

// Whole numbers near to `exact` that sum to `sum`, by largest remainder.
std::vector<std::int64_t> shared_out(const std::vector<double>& exact, std::int64_t sum) {
    double all = 0;
    for (const double value : exact) all += value;
    std::vector<std::int64_t> whole;
    std::vector<std::pair<double, std::size_t>> rests;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double part = all > 0 ? exact[i] / all * static_cast<double>(sum) : 0;
        whole.push_back(static_cast<std::int64_t>(part + 1e-6));
        rests.push_back({part - static_cast<double>(whole.back()), i});
    }
    std::int64_t left = sum - std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
    std::stable_sort(rests.begin(), rests.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; i < rests.size() && left > 0; ++i, --left) ++whole[rests[i].second];
    return whole;
}

// Trees with whole shares, `count` in all.
class Rounding {
public:
    Rounding(const JointTrees& trees, const std::vector<std::size_t>& numbers, const EdgeLoads& loads)
        : numbers_(numbers), loads_(loads) {
        std::map<int, double> share;
        for (const WeightedTree& tree : trees.in) share[tree.root] += tree.rate;
        for (const auto& [root, rate] : share) {
            roots_.push_back(root);
            exact_.push_back(rate);
            for (const bool out : {false, true}) {
                Own& own = trees_[out].emplace_back();
                for (const WeightedTree& tree : out ? trees.out : trees.in) {
                    if (tree.root != root) continue;
                    own.trees.push_back(&tree);
                    own.exact.push_back(tree.rate);
                }
            }
        }
    }

    struct Shares {
        std::vector<std::pair<const WeightedTree*, std::int64_t>> in, out;
    };

    Shares of(std::int64_t count) const {
        const std::vector<std::int64_t> whole = shared_out(exact_, count);
        Shares shares;
        for (std::size_t i = 0; i < roots_.size(); ++i) {
            for (const bool out : {false, true}) {
                const Own& own = trees_[out][i];
                const std::vector<std::int64_t> parts = shared_out(own.exact, whole[i]);
                for (std::size_t t = 0; t < parts.size(); ++t) {
                    if (parts[t] > 0) (out ? shares.out : shares.in).push_back({own.trees[t], parts[t]});
                }
            }
        }
        return shares;
    }

    double rate(const Shares& shares) const {
        std::map<std::size_t, double> sum;
        double total = 0, worst = 0;
        for (const bool out : {false, true}) {
            for (const auto& [tree, weight] : out ? shares.out : shares.in) {
                if (out) total += static_cast<double>(weight);
                for (const int e : tree->edges) {
                    for (const auto& [resource, load] : loads_[numbers_[at(e)]])
                        sum[resource] += load * static_cast<double>(weight);
                }
            }
        }
        for (const auto& [resource, seconds] : sum) worst = std::max(worst, seconds);
        return worst > 0 ? total / worst : 0;
    }

private:
    struct Own {
        std::vector<const WeightedTree*> trees;
        std::vector<double> exact;
    };
    const std::vector<std::size_t>& numbers_;
    const EdgeLoads& loads_;
    std::vector<int> roots_;
    std::vector<double> exact_;
    std::vector<Own> trees_[2];  // per root
};

}  // namespace

std::int64_t JointPlan::total() const {
    std::int64_t sum = 0;
    for (const PlannedTree& tree : out) sum += tree.weight;
    return sum;
}

JointPlan plan_of_forests(const RankGraph& graph, const Forest& in, const Forest& out) {
    const EdgeNumbers numbers(graph);
    JointPlan plan;
    const std::int64_t whole = std::lcm(in.per_root, out.per_root);
    for (const bool down : {false, true}) {
        const Forest& forest = down ? out : in;
        for (const PackedTree& packed : forest.trees) {
            PlannedTree tree;
            tree.root = packed.root;
            tree.weight = packed.multiplicity * (whole / forest.per_root);
            for (std::size_t e = 0; e < packed.edges.size(); ++e) {
                const auto& [parent, child] = packed.edges[e];
                const int way = packed.ways.empty() ? -1 : packed.ways[e];
                tree.hops.push_back({0, parent, child, way,
                                     down ? numbers.at(parent, child, way) : numbers.at(child, parent, way)});
            }
            settle_depths(tree);
            (down ? plan.out : plan.in).push_back(std::move(tree));
        }
    }
    return plan;
}

JointPlan whole_shares(const RankGraph& graph, const JointTrees& trees,
                       const std::vector<std::size_t>& numbers, const EdgeLoads& loads, std::int64_t copies,
                       double most_loss) {
    const Rounding rounding(trees, numbers, loads);
    Rounding::Shares best;
    double best_rate = 0;
    const auto offer = [&](std::int64_t count) {
        Rounding::Shares shares = rounding.of(count);
        const double made = rounding.rate(shares);
        if (made <= best_rate) return;
        best_rate = made;
        best = std::move(shares);
    };
    for (std::int64_t count = 1; count <= kFewTrees && best_rate < trees.rate * (1 - most_loss); ++count)
        offer(count);
    if (best_rate < trees.rate * (1 - most_loss)) offer(kManyTrees / copies);
    JointPlan plan;
    for (const bool out : {false, true}) {
        for (const auto& [chosen, weight] : out ? best.out : best.in) {
            PlannedTree tree;
            tree.root = chosen->root;
            tree.weight = weight;
            for (const int e : chosen->edges) {
                const std::size_t number = numbers[at(e)];
                const RankEdge& edge = graph.edges()[number];
                tree.hops.push_back({0, out ? edge.from : edge.to, out ? edge.to : edge.from, edge.way,
                                     static_cast<int>(number)});
            }
            settle_depths(tree);
            (out ? plan.out : plan.in).push_back(std::move(tree));
        }
    }
    return plan;
}

JointPlan turned_plan(const JointPlan& plan, const RankGraph& graph, const RankGroup& group,
                      const std::vector<std::vector<int>>& edges) {
    JointPlan whole;
    for (std::size_t g = 0; g < group.size(); ++g) {
        for (const bool out : {false, true}) {
            for (PlannedTree tree : out ? plan.out : plan.in) {
                tree.root = group[g][at(tree.root)];
                for (PlannedTree::Hop& hop : tree.hops) {
                    hop.parent = group[g][at(hop.parent)];
                    hop.child = group[g][at(hop.child)];
                    hop.edge = edges[g][at(hop.edge)];
                    hop.way = graph.edges()[at(hop.edge)].way;
                }
                (out ? whole.out : whole.in).push_back(std::move(tree));
            }
        }
    }
    return whole;
}

double rate_of(const JointPlan& plan, const RankGraph& graph) {
    std::vector<double> load(graph.capacities().size(), 0);
    for (const std::vector<PlannedTree>* trees : {&plan.in, &plan.out}) {
        for (const PlannedTree& tree : *trees) {
            for (const PlannedTree::Hop& hop : tree.hops) {
                for (const topologies::LinkShare& use : graph.uses()[at(hop.edge)])
                    load[at(use.link)] += use.share * static_cast<double>(tree.weight);
            }
        }
    }
    double worst = 0;
    for (std::size_t r = 0; r < load.size(); ++r) {
        if (load[r] > 0) worst = std::max(worst, load[r] / graph.capacities()[r]);
    }
    return worst > 0 ? static_cast<double>(plan.total()) / worst : 0;
}

}  // namespace baton::synth
