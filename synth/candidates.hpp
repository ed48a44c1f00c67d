// All schedules that come into question for a collective on a topology. Internal to the layer; see
// synthesize.hpp.
#pragma once

#include <baton/synth/synthesize.hpp>

#include <functional>
#include <string>
#include <vector>

namespace baton::synth {

/// Candidates with verified algorithms, and the synthesizers that had none, both in the order of
/// `synthesizers`.
struct CandidateList {
    std::vector<Candidate> candidates;
    std::vector<Refusal> refusals;
    bool stopped = false;  ///< the thread's stop token ended it: some are missing, and say so as refusals
};

/// Asks every synthesizer, or the one of `options.algorithm` (an input error when its name is unknown), on
/// `options.threads` threads, cheap ones first. Algorithms that fail verification are an internal error.
/// `made` (optional) gets each candidate as soon as it is there, from any thread, several at once.
CandidateList make_candidates(const topologies::Topology& topology, const ir::Collective& collective,
                              const SynthesisOptions& options,
                              const std::function<void(const Candidate&)>& made = {});

}  // namespace baton::synth
