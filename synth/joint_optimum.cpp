#include <baton/synth/joint_optimum.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/color_refinement.hpp>
#include <baton/synth/linear_program.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/rank_graph.hpp>
#include <baton/synth/rooted_cuts.hpp>
#include <baton/synth/tree_prices.hpp>

#include <algorithm>
#include <climits>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace baton::synth {
namespace {

constexpr double kFlowUnits = 1e10;  // per unit of the scaled rate
constexpr double kViolation = 1e-7;  // relative to the rate
// Among optimal solutions one that moves little: superfluous capacity makes superfluous trees.
constexpr double kLoadCost = 1e-5;

// Phases of an arc, in the order of the variables.
enum Phase : std::uint8_t { kReduce, kBroadcast };
constexpr Phase kPhases[] = {kReduce, kBroadcast};

// What has one value in the program.
struct JointClasses {
    std::vector<int> vertex, arc[2], resource;  // arc: per phase
    int vertices = 0, arcs = 0, resources = 0;
    int members(const std::vector<int>& of, int number) const {
        return static_cast<int>(std::count(of.begin(), of.end(), number));
    }
};

// Everything by itself.
JointClasses all_apart(const JointGraph& graph) {
    JointClasses classes;
    classes.vertex.resize(at(graph.vertices));
    classes.resource.resize(graph.capacity.size());
    std::iota(classes.vertex.begin(), classes.vertex.end(), 0);
    std::iota(classes.resource.begin(), classes.resource.end(), 0);
    for (const Phase phase : kPhases) {
        classes.arc[phase].resize(graph.arcs.size());
        std::iota(classes.arc[phase].begin(), classes.arc[phase].end(), classes.arcs);
        classes.arcs += static_cast<int>(graph.arcs.size());
    }
    classes.vertices = graph.vertices;
    classes.resources = static_cast<int>(graph.capacity.size());
    return classes;
}

// What color refinement cannot tell apart, over both phases at once: every vertex stands there twice, for the
// reduction with all arcs turned round. So a phase that mirrors the other shares its classes.
JointClasses alike(const JointGraph& graph) {
    ColoredNetwork network;
    std::vector<int> roles;
    for (int phase = 0; phase < 2; ++phase) {
        const int base = phase == kReduce ? graph.vertices : 0;
        for (int v = 0; v < graph.vertices; ++v) roles.push_back(graph.is_rank[at(v)] ? 1 : 0);
        for (const JointGraph::Arc& arc : graph.arcs) {
            ColoredNetwork::Arc colored{base + arc.from, base + arc.to, {}};
            if (phase == kReduce) std::swap(colored.from, colored.to);
            for (const topologies::LinkShare& use : arc.uses) colored.resources.push_back(use.link);
            network.arcs.push_back(std::move(colored));
        }
    }
    // Both places of a vertex have one share.
    const auto none = static_cast<int>(graph.capacity.size());
    for (int v = 0; v < graph.vertices; ++v) {
        network.arcs.push_back({v, graph.vertices + v, {none}});
        network.arcs.push_back({graph.vertices + v, v, {none}});
    }
    std::vector<double> capacities = graph.capacity;
    capacities.push_back(-1);
    int count = 0;
    network.vertex_color = roles;
    network.resource_color = numbers_of(capacities, count);
    ColorRefinement refinement(std::move(network));
    refinement.refine(INT_MAX);
    JointClasses classes;
    const std::vector<int> arcs = refinement.arcs(classes.arcs);
    const auto half = static_cast<std::ptrdiff_t>(graph.arcs.size());
    classes.arc[kBroadcast].assign(arcs.begin(), arcs.begin() + half);
    classes.arc[kReduce].assign(arcs.begin() + half, arcs.begin() + 2 * half);
    classes.vertex.assign(refinement.vertices().begin(), refinement.vertices().begin() + graph.vertices);
    classes.resource.assign(refinement.resources().begin(), refinement.resources().end() - 1);
    classes.vertices = refinement.vertex_count();
    classes.resources = refinement.resource_count();
    return classes;
}

class JointProgram {
public:
    JointProgram(const JointGraph& graph, JointClasses classes, std::int64_t most_work)
        : graph_(graph), classes_(std::move(classes)), most_work_(most_work), lp_(true) {
        for (const double capacity : graph.capacity) scale_ = std::max(scale_, capacity);
        add_variables();
        std::vector<std::pair<int, int>> arcs[2];
        for (const JointGraph::Arc& arc : graph.arcs) {
            arcs[kBroadcast].push_back({arc.from, arc.to});
            arcs[kReduce].push_back({arc.to, arc.from});
        }
        std::vector<int> some;
        std::set<int> classes_seen;
        for (int v = 0; v < graph.vertices; ++v) {
            if (!graph.is_rank[at(v)]) continue;
            ranks_.push_back(v);
            if (classes_seen.insert(classes_.vertex[at(v)]).second) some.push_back(v);
        }
        for (const Phase phase : kPhases) {
            some_[phase].emplace(graph.vertices, arcs[phase], ranks_, some);
            if (some.size() < ranks_.size()) all_[phase].emplace(graph.vertices, arcs[phase], ranks_, ranks_);
        }
        add_capacities();
        for (int v = 0; v < graph.vertices; ++v) {
            std::vector<char> set(at(graph.vertices), 0);
            set[at(v)] = 1;
            for (const Phase phase : kPhases) {
                if (!graph.is_rank[at(v)])
                    conserve(v, phase);
                else
                    add_cut(set, phase);
            }
            if (!graph.is_rank[at(v)]) continue;
            for (char& inside : set) inside = !inside;
            for (const Phase phase : kPhases) add_cut(set, phase);
        }
    }

