// What flows can use: a directed graph whose arcs load resources (links, joint limits) of exact capacities.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::synth {

/// Something of limited rate: parallel links that serve as one, or a joint limit.
struct FlowResource {
    std::int64_t capacity = 0;  ///< bytes per second
    std::vector<int> links;     ///< indices into Topology::links; empty for a limit
    int limit = -1;             ///< index into Topology::limits, -1 for links
};

/// A way from one vertex to the next over parallel links of equal standing.
struct FlowArc {
    int from = -1, to = -1;
    std::vector<int> links;      ///< indices into Topology::links
    bool nearest = true;         ///< these are all links of least latency between the two nodes
    std::vector<int> resources;  ///< every byte over the arc loads each of them
};

/// Data wanted by some vertices from one source, all in equal amounts.
struct FlowDemand {
    int source = -1;
    std::vector<int> sinks;
    int group = 0;  ///< group of the collective
};

/// Vertices with arcs. Members of the communicator store and forward; GPUs outside of it have no arcs.
struct FlowNetwork {
    int vertices = 0;
    std::vector<int> node_of;  ///< per vertex: the node of the topology it stands for
    std::vector<int> vertex_of_rank;
    std::vector<FlowArc> arcs;
    std::vector<std::vector<int>> out, in;  ///< arc numbers per vertex
    std::vector<FlowResource> resources;
    std::vector<FlowDemand> demands;
    /// True when data flows against the arcs of the topology's links (gather): sources are the receivers.
    bool turned = false;

    std::int64_t pairs() const;
    /// Adds what units on each arc load each resource with, and the seconds per byte of a unit that the
    /// busiest resource takes for its load.
    void add_load(const std::vector<double>& units, std::vector<double>& load) const;
    double busiest(const std::vector<double>& load) const;
};

/// A power by squaring: the same bits everywhere.
inline double whole_power(double base, int exponent) {
    double result = 1;
    for (; exponent > 0; exponent /= 2, base *= base) {
        if (exponent % 2 == 1) result *= base;
    }
    return result;
}

/// Every node is one vertex; the rules of forwarding are left out, so that what is proved holds under every
/// routing. Limits are resources over all of their links, wherever these lie. Demands of all_to_all (a source
/// per rank), scatter and send_recv (the root), gather (turned: the root is the source). Throws input errors
/// as `member_nodes`, and one for other kinds.
FlowNetwork flow_network(const topologies::Topology& topology, const ir::Collective& collective);

/// The same under the rules of forwarding: nodes that are no members become a vertex for each phase of a
/// message (in the source's host, on the fabric, in the destination's host), so that every path between two
/// members is a route that a step may pin.
FlowNetwork routed_flow_network(const topologies::Topology& topology, const ir::Collective& collective);

}  // namespace baton::synth
