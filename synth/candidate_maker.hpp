// What each synthesizer offers for one collective on one topology. Internal to the layer; see candidates.hpp.
#pragma once

#include <baton/synth/by_group.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/ring_order.hpp>

#include <functional>
#include <string>
#include <vector>

namespace baton::synth {

struct GreedyOptions;

/// Makes the candidates of some synthesizers, one after another. Makers share nothing but their input, so
/// that several may run at once.
class CandidateMaker {
public:
    /// `tell`: called with what a synthesizer is at; may be empty. The references must outlive the maker.
    CandidateMaker(const topologies::Topology& topology, const ir::Collective& collective,
                   const SynthesisOptions& options,
                   std::function<void(const std::string& stage, double fraction)> tell);

    /// A synthesizer that is no pattern: what it is called, and what makes its candidates.
    struct Family {
        SynthesizerInfo info;
        void (CandidateMaker::*make)();
    };
    static const std::vector<Family>& families();

    /// What a synthesizer has to offer. That it does not serve the case is a refusal, beside what it has.
    CandidateList make(const std::string& name);
    /// The given schedule on the machine as it is now. Throws an input error when it does not fit.
    CandidateList repaired_schedule();
    /// What `make` had when it was stopped.
    CandidateList made_so_far() { return std::move(list_); }

private:
    bool among_others() const { return options_.algorithm == "auto"; }
    /// Verifies and keeps. `depth`: hops of the deepest tree, 0 where there are no trees.
    void add(const std::string& name, const std::string& variant, ir::Algorithm algorithm, int depth = 0);
    /// A synthesizer for one group of all ranks, for every group; ranks outside relay where they must.
    ir::Algorithm in_groups(const MakeForAll& make);

    // Fixed patterns.
    void pattern(const std::string& name);
    // Counts steps before anything is looked up for each: templates of a thousand ranks stand for millions.
    std::int64_t few_steps(const ir::Algorithm& algorithm) const;
    // Gives rings the orders that the topology likes best; says how many there are where several run.
    std::string line_up(const std::string& name, PatternOptions& options);
    const std::vector<std::vector<Ring>>& rings();  // of each group, searched once

    // Trees.
    void packed_trees();
    bool equal_shares_suffice() const;
    void joint_trees();
    void switch_steps();
    void pruned_trees();
    void breadth_first_layers();
    void rerouted_trees();
    void shortest_path_trees();

    // Flows, searches and what is composed of parts.
    void flows();
    void exact_points();
    void compositions();
    void greedy_matching();
    void greedy_plan(const GreedyOptions& search, const char* how);

    const topologies::Topology& topology_;
    const ir::Collective& collective_;
    const SynthesisOptions& options_;
    std::function<void(const std::string& stage, double fraction)> tell_;
    topologies::Routes routes_;
    CandidateList list_;
    std::vector<std::vector<Ring>> rings_;  // [group]
};

/// "1 chunk", "6 chunks".
std::string counted(std::int64_t number, const char* what);

/// What tree families tell of a candidate; `loss`: time on links above what the best cut allows.
std::string trees_in_words(std::int64_t per_root, int depth, double loss = 0);

}  // namespace baton::synth
