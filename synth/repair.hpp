// A new schedule from an old one after the machine has changed: a failed link, a slow one.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// The trees along which an algorithm moves data: one forest of what is sent out complete, one of what is
/// summed up, as parents point to where partial sums go (`in`, on the turned machine). A forest that the kind
/// has no use for has no trees. Weights of classes are multiplicities.
struct LiftedForests {
    Forest in, out;
};

/// Reads the trees back from the steps of a broadcast, reduce, all_gather, reduce_scatter or all_reduce:
/// whatever copies and scratch places it uses, every value must reach every rank once, and every partial sum
/// must be passed on once. Throws an input error that says why an algorithm is not made of trees: other
/// kinds, groups, switch steps, values that arrive twice, shares of all_reduce that differ from root to root.
LiftedForests lift_forests(const ir::Algorithm& algorithm);

/// A repaired schedule.
struct Repaired {
    ir::Algorithm algorithm;
    int depth = 0;              ///< hops of the deepest tree
    std::int64_t replaced = 0;  ///< branches that had lost their link
    std::int64_t moved = 0;     ///< all branches that hang elsewhere now
    double loss = 0;            ///< time on links above what the best cut of the machine as it is now allows
};

/// The trees of `old` on the machine as it is now, with branches moved off links that are gone or too slow
/// (`reroute`): some milliseconds where a search from nothing takes seconds. The machine must have the ranks
/// that `old` was made for. Pinned routes of `old` are not kept. Throws what `lift_forests` throws, and an
/// input error when ranks cannot reach each other.
Repaired repair(const topologies::Topology& topology, const ir::Algorithm& old,
                topologies::RoutePolicy policy = topologies::RoutePolicy::spread, std::uint64_t seed = 0);

}  // namespace baton::synth
