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
/// they are stable: a step by the number of its chunks, its latency, its place in its lane, what it waits
/// for, its lane, the rank it reduces at and the resources it uses with its shares; the others by the steps
/// that use them. Then all steps of a class start and end together, by induction over the events: max-min
/// rates are equal for equal steps because every resource of a class carries the same. One resource, lane
/// and rank stands for its class; a step takes of that resource what all steps of its class take of one of
/// the resource's class.
///
/// Exact up to the division of sizes into chunks: chunks of a class of steps may differ by 16 bytes per tile,
/// and the first step of each class counts. In the whole run such differences, and the rounding of times, may
/// decide which of several messages that wait for a lane goes first; times then differ by some tenths of a
/// percent. Use of links is reported for one link of every class.
std::optional<PreparedAlgorithm::Data> folded(const PreparedAlgorithm::Data& whole);

}  // namespace baton::sim
