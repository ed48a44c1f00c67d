// Trees of least latency whose branches have moved off busy links.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

struct ReroutedAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t trees_per_root = 0;
    int depth = 0;    ///< hops of the deepest tree
    double loss = 0;  ///< time on links above what the best cut allows: 0.01 is 1%
};

/// broadcast, reduce, all_gather, reduce_scatter, all_reduce: balanced trees of least latency from every root
/// (`shortest_path_forest`), improved by `reroute` until the busiest link takes what the tightest cut demands
/// or nothing moves. Tried with several numbers of trees and bounds on depth, shallow ones first. A local
/// search: quick and shallow, with no promise to reach the cut. The first result is the least loss, within
/// 0.3% the shallowest; a second one, if there is one, gives up to 12% for less depth. None is deeper than
/// `most_depth` hops (0: no bound); an input error names the least depth possible. One group of all ranks.
/// Throws an input error with the reason when the case is not served.
std::vector<ReroutedAlgorithm> rerouted(const topologies::Topology& topology,
                                        const ir::Collective& collective,
                                        topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                                        std::uint64_t seed = 0, int most_depth = 0);

}  // namespace baton::synth
