// The exact optimum of spanning trees on a machine, and its scaling to whole trees.
#pragma once

#include <baton/base/rational.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>

namespace baton::synth {

/// What the tightest cut allows trees to do, in whole numbers: with `per_root` trees from every root, a link
/// of `unit` * c bytes per second carries `per_unit` * c of them.
struct TreeOptimum {
    Rational seconds_per_byte;  ///< 1/x*: to send one byte from every root to all
    std::int64_t unit = 1;      ///< greatest common divisor of all capacities, bytes per second
    std::int64_t per_root = 1;  ///< k, the least number of trees for which the optimum is a whole forest
    std::int64_t per_unit = 0;  ///< trees over `unit`; per_unit / (unit * per_root) = seconds_per_byte
    bool exact = true;          ///< false when the work limit of the cut search ended it (then a bound)
};

/// For broadcast and all_gather; for reduce and reduce_scatter on the reversed machine. The cut is found
/// exactly by maximum flow (`bandwidth_bound`); with 1/x* = p/q in units of the capacities' greatest common
/// divisor, k = q and a unit carries p trees (arXiv 2402.06787, section on integer capacities). Throws an
/// input error for other kinds.
TreeOptimum tree_optimum(const topologies::Topology& topology, const ir::Collective& collective);

/// Seconds per byte of every root that cuts allow trees of one phase of a collective: `turned`, towards the
/// roots, else from them.
double phase_optimum(const topologies::Topology& topology, const ir::Collective& collective, bool turned);

}  // namespace baton::synth
