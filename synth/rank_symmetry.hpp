// Which shifts of ranks map a machine to itself.
#pragma once

#include <baton/synth/rank_graph.hpp>

#include <vector>

namespace baton::synth {

/// A group of permutations of the ranks; no rank stays where it is but under the identity, which is first.
/// [permutation][rank].
using RankGroup = std::vector<std::vector<int>>;

/// The largest group of shifts in one reading under which pairs of ranks, what default routes take of the
/// resources and the kinds of detours look the same (compared by hash, and detours only by their rates:
/// whoever uses the group counts loads again). The identity alone where nothing is alike.
RankGroup symmetric_shifts(const RankGraph& graph, const std::vector<int>& hosts);

/// The edge that each permutation of the group takes each edge to: [permutation][edge]. Detours of a pair go
/// to those that look alike, in order. Empty where an edge finds none.
std::vector<std::vector<int>> turned_edges(const RankGraph& graph, const RankGroup& group);

}  // namespace baton::synth
