#include <baton/synth/candidates.hpp>

#include <baton/base/error.hpp>
#include <baton/base/parallel.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/candidate_maker.hpp>
#include <baton/synth/compose.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/unlike_ranks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <set>

namespace baton::synth {
namespace {

using topologies::Topology;

constexpr int kMostOfAll = 2048;  // ranks; above, `auto` does not make everything
// What looks at every pair of ranks for every root, or sends between all of them.
const std::set<std::string> kForEveryPair = {"all_pairs", "all_pairs_two_shot", "forest", "rerouted", "bfb",
                                             "greedy",    "shortest_paths"};

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
    for (const CandidateMaker::Family& family : CandidateMaker::families()) list.push_back(family.info);
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
    const bool fewer = all && !options.repair && too_many_unlike_ranks(topology);
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
        CandidateMaker maker(topology, collective, options, [&](const std::string& stage, double share) {
            tell(fmt::format("{}: {}", now, stage), false, share);
        });
        for (const std::size_t i : parts[p]) {
            if (fewer && kForEveryPair.contains(known[i].name)) {
                lists[i].refusals.push_back(
                    {known[i].name,
                     "on so many ranks of which few are alike it takes minutes; choose it by name"});
                continue;
            }
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
