// Machines that tests of the simulator compute with.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::test {

inline topologies::Node gpu(const std::string& id) {
    topologies::Node node;
    node.id = id;
    return node;
}

/// N GPUs on one switch: every rank sends and receives at `rate`, alpha = `latency` between any two ranks.
inline topologies::Topology star(int ranks, Rate rate, Time latency) {
    topologies::Topology topology;
    topology.name = "star";
    for (int r = 0; r < ranks; ++r) topology.add_node(gpu("g" + std::to_string(r)));
    topologies::Node hub;
    hub.id = "hub";
    hub.type = topologies::NodeType::switch_node;
    hub.latency = latency;
    hub.multicast = hub.reduce = true;
    const int at = topology.add_node(hub);
    for (int r = 0; r < ranks; ++r) {
        topologies::Link link;
        link.from = r;
        link.to = at;
        link.bandwidth = rate;
        topology.add_link(link);
    }
    topology.finish("star");
    return topology;
}

/// N GPUs in a ring, both directions.
inline topologies::Topology ring(int ranks, Rate rate, Time latency) {
    topologies::Topology topology;
    topology.name = "ring";
    for (int r = 0; r < ranks; ++r) topology.add_node(gpu("g" + std::to_string(r)));
    for (int r = 0; r < ranks; ++r) {
        topologies::Link link;
        link.from = r;
        link.to = (r + 1) % ranks;
        link.bandwidth = rate;
        link.latency = latency;
        if (ranks > 2 || r == 0) topology.add_link(link);
    }
    topology.finish("ring");
    return topology;
}

}  // namespace baton::test
