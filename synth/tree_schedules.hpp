// Schedules along given trees: the common end of all synthesizers that think in trees.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// What a collective along trees consists of.
struct TreePhases {
    std::vector<int> roots;  ///< the root of kinds that have one, else every rank
    bool in = false;         ///< data runs to the roots: reduce, reduce_scatter, gather, and first all_reduce
    bool out = false;        ///< data runs from the roots: all other kinds, and then all_reduce
};
TreePhases tree_phases(const ir::Collective& collective);

/// Throws an input error that names the size when even one tree per root needs more than `most_steps` steps,
/// over all groups: schedules of trees are written out step by step. To be asked before trees are looked for.
void require_few_steps(const ir::Collective& collective, std::int64_t most_steps);

/// The same for the trees of these forests (either may be null), before their schedule is written.
void require_few_steps(const Forest* in, const Forest* out, std::int64_t most_steps);

/// Hops of the deepest tree.
int depth_of(const Forest& forest);

/// The schedule of a collective along trees, for one group of all ranks. `out`: trees from the roots to all,
/// for broadcast, all_gather, all_reduce, scatter, all_to_all and send_recv; `in`: trees of the reversed
/// machine, for reduce, reduce_scatter, all_reduce and gather. Kinds with a root have trees from the root
/// only, the others from every rank. Shares of trees become weights of chunks; where trees of several roots
/// or both phases are cut differently, chunks are as fine as all of them need. Scatter-like kinds pass shards
/// on through scratch, each relay's in one run. Edges with a way of their own (`PackedTree::ways`) get its
/// number as their channel (broadcast, all_gather and what is made of them). REQUIRES: the forests that the
/// kind needs are given, the others are null.
ir::Algorithm tree_schedule(const ir::Collective& collective, const Forest* in, const Forest* out);

}  // namespace baton::synth
