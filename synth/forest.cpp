#include <baton/synth/forest.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/link_forest.hpp>
#include <baton/synth/rate_division.hpp>
#include <baton/synth/symmetric_forest.hpp>
#include <baton/synth/tree_lanes.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_schedules.hpp>
#include <baton/synth/tree_shares.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

constexpr int kShifts = 24;                 // attempts at a better division of shared links
constexpr std::size_t kMostDivided = 4000;  // pairs of ranks for which the linear program is solved
constexpr double kWorthDepth = 0.004;       // gain in time for which deeper trees are taken
constexpr int kDeep = 12;                   // hops of trees of one root above which more trees are tried
constexpr double kWorthPipe = 0.03;  // estimated loss in time and pipeline above which others are tried too

// Time of a byte of each root when many tiles follow each other, with what filling the pipeline takes.
double pipelined(const Forest& forest) {
    constexpr double kMostTiles = 1024, kMostMessages = 1000'000;
    const double steps = static_cast<double>(forest.trees.size()) *
                         static_cast<double>(forest.trees.empty() ? 0 : forest.trees[0].edges.size());
    return forest.seconds_per_byte * (1 + depth_of(forest) * std::max(1 / kMostTiles, steps / kMostMessages));
}

// Whole trees, or as many as differ where shares are finer than that.
std::int64_t trees_per_root(const Forest& forest) {
    constexpr std::int64_t kFineShares = 1024;
    if (forest.per_root <= kFineShares) return forest.per_root;
    std::map<int, std::int64_t> different;
    for (const PackedTree& tree : forest.trees) ++different[tree.root];
    std::int64_t most = 0;
    for (const auto& [root, count] : different) most = std::max(most, count);
    return most;
}

// The trees of one phase, the best way that serves it.
class Phases {
public:
    Phases(const topologies::Topology& topology, const ir::Collective& collective, const TreeLimits& limits,
           topologies::RoutePolicy policy, std::uint64_t seed)
        : topology_(topology),
          collective_(collective),
          policy_(policy),
          seed_(seed),
          routes_(topology, policy, seed) {
        options_.most_per_root = limits.most_trees;
        options_.exact_count = limits.exactly;
        options_.most_depth = limits.most_depth;
        most_steps_ = limits.most_steps;
        tree_ways_ = limits.ways;
        rooted_ = ir::has_root(collective.kind);
        roots_ = tree_phases(collective).roots;
    }

    /// Routes of numbered ways, over all forests made so far.
    const std::map<std::tuple<int, int, int>, std::string>& ways() const { return numbers_.all(); }
    Forest make(bool turned) {
        std::optional<double> known;  // the optimum is found once: it takes many maximum flows
        if (tree_ways_ == TreeWays::symmetric) {
            if (auto forest = by_symmetry(turned, known, true)) return *std::move(forest);
            throw input_error("the machine does not look the same from every rank");
        }
        if (auto symmetric = by_symmetry(turned, known, false)) return *std::move(symmetric);
        const double least = known ? *known : phase_optimum(topology_, collective_, turned);
        if (options_.most_depth == 0 || options_.exact_count) return searched(turned, least);
        // Symmetric trees that are shallow may be far from the optimum: they stand where nothing is better.
        std::optional<Forest> shallow = by_symmetry(turned, known, true);
        if (shallow && shallow->seconds_per_byte <= least * (1 + kWorthDepth)) return *std::move(shallow);
        try {
            Forest forest = searched(turned, least);
            if (!shallow || forest.seconds_per_byte < shallow->seconds_per_byte) return forest;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input || !shallow) throw;  // more work than allowed, or too deep
        }
        return *std::move(shallow);
    }

