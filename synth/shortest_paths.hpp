// Schedules along shortest ways: few hops, balanced load, any collective, relays where ranks have no route.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/topology.hpp>

namespace baton::synth {

/// `per_root` trees from every root in which every vertex is reached by a way of least latency, then fewest
/// hops (`fewest_hops`: the other way round); among such ways, each tree takes those whose busiest edge is
/// least loaded so far (balanced breadth-first layers). REQUIRES: every vertex can be reached from every
/// root.
Forest shortest_path_forest(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                            std::int64_t per_root, bool fewest_hops = false);

/// `shortest_path_forest`, with fewest hops where least latency takes more than `most_depth` hops (0: no
/// bound). REQUIRES: no rank is farther from a root.
Forest shortest_path_forest_within(int most_depth, int ranks, const std::vector<RankEdge>& edges,
                                   const std::vector<int>& roots, std::int64_t per_root);

/// Every standard kind along such trees; see tree_schedules.hpp. One group of all ranks only. Trees are at
/// most `most_depth` hops deep (0: no bound), or an input error names the least depth possible. Throws an
/// input error with the reason when the case is not served.
struct ShortestPathAlgorithm {
    ir::Algorithm algorithm;
    int depth = 0;
};
ShortestPathAlgorithm shortest_paths(const topologies::Topology& topology, const ir::Collective& collective,
                                     std::int64_t per_root,
                                     topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                                     std::uint64_t seed = 0, int most_depth = 0);

}  // namespace baton::synth
