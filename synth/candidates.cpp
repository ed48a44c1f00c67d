#include <baton/synth/candidates.hpp>

#include <baton/base/error.hpp>
#include <baton/synth/breadth_first.hpp>
#include <baton/synth/by_group.hpp>
#include <baton/synth/exact.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/joint.hpp>
#include <baton/synth/mcf.hpp>
#include <baton/synth/relay.hpp>
#include <baton/synth/ring_order.hpp>
#include <baton/synth/shortest_paths.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace baton::synth {
namespace {

using topologies::Topology;

constexpr std::int64_t kMostTrees = 64;

// Steps up to which a candidate is fully followed by verification within a second or so.
ir::VerifyOptions verification() {
    ir::VerifyOptions options;
    options.memory_budget = std::int64_t{512} << 20;
    return options;
}

class Maker {
public:
    Maker(const Topology& topology, const ir::Collective& collective, const SynthesisOptions& options)
        : topology_(topology),
          collective_(collective),
          options_(options),
          routes_(topology, options.policy, options.seed) {}

    CandidateList make() {
        const std::vector<SynthesizerInfo> known = synthesizers();
        const bool all = options_.algorithm == "auto";
        if (!all && std::none_of(known.begin(), known.end(), [&](const SynthesizerInfo& info) {
                return info.name == options_.algorithm;
            })) {
            std::string names = "auto";
            for (const SynthesizerInfo& info : known) names += " " + info.name;
            throw input_error(fmt::format("unknown algorithm \"{}\"", options_.algorithm.substr(0, 60)),
                              "--algorithm", "known: " + names);
        }
        for (const SynthesizerInfo& info : known) {
            if (!all && info.name != options_.algorithm) continue;
            if (info.name == "forest")
                packed_trees();
            else if (info.name == "joint")
                joint_trees();
            else if (info.name == "shortest_paths")
                shortest_path_trees();
            else if (info.name == "bfb")
                breadth_first_layers();
            else if (info.name == "mcf")
                flows();
            else if (info.name == "exact")
                exact_points(all);
            else
                pattern(info.name);
        }
        return std::move(list_);
    }

private:
    void pattern(const std::string& name) {
        PatternOptions options;
        options.collective = collective_;
        options.hosts = topology_.rank_hosts();
        options.hosts.resize(static_cast<std::size_t>(collective_.ranks));
        std::string why, variant;
        if (name == "ring" || name == "multi_ring") {
            try {
                variant = line_up(name, options);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::input) throw;
                list_.refusals.push_back({name, error.message()});
                return;
            }
        }
        if (!serves(name, options, &why)) {
            list_.refusals.push_back({name, why});
            return;
        }
        try {
            const ir::Algorithm plain = fixed_pattern(name, options);
            ir::Algorithm made = with_relays(plain, routes_, options_.step_limit);
            if (made.step_count() != plain.step_count()) variant += variant.empty() ? "relayed" : ", relayed";
            add(name, variant, std::move(made));
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({name, error.message()});
        }
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

    // One tree per root (few steps, shallow) and as many as it takes (full rate).
    void packed_trees() {
        std::int64_t before = 0;
        std::vector<TreeLimits> attempts;
        if (options_.trees > 0)
            attempts = {TreeLimits(options_.trees, true, options_.most_depth)};
        else
            attempts = {TreeLimits(1, false, options_.most_depth),
                        TreeLimits(kMostTrees, false, options_.most_depth)};
        for (const TreeLimits& limits : attempts) {
            try {
                ForestAlgorithm made = forest(topology_, collective_, limits, options_.policy, options_.seed);
                if (made.trees_per_root == before) continue;
                before = made.trees_per_root;
                std::string variant =
                    fmt::format("{} tree{} per root, depth {}", before, before == 1 ? "" : "s", made.depth);
                if (made.loss >= 5e-5) variant += fmt::format(", cut +{:.2f}%", made.loss * 100);
                add("forest", variant, std::move(made.algorithm));
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::input) throw;
                list_.refusals.push_back({"forest", error.message()});
                return;
            }
        }
    }

    /// A synthesizer for one group of all ranks, for every group; ranks outside relay where they must.
    ir::Algorithm in_groups(const MakeForAll& make) {
        ir::Algorithm made = by_group(topology_, collective_, make);
        return collective_.groups.empty() ? std::move(made) : with_relays(made, routes_, options_.step_limit);
    }

