// The machine as the greedy search sees it: pairs of ranks with a route, and what a message occupies on the
// way.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace baton::synth {

/// A pair of ranks with a route.
struct GreedyEdge {
    int from = -1, to = -1;
    Time latency{};
    double seconds_per_byte = 0;  ///< of its slowest resource, when it has that alone
    bool between_hosts = false;
    std::int32_t first_use = 0, uses = 0;  ///< see `GreedyNetwork::uses_of`
};

/// One thing that a message occupies: a link or a joint limit, for so long per byte of the message.
struct GreedyUse {
    std::int32_t resource = 0;
    double seconds_per_byte = 0;
};

/// Picoseconds for `bytes`, rounded up, at most `most`.
std::int64_t greedy_duration(Bytes bytes, double seconds_per_byte, std::int64_t most);

/// Which pairs: all that a route joins within a host; between hosts those of least latency from a rank to the
/// other host or to a rank from the other host (on rails, the ranks of one rail), and those that are quicker
/// than a way over such pairs (not looked for on large machines). Links that one edge alone
/// uses count as one resource, the slowest of them.
class GreedyNetwork {
public:
    /// The first `ranks` ranks of the topology. Throws an input error above 4 million pairs.
    GreedyNetwork(const topologies::Topology& topology, int ranks, topologies::RoutePolicy policy,
                  std::uint64_t seed);

    int ranks() const { return ranks_; }
    int resources() const { return resources_; }
    const std::vector<GreedyEdge>& edges() const { return edges_; }
    std::span<const GreedyUse> uses_of(int edge) const {
        const GreedyEdge& e = edges_[static_cast<std::size_t>(edge)];
        return {uses_.data() + e.first_use, static_cast<std::size_t>(e.uses)};
    }
    /// Edges that leave a rank, that enter it, and that use a resource; ascending.
    std::span<const std::int32_t> out(int rank) const { return out_.of(rank); }
    std::span<const std::int32_t> in(int rank) const { return in_.of(rank); }
    std::span<const std::int32_t> users(int resource) const { return users_.of(resource); }
    /// Host of each rank, 0, 1, ...; a rank without a host is one of its own.
    const std::vector<int>& hosts() const { return hosts_; }
    /// True when every rank reaches every other over these edges.
    bool connected() const;
    /// All edges turned round: schedules found on it, run backwards, fit the machine.
    GreedyNetwork turned() const;

private:
    /// Lists of numbers, one after the other.
    struct Lists {
        std::vector<std::int32_t> begin{0}, items;
        std::span<const std::int32_t> of(int i) const {
            const auto k = static_cast<std::size_t>(i);
            return {items.data() + begin[k], static_cast<std::size_t>(begin[k + 1] - begin[k])};
        }
        void fill(int lists, const std::vector<std::pair<std::int32_t, std::int32_t>>& members);
    };
    void add_edges(const topologies::Topology& topology, topologies::RoutePolicy policy, std::uint64_t seed);
    /// Of `pairs` (sorted by their first), those whose latency is less than over edges.
    std::vector<std::pair<int, int>> quicker_than_edges(const std::vector<std::pair<int, int>>& pairs,
                                                        const std::function<Time(int, int)>& latency) const;
    void merge_private();
    void index();

    int ranks_ = 0, resources_ = 0;
    std::vector<GreedyEdge> edges_;
    std::vector<GreedyUse> uses_;
    Lists out_, in_, users_;
    std::vector<int> hosts_;
};

}  // namespace baton::synth