    JointOptimum solve() {
        JointOptimum optimum;
        LinearSolution solution = cut_down(optimum);
        const auto take = [&](const std::vector<int>& variables, std::vector<double>& values) {
            for (const int x : variables) values.push_back(std::max(0.0, solution.values[at(x)]) * scale_);
        };
        take(share_, optimum.share);
        take(rate_[kReduce], optimum.reduce);
        take(rate_[kBroadcast], optimum.broadcast);
        optimum.rate = std::accumulate(optimum.share.begin(), optimum.share.end(), 0.0);
        // The cost of load bends the duals a little.
        for (const int x : arc_variable_) lp_.set_cost(x, 0);
        solution = cut_down(optimum);
        for (const int c : classes_.resource) {
            const int row = capacity_row_[at(c)];
            optimum.prices.push_back(row < 0 ? 0
                                             : std::max(0.0, solution.duals[at(row)]) /
                                                   classes_.members(classes_.resource, c));
        }
        return optimum;
    }

private:
    using Terms = std::map<int, double>;

    void add_variables() {
        std::vector<int> of_vertex(at(classes_.vertices), -1);
        arc_variable_.assign(at(classes_.arcs), -1);
        for (int v = 0; v < graph_.vertices; ++v) {
            int& variable = of_vertex[at(classes_.vertex[at(v)])];
            if (variable < 0)
                variable = lp_.add_variable(classes_.members(classes_.vertex, classes_.vertex[at(v)]), 0,
                                            graph_.is_rank[at(v)] ? LinearProgram::kInfinity : 0);
            share_.push_back(variable);
        }
        std::vector<int> members(at(classes_.arcs), 0);
        for (const Phase phase : kPhases) {
            for (const int c : classes_.arc[phase]) ++members[at(c)];
        }
        for (const Phase phase : kPhases) {
            for (const int c : classes_.arc[phase]) {
                int& variable = arc_variable_[at(c)];
                if (variable < 0) variable = lp_.add_variable(-kLoadCost * members[at(c)]);
                rate_[phase].push_back(variable);
            }
        }
        std::erase(arc_variable_, -1);
    }

    void add_capacities() {
        std::vector<Terms> load(graph_.capacity.size());
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            for (const topologies::LinkShare& use : graph_.arcs[a].uses) {
                for (const Phase phase : kPhases) load[at(use.link)][rate_[phase][a]] += use.share;
            }
        }
        capacity_row_.assign(at(classes_.resources), -1);
        for (std::size_t r = 0; r < load.size(); ++r) {
            int& row = capacity_row_[at(classes_.resource[r])];
            if (row < 0 && !load[r].empty())
                row = lp_.add_row(-LinearProgram::kInfinity, graph_.capacity[r] / scale_, listed(load[r]));
        }
    }

