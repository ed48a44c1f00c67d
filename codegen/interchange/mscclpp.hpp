// Execution plans of MSCCL++ (JSON).
//
// Source of the format: the executor of microsoft/mscclpp, version 0.9.
#pragma once

#include <baton/codegen/interchange/interchange.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::codegen {

bool recognizes_mscclpp_json(std::string_view text);

/// Reads a plan. An operation becomes an instruction on own places, places of other ranks (remote operands)
/// and of switch groups. signal and wait, packets and their readers, semaphores and barriers become needs:
/// the k-th wait on a channel needs what stands before its k-th signal. nop is the order that a threadblock
/// has anyway. A share of a group of threadblocks (tbg_info) becomes chunks of its own: all chunks are
/// divided. The body of a pipeline is read once: its rounds are Baton's tiles. In place, what the file calls
/// input is the output place that shares its memory. Attributes without a counterpart are kept in
/// Program::foreign. An operation without a counterpart is an input error with its JSON pointer.
ImportedProgram read_mscclpp_json(std::string_view text, const std::string& name);

struct MscclppOptions {
    std::int64_t min_bytes = 0, max_bytes = 0;  ///< calls it is for; max 0: no end
};

/// The program that `write_mscclpp_json` writes: without connections. A message becomes a put into scratch of
/// its own at the receiver (a put: into its place), which waits for it. A threadblock that receives tells its
/// senders first that it has begun the call. Instructions are taken apart to what one operation can do, and
/// threadblocks of more than 64 operations are cut.
/// Reading the text gives this program back. The result is verified. Throws an input error that names what
/// the executor lacks: chunks of unequal weights, switches that reduce into one rank.
ir::Program mscclpp_form(const ir::Program& program);

/// The text. What the format has no words for (collectives, placement, what stands in Program::foreign)
/// stands in an object "baton", which the executor passes over. Throws an input error that names the limit of
/// the executor that stands in the way: operations, channels or remote buffers of a threadblock.
std::string write_mscclpp_json(const ir::Program& program, const MscclppOptions& options = {});

}  // namespace baton::codegen
