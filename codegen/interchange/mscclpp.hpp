// Execution plans of MSCCL++ (JSON).
//
// Source of the format: the executor of microsoft/mscclpp, version 0.9.
#pragma once

#include <baton/codegen/interchange/interchange.hpp>

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

}  // namespace baton::codegen
