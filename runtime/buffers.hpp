// The buffers of a call: how large they are, how input and output share memory, and the check that they fit.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/ir/data_type.hpp>
#include <baton/ir/reduce_op.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace baton::runtime {

/// What changes from call to call. `count` is in elements: of one shard for kinds with shards (scatter,
/// gather, all_gather, reduce_scatter, all_to_all), of the whole buffer for the others. Copying collectives
/// ignore `op` and `nan`.
struct CallArguments {
    std::int64_t count = 0;
    ir::DataType type = ir::DataType::f32;
    ir::ReduceOp op = ir::ReduceOp::sum;
    ir::NanMode nan = ir::NanMode::propagate;
};

/// One rank's buffers in host memory. Null where the rank has no such buffer, or where it has no elements.
struct RankBuffers {
    const void* input = nullptr;
    void* output = nullptr;
};

/// Elements of a rank's input or output: shards times count, 0 when the rank has no such buffer. Every output
/// place of a custom collective is a shard of its own. Throws an input error for a negative count, or above
/// 2^62 elements.
std::int64_t buffer_elements(const ir::Collective& collective, int rank, ir::Buffer buffer,
                             std::int64_t count);
/// The same in bytes; throws an input error above 2^62 bytes.
std::int64_t buffer_bytes(const ir::Collective& collective, int rank, ir::Buffer buffer, std::int64_t count,
                          ir::DataType type);

/// Elements from the start of the output to the start of the input in an in-place call, as NCCL defines it:
/// all_reduce, broadcast, reduce, all_to_all 0; all_gather and gather at the root p*count; reduce_scatter and
/// scatter at the root -p*count. Nothing when the rank lacks one of the buffers or the kind has no in-place
/// form (send_recv, custom).
std::optional<std::int64_t> in_place_offset(const ir::Collective& collective, int rank, std::int64_t count);

/// Throws an input error that names the rank when there are not `ranks` entries, a buffer that holds elements
/// is null, is not aligned for the type, or input and output of a rank overlap other than in place.
/// `in_place`: the schedule serves only calls in place (true) or only those out of place (false).
void check_buffers(const ir::Collective& collective, const CallArguments& arguments,
                   std::span<const RankBuffers> buffers, std::optional<bool> in_place = {});

/// The same for one rank's buffers; they must also be aligned for the type.
void check_rank_buffers(const ir::Collective& collective, const CallArguments& arguments, int rank,
                        const RankBuffers& own, std::optional<bool> in_place = {});

/// Contributions that the value of an output place combines (the divisor of avg): the size of the rank's
/// group for standard kinds. REQUIRES: the place exists for custom collectives.
std::int64_t contributions_of(const ir::Collective& collective, int rank, std::int64_t output_index);

}  // namespace baton::runtime
