// Symmetry in a run: steps that are bound to do the same at the same time are executed once. Internal to the
// layer.
#pragma once

#include <baton/sim/prepared_algorithm.hpp>

#include <optional>

namespace baton::sim {

/// The same run with one step for every class of steps that no part of the model can tell apart; nothing when
/// there are more than a quarter as many classes as steps.
///
/// Steps, lanes, ranks, and links with limits (resources) are colored and the colors refined together until
/// they are stable: a step by the weights of its chunks, its latency, its place in its lane and among the
/// reductions of its rank, what it waits for, its lane, the rank it reduces at and the resources it uses with
/// its shares; the others by the steps that use them. Then all steps of a class start and end together, by
/// induction over the events: max-min rates are equal for equal steps because every resource of a class
/// carries the same, and lanes and ranks of a class take their steps in the same order. One resource, lane
/// and rank stands for its class; a step takes of that resource what all steps of its class take of one of
/// the resource's class.
///
/// Exact, but for the rounding of times, where chunks of equal weight are equally long. Elsewhere (a size
/// that is no multiple of 16 bytes times the sum of all weights) some are longer by 16 bytes per weight, and
/// no two ranks are quite alike: in the folded run all are as long as the longest. No link carries less than
/// in the whole run, so no time beats the bound; which of several messages that wait for a lane goes first
/// may differ. Use of links is reported for one link of every class.
std::optional<PreparedAlgorithm::Data> folded(const PreparedAlgorithm::Data& whole);

}  // namespace baton::sim
