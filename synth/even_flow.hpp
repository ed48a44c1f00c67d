// Flows that spread evenly over all shortest paths. Internal to the layer.
#pragma once

#include <baton/synth/flow_network.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// Lengths of arcs in whole numbers for lengths of resources (not negative, one above 0): exact to 1e-9 of
/// the longest, with a small part that tells ways of equal length apart by their hops, so that no way comes
/// back to a vertex.
std::vector<std::int64_t> whole_lengths(const FlowNetwork& network, const std::vector<double>& of_resource);

/// One even flow: all shortest paths under lengths of arcs (above 0), divided at every vertex in proportion
/// to capacity. Both must outlive it.
class EvenFlow {
public:
    EvenFlow(const FlowNetwork& network, const std::vector<std::int64_t>& lengths)
        : network_(network), lengths_(lengths) {}

    /// Adds `weight` times the flow of a demand to `units` (per arc).
    void add(const FlowDemand& demand, double weight, std::vector<double>& units) const;

private:
    double capacity(int arc) const;

    const FlowNetwork& network_;
    const std::vector<std::int64_t>& lengths_;
};

}  // namespace baton::synth
