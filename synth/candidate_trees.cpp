#include <baton/synth/candidate_maker.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/in_network.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/relay.hpp>
#include <baton/synth/rerouted.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/synth/switch_pruning.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace baton::synth {

using topologies::Topology;

namespace {

constexpr std::int64_t kMostTrees = 256;
constexpr int kFewRanks = 32;             // forest: up to so many it is packed in more than one way
constexpr int kFewRoots = 8;              // joint: so many are searched whatever there is to gain
constexpr double kNoGain = 1.001;         // of the bound: nothing is left for joint to gain
constexpr double kWorthDetours = 0.004;   // loss of joint for which it looks for other routes
constexpr int kDeepTrees = 8;             // hops of one root's trees from which shallow ones are tried too
constexpr double kWorthSymmetry = 0.004;  // loss of trees for which few symmetric ones are tried too

// What the packed trees came to.
struct PackedResult {
    std::int64_t trees = 0;
    int depth = 0;
    double loss = 0;
    bool pinned = false;
};

// Other ways to pack than the usual one. Trees with pinned routes are at times slower than their load on
// links says, by sharing: then trees with fewer ways are tried too. Deep trees of one root take long to fill.
std::vector<TreeLimits> other_packings(const TreeLimits& usual, const ir::Collective& collective,
                                       const PackedResult& made) {
    std::vector<TreeLimits> list;
    const bool few = collective.ranks <= kFewRanks, rooted = ir::has_root(collective.kind);
    const bool free = !usual.exactly && usual.most_depth == 0 && collective.groups.empty();
    if (free && rooted && made.depth >= kDeepTrees) {
        list.push_back(usual);
        list.back().most_depth = made.depth / 2;
    }
    const bool many_ways = made.pinned && !few && collective.kind == ir::CollectiveKind::all_gather;
    if (free && !rooted && (many_ways || made.loss > kWorthSymmetry)) {
        list.push_back(usual);
        list.back().ways = TreeWays::symmetric;
    }
    for (const TreeWays ways : {TreeWays::detours, TreeWays::default_routes}) {
        if (!made.pinned || !few) break;
        list.push_back(usual);
        list.back().ways = ways;
    }
    return list;
}

}  // namespace

// One tree per root (few steps, shallow), as many as it takes (full rate), and what else may be faster.
void CandidateMaker::packed_trees() {
    require_few_steps(collective_, options_.step_limit);
    std::vector<TreeLimits> attempts;
    if (options_.trees > 0)
        attempts = {TreeLimits(options_.trees, true, options_.most_depth)};
    else
        attempts = {TreeLimits(1, false, options_.most_depth),
                    TreeLimits(kMostTrees, false, options_.most_depth)};
    std::set<std::string> labels;
    const auto attempt = [&](TreeLimits limits) {
        limits.most_steps = options_.step_limit;
        // Routes over relays of a group are none of the machine's.
        if (!collective_.groups.empty()) limits.ways = TreeWays::default_routes;
        PackedResult result;
        ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
            ForestAlgorithm made = forest(machine, collective, limits, options_.policy, options_.seed);
            result.trees = std::max(result.trees, made.trees_per_root);
            result.depth = std::max(result.depth, made.depth);
            result.loss = std::max(result.loss, made.loss);
            return std::move(made.algorithm);
        });
        result.pinned = !all.vias.empty();
        const std::string variant = trees_in_words(result.trees, result.depth, result.loss);
        if (labels.insert(variant).second) add("forest", variant, std::move(all), result.depth);
        return result;
    };
    PackedResult last;
    for (const TreeLimits& limits : attempts) last = attempt(limits);
    for (const TreeLimits& limits : other_packings(attempts.back(), collective_, last)) {
        try {
            attempt(limits);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;  // what there is stands without it
        }
    }
}

ir::Algorithm CandidateMaker::in_groups(const MakeForAll& make) {
    ir::Algorithm made = by_group(topology_, collective_, make);
    if (collective_.groups.empty()) return made;
    made = with_relays(made, routes_, options_.step_limit);
    // Relays between members of a group are hops too.
    const int phases = collective_.kind == ir::CollectiveKind::all_reduce ? 2 : 1;
    const int depth = options_.most_depth > 0 ? message_depth(made) : 0;
    if (depth > phases * options_.most_depth)
        throw input_error(fmt::format("with relays outside of the groups, {} hops are more than {}", depth,
                                      phases * options_.most_depth),
                          "--max-depth");
    return made;
}

// Whether reduce_scatter and all_gather by trees with equal shares, one after the other, take no longer
// than any all_reduce must: then `joint` can gain nothing on `forest`.
bool CandidateMaker::equal_shares_suffice() const {
    if (collective_.kind != ir::CollectiveKind::all_reduce || !collective_.groups.empty()) return false;
    const double both =
        (phase_optimum(topology_, collective_, true) + phase_optimum(topology_, collective_, false)) /
        collective_.ranks;
    Topology end_points = topology_;  // joint's trees reduce at ranks only
    for (topologies::Node& node : end_points.nodes) node.multicast = node.reduce = false;
    return both <= bandwidth_bound(end_points, collective_).seconds_per_byte.value() * kNoGain;
}