    static std::vector<std::pair<int, double>> listed(const Terms& terms) {
        std::vector<std::pair<int, double>> list;
        for (const auto& term : terms) {
            if (term.second != 0) list.push_back(term);
        }
        return list;
    }

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
            // Of ranks that look alike one is asked for all, until that finds no more.
            for (auto* cuts : {&some_, &all_}) {
                for (const Phase phase : {kBroadcast, kReduce}) {
                    if ((*cuts)[phase] && (cuts == &some_ || optimum.cuts == before))
                        optimum.cuts += separate(*(*cuts)[phase], solution.values, phase, rate);
                }
            }
            if (optimum.cuts == before) return solution;
        }
    }

    void conserve(int v, Phase phase) {
        Terms terms;
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            if (graph_.arcs[a].from == v) terms[rate_[phase][a]] -= 1;
            if (graph_.arcs[a].to == v) terms[rate_[phase][a]] += 1;
        }
        add_once(0, 0, terms);
    }

    // What the set must receive (of broadcasts) or give (of reductions). False when it is known.
    bool add_cut(const std::vector<char>& set, Phase phase) {
        Terms terms;
        bool holds_rank = false, misses_rank = false;
        for (int v = 0; v < graph_.vertices; ++v) {
            if (!graph_.is_rank[at(v)]) continue;
            holds_rank = holds_rank || set[at(v)];
            misses_rank = misses_rank || !set[at(v)];
            if (!set[at(v)]) terms[share_[at(v)]] -= 1;
        }
        if (!holds_rank || !misses_rank) return false;
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            const bool from = set[at(graph_.arcs[a].from)], to = set[at(graph_.arcs[a].to)];
            if (phase == kBroadcast ? to && !from : from && !to) terms[rate_[phase][a]] += 1;
        }
        return add_once(0, LinearProgram::kInfinity, terms);
    }

    // Sets that look alike make the same row.
    bool add_once(double low, double high, const Terms& terms) {
        std::vector<std::pair<int, double>> list = listed(terms);
        if (list.empty() || !known_.insert({high > 0, list}).second) return false;
        lp_.add_row(low, high, list);
        return true;
    }

    int separate(RootedCuts& cuts, const std::vector<double>& values, Phase phase, double rate) {
        // A little less is asked for than promised, so that rounding alone violates nothing.
        const double unit = rate / kFlowUnits;
        const auto units = [&](int variable) {
            return static_cast<std::int64_t>(std::max(0.0, values[at(variable)]) / unit);
        };
        std::vector<std::int64_t> rates, shares;
        for (const int variable : rate_[phase]) rates.push_back(units(variable));
        const std::int64_t grain = static_cast<std::int64_t>(graph_.arcs.size()) + graph_.vertices;
        for (const int v : ranks_) {
            const std::int64_t share = units(share_[at(v)]);
            const auto less =
                static_cast<std::int64_t>(static_cast<double>(share) * kViolation) + (share > 0 ? grain : 0);
            shares.push_back(std::max<std::int64_t>(0, share - less));
        }
        int added = 0;
        for (std::vector<char> set : cuts.violated(rates, shares)) {
            for (char& inside : set) inside = !inside;
            added += add_cut(set, phase) ? 1 : 0;
        }
        return added;
    }

    const JointGraph& graph_;
    JointClasses classes_;
    std::int64_t most_work_;
    double scale_ = 1;
    LinearProgram lp_;
    std::vector<int> capacity_row_;               // per class
    std::vector<int> ranks_, share_, rate_[2];    // share_, rate_: the variable of each vertex and arc
    std::vector<int> arc_variable_;               // all of them
    std::optional<RootedCuts> some_[2], all_[2];  // sinks: one rank of each class; all, where that is more
    std::set<std::pair<bool, std::vector<std::pair<int, double>>>> known_;
};

// Whether the prices prove the rate.
bool proved(const JointGraph& graph, const JointOptimum& optimum) {
    constexpr double kAgree = 1e-6;
    std::vector<int> ranks;
    for (int v = 0; v < graph.vertices; ++v) {
        if (graph.is_rank[at(v)]) ranks.push_back(v);
    }
    if (optimum.rate <= 0) return false;
    for (const bool fine : {false, true}) {
        const std::vector<std::int64_t> prices = whole_prices(optimum.prices, fine);
        const std::int64_t piece = least_price_of_a_piece(graph, ranks, prices);
        double worth = 0;
        for (std::size_t r = 0; r < prices.size(); ++r)
            worth += graph.capacity[r] * static_cast<double>(prices[r]);
        if (piece > 0 && worth / static_cast<double>(piece) <= optimum.rate * (1 + kAgree)) return true;
    }
    return false;
}

}  // namespace

JointOptimum joint_optimum(const JointGraph& graph, const JointLimits& limits) {
    const bool whole_uses = std::all_of(graph.arcs.begin(), graph.arcs.end(), [](const auto& arc) {
        return std::all_of(arc.uses.begin(), arc.uses.end(), [](const auto& use) { return use.share == 1; });
    });
    if (whole_uses) {
        JointClasses classes = alike(graph);
        if (2 * classes.arcs <= std::ssize(graph.arcs)) {
            JointOptimum optimum = JointProgram(graph, std::move(classes), limits.work).solve();
            if (proved(graph, optimum)) return optimum;
        }
    }
    if (graph.arcs.size() > limits.most_arcs_apart)
        throw input_error("the linear program over both phases takes too long on this topology", {},
                          "choose another algorithm");
    return JointProgram(graph, all_apart(graph), limits.work).solve();
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
    constexpr int kMostRanks = 128;
    constexpr std::size_t kMostArcs = 8192;
    if (collective.kind != ir::CollectiveKind::all_reduce || !collective.groups.empty() ||
        collective.ranks < 2 || collective.ranks > kMostRanks)
        return std::nullopt;
    const JointGraph graph = fabric_graph(topology, member_nodes(topology, collective));
    if (graph.arcs.size() > kMostArcs) return std::nullopt;
    JointLimits limits;
    limits.work = 200'000'000;  // some seconds
    limits.most_arcs_apart = collective.ranks <= 64 ? 400 : 0;
    try {
        return joint_optimum(graph, limits);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        return std::nullopt;  // took too long
    }
}

}  // namespace baton::synth
