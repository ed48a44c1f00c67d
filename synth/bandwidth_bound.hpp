// The bandwidth bound: how long the data must flow, whatever the method.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// The argument that a bandwidth bound rests on.
enum class WitnessKind : std::uint8_t {
    nothing,    ///< no data has to move
    cut,        ///< `demand` units must leave the set `inside`, over links of `capacity`
    partition,  ///< `demand` messages' worth of units must move between the `parts` (all_reduce)
    distance,  ///< units times the links they must cross sum to `demand`, all links together carry `capacity`
               ///< (all_to_all)
    lengths,   ///< the same with a length for every link and joint limit: the dual of the concurrent flow
               ///< (all_to_all)
};

/// Everything needed to check the bound by hand: time >= demand / capacity per byte of a unit.
struct BandwidthWitness {
    WitnessKind kind = WitnessKind::nothing;
    std::vector<int> inside;  ///< cut: node indices, ascending
    std::vector<std::vector<int>>
        parts;                ///< partition: node indices of each part; nodes in no part only forward
    bool entering = false;    ///< partition: links that enter parts were counted, else those that leave
    std::vector<int> links;   ///< links counted with their own capacity (empty for distance: all count)
    std::vector<int> limits;  ///< joint limits counted in place of their links
    /// lengths: of each of `links` and `limits`, in their order; all others have length 0. A way is as long
    /// as its links, each with the limits that it is under.
    std::vector<std::int64_t> link_lengths, limit_lengths;
    std::int64_t demand = 0;    ///< units (shards, or whole buffers); lengths: units times the shortest ways
    std::int64_t capacity = 0;  ///< bytes per second; lengths: times length, summed; this and `demand` are
                                ///< divided by their greatest common divisor
};

/// Seconds per byte of a unit (one shard for kinds with shards, else the whole buffer), as an exact fraction.
struct BandwidthBound {
    Rational seconds_per_byte;
    BandwidthWitness witness;
    /// True when no better bound follows from any cut: the optimum over all cuts was found by maximum flow;
    /// for all_to_all, when a concurrent flow exists that takes no longer (to 1e-6; see `concurrent_flow`).
    /// False for several groups at once of the other kinds, where the best of many cuts is taken; and where
    /// the work limits ended the search (`kMaxFlowWork`, `FlowLimits`).
    bool best_cut = false;
};

/// Work allowed for maximum flows, in arcs times flows; beyond it the best cut so far stands.
inline constexpr std::int64_t kMaxFlowWork = 100'000'000;

/// The bound holds for every method, in-network multicast and reduction included where a node of the topology
/// declares it, and under every routing.
///
/// Cuts (every kind): what must leave a set of nodes, divided by the capacity out of it. For one group the
/// best cut is found exactly for all kinds but all_to_all: the ratio is raised from cut to cut, each found by
/// maximum flow at the present ratio (Dinkelbach's method, as in throughput-optimal tree packing, arXiv
/// 2402.06787), until no cut is violated.
///
/// Partitions (all_reduce): with the nodes divided into n parts that hold ranks, at least 2(n-1) messages
/// between parts are needed for every element: n-1 before any part can hold the result, and one to each of
/// the n-1 others afterwards. So the capacity into (or out of) all parts together needs 2(n-1) buffers. Holds
/// for methods whose messages are copies or partial reductions of elements, which is all that an Algorithm
/// can say. Nodes that declare multicast or reduce are parts of their own or belong to one; only plain
/// forwarding nodes are left out.
///
/// Distances (all_to_all): every shard crosses at least as many links as its ranks are apart.
///
/// Lengths (all_to_all): the same for links and joint limits of given integer lengths, rounded from the dual
/// of the concurrent multicommodity flow and summed up again in integers. Several groups share the network.
///
/// Throws input errors as `capacity_graph` and, for `custom`, one that says that there is no bound.
/// REQUIRES: every rank that must inform another can reach it (see latency_bound).
BandwidthBound bandwidth_bound(const topologies::Topology& topology, const ir::Collective& collective);

/// Units that must leave a set of nodes, over all groups: what the cut argument counts.
std::int64_t cut_demand(const topologies::Topology& topology, const ir::Collective& collective,
                        const std::vector<char>& inside_nodes);

}  // namespace baton::synth
