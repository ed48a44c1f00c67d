#include <baton/synth/joint_optimum.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/linear_program.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/rank_graph.hpp>
#include <baton/synth/rooted_cuts.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

constexpr double kFlowUnits = 1e10;  // per unit of the scaled rate
constexpr double kViolation = 1e-7;  // relative to the rate
// Among optimal solutions one that moves little: superfluous capacity makes superfluous trees.
constexpr double kLoadCost = 1e-5;

class JointProgram {
public:
    JointProgram(const JointGraph& graph, std::int64_t most_work)
        : graph_(graph), most_work_(most_work), lp_(true) {
        for (const double capacity : graph.capacity) scale_ = std::max(scale_, capacity);
        for (int v = 0; v < graph.vertices; ++v)
            share_.push_back(lp_.add_variable(1, 0, graph.is_rank[at(v)] ? LinearProgram::kInfinity : 0));
        for (std::vector<int>* phase : {&reduce_, &broadcast_}) {
            for (std::size_t a = 0; a < graph.arcs.size(); ++a)
                phase->push_back(lp_.add_variable(-kLoadCost));
        }
        std::vector<std::pair<int, int>> forward, backward;
        for (const JointGraph::Arc& arc : graph.arcs) {
            forward.push_back({arc.from, arc.to});
            backward.push_back({arc.to, arc.from});
        }
        for (int v = 0; v < graph.vertices; ++v) {
            if (graph.is_rank[at(v)]) ranks_.push_back(v);
        }
        outward_.emplace(graph.vertices, forward, ranks_, ranks_);
        inward_.emplace(graph.vertices, backward, ranks_, ranks_);
        std::vector<std::vector<std::pair<int, double>>> load(graph.capacity.size());
        for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
            for (const topologies::LinkShare& use : graph.arcs[a].uses) {
                load[at(use.link)].push_back({reduce_[a], use.share});
                load[at(use.link)].push_back({broadcast_[a], use.share});
            }
        }
        for (std::size_t r = 0; r < load.size(); ++r) {
            capacity_row_.push_back(load[r].empty() ? -1
                                                    : lp_.add_row(-LinearProgram::kInfinity,
                                                                  graph.capacity[r] / scale_, load[r]));
        }
        for (int v = 0; v < graph.vertices; ++v) {
            std::vector<char> set(at(graph.vertices), 0);
            set[at(v)] = 1;
            if (!graph.is_rank[at(v)]) {
                conserve(v, reduce_);
                conserve(v, broadcast_);
                continue;
            }
            add_cut(set, true);
            add_cut(set, false);
            for (char& inside : set) inside = !inside;
            add_cut(set, true);
            add_cut(set, false);
        }
    }

    JointOptimum solve() {
        JointOptimum optimum;
        LinearSolution solution = cut_down(optimum);
        const auto take = [&](const std::vector<int>& variables, std::vector<double>& values) {
            for (const int x : variables) values.push_back(std::max(0.0, solution.values[at(x)]) * scale_);
        };
        take(share_, optimum.share);
        take(reduce_, optimum.reduce);
        take(broadcast_, optimum.broadcast);
        optimum.rate = std::accumulate(optimum.share.begin(), optimum.share.end(), 0.0);
        // The cost of load bends the duals a little.
        for (const std::vector<int>* phase : {&reduce_, &broadcast_}) {
            for (const int x : *phase) lp_.set_cost(x, 0);
        }
        solution = cut_down(optimum);
        for (const int row : capacity_row_)
            optimum.prices.push_back(row < 0 ? 0 : std::max(0.0, solution.duals[at(row)]));
        return optimum;
    }

