#include <baton/synth/candidate_maker.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/relay.hpp>
#include <baton/synth/repair.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace baton::synth {
namespace {

// Steps up to which a candidate is fully followed by verification within a second or so.
ir::VerifyOptions verification() {
    ir::VerifyOptions options;
    options.memory_budget = std::int64_t{512} << 20;
    return options;
}

}  // namespace

std::string counted(std::int64_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string trees_in_words(std::int64_t per_root, int depth, double loss) {
    std::string words = fmt::format("{} per root, depth {}", counted(per_root, "tree"), depth);
    if (loss >= 5e-5) words += fmt::format(", cut +{:.2f}%", loss * 100);
    return words;
}

CandidateMaker::CandidateMaker(const topologies::Topology& topology, const ir::Collective& collective,
                               const SynthesisOptions& options,
                               std::function<void(const std::string& stage, double fraction)> tell)
    : topology_(topology),
      collective_(collective),
      options_(options),
      tell_(std::move(tell)),
      routes_(topology, options.policy, options.seed) {}

const std::vector<CandidateMaker::Family>& CandidateMaker::families() {
    static const std::vector<Family> list = {
        {{"forest", "spanning trees packed so that every link is at work: best rate on any topology"},
         &CandidateMaker::packed_trees},
        {{"joint",
          "all_reduce: roots and both phases of trees by one linear program, best where unsymmetric"},
         &CandidateMaker::joint_trees},
        {{"in_network", "steps of switches that reduce and multicast, in trees and all_reduce; by name only"},
         &CandidateMaker::switch_steps},
        {{"bfb", "balanced breadth-first layers: as many steps as the diameter, links evenly loaded"},
         &CandidateMaker::breadth_first_layers},
        {{"rerouted", "trees of least latency whose branches move off busy links: quick and shallow"},
         &CandidateMaker::rerouted_trees},
        {{"shortest_paths",
          "balanced trees of least latency; relays where ranks have no route; any collective"},
         &CandidateMaker::shortest_path_trees},
        {{"mcf",
          "all_to_all, scatter, gather by multicommodity flow: best rate on any topology, through relays"},
         &CandidateMaker::flows},
        {{"greedy",
          "chunk by chunk to whoever lacks it as links come free; any collective, thousands of ranks"},
         &CandidateMaker::greedy_matching},
        {{"compose", "a schedule inside each host and one along every rail: up to thousands of ranks"},
         &CandidateMaker::compositions},
        {{"exact",
          "fewest rounds in fewest steps, found or ruled out by a solver: small machines with direct links"},
         &CandidateMaker::exact_points}};
    return list;
}

CandidateList CandidateMaker::make(const std::string& name) {
    list_ = {};
    const std::vector<Family>& known = families();
    const auto family =
        std::find_if(known.begin(), known.end(), [&](const Family& one) { return one.info.name == name; });
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

CandidateList CandidateMaker::repaired_schedule() {
    list_ = {};
    const ir::Collective& old = options_.repair->collective;
    if (old.kind != collective_.kind || old.root != collective_.root || old.groups != collective_.groups ||
        old.ranks != collective_.ranks)
        throw input_error(
            fmt::format("the schedule to repair is {}, not {}", ir::describe(old), ir::describe(collective_)),
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

void CandidateMaker::pattern(const std::string& name) {
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

std::int64_t CandidateMaker::few_steps(const ir::Algorithm& algorithm) const {
    std::int64_t steps = 0;
    ir::StepCursor cursor = algorithm.steps();
    for (ir::Step step; cursor.next(step);) {
        stop_point();
        if (++steps > options_.step_limit)
            throw input_error(fmt::format("more than the limit of {} steps", options_.step_limit));
    }
    return steps;
}

std::string CandidateMaker::line_up(const std::string& name, PatternOptions& options) {
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

const std::vector<std::vector<Ring>>& CandidateMaker::rings() {
    for (int g = 0; static_cast<int>(rings_.size()) < collective_.group_count(); ++g) {
        RingOptions search;
        search.policy = options_.policy;
        search.seed = options_.seed;
        for (int p = 0; p < collective_.group_size(g); ++p) search.ranks.push_back(collective_.rank_at(g, p));
        rings_.push_back(ring_orders(topology_, search));
    }
    return rings_;
}

void CandidateMaker::add(const std::string& name, const std::string& variant, ir::Algorithm algorithm,
                         int depth) {
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

}  // namespace baton::synth
