// From a topology and a collective to schedules: candidates, their simulated times, and the best for every
// size.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/plan_set.hpp>
#include <baton/ir/verify.hpp>
#include <baton/synth/bound.hpp>
#include <baton/topologies/routes.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::synth {

/// A schedule that came into question.
struct Candidate {
    std::string name;     ///< of the synthesizer: "ring", "double_binary_tree", ...
    std::string variant;  ///< how it lies on the machine, "" for ranks in their own order
    std::shared_ptr<const ir::Algorithm> algorithm;
    ir::Assurance assurance = ir::Assurance::not_proven;  ///< from verification
    std::int64_t steps = 0;
    int depth = 0;  ///< hops of the deepest tree, both phases of an all_reduce together where they overlap; 0
                    ///< where the synthesizer makes no trees
    /// "ring" or "ring (searched order)".
    std::string label() const { return variant.empty() ? name : name + " (" + variant + ")"; }
};

/// A synthesizer that had nothing to offer, and why.
struct Refusal {
    std::string name, why;
};

/// What one candidate does at one size.
struct Timing {
    int candidate = -1;  ///< index into Synthesis::candidates
    int tiles = 1;
    Time time{};
};

/// The result for one size.
struct Choice {
    Bytes size;
    Time bound{};
    std::vector<Timing> timings;  ///< best first, one per candidate that was simulated; never empty
    const Timing& best() const { return timings.front(); }
};

/// Ranks of all groups together that schedules are made for: routes and rings of more take too long to find.
inline constexpr std::int64_t kMostMembers = 65536;

struct SynthesisOptions {
    std::string algorithm = "auto";  ///< or the name of one synthesizer, see `synthesizers`
    std::vector<Bytes> sizes;        ///< ascending, not empty
    std::int64_t trees = 0;          ///< forest: exactly so many trees per root, 0 = chosen
    int most_depth = 0;              ///< families of trees: hops of the deepest tree, 0 = no bound
    int tiles = 0;                   ///< 0 = chosen for every candidate and size
    int most_tiles = 128;            ///< largest number of tiles that is tried
    topologies::RoutePolicy policy = topologies::RoutePolicy::spread;
    std::uint64_t seed = 0;         ///< for RoutePolicy::ecmp
    std::uint64_t greedy_seed = 0;  ///< greedy: of its choices among equals
    /// Limit of simulation, in steps times tiles of all runs together: about a million are a second of
    /// one thread. Where it ends, fewer numbers of tiles are tried. Every size has at least one run.
    std::int64_t effort = 30'000'000;
    int threads =
        1;  ///< candidates are made and simulated on so many at once; the result does not depend on it
    /// Ends the work early: what was verified and simulated by then is the result.
    StopToken stop;
    std::int64_t step_limit = 4'000'000;  ///< candidates with more steps are refused
    /// A schedule of this collective for the machine as it was: it is repaired (`repair`), nothing else is
    /// tried. `algorithm` must be "auto".
    std::shared_ptr<const ir::Algorithm> repair;
    /// Called now and then with what is done and the share that is done; may be empty.
    std::function<void(const std::string& stage, double fraction)> progress;
};

struct Synthesis {
    Bound bound;
    std::vector<Candidate> candidates;
    std::vector<Refusal> refusals;
    std::vector<Choice> choices;  ///< one per size, in order; sizes that no time was left for are absent
    std::string model;            ///< the network model of the times, in words
    std::vector<std::string> warnings;
    bool stopped_early = false;  ///< `SynthesisOptions::stop` ended it: candidates or sizes may be missing

    /// The winners as plans: one row per run of sizes with the same schedule and tiles. The first row serves
    /// all smaller sizes, the last all larger ones. `schedule_file` (optional) names a file for a candidate's
    /// schedule; an empty name or no function puts the schedule into the plan set.
    ir::PlanSet plans(const topologies::Topology& topology,
                      const std::function<std::string(const Candidate&)>& schedule_file = {}) const;
};

/// Name and one line for everything `SynthesisOptions::algorithm` takes besides "auto".
struct SynthesizerInfo {
    std::string name, summary;
};
std::vector<SynthesizerInfo> synthesizers();

/// Makes every candidate that serves the case, verifies it, simulates it under the flow model and keeps the
/// best per size. Two runs of every candidate give an estimate for all sizes and numbers of tiles; the best
/// four of each size are then simulated there with the number of tiles that a climb over powers of two finds.
/// All limits count work, so that the same input gives the same result on any machine and with any number of
/// threads, unless `stop` ends it early.
///
/// Throws an input error: for more than `kMostMembers` ranks, for ranks that cannot reach each other, for an
/// unknown name, and, with all reasons, when no candidate serves the case; a check error when `stop` ended
/// the work before anything was simulated.
Synthesis synthesize(const topologies::Topology& topology, const ir::Collective& collective,
                     const SynthesisOptions& options);

}  // namespace baton::synth
