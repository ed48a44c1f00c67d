// Cutting the classes of an algorithm's chunks finer, so that algorithms that cut data differently can run
// side by side.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <vector>

namespace baton::ir {

/// The same algorithm with class k cut into `pieces[k].size()` classes of these weights. Steps move the same
/// data, as explicit steps; runs that stay together stay one step. A scratch place becomes as many places as
/// the class with most pieces has. Sizes of messages stay what they were when the weights of each class'
/// pieces sum to its own weight times one common factor. Throws an input error for custom collectives, for a
/// list that does not fit the classes, and above 50 million steps.
Algorithm refine(const Algorithm& algorithm, const std::vector<std::vector<std::int64_t>>& pieces);

/// Weights of classes that all of several divisions of one whole can be made of: the union of their
/// boundaries. `pieces[d][k]` are the weights of what class k of division d becomes; they are the same list
/// in the same order for every division. Fractions of the whole are kept exactly up to a common denominator
/// of 2^40; throws an input error above.
struct CommonDivision {
    std::vector<std::vector<std::vector<std::int64_t>>> pieces;  ///< [division][class][piece]
};
CommonDivision common_division(const std::vector<std::vector<std::int64_t>>& divisions);

}  // namespace baton::ir
