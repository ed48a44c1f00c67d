// Sets of vertices that hold too little rate towards or away from roots: the separator of every program over
// trees.
#pragma once

#include <baton/synth/max_flow.hpp>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace baton::synth {

/// Finds the cuts that trees violate: `shares[i]` units of trees out of root i reach every sink exactly when
/// a source that feeds all roots can send all of their units to any one sink (Edmonds). One maximum flow per
/// sink, each continued from the last that sufficed.
class RootedCuts {
public:
    /// Directed arcs (from, to) over vertices 0..vertices-1. For in-trees give the arcs turned round.
    RootedCuts(int vertices, const std::vector<std::pair<int, int>>& arcs, std::vector<int> roots,
               std::vector<int> sinks);

    /// Source sides of minimum cuts, per vertex, one for each sink that falls short: what leaves such a set
    /// at `rates` (one per arc) is less than the shares of the roots inside. Empty when trees fit. The sums
    /// of rates and of shares must stay below 2^62.
    std::set<std::vector<char>> violated(const std::vector<std::int64_t>& rates,
                                         const std::vector<std::int64_t>& shares);

private:
    int vertices_;
    std::size_t arcs_;
    std::vector<int> roots_, sinks_;
    MaxFlow<std::int64_t> flow_;
};

}  // namespace baton::synth
