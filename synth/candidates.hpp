// All schedules that come into question for a collective on a topology. Internal to the layer; see
// synthesize.hpp.
#pragma once

#include <baton/synth/synthesize.hpp>

#include <string>
#include <vector>

namespace baton::synth {

/// Candidates with verified algorithms, and the synthesizers that had none. `name` is "auto" or one
/// synthesizer, whose refusal is then an input error. Algorithms that fail verification are an internal
/// error.
struct CandidateList {
    std::vector<Candidate> candidates;
    std::vector<Refusal> refusals;
};
CandidateList make_candidates(const topologies::Topology& topology, const ir::Collective& collective,
                              const SynthesisOptions& options);

}  // namespace baton::synth