private:
    // Trees found without symmetry.
    Forest searched(bool turned, double least) {
        RankGraph graph = graph_within(topology_, collective_.ranks, {roots_, turned, !turned},
                                       options_.most_depth, policy_, seed_);
        const std::vector<RankEdge> even = turned ? graph.turned() : graph.edges();
        std::optional<Forest> links;
        if (rooted_ || even.size() > kMostDivided) links = on_links(turned, least);
        Forest forest;
        try {
            forest = pack_forest(graph.ranks(), even, roots_, options_);
        } catch (const Error& error) {
            // More work than allowed, or too deep.
            if (error.kind() != ErrorKind::input) throw;
            if (!links) links = on_links(turned, least);
            if (!links) throw;
            links->optimum = least;
            return *std::move(links);
        }
        if (rooted_ || forest.seconds_per_byte > least * (1 + options_.tolerance)) {
            if (!links) links = on_links(turned, least);
            const bool good = links && pipelined(*links) <= least * (1 + kWorthPipe);
            if (!good) forest = divided_forest(graph, turned, least, std::move(forest));
            if (links && pipelined(*links) < pipelined(forest)) {
                forest = *std::move(links);
            }
        }
        // Shares of links that pairs leave unused serve the others.
        forest.seconds_per_byte =
            std::min(forest.seconds_per_byte, forest_time(topology_, routes_, forest, turned, numbers_));
        forest.optimum = least;
        if (!options_.exact_count && options_.most_per_root > 1 &&
            forest.seconds_per_byte > least * (1 + options_.tolerance))
            return reshared(topology_, routes_, std::move(forest), turned, numbers_);
        return forest;
    }
    // On the links themselves, switches removed.
    std::optional<Forest> on_links(bool turned, double least) {
        if (policy_ != topologies::RoutePolicy::spread || tree_ways_ != TreeWays::links) return std::nullopt;
        try {
            const auto pack = [&](const ForestOptions& options) {
                return link_forest(topology_, routes_, collective_.ranks, roots_, turned, least, options,
                                   numbers_);
            };
            std::optional<Forest> links = pack(options_);
            // Few trees through narrow ports are chains; twice as many can share the ranks between them.
            if (links && rooted_ && !options_.exact_count && depth_of(*links) > kDeep &&
                2 * links->per_root <= options_.most_per_root) {
                ForestOptions more = options_;
                more.exact_count = true;
                more.most_per_root = 2 * links->per_root;
                std::optional<Forest> other = pack(more);
                if (other && pipelined(*other) < pipelined(*links)) links = std::move(other);
            }
            return links;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            return std::nullopt;  // more work than allowed
        }
    }
    // Nothing where these rates take more work than allowed, or trees that are too deep.
    std::optional<Forest> packed(int ranks, const std::vector<RankEdge>& edges) const {
        try {
            return pack_forest(ranks, edges, roots_, options_);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            return std::nullopt;
        }
    }
    // Offers the forest that uses other ways than the default routes too.
    template <class Keep>
    void detoured(RankGraph& graph, bool turned, const Keep& keep_better) {
        if (tree_ways_ == TreeWays::default_routes) return;
        const std::size_t before = graph.edges().size();
        graph.add_detours(topology_, policy_, seed_, kMostDivided);
        if (graph.edges().size() == before) return;
        std::vector<RankEdge> edges = turned ? graph.turned() : graph.edges();
        const RateDivision division =
            divide_rates(graph.ranks(), edges, graph.uses(), graph.capacities(), roots_);
        if (!division.solved) return;
        for (std::size_t e = 0; e < edges.size(); ++e) {
            edges[e].rate = division.rates[e];
            if (edges[e].way < 0) continue;
            const int sender = graph.edges()[e].from, receiver = graph.edges()[e].to;
            edges[e].way =
                numbers_.number(sender, receiver, graph.ways().at({sender, receiver, edges[e].way}));
        }
        std::optional<Forest> forest = packed(graph.ranks(), edges);
        if (forest) choose_ways(*forest, edges);
        keep_better(std::move(forest));
    }
    // The better of `best`, on an even division of shared links, and forests on the linear program's; where
    // that takes too long, on shifts of weight towards binding cuts.
    Forest divided_forest(RankGraph& graph, bool turned, double least, Forest best) {
        const auto edges = [&] { return turned ? graph.turned() : graph.edges(); };
        const std::vector<RankEdge> even = edges();
        if (even.empty() || best.seconds_per_byte <= least * (1 + options_.tolerance)) return best;
        const auto keep_better = [&](std::optional<Forest> other) {
            if (!other) return;
            // Deeper trees must be worth it.
            const bool faster = other->seconds_per_byte < best.seconds_per_byte * (1 - 1e-6);
            const bool much = other->seconds_per_byte < best.seconds_per_byte * (1 - kWorthDepth);
            if (much || (faster && depth_of(*other) <= depth_of(best))) best = *std::move(other);
        };
        if (even.size() <= kMostDivided) {
            const RateDivision division =
                divide_rates(graph.ranks(), even, graph.uses(), graph.capacities(), roots_);
            if (division.solved) {
                std::vector<RankEdge> divided = even;
                for (std::size_t e = 0; e < divided.size(); ++e) divided[e].rate = division.rates[e];
                keep_better(packed(graph.ranks(), divided));
                if (best.seconds_per_byte > least * (1 + kWorthDepth)) detoured(graph, turned, keep_better);
                return best;
            }
        }
        std::vector<double> weights(even.size(), 1), best_weights = weights;
        double shortest = INFINITY;
        for (int attempt = 0; attempt < kShifts; ++attempt) {
            graph.share(weights);
            std::vector<char> source_side;
            const double time = forest_optimum(graph.ranks(), edges(), roots_, &source_side);
            if (time < shortest * (1 - 1e-9)) {
                shortest = time;
                best_weights = weights;
            }
            // Pairs that do not cross the binding cut give way.
            for (std::size_t e = 0; e < even.size(); ++e) {
                if (source_side[at(even[e].from)] && !source_side[at(even[e].to)]) weights[e] *= 1.25;
            }
            const double largest = *std::max_element(weights.begin(), weights.end());
            for (double& weight : weights) weight = std::max(weight / largest, 1e-3);
        }
        graph.share(best_weights);
        keep_better(packed(graph.ranks(), edges()));
        return best;
    }
    std::optional<Forest> by_symmetry(bool turned, std::optional<double>& least, bool any_time) {
        if (rooted_ || policy_ != topologies::RoutePolicy::spread || collective_.ranks < 2)
            return std::nullopt;
        SymmetryOptions options;
        options.turned = turned;
        options.exact_count = options_.exact_count;
        options.most_depth = options_.most_depth;
        options.most_edges = most_steps_ / (collective_.kind == Kind::all_reduce ? 2 : 1);
        // Shifted trees are few, however fine their shares.
        options.most_per_root = options_.most_per_root > 1 && !options_.exact_count
                                    ? std::max<std::int64_t>(1024, options_.most_per_root)
                                    : options_.most_per_root;
        options.tolerance = options_.most_per_root == 1 ? 1e3 : options_.tolerance;
        if (any_time) options.most_per_root = options_.most_per_root;
        options.any_time = any_time;
        if (tree_ways_ != TreeWays::default_routes) options.ways = &numbers_;
        if (!least) least = phase_optimum(topology_, collective_, turned);
        return symmetric_forest(topology_, routes_, collective_.ranks, *least, options);
    }

    const topologies::Topology& topology_;
    const ir::Collective& collective_;
    topologies::RoutePolicy policy_;
    std::uint64_t seed_;
    topologies::Routes routes_;
    ForestOptions options_;
    std::vector<int> roots_;
    bool rooted_ = false;
    std::int64_t most_steps_;
    TreeWays tree_ways_ = TreeWays::links;
    WayNumbers numbers_;
};

}  // namespace

