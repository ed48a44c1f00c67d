// Shallow spanning trees: every rank hears of a root from a rank nearer to it.
#pragma once

#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// As `pack_trees`, but trees of low depth; empty when none were found, which does not mean that there are
/// none.
///
/// Every root gives all ranks a level, at first the hops from it; the parent of a rank is always of a lower
/// level. So ranks choose apart from each other: for each rank one maximum flow from roots over its incoming
/// edges to their capacities (breadth-first broadcast, arXiv 2402.03356, here with capacities instead of
/// balance). Where a root's trees find no room at a rank, the rank's level for this root rises by one, until
/// all have room or a level is above `most_depth` (0: no bound).
std::vector<PackedTree> layered_trees(int ranks, const std::vector<RankEdge>& edges,
                                      const std::vector<std::int64_t>& capacity,
                                      const std::vector<RootDemand>& demands, int most_depth = 0);

}  // namespace baton::synth