    void joint_trees() {
        try {
            std::string variant;
            ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
                JointAlgorithm made = joint(machine, collective, options_.policy, options_.seed);
                variant =
                    fmt::format("{} tree pairs from {} roots, depth {}, {:.2f}% below its linear program",
                                made.trees, made.roots, made.depth, 100 * (1 - made.rate / made.optimum));
                return std::move(made.algorithm);
            });
            add("joint", variant, std::move(all));
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({"joint", error.message()});
        }
    }

    void flows() {
        try {
            for (FlowAlgorithm& made : mcf(topology_, collective_, options_.policy, options_.seed)) {
                std::string variant =
                    fmt::format("{} chunk{} a shard, {} hop{}", made.chunks, made.chunks == 1 ? "" : "s",
                                made.hops, made.hops == 1 ? "" : "s");
                if (made.loss >= 5e-5) variant += fmt::format(", {:.2f}% off its flow", 100 * made.loss);
                add("mcf", variant, std::move(made.algorithm));
            }
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({"mcf", error.message()});
        }
    }

    // All points of the frontier; among others only where that takes about a second.
    void exact_points(bool among_others) {
        ExactOptions search;
        if (among_others) {
            search.most_ranks = 8;
            search.rounded = false;
            search.seconds = 0.5;
            search.most_chunks = 2;
            search.more_steps = 0;
        }
        try {
            for (ExactPoint& point : exact_frontier(topology_, collective_, search).points) {
                add("exact",
                    fmt::format("{} chunk{}, {} step{}, {} rounds{}", point.chunks,
                                point.chunks == 1 ? "" : "s", point.steps, point.steps == 1 ? "" : "s",
                                point.rounds, point.optimal ? ", optimal" : ""),
                    std::move(point.algorithm));
            }
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({"exact", error.message()});
        }
    }

    void breadth_first_layers() {
        try {
            std::string variant;
            ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
                BreadthFirstAlgorithm made =
                    breadth_first(machine, collective, options_.policy, options_.seed);
                if (made.depth <= 1 && options_.algorithm == "auto")
                    throw input_error("every rank reaches every other in one step: see all_pairs and direct");
                variant = fmt::format("{} tree{} per root, depth {}", made.trees_per_root,
                                      made.trees_per_root == 1 ? "" : "s", made.depth);
                return std::move(made.algorithm);
            });
            add("bfb", variant, std::move(all));
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::input) throw;
            list_.refusals.push_back({"bfb", error.message()});
        }
    }

    void shortest_path_trees() {
        for (const std::int64_t per_root : {1, 4}) {
            try {
                int depth = 0;
                ir::Algorithm all = in_groups([&](const Topology& machine, const ir::Collective& collective) {
                    ShortestPathAlgorithm made =
                        shortest_paths(machine, collective, per_root, options_.policy, options_.seed);
                    depth = std::max(depth, made.depth);
                    return std::move(made.algorithm);
                });
                add("shortest_paths",
                    fmt::format("{} tree{} per root, depth {}", per_root, per_root == 1 ? "" : "s", depth),
                    std::move(all));
                // Where all ways are single hops, more trees are the same tree.
                if (depth <= 1) return;
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::input) throw;
                list_.refusals.push_back({"shortest_paths", error.message()});
                return;
            }
        }
    }

    void add(const std::string& name, const std::string& variant, ir::Algorithm algorithm) {
        Candidate candidate;
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
        candidate.algorithm = std::make_shared<const ir::Algorithm>(std::move(algorithm));
        list_.candidates.push_back(std::move(candidate));
    }

    const Topology& topology_;
    const ir::Collective& collective_;
    const SynthesisOptions& options_;
    topologies::Routes routes_;
    CandidateList list_;
    std::vector<std::vector<Ring>> rings_;  // [group]
};

}  // namespace

std::vector<SynthesizerInfo> synthesizers() {
    std::vector<SynthesizerInfo> list;
    for (const PatternInfo& pattern : fixed_patterns()) list.push_back({pattern.name, pattern.summary});
    list.push_back(
        {"forest", "spanning trees packed so that every link is at work: best rate on any topology"});
    list.push_back(
        {"joint",
         "all_reduce: roots and both phases of trees by one linear program, best where unsymmetric"});
    list.push_back(
        {"bfb", "balanced breadth-first layers: as many steps as the diameter, links evenly loaded"});
    list.push_back({"shortest_paths",
                    "balanced trees of least latency; relays where ranks have no route; any collective"});
    list.push_back({"mcf",
                    "all_to_all, scatter, gather by multicommodity flow: best rate on any topology, through "
                    "relays"});
    list.push_back({"exact",
                    "fewest rounds in fewest steps, found or ruled out by a solver: small machines with "
                    "direct links"});
    return list;
}

CandidateList make_candidates(const Topology& topology, const ir::Collective& collective,
                              const SynthesisOptions& options) {
    return Maker(topology, collective, options).make();
}

}  // namespace baton::synth
