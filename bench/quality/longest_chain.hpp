// How many messages follow each other on the longest way of a value: the depth of a schedule, whatever made
// it.
#pragma once

#include <baton/ir/algorithm.hpp>

namespace baton::bench {

/// Messages on the longest chain in which each one carries what the one before it delivered. For trees their
/// depth in hops, for an all_reduce of two phases the sum of both.
int longest_chain(const ir::Algorithm& algorithm);

}  // namespace baton::bench
