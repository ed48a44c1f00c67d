// What prices of links say about all trees: no schedule along trees is faster than they allow.
#pragma once

#include <baton/synth/joint_optimum.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// The least k up to 2520 for which all values are near multiples of unit / k; 0 when there is none.
std::int64_t common_denominator(const std::vector<double>& values, double unit);

/// Duals as whole prices: small ones where they are fractions of small numbers and not `fine`, else of 30
/// bits. REQUIRES: one of them is above 0.
std::vector<std::int64_t> whole_prices(const std::vector<double>& prices, bool fine);

/// What a piece of the buffer costs at least when every use of a resource costs its price: over all ranks
/// (vertices of the graph) the least price of an in-tree to one plus that of an out-tree from it (Chu and
/// Liu, Edmonds). 0 when no rank reaches all.
std::int64_t least_price_of_a_piece(const JointGraph& graph, const std::vector<int>& ranks,
                                    const std::vector<std::int64_t>& prices);

}  // namespace baton::synth
