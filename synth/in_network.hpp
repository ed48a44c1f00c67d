// All-reduce by switches that reduce and multicast.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

struct InNetworkAlgorithm {
    ir::Algorithm algorithm;
    int domains = 0;     ///< sets of ranks under switches that reduce and multicast
    int per_domain = 0;  ///< ranks of each
};

/// Ranks between which every route passes a node that reduces and multicasts form a domain. Every rank owns
/// an equal part of the buffer: the switch reduces it over the domain into its owner (`switch_reduce`),
/// owners of equal place combine it over the domains along a ring (reduce_scatter, then all_gather), and each
/// piece is multicast as soon as it is whole. Within a domain every link carries the buffer once in each
/// direction, and between n domains each rail carries 2(n-1)/n of its part. all_reduce over one group of all
/// ranks, domains of equal size, two ranks or more in each. Throws an input error with the reason when the
/// case is not served.
InNetworkAlgorithm in_network(const topologies::Topology& topology, const ir::Collective& collective,
                              topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                              std::uint64_t seed = 0);

}  // namespace baton::synth
