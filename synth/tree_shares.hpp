// How much each of given trees carries.
#pragma once

#include <baton/synth/link_forest.hpp>
#include <baton/synth/tree_packing.hpp>

namespace baton::synth {

/// The same trees with the shares at which the busiest link or limit takes least time, by a linear program
/// over the trees (roots keep equal shares), rounded to as few whole ones as lose little. Trees that are
/// given nothing go. A number of whole trees that fits links of 48 and 51.2 GB/s wastes the difference; these
/// shares do not. The forest as it is where nothing is gained, or where it has too many trees. `turned`,
/// `ways`: as in `forest_time`.
Forest reshared(const topologies::Topology& topology, const topologies::Routes& routes, Forest forest,
                bool turned, const WayNumbers& ways);

}  // namespace baton::synth
