// Which links can hold messages back: fewer resources for the same sharing.
#pragma once

#include <baton/sim/network.hpp>

#include <vector>

namespace baton::sim {

/// Fills `binding` of all paths of one run. A resource a is left out when another, b, is used by every path
/// that uses a, each time with at least as much of its capacity: then b is used up no later than a, the rates
/// that are possible stay the same, and so do max-min fair rates, which depend on nothing else. Of the planes
/// of switches between which messages are spread one remains, of a chain of links its narrowest.
/// `capacities`: of each resource, as `sim::capacities` gives them. `most_work`: comparisons of a path after
/// which what is not yet compared stays.
void find_binding_uses(std::vector<Path>& paths, const std::vector<double>& capacities,
                       std::int64_t most_work = 50'000'000);

}  // namespace baton::sim