void pin_ways(ir::Algorithm& algorithm, const std::map<std::tuple<int, int, int>, std::string>& ways,
              const topologies::Topology& topology) {
    if (ways.empty()) return;
    std::vector<ir::Step> steps = ir::expand(algorithm);
    std::map<std::string, int> vias;
    for (ir::Step& step : steps) {
        if (!step.crosses() || step.channel < 0) continue;
        const std::string& route = ways.at({step.src_rank, step.dst_rank, step.channel});
        const auto [place, fresh] = vias.emplace(route, static_cast<int>(algorithm.vias.size()));
        if (fresh) algorithm.vias.push_back(route);
        step.via = place->second;
        ++step.channel;  // channel 0 is what lowering gives the default route
    }
    if (vias.empty()) return;
    algorithm.topology_name = topology.name;
    algorithm.topology_hash = topology.hash();
    algorithm.over_positions = false;
    algorithm.body = {
        {ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(std::move(steps))}, 0}};
}

bool forest_serves(Kind kind) {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::all_gather ||
           kind == Kind::reduce_scatter || kind == Kind::all_reduce;
}

ForestAlgorithm forest(const topologies::Topology& topology, const ir::Collective& collective,
                       const TreeLimits& limits, topologies::RoutePolicy policy, std::uint64_t seed) {
    if (!forest_serves(collective.kind))
        throw input_error(fmt::format("forest is not made for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("forest serves one group of all ranks only");
    require_few_steps(collective, limits.most_steps);
    Phases phases(topology, collective, limits, policy, seed);
    const TreePhases runs = tree_phases(collective);
    Forest in_forest, out_forest;
    std::vector<const Forest*> used;
    if (runs.in) used.push_back(&(in_forest = phases.make(true)));
    if (runs.out) used.push_back(&(out_forest = phases.make(false)));
    ForestAlgorithm made;
    for (const Forest* forest : used) {
        made.trees_per_root = std::max(made.trees_per_root, trees_per_root(*forest));
        made.depth = std::max(made.depth, depth_of(*forest));
        if (forest->optimum > 0)
            made.loss = std::max(made.loss, forest->seconds_per_byte / forest->optimum - 1);
    }
    require_few_steps(runs.in ? &in_forest : nullptr, runs.out ? &out_forest : nullptr, limits.most_steps);
    std::vector<TreePhase> laned;
    if (runs.in) laned.push_back({&in_forest, true});
    if (runs.out) laned.push_back({&out_forest, false});
    LaneLimits lane_limits;  // trees that are cut at the ends of channels keep the limit too
    lane_limits.most_steps = std::min(lane_limits.most_steps, limits.most_steps / std::ssize(laned));
    const LaneRoutes lanes =
        assign_lanes(topology, topologies::Routes(topology, policy, seed), laned, phases.ways(), lane_limits);
    made.algorithm =
        tree_schedule(collective, runs.in ? &in_forest : nullptr, runs.out ? &out_forest : nullptr);
    pin_lanes(made.algorithm, lanes, topology);
    made.algorithm.name = fmt::format("forest {}", ir::to_string(collective.kind));
    return made;
}

}  // namespace baton::synth
