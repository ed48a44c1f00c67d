// Forests of machines that look the same from every rank: one root's trees, turned to all others.
#pragma once

#include <baton/synth/link_forest.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <optional>

namespace baton::synth {

/// What `symmetric_forest` may do.
struct SymmetryOptions {
    std::int64_t most_per_root = 1024;    ///< largest number of trees per root
    double tolerance = 0.001;             ///< how far above `optimum` the time may be
    bool exact_count = false;             ///< only most_per_root itself is tried, at any time
    int most_depth = 0;                   ///< bound on the depth of trees, 0: none
    bool any_time = false;                ///< the best of some numbers of trees, whatever its time
    std::int64_t most_edges = 4'000'000;  ///< of all trees together
    bool turned = false;                  ///< trees of the reversed machine (for reduce_scatter)
    /// Numbers for ways within hosts that share no link with the default route; null: such ways are not
    /// taken.
    WayNumbers* ways = nullptr;
};

/// Trees from every rank, or nothing when the machine has no symmetry of the kind tried, or none meets the
/// tolerance.
///
/// The ranks are read as a group of shifts (digits of a mixed radix: dimensions of a torus, hosts and their
/// GPUs). One root's trees, shifted, are every root's trees; a link then carries, per use of a shift in the
/// root's trees, what one message along every pair of that shift puts on it. So all links are held to their
/// capacity by counting the uses of each shift, which needs no proof that shifts are automorphisms: loads are
/// summed over the true routes. The parent of a rank is any rank of a lower level, hence ranks choose
/// independently, and one maximum flow from ranks over shifts to capacities finds the trees (as in
/// breadth-first broadcast, arXiv 2402.03356, for one root with whole trees). Levels are hops from the root
/// and rise only where capacity is missing: trees have least depth. Where that is slower than the tolerance
/// allows, every shift within hosts may also be made along a way of its own (over PCIe and CPUs beside
/// NVLink), the shortest that shares no link with the default route. `optimum`: seconds per byte that cuts
/// allow. Routes must be of the spread policy or shares do not hold at run time.
std::optional<Forest> symmetric_forest(const topologies::Topology& topology, const topologies::Routes& routes,
                                       int ranks, double optimum, const SymmetryOptions& options = {});

}  // namespace baton::synth
