// Concurrent multicommodity flow: the shortest time in which every pair of ranks exchanges one unit at once,
// and the lengths of links that prove it.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/synth/flow_network.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::synth {

/// How far the search may go. Counts, not seconds, so that the same input gives the same result everywhere.
struct FlowLimits {
    std::int64_t most_entries = 30'000;  ///< sources times arcs of the full linear program
    std::int64_t most_classes = 256;     ///< kinds of resources that are told apart in the search by symmetry
    std::int64_t most_work = 100'000'000;    ///< sources times arcs times rounds of the search by symmetry
    std::int64_t most_descent = 60'000'000;  ///< sources times arcs times rounds of `descend`
    bool keep_units = true;                  ///< false: `ConcurrentFlow::units` stays empty
};

/// How close flows and lengths must come (relative) to count as optimal.
inline constexpr double kFlowsAgree = 1e-7;

/// Flows that move one unit between every pair of `FlowNetwork::demands`, and lengths of resources.
struct ConcurrentFlow {
    /// Per demand and arc: units. Empty when only lengths were found or asked for.
    std::vector<std::vector<double>> units;
    /// Seconds per byte of a unit that the flows take: the busiest resource's load over its capacity.
    double seconds_per_byte = 0;
    /// Per resource: the dual solution. The sum over pairs of the shortest path under these lengths, divided
    /// by the sum of length times capacity, is what no flow can beat (seconds per byte of a unit).
    std::vector<double> lengths;
    double bound = 0;
    /// Flows and lengths agree to `kFlowsAgree`: both are optimal.
    bool optimal = false;
};

/// The optimum (link-based linear program, one flow per source: Basu et al., HPDC 2024, arXiv 2309.13541).
/// First by symmetry: resources that color refinement cannot tell apart get one length, flows divide
/// evenly over all shortest paths, and a small linear program mixes such flows (Dantzig-Wolfe). On machines
/// that look alike from everywhere that is the optimum, which the flows themselves prove; elsewhere follows
/// the full linear program, if it is small enough, else a descent that comes close (`descend`), of which the
/// best lengths and flows stand. Throws an input error when a sink cannot be reached.
ConcurrentFlow concurrent_flow(const FlowNetwork& network, const FlowLimits& limits = {});

/// Integer lengths per resource, and the bound that they prove, exactly: every unit needs at least the length
/// of its shortest path, and a resource offers length times capacity per second.
struct LengthBound {
    std::vector<std::int64_t> lengths;
    std::int64_t demand = 0;    ///< sum over pairs of the shortest path
    std::int64_t capacity = 0;  ///< sum of length times capacity in bytes per second; both without their
                                ///< greatest common divisor
    double value() const { return static_cast<double>(demand) / static_cast<double>(capacity); }
};

/// The best rounding of `flow.lengths` to integers among several denominators; all zero when none fits 64
/// bits.
LengthBound round_lengths(const FlowNetwork& network, const ConcurrentFlow& flow);

}  // namespace baton::synth
