// Sizes: from what the user calls size to the bytes of a tile of a step.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>
#include <baton/sim/step_graph.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace baton::sim {

/// Bytes of one shard for a size in the sense of nccl-tests (the larger of the send and receive buffer of a
/// rank), rounded down as nccl-tests does. Kinds with shards: size over the ranks of the largest group.
/// custom: such that the largest buffer of any rank has `size` bytes.
Bytes shard_bytes(const ir::Collective& collective, Bytes size);

/// busbw over algbw, as nccl-tests defines it: all_reduce 2(N-1)/N; all_gather, reduce_scatter, all_to_all,
/// scatter and gather (N-1)/N; others 1. N is the size of the largest group. 1 for N = 1.
double bus_factor(const ir::Collective& collective);

/// Bytes of runs of classes, whole or one tile of them: ir::Partition over the bytes of a shard in units of
/// 16, in time independent of the length of a run.
class StepBytes {
public:
    /// REQUIRES: tiles >= 1. `even`: each class has as many units per weight as the longest has, so that
    /// classes of equal weight are equal; a shard is then longer by what `unevenness` says at most.
    StepBytes(const ir::Collective& collective, Bytes shard, std::int64_t tiles, bool even = false);
    std::int64_t operator()(std::span<const ClassRun> runs, std::int64_t tile) const;

    /// By how much, relative to the shard, classes of equal weight differ in all; 0 where they are equal.
    static double unevenness(const ir::Collective& collective, Bytes shard);

private:
    std::int64_t units(std::int64_t begin, std::int64_t end, std::int64_t tile) const;
    std::int64_t class_units(std::int64_t chunk_class) const;

    std::int64_t classes_, tiles_, quotient_ = 0, remainder_ = 0;
    std::vector<std::int64_t> prefix_;                             // of the weights; empty for equal weights
    std::int64_t last_class_ = -1, last_tile_ = -1, missing_ = 0;  // the shard's last unit may be short
};

}  // namespace baton::sim
