// Machines of GPUs joined by links, drawn by hand.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::test {

/// GPUs "g0", "g1", ... without links; to be joined and finished.
inline topologies::Topology loose_gpus(const std::string& name, int count) {
    topologies::Topology topology;
    topology.name = name;
    for (int i = 0; i < count; ++i) {
        topologies::Node node;
        node.id = "g" + std::to_string(i);
        node.type = topologies::NodeType::gpu;
        topology.add_node(std::move(node));
    }
    return topology;
}

/// A link in both directions.
inline void join(topologies::Topology& topology, int a, int b, Rate bandwidth, Time latency = {}) {
    topologies::Link link;
    link.from = a;
    link.to = b;
    link.bandwidth = bandwidth;
    link.latency = latency;
    topology.add_link(link);
}

}  // namespace baton::test
