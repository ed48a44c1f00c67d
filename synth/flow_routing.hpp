// Flows in whole chunks: every shard in equal chunks, each on one path, with the busiest link as little busy
// as possible. Internal to the layer.
#pragma once

#include <baton/synth/flow_hops.hpp>
#include <baton/synth/multicommodity.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// How far rerouting may go from one start, as a count of arcs looked at.
inline constexpr std::int64_t kMostRoutingWork = 80'000'000;

/// A path for every chunk of every pair of `FlowNetwork::demands`.
struct FlowRouting {
    std::int64_t chunks = 1;  ///< of one shard
    /// Hops of chunk k of the s-th sink of demand d: paths[first[d] + s * chunks + k].
    std::vector<std::vector<int>> paths;
    std::vector<std::size_t> first;  ///< per demand
    /// Seconds per byte of a unit that the busiest resource needs.
    double seconds_per_byte = 0;
};

/// Puts `chunks` chunks per shard on paths: along the flow, back from the sinks over what is left of it (what
/// is spread evenly stays so), and where that does not come within `enough` (relative) of `flow.bound`, or
/// there is no flow, once more one after another along the cheapest path; the better one stands. Then moves
/// single chunks away from busy resources as long as the sum of powers of all
/// utilizations falls; the power is raised by and by, so that the busiest resource comes to decide. A
/// heuristic: the result is a valid routing, without a promise
/// how close it comes. `work`: how many arcs may be looked at, less those that were. Throws an input error
/// when a path is none that steps may take.
FlowRouting route_chunks(const FlowNetwork& network, FlowHops& hops, const ConcurrentFlow& flow,
                         std::int64_t chunks, double enough, std::int64_t& work);

/// Gives chunks shorter ways where that makes no resource busier than the busiest.
void shorten_paths(const FlowNetwork& network, FlowHops& hops, FlowRouting& routing);

}  // namespace baton::synth
