#include <baton/synth/candidates.hpp>

#include <baton/base/error.hpp>
#include <baton/base/parallel.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/compose.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/exact.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/greedy.hpp>
#include <baton/synth/in_network.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/mcf.hpp>
#include <baton/synth/relay.hpp>
#include <baton/synth/repair.hpp>
#include <baton/synth/rerouted.hpp>
#include <baton/synth/ring_order.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/synth/switch_pruning.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

using topologies::Topology;

constexpr std::int64_t kMostTrees = 256;
constexpr int kFewRanks = 32;                   // forest: up to so many it is packed in more than one way
constexpr int kMostOfAll = 2048;                // ranks; above, `auto` does not make everything
constexpr double kNoGain = 1.001;               // of the bound: nothing is left for joint to gain
constexpr double kWorthDetours = 0.004;         // loss of joint for which it looks for other routes
constexpr std::int64_t kManyChunks = 64 << 10;  // greedy: sizes below are not cut

// Steps up to which a candidate is fully followed by verification within a second or so.
ir::VerifyOptions verification() {
    ir::VerifyOptions options;
    options.memory_budget = std::int64_t{512} << 20;
    return options;
}

// "1 chunk", "6 chunks".
std::string counted(std::int64_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// What tree families tell of a candidate; `loss`: time on links above what the best cut allows.
std::string trees_in_words(std::int64_t per_root, int depth, double loss = 0) {
    std::string words = fmt::format("{} per root, depth {}", counted(per_root, "tree"), depth);
    if (loss >= 5e-5) words += fmt::format(", cut +{:.2f}%", loss * 100);
    return words;
}

// Makes the candidates of some synthesizers, one after another. Makers share nothing but their input, so
// that several may run at once.
class Maker {
public:
    /// `tell`: called with what a synthesizer is at; may be empty.
    Maker(const Topology& topology, const ir::Collective& collective, const SynthesisOptions& options,
          std::function<void(const std::string& stage, double fraction)> tell)
        : topology_(topology),
          collective_(collective),
          options_(options),
          tell_(std::move(tell)),
          routes_(topology, options.policy, options.seed) {}

    // A synthesizer that is no pattern: what it is called, and what makes its candidates.
    struct Family {
        SynthesizerInfo info;
        void (Maker::*make)();
    };
    static const std::vector<Family>& families();

    /// What a synthesizer has to offer. That it does not serve the case is a refusal, beside what it has.
    CandidateList make(const std::string& name) {
        list_ = {};
        const std::vector<Family>& known = families();
        const auto family = std::find_if(known.begin(), known.end(),
                                         [&](const Family& one) { return one.info.name == name; });
        try {
            if (family != known.end())
                (this->*family->make)();
            else
                pattern(name);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({name, error.message()});
        }
        return std::move(list_);
    }

    /// The given schedule on the machine as it is now. Throws an input error when it does not fit.
    CandidateList repaired_schedule() {
        list_ = {};
        const ir::Collective& old = options_.repair->collective;
        if (old.kind != collective_.kind || old.root != collective_.root ||
            old.groups != collective_.groups || old.ranks != collective_.ranks)
            throw input_error(fmt::format("the schedule to repair is {}, not {}", ir::describe(old),
                                          ir::describe(collective_)),
                              "--repair");
        Repaired made = repair(topology_, *options_.repair, options_.policy, options_.seed);
        if (options_.most_depth > 0 && made.depth > options_.most_depth)
            throw input_error(fmt::format("the repaired trees are {} hops deep, above the bound of {}",
                                          made.depth, options_.most_depth),
                              "--max-depth", "a search for trees anew, without --repair, keeps the bound");
        std::string variant = fmt::format("{} branch{} moved, {} had lost their link, depth {}", made.moved,
                                          made.moved == 1 ? "" : "es", made.replaced, made.depth);
        if (made.loss >= 5e-5) variant += fmt::format(", cut +{:.2f}%", made.loss * 100);
        add("repaired", variant, std::move(made.algorithm), made.depth);
        return std::move(list_);
    }

    /// What `make` had when it was stopped.
    CandidateList made_so_far() { return std::move(list_); }

private:
    bool among_others() const { return options_.algorithm == "auto"; }

    void pattern(const std::string& name) {
        PatternOptions options;
        options.collective = collective_;
        options.hosts = topology_.rank_hosts();
        options.hosts.resize(static_cast<std::size_t>(collective_.ranks));
        std::string why, variant;
        if (name == "ring" || name == "multi_ring") variant = line_up(name, options);
        if (!serves(name, options, &why)) throw input_error(why);
        const ir::Algorithm plain = fixed_pattern(name, options);
        const std::int64_t steps = few_steps(plain);
        ir::Algorithm made = with_relays(plain, routes_, options_.step_limit);
        if (made.step_count() != steps) variant += variant.empty() ? "relayed" : ", relayed";
        add(name, variant, std::move(made));
    }

    // Counts steps before anything is looked up for each: templates of a thousand ranks stand for millions.
    std::int64_t few_steps(const ir::Algorithm& algorithm) const {
        std::int64_t steps = 0;
        ir::StepCursor cursor = algorithm.steps();
        for (ir::Step step; cursor.next(step);) {
            stop_point();
            if (++steps > options_.step_limit)
                throw input_error(fmt::format("more than the limit of {} steps", options_.step_limit));
        }
        return steps;
    }

    /// Gives rings the orders that the topology likes best; says how many there are where several run.
    std::string line_up(const std::string& name, PatternOptions& options) {
        const std::vector<std::vector<Ring>>& found = rings();
        if (name == "ring") {
            for (const auto& of_group : found)
                options.rank_order.insert(options.rank_order.end(), of_group[0].order.begin(),
                                          of_group[0].order.end());
            return "";
        }
        std::size_t count = found[0].size();
        for (const auto& of_group : found) count = std::min(count, of_group.size());
        if (count < 2) throw input_error("the links hold one ring only: see ring");
        const auto weights =
            ring_weights({found[0].begin(), found[0].begin() + static_cast<std::ptrdiff_t>(count)});
        for (std::size_t i = 0; i < count; ++i) {
            WeightedRing ring;
            ring.weight = weights[i];
            for (const auto& of_group : found)
                ring.order.insert(ring.order.end(), of_group[i].order.begin(), of_group[i].order.end());
            options.rings.push_back(std::move(ring));
        }
        return fmt::format("{} rings", count);
    }

    /// Rings of each group, searched once.
    const std::vector<std::vector<Ring>>& rings() {
        for (int g = 0; static_cast<int>(rings_.size()) < collective_.group_count(); ++g) {
            RingOptions search;
            search.policy = options_.policy;
            search.seed = options_.seed;
            for (int p = 0; p < collective_.group_size(g); ++p)
                search.ranks.push_back(collective_.rank_at(g, p));
            rings_.push_back(ring_orders(topology_, search));
        }
        return rings_;
    }

    // One tree per root (few steps, shallow) and as many as it takes (full rate). Trees with pinned routes
    // are at times slower than their load on links says, by sharing: then trees with fewer ways are tried
    // too.
    void packed_trees() {
        require_few_steps(collective_, options_.step_limit);
        std::vector<TreeLimits> attempts;
        if (options_.trees > 0)
            attempts = {TreeLimits(options_.trees, true, options_.most_depth)};
        else
            attempts = {TreeLimits(1, false, options_.most_depth),
                        TreeLimits(kMostTrees, false, options_.most_depth)};
        std::set<std::string> labels;
        bool pinned = false;
        const auto attempt = [&](TreeLimits limits) {
            limits.most_steps = options_.step_limit;
            // Routes over relays of a group are none of the machine's.
            if (!collective_.groups.empty()) limits.ways = TreeWays::default_routes;
            std::int64_t trees = 0;
            int depth = 0;
            double loss = 0;
            ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
                ForestAlgorithm made = forest(machine, collective, limits, options_.policy, options_.seed);
                trees = std::max(trees, made.trees_per_root);
                depth = std::max(depth, made.depth);
                loss = std::max(loss, made.loss);
                return std::move(made.algorithm);
            });
            pinned = !all.vias.empty();
            const std::string variant = trees_in_words(trees, depth, loss);
            if (labels.insert(variant).second) add("forest", variant, std::move(all), depth);
        };
        for (const TreeLimits& limits : attempts) attempt(limits);
        for (const TreeWays ways : {TreeWays::detours, TreeWays::default_routes}) {
            if (!pinned || collective_.ranks > kFewRanks) break;
            TreeLimits limits = attempts.back();
            limits.ways = ways;
            attempt(limits);
        }
    }

    /// A synthesizer for one group of all ranks, for every group; ranks outside relay where they must.
    ir::Algorithm in_groups(const MakeForAll& make) {
        ir::Algorithm made = by_group(topology_, collective_, make);
        if (collective_.groups.empty()) return made;
        made = with_relays(made, routes_, options_.step_limit);
        // Relays between members of a group are hops too.
        const int phases = collective_.kind == ir::CollectiveKind::all_reduce ? 2 : 1;
        const int depth = options_.most_depth > 0 ? message_depth(made) : 0;
        if (depth > phases * options_.most_depth)
            throw input_error(fmt::format("with relays outside of the groups, {} hops are more than {}",
                                          depth, phases * options_.most_depth),
                              "--max-depth");
        return made;
    }

    // Whether reduce_scatter and all_gather by trees with equal shares, one after the other, take no longer
    // than any all_reduce must: then `joint` can gain nothing on `forest`.
    bool equal_shares_suffice() const {
        if (collective_.kind != ir::CollectiveKind::all_reduce || !collective_.groups.empty()) return false;
        const double both =
            (phase_optimum(topology_, collective_, true) + phase_optimum(topology_, collective_, false)) /
            collective_.ranks;
        Topology end_points = topology_;  // joint's trees reduce at ranks only
        for (topologies::Node& node : end_points.nodes) node.multicast = node.reduce = false;
        return both <= bandwidth_bound(end_points, collective_).seconds_per_byte.value() * kNoGain;
    }

    // On default routes, and where those fall short of the optimum also on others.
    void joint_trees() {
        if (among_others() && collective_.ranks > kFewRanks && equal_shares_suffice())
            throw input_error("forests with equal shares of all ranks reach the bound already");
        double loss = 0;
        for (const JointWays ways : {JointWays::usual, JointWays::detours}) {
            if (ways == JointWays::detours && loss < kWorthDetours) return;
            std::string variant;
            int depth = 0, deepest = 0;
            ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
                JointAlgorithm made = joint(machine, collective, options_.policy, options_.seed, ways);
                loss = std::max(loss, made.optimum / made.rate - 1);
                variant =
                    fmt::format("{} tree pairs from {} roots, depth {}, optimum of trees +{:.2f}%",
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
    void switch_steps() {
        if (among_others())
            throw input_error("switch steps are not lowered to any backend; ask for it by name");
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
    void pruned_trees() {
        if (!collective_.groups.empty()) throw input_error("in_network serves one group of all ranks only");
        if (std::none_of(topology_.nodes.begin(), topology_.nodes.end(),
                         [](const topologies::Node& node) { return node.multicast || node.reduce; }))
            throw input_error("no switch of this topology reduces or multicasts");
        SynthesisOptions options = options_;
        for (const char* family : {"shortest_paths", "forest"}) {
            options.algorithm = family;
            Maker maker(topology_, collective_, options, {});
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

    void flows() {
        FlowOptions search;
        search.policy = options_.policy;
        search.seed = options_.seed;
        search.progress = tell_;
        search.take = [&](FlowAlgorithm&& made) {
            std::string variant =
                fmt::format("{} a shard, {}", counted(made.chunks, "chunk"), counted(made.hops, "hop"));
            if (made.loss >= 5e-5) variant += fmt::format(", {:.2f}% off its flow", 100 * made.loss);
            add("mcf", variant, std::move(made.algorithm));
        };
        mcf(topology_, collective_, search);
    }

    // All points of the frontier; among others only where that takes about a second.
    void exact_points() {
        ExactOptions search;
        if (among_others()) {
            search.most_ranks = 8;
            search.rounded = false;
            search.effort = 2'000'000;
            search.most_chunks = 2;
            search.more_steps = 0;
        }
        ExactFrontier frontier = exact_frontier(topology_, collective_, search);
        // What was ruled out, and what was not decided.
        for (const std::string& note : frontier.notes) {
            if (!among_others()) list_.refusals.push_back({"exact", note});
        }
        for (ExactPoint& point : frontier.points) {
            add("exact",
                fmt::format("{}, {}, {} rounds{}", counted(point.chunks, "chunk"),
                            counted(point.steps, "step"), point.rounds, point.optimal ? ", optimal" : ""),
                std::move(point.algorithm));
        }
    }

    void breadth_first_layers() {
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

    void compositions() {
        ComposeOptions compose_options;
        compose_options.step_limit = options_.step_limit;
        compose_options.take = [&](Composition&& made) {
            add("compose", made.words, with_relays(made.algorithm, routes_, options_.step_limit));
        };
        compose(topology_, collective_, compose_options);
    }

    // Groups are searched once; the last result of a group stands beside all further ones of the others.
    void rerouted_trees() {
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

    void shortest_path_trees() {
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

    // For the smallest, the middle and the largest size. Among others only where that takes about a second,
    // and for the largest of several sizes not at all: trees and flows are at the bound there.
    void greedy_matching() {
        GreedyOptions search;
        search.seed = options_.greedy_seed;
        search.policy = options_.policy;
        search.policy_seed = options_.seed;
        search.step_limit = options_.step_limit;
        std::vector<Bytes> sizes = {options_.sizes.front(), options_.sizes[options_.sizes.size() / 2],
                                    options_.sizes.back()};
        if (among_others()) {
            search.step_limit = std::min<std::int64_t>(search.step_limit, 100'000);
            search.work = 250'000;
            search.wanted_steps = 10'000;
            if (options_.sizes.size() > 2) sizes.pop_back();
        }
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        for (const Bytes size : sizes) {
            search.size = size;
            search.tiles = 1;
            search.most_chunks = size.count < kManyChunks ? 1 : 32;
            greedy_plan(search, "");
            if (size.count < kManyChunks * 16) continue;
            // In tiles: chosen by load; and planned as if all were short, which keeps ways short too.
            search.tiles = 64;
            greedy_plan(search, " in tiles");
            search.size = {kManyChunks / 4};
            search.most_chunks = 1;
            search.tiles = 1 << 20;
            greedy_plan(search, " by load");
        }
    }

    void greedy_plan(const GreedyOptions& search, const char* how) {
        GreedyAlgorithm made = greedy(topology_, collective_, search);
        add("greedy", fmt::format("{}, for {}{}", counted(made.chunks, "chunk"), to_string(search.size), how),
            std::move(made.algorithm));
    }

    /// Verifies and keeps. `depth`: hops of the deepest tree, 0 where there are no trees.
    void add(const std::string& name, const std::string& variant, ir::Algorithm algorithm, int depth = 0) {
        stop_point();
        Candidate candidate;
        candidate.depth = depth;
        candidate.name = name;
        candidate.variant = variant;
        candidate.steps = algorithm.step_count();
        if (candidate.steps > options_.step_limit) {
            list_.refusals.push_back({candidate.label(), fmt::format("{} steps, more than the limit of {}",
                                                                     candidate.steps, options_.step_limit)});
            return;
        }
        try {
            candidate.assurance = ir::verify(algorithm, verification()).assurance;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::check_failed) throw;
            throw internal_error(fmt::format("{} gives a wrong result: {}", candidate.label(), error.what()));
        }
        if (candidate.assurance == ir::Assurance::not_proven) {
            list_.refusals.push_back(
                {candidate.label(), fmt::format("{} steps are too many to verify", candidate.steps)});
            return;
        }
        candidate.algorithm = std::make_shared<const ir::Algorithm>(std::move(algorithm));
        list_.candidates.push_back(std::move(candidate));
    }

    const Topology& topology_;
    const ir::Collective& collective_;
    const SynthesisOptions& options_;
    std::function<void(const std::string& stage, double fraction)> tell_;
    topologies::Routes routes_;
    CandidateList list_;
    std::vector<std::vector<Ring>> rings_;  // [group]
};

const std::vector<Maker::Family>& Maker::families() {
    static const std::vector<Family> list = {
        {{"forest", "spanning trees packed so that every link is at work: best rate on any topology"},
         &Maker::packed_trees},
        {{"joint",
          "all_reduce: roots and both phases of trees by one linear program, best where unsymmetric"},
         &Maker::joint_trees},
        {{"in_network", "steps of switches that reduce and multicast, in trees and all_reduce; by name only"},
         &Maker::switch_steps},
        {{"bfb", "balanced breadth-first layers: as many steps as the diameter, links evenly loaded"},
         &Maker::breadth_first_layers},
        {{"rerouted", "trees of least latency whose branches move off busy links: quick and shallow"},
         &Maker::rerouted_trees},
        {{"shortest_paths",
          "balanced trees of least latency; relays where ranks have no route; any collective"},
         &Maker::shortest_path_trees},
        {{"mcf",
          "all_to_all, scatter, gather by multicommodity flow: best rate on any topology, through relays"},
         &Maker::flows},
        {{"greedy",
          "chunk by chunk to whoever lacks it as links come free; any collective, thousands of ranks"},
         &Maker::greedy_matching},
        {{"compose", "a schedule inside each host and one along every rail: up to thousands of ranks"},
         &Maker::compositions},
        {{"exact",
          "fewest rounds in fewest steps, found or ruled out by a solver: small machines with direct links"},
         &Maker::exact_points}};
    return list;
}

// Synthesizers (by index in `known`) that one maker does one after another, in the order in which they are
// begun: cheap ones first, so that a short time still gives a good answer. Those that share work stand
// together: rings are searched once, and plain patterns know each other's routes. `only`: one synthesizer, ""
// = all.
std::vector<std::vector<std::size_t>> parts_of_work(const std::vector<SynthesizerInfo>& known,
                                                    const std::string& only) {
    std::set<std::string> patterns;
    for (const PatternInfo& pattern : fixed_patterns()) patterns.insert(pattern.name);
    const std::vector<std::string> cheap = {"forest", "compose", "shortest_paths", "rerouted", "bfb"};
    std::vector<std::vector<std::size_t>> parts(cheap.size() + 2);
    const auto part_of = [&](const std::string& name) -> std::size_t {
        if (name == "ring" || name == "multi_ring") return cheap.size() + 1;
        if (patterns.contains(name)) return 0;
        const auto place = std::find(cheap.begin(), cheap.end(), name);
        if (place != cheap.end()) return static_cast<std::size_t>(place - cheap.begin()) + 1;
        parts.emplace_back();
        return parts.size() - 1;
    };
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (only.empty() || known[i].name == only) parts[part_of(known[i].name)].push_back(i);
    }
    return parts;
}

}  // namespace

std::vector<SynthesizerInfo> synthesizers() {
    std::vector<SynthesizerInfo> list;
    for (const PatternInfo& pattern : fixed_patterns()) list.push_back({pattern.name, pattern.summary});
    for (const Maker::Family& family : Maker::families()) list.push_back(family.info);
    return list;
}

CandidateList make_candidates(const Topology& topology, const ir::Collective& collective,
                              const SynthesisOptions& options,
                              const std::function<void(const Candidate&)>& made) {
    std::vector<SynthesizerInfo> known = synthesizers();
    if (options.repair) known = {{"repaired", "the given schedule, mended"}};
    const bool all = options.algorithm == "auto";
    if (!all && std::none_of(known.begin(), known.end(),
                             [&](const SynthesizerInfo& info) { return info.name == options.algorithm; })) {
        std::string names = "auto";
        for (const SynthesizerInfo& info : known) names += " " + info.name;
        throw input_error(fmt::format("unknown algorithm \"{}\"", options.algorithm.substr(0, 60)),
                          "--algorithm", "known: " + names);
    }
    if (all && !options.repair && collective.ranks > kMostOfAll && compose_serves(collective.kind)) {
        // The others would look at millions of pairs of ranks, one after another, to be refused or to lose.
        SynthesisOptions composed = options;
        composed.algorithm = "compose";
        CandidateList list = make_candidates(topology, collective, composed, made);
        if (!list.candidates.empty()) {
            list.refusals.push_back(
                {"other synthesizers", fmt::format("above {} ranks, where compose serves, they are made only "
                                                   "when chosen by name",
                                                   kMostOfAll)});
            return list;
        }
    }
    std::vector<CandidateList> lists(known.size());
    const std::vector<std::vector<std::size_t>> parts = parts_of_work(known, all ? "" : options.algorithm);
    std::atomic<bool> stopped = false;
    std::mutex telling;
    std::size_t begun = 0;
    const auto tell = [&](const std::string& what, bool begins, double share) {
        const std::lock_guard lock(telling);
        if (!options.progress) return;
        const auto all_of_them = static_cast<double>(all ? known.size() : 1);
        begun += begins ? 1 : 0;
        const double done = static_cast<double>(begun) - 1 + std::clamp(share, 0.0, 1.0);
        options.progress("making candidates: " + what, done / all_of_them);
    };
    parallel_for(parts.size(), options.threads, [&](std::size_t p) {
        std::string now;
        Maker maker(topology, collective, options, [&](const std::string& stage, double share) {
            tell(fmt::format("{}: {}", now, stage), false, share);
        });
        for (const std::size_t i : parts[p]) {
            try {
                now = known[i].name;
                tell(now, true, 0);
                stop_point();
                lists[i] = options.repair ? maker.repaired_schedule() : maker.make(known[i].name);
                if (made) std::for_each(lists[i].candidates.begin(), lists[i].candidates.end(), made);
            } catch (const Stopped&) {
                lists[i] = maker.made_so_far();
                lists[i].refusals.push_back({known[i].name, "the time ended before it was done"});
                stopped = true;
            }
        }
    });
    CandidateList together;
    together.stopped = stopped;
    for (CandidateList& list : lists) {
        std::move(list.candidates.begin(), list.candidates.end(), std::back_inserter(together.candidates));
        std::move(list.refusals.begin(), list.refusals.end(), std::back_inserter(together.refusals));
    }
    return together;
}

}  // namespace baton::synth
