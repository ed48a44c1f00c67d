// A bound on the depth of trees: what it leaves of the machine, and the least depth that it can ask for.
#pragma once

#include <baton/synth/rank_graph.hpp>
#include <baton/synth/tree_schedules.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// Hops from a root to the rank farthest from it.
struct Eccentricity {
    int hops = 0;
    int root = -1, rank = -1;
};

/// The largest over all roots: no trees of all of them are shallower. Edges without rate count too. A rank
/// out of reach counts as `ranks` hops away.
Eccentricity eccentricity(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots);

/// Pairs of ranks on which trees of these phases can be at most `most_depth` hops deep (0: no bound): the
/// nearest pairs where they allow it, else all pairs with a route. Connected. Throws an input error, which
/// names the least depth possible and two ranks so far apart, when no trees are that shallow.
RankGraph graph_within(const topologies::Topology& topology, int ranks, const TreePhases& phases,
                       int most_depth, topologies::RoutePolicy policy, std::uint64_t seed);

/// Messages on the longest chain of values in a schedule; an all_reduce has the hops of both its phases.
int message_depth(const ir::Algorithm& algorithm);

}  // namespace baton::synth
