// Machines of hundreds of ranks without symmetry, where schedules with a message for every pair cost too
// much.
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// Pairs of ranks that links and switches join without another rank between them; an upper limit, found
/// without routes: nodes that forward and hang together count as one switch.
std::int64_t neighboring_pairs(const topologies::Topology& topology);

/// Whether synthesizers that look at every such pair for every root take minutes: the product of both is
/// above 50 million, and the classes of ranks that color refinement leaves have more than two different
/// sizes. On machines of equal hosts all classes are equally large, and what is done for one rank or host
/// serves the others.
bool too_many_unlike_ranks(const topologies::Topology& topology);

}  // namespace baton::synth
