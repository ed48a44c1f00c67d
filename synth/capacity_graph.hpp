// What a topology can carry, as a directed graph of exact capacities: the input of bandwidth bounds.
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// An arc that stands for a link or for a joint limit.
struct CapacityArc {
    int from = -1, to = -1;
    std::int64_t capacity = 0;  ///< in units of `CapacityGraph::scale` bytes per second
    int link = -1;              ///< index into Topology::links, -1 for a limit
    int limit = -1;             ///< index into Topology::limits, -1 for a link
};

/// A set of vertices and what leaves it.
struct CapacityCut {
    std::vector<char> inside;   ///< per vertex
    std::vector<int> arcs;      ///< arcs that leave the set
    std::int64_t capacity = 0;  ///< their sum, in units of `scale`
};

/// Vertices 0..node_count-1 are the nodes of the topology. Nodes that can neither take part nor forward (GPUs
/// outside of the communicator) have no arcs. Members of the communicator store and forward. A limit over
/// links that leave one node is an extra vertex behind that node (links that enter: before it), so that it
/// binds in every cut; of a limit over links of several nodes, or of both directions of a node, each node's
/// and direction's part is held to the whole limit, which is weaker but never wrong. Of limits that overlap
/// without one holding the other, the first is used. Rules of forwarding (NICs, hosts) are left out: they
/// only take ways away, so every bound stays valid.
struct CapacityGraph {
    int node_count = 0, vertices = 0;
    std::vector<CapacityArc> arcs;
    std::int64_t scale = 1;  ///< greatest common divisor of all capacities, in bytes per second
    std::int64_t total = 0;  ///< sum of all arc capacities
    std::vector<std::vector<int>> out, in;  ///< arc numbers per vertex
    bool reversed = false;

    /// The same with every arc turned round (for collectives that gather).
    CapacityGraph reverse() const;

    /// What leaves a given set of nodes: extra vertices of limits are placed so that the sum is least.
    CapacityCut leaving(const std::vector<char>& inside_nodes) const;
    /// The cut of a set of vertices as it stands.
    CapacityCut cut_of(std::vector<char> inside) const;
};

/// `member[node]` is true for nodes that carry a rank of the communicator. Throws an input error when the
/// capacities sum to more than 2^62 bytes per second, which exact fractions of 64 bits cannot hold.
CapacityGraph capacity_graph(const topologies::Topology& topology, const std::vector<char>& member);

}  // namespace baton::synth
