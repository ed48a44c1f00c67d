// Hops between ranks on what is left of the links' capacities. Internal to the search of rings.
#pragma once

#include <baton/synth/ring_order.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace baton::synth {

/// One hop by itself.
struct Hop {
    double rate = 0;           ///< bytes per second; 0 = no route
    std::int64_t latency = 0;  ///< picoseconds
};

/// How good a ring is; compares by rate (within a relative 1e-9), then by latency.
struct Quality {
    double rate = 0;
    std::int64_t latency = 0;
    bool better_than(const Quality& other) const;
};

/// `a` at least `b`, up to rounding.
inline bool at_least(double a, double b) { return a >= b * (1 - 1e-9); }

/// Orders are lists of numbers 0..size-1 into `ranks`.
class RingNetwork {
public:
    RingNetwork(const topologies::Topology& topology, const RingOptions& options);

    int size() const { return static_cast<int>(ranks_.size()); }
    int rank(int i) const { return ranks_[static_cast<std::size_t>(i)]; }
    const topologies::Topology& topology() const { return *topology_; }

    Hop hop(int from, int to) const;
    Quality measure(const std::vector<int>& order) const;
    /// Takes `rate` of every hop of the ring out of the capacities.
    void take(const std::vector<int>& order, double rate);

    /// Resources are links, then limits: (resource, share) of a hop, each resource once.
    const std::vector<std::pair<int, double>>& shares(int from, int to) const;
    double left(int resource) const { return left_[static_cast<std::size_t>(resource)]; }
    int resources() const { return static_cast<int>(left_.size()); }

private:
    const topologies::Topology* topology_;
    topologies::Routes routes_;
    std::vector<int> ranks_;
    std::vector<double> left_;
    std::vector<std::vector<int>> limits_of_link_;
    mutable std::vector<std::pair<int, double>> shares_;
    mutable std::vector<double> load_;
};

/// Exact search for up to 16 ranks, from position 0; `quality.rate` is 0 when there is no ring. `slack` as in
/// RingOptions.
std::vector<int> exact_ring(const RingNetwork& network, double slack, Quality& quality);
inline constexpr int kMostExact = 16;

/// Hosts one after the other, paths inside and hops between chosen together; empty when hosts do not matter.
std::vector<int> ring_over_hosts(const RingNetwork& network, double slack);

/// Snakes through all grids of two and three dimensions that the number of ranks allows.
std::vector<std::vector<int>> grid_rings(int size);

/// A ring of direct neighbors, by rotations of a path (Posa 1976); empty when none is found.
std::vector<int> neighbor_ring(const RingNetwork& network, std::uint64_t seed);

}  // namespace baton::synth
