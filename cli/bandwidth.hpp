// Sizes and bandwidths of collective calls in the sense of nccl-tests.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/runtime/buffers.hpp>

#include <cstdint>

namespace baton::cli {

/// Bytes of the larger of a rank's send and receive buffer.
std::int64_t size_of_call(const ir::Collective& collective, const runtime::CallArguments& arguments);
/// Factor from algorithm bandwidth to bus bandwidth, as nccl-tests has it.
double bus_factor(const ir::Collective& collective);

}  // namespace baton::cli