// On default routes, and where those fall short of the optimum also on others.
void CandidateMaker::joint_trees() {
    if (among_others() && collective_.ranks > kFewRanks && equal_shares_suffice() &&
        joint_roots(topology_, collective_.ranks, options_.policy, options_.seed) > kFewRoots)
        throw input_error("forests with equal shares of all ranks reach the bound already");
    double loss = 0;
    for (const JointWays ways : {JointWays::usual, JointWays::detours}) {
        if (ways == JointWays::detours && loss < kWorthDetours) return;
        std::string variant;
        int depth = 0, deepest = 0;
        ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
            JointAlgorithm made = joint(machine, collective, options_.policy, options_.seed, ways);
            loss = std::max(loss, made.optimum / made.rate - 1);
            variant = fmt::format("{} tree pairs from {} roots, depth {}, optimum of trees +{:.2f}%",
                                  made.trees, made.roots, made.depth, 100 * (made.optimum / made.rate - 1));
            depth = std::max(depth, made.depth);
            deepest = std::max(deepest, made.deepest);
            return std::move(made.algorithm);
        });
        if (options_.most_depth > 0 && deepest > options_.most_depth)
            throw input_error(
                fmt::format("joint's trees are {} hops deep, above the bound of {}: it cannot "
                            "trade rate for depth; see forest and rerouted",
                            deepest, options_.most_depth));
        add("joint", variant, std::move(all), depth);
    }
}

// Not among others: no backend runs switch steps, so the winner could not be lowered.
void CandidateMaker::switch_steps() {
    if (among_others()) throw input_error("switch steps are not lowered to any backend; ask for it by name");
    pruned_trees();
    if (collective_.kind != ir::CollectiveKind::all_reduce) return;
    std::string variant;
    ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
        InNetworkAlgorithm made = in_network(machine, collective, options_.policy, options_.seed);
        variant = fmt::format("{} of {} ranks", counted(made.domains, "domain"), made.per_domain);
        return std::move(made.algorithm);
    });
    add("in_network", variant, std::move(all));
}

// Trees of other families, shallow and of full rate, whose messages share links through switches.
void CandidateMaker::pruned_trees() {
    if (!collective_.groups.empty()) throw input_error("in_network serves one group of all ranks only");
    if (std::none_of(topology_.nodes.begin(), topology_.nodes.end(),
                     [](const topologies::Node& node) { return node.multicast || node.reduce; }))
        throw input_error("no switch of this topology reduces or multicasts");
    SynthesisOptions options = options_;
    for (const char* family : {"shortest_paths", "forest"}) {
        options.algorithm = family;
        CandidateMaker maker(topology_, collective_, options, {});
        CandidateList trees = maker.make(family);
        std::move(trees.refusals.begin(), trees.refusals.end(), std::back_inserter(list_.refusals));
        for (const Candidate& tree : trees.candidates) {
            PrunedAlgorithm made = with_switch_steps(topology_, routes_, *tree.algorithm);
            if (made.switched == 0) continue;
            add("in_network",
                fmt::format("{}, {} for {}", tree.label(), counted(made.switched, "switch step"),
                            counted(made.replaced, "message")),
                std::move(made.algorithm), tree.depth);
        }
    }
}

void CandidateMaker::breadth_first_layers() {
    require_few_steps(collective_, options_.step_limit);
    std::string variant;
    int depth = 0;
    ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
        BreadthFirstAlgorithm made =
            breadth_first(machine, collective, options_.policy, options_.seed, options_.most_depth);
        if (made.depth <= 1 && among_others())
            throw input_error("every rank reaches every other in one step: see all_pairs and direct");
        variant = trees_in_words(made.trees_per_root, made.depth);
        depth = std::max(depth, made.depth);
        return std::move(made.algorithm);
    });
    add("bfb", variant, std::move(all), depth);
}

// Groups are searched once; the last result of a group stands beside all further ones of the others.
void CandidateMaker::rerouted_trees() {
    require_few_steps(collective_, options_.step_limit);
    std::vector<std::vector<ReroutedAlgorithm>> found;
    for (std::size_t number = 0, most = 1; number < most; ++number) {
        double loss = 0;
        int depth = 0;
        std::int64_t trees = 0;
        std::size_t group = 0;
        ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
            if (group == found.size())
                found.push_back(
                    rerouted(machine, collective, options_.policy, options_.seed, options_.most_depth));
            const std::vector<ReroutedAlgorithm>& made = found[group++];
            most = std::max(most, made.size());
            const ReroutedAlgorithm& own = made[std::min(number, made.size() - 1)];
            depth = std::max(depth, own.depth);
            trees = std::max(trees, own.trees_per_root);
            loss = std::max(loss, own.loss);
            return own.algorithm;
        });
        add("rerouted", trees_in_words(trees, depth, loss), std::move(all), depth);
    }
}

void CandidateMaker::shortest_path_trees() {
    require_few_steps(collective_, options_.step_limit);
    for (const std::int64_t per_root : {1, 4}) {
        int depth = 0;
        ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
            ShortestPathAlgorithm made = shortest_paths(machine, collective, per_root, options_.policy,
                                                        options_.seed, options_.most_depth);
            depth = std::max(depth, made.depth);
            return std::move(made.algorithm);
        });
        add("shortest_paths", trees_in_words(per_root, depth), std::move(all), depth);
        // Where all ways are single hops, more trees are the same tree.
        if (depth <= 1) return;
    }
}

}  // namespace baton::synth
