// Algorithm XML of MSCCL, which RCCL and the MSCCL executor for NCCL read too.
//
// Source of the format: the parsers of microsoft/msccl, Azure/msccl-executor-nccl and ROCm/rccl.
#pragma once

#include <baton/codegen/interchange/interchange.hpp>

#include <string>
#include <string_view>

namespace baton::codegen {

bool recognizes_msccl_xml(std::string_view text);

/// Reads an algorithm. A step becomes an instruction, chains of nop become its needs, and each (rank, peer,
/// channel) a staged connection with as many slots as the executor has messages under way: 2 for Simple, 8
/// for LL and LL128. In place, what the file calls input is the output place that shares its memory.
/// Attributes without a counterpart are kept in Program::foreign.
ImportedProgram read_msccl_xml(std::string_view text, const std::string& name);

}  // namespace baton::codegen