private:
    // Solves and adds cuts until none is violated.
    LinearSolution cut_down(JointOptimum& optimum) {
        while (true) {
            // What a round of maximum flows takes counts too.
            const std::int64_t left =
                most_work_ - lp_.work() - optimum.rounds * graph_.vertices * std::ssize(graph_.arcs);
            LinearSolution solution = lp_.solve(left);
            if (left <= 0 || solution.status == LinearSolution::Status::stopped)
                throw input_error("the linear program over both phases takes too long on this topology", {},
                                  "choose another algorithm");
            if (solution.status != LinearSolution::Status::optimal)
                throw internal_error("the linear program of a joint all_reduce has no solution");
            ++optimum.rounds;
            double rate = 0;
            for (const int x : share_) rate += std::max(0.0, solution.values[at(x)]);
            const int before = optimum.cuts;
            for (const bool outward : {true, false}) optimum.cuts += separate(solution.values, outward, rate);
            if (optimum.cuts == before) return solution;
        }
    }

    void conserve(int v, const std::vector<int>& phase) {
        std::vector<std::pair<int, double>> terms;
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            if (graph_.arcs[a].from == v) terms.push_back({phase[a], -1});
            if (graph_.arcs[a].to == v) terms.push_back({phase[a], 1});
        }
        if (!terms.empty()) lp_.add_row(0, 0, terms);
    }

    // What the set must receive (outward: of broadcasts) or give (of reductions). False when it is known.
    bool add_cut(const std::vector<char>& set, bool outward) {
        if (!known_.insert({outward, set}).second) return false;
        std::vector<std::pair<int, double>> terms;
        bool holds_rank = false;
        for (int v = 0; v < graph_.vertices; ++v) {
            if (!graph_.is_rank[at(v)]) continue;
            if (set[at(v)])
                holds_rank = true;
            else
                terms.push_back({share_[at(v)], -1});
        }
        if (!holds_rank || terms.empty()) return false;
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            const bool from = set[at(graph_.arcs[a].from)], to = set[at(graph_.arcs[a].to)];
            if (outward ? to && !from : from && !to)
                terms.push_back({(outward ? broadcast_ : reduce_)[a], 1});
        }
        lp_.add_row(0, LinearProgram::kInfinity, terms);
        return true;
    }

    int separate(const std::vector<double>& values, bool outward, double rate) {
        // A little less is asked for than promised, so that rounding alone violates nothing.
        const double unit = rate / kFlowUnits;
        const auto units = [&](int variable) {
            return static_cast<std::int64_t>(std::max(0.0, values[at(variable)]) / unit);
        };
        std::vector<std::int64_t> rates, shares;
        for (const int variable : outward ? broadcast_ : reduce_) rates.push_back(units(variable));
        const std::int64_t grain = static_cast<std::int64_t>(graph_.arcs.size()) + graph_.vertices;
        for (const int v : ranks_) {
            const std::int64_t share = units(share_[at(v)]);
            const auto less =
                static_cast<std::int64_t>(static_cast<double>(share) * kViolation) + (share > 0 ? grain : 0);
            shares.push_back(std::max<std::int64_t>(0, share - less));
        }
        int added = 0;
        for (std::vector<char> set : (outward ? outward_ : inward_)->violated(rates, shares)) {
            for (char& inside : set) inside = !inside;
            added += add_cut(set, outward) ? 1 : 0;
        }
        return added;
    }

    const JointGraph& graph_;
    std::int64_t most_work_;
    double scale_ = 1;
    LinearProgram lp_;
    std::vector<int> capacity_row_;
    std::vector<int> ranks_, share_, reduce_, broadcast_;
    std::optional<RootedCuts> outward_, inward_;
    std::set<std::pair<bool, std::vector<char>>> known_;
};

}  // namespace

JointOptimum joint_optimum(const JointGraph& graph, std::int64_t most_work) {
    return JointProgram(graph, most_work).solve();
}

JointGraph fabric_graph(const topologies::Topology& topology, const std::vector<char>& member) {
    JointGraph graph;
    graph.vertices = static_cast<int>(topology.nodes.size());
    graph.is_rank = member;
    graph.capacity = resource_capacities(topology);
    const std::vector<std::vector<int>> limits_of = limits_of_links(topology);
    const auto idle = [&](int node) {
        return topology.nodes[at(node)].type == topologies::NodeType::gpu && !member[at(node)];
    };
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const topologies::Link& link = topology.links[l];
        if (idle(link.from) || idle(link.to) || link.from == link.to) continue;
        JointGraph::Arc arc{link.from, link.to, {{static_cast<int>(l), 1.0}}};
        for (const int limit : limits_of[l]) arc.uses.push_back({limit, 1.0});
        graph.arcs.push_back(std::move(arc));
    }
    return graph;
}

std::optional<JointOptimum> end_point_optimum(const topologies::Topology& topology,
                                              const ir::Collective& collective) {
    constexpr int kMostRanks = 64;
    constexpr std::size_t kMostArcs = 400;
    constexpr std::int64_t kQuickWork = 200'000'000;  // some seconds
    if (collective.kind != ir::CollectiveKind::all_reduce || !collective.groups.empty() ||
        collective.ranks < 2 || collective.ranks > kMostRanks)
        return std::nullopt;
    const JointGraph graph = fabric_graph(topology, member_nodes(topology, collective));
    if (graph.arcs.size() > kMostArcs) return std::nullopt;
    try {
        return joint_optimum(graph, kQuickWork);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        return std::nullopt;  // took too long
    }
}

}  // namespace baton::synth
