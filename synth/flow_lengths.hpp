// Shortest paths of a flow network under lengths of its resources. Internal to the layer.
#pragma once

#include <baton/synth/flow_network.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace baton::synth {

/// Lengths of arcs: the sum of their resources'.
template <typename Length>
std::vector<Length> arc_lengths(const FlowNetwork& network, const std::vector<Length>& of_resource) {
    std::vector<Length> lengths;
    lengths.reserve(network.arcs.size());
    for (const FlowArc& arc : network.arcs) {
        Length sum = 0;
        for (const int r : arc.resources) sum += of_resource[static_cast<std::size_t>(r)];
        lengths.push_back(sum);
    }
    return lengths;
}

inline constexpr std::int64_t kOutOfReach = std::numeric_limits<std::int64_t>::max();

/// Distance of every vertex from `source` under lengths of arcs (zero allowed), by Dijkstra's method;
/// `order`, when given, receives the reached vertices from near to far.
std::vector<std::int64_t> distances_from(const FlowNetwork& network, const std::vector<std::int64_t>& lengths,
                                         int source, std::vector<int>* order = nullptr);

}  // namespace baton::synth
