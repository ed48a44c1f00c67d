// Orders of ranks for rings, searched on the topology: which neighbors make the slowest hop as fast as can
// be.
#pragma once

#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// A ring: the rank order[i] sends to order[i+1], the last one to the first.
struct Ring {
    std::vector<int> order;
    /// What every hop can carry while all hops run at once: the least of capacity / load over links and joint
    /// limits, the load of a link being the shares of all hops that use it. 0 when a hop has no route, and
    /// for one rank.
    Rate rate{};
    /// Sum over the hops.
    Time latency{};
};

/// What the search may do.
struct RingOptions {
    /// Ranks that take part, each once; empty = all.
    std::vector<int> ranks;
    topologies::RoutePolicy policy = topologies::RoutePolicy::spread;
    std::uint64_t seed = 1;  ///< of the local search for many ranks; the same seed gives the same ring
    int most_rings = 16;     ///< for `ring_orders`
    /// A ring slower than the best by up to this share is taken where its latency is less: a percent of rate
    /// is not worth leaving every host at every hop. 0 = rate before all.
    double slack = 0.05;
};

/// Rate and latency of a ring in this order.
Ring measure_ring(const topologies::Topology& topology, const std::vector<int>& order,
                  topologies::RoutePolicy policy = topologies::RoutePolicy::spread);

/// The best ring: largest rate (up to `slack`), then least latency. Up to 16 ranks the search is exact as
/// long as hops that share links do not drive it over its budget of a quarter million nodes; above, rings
/// inside hosts are joined host by host by dynamic programming, grids are walked in snakes, and what remains
/// is improved by seeded local search. Throws an input error when no ring is found in which every rank has a
/// route to the next.
Ring best_ring(const topologies::Topology& topology, const RingOptions& options = {});
/// Its order alone.
std::vector<int> ring_order(const topologies::Topology& topology, const RingOptions& options = {});

/// Rings that together use the links: each is the best one on the capacity that those before it leave, at the
/// rate that is left for it, down to a quarter of the rate of the first. Always one or more.
std::vector<Ring> ring_orders(const topologies::Topology& topology, const RingOptions& options = {});

/// Small whole numbers in proportion to the rates, to within a few percent: weights for the rings' shares of
/// the data.
std::vector<std::int64_t> ring_weights(const std::vector<Ring>& rings);

}  // namespace baton::synth
