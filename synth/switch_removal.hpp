// Switches replaced by direct links between ranks that keep every flow that trees need.
#pragma once

#include <baton/synth/forward_graph.hpp>
#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::synth {

/// A link between two ranks in place of a path through forwarding vertices.
struct DirectLink {
    int from = -1, to = -1;
    std::int64_t trees = 0;  ///< how many it carries
    ForwardWay way;
};

/// Removes all forwarding vertices, one after another, in whole trees: an amount of an arc into a vertex and
/// as much of an arc out of it become an arc past it (edge splitting; arXiv 2402.06787, after Frank and
/// Jackson). `capacity`: whole trees per arc of the graph. What stays invariant: a source that feeds every
/// root its trees can send all of them to any one rank, so that spanning trees can still be packed.
///
/// Each vertex is first split at once by a guess, an even mesh of its neighbors (those of other hosts, where
/// there are any; what does not divide goes to neighbors at rotating distances), and the flows are asked
/// once. Where the guess fails, pairs of arcs are split one by one, each by the largest amount that keeps all
/// flows: it starts at all that both arcs have and falls by what a flow lacks until none lacks anything,
/// which is exact since every cut that is hurt loses the whole amount. Only ways that routes can take are
/// made.
///
/// Empty when some vertex cannot be removed so (rules of forwarding, or more trees into it than out of it),
/// or when `work` (arcs times flows) runs out.
std::vector<DirectLink> remove_switches(const ForwardGraph& graph, const std::vector<std::int64_t>& capacity,
                                        const std::vector<RootDemand>& demands, std::int64_t& work);

}  // namespace baton::synth
