// Algorithm XML of MSCCL, which RCCL and the MSCCL executor for NCCL read too.
//
// Source of the format: the parsers of microsoft/msccl, Azure/msccl-executor-nccl and ROCm/rccl.
#pragma once

#include <baton/codegen/interchange/interchange.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::codegen {

bool recognizes_msccl_xml(std::string_view text);

/// Reads an algorithm. A step becomes an instruction, chains of nop become its needs, and each (rank, peer,
/// channel) a staged connection with as many slots as the executor has messages under way: 2 for Simple, 8
/// for LL and LL128. In place, what the file calls input is the output place that shares its memory.
/// Attributes without a counterpart are kept in Program::foreign.
ImportedProgram read_msccl_xml(std::string_view text, const std::string& name);

/// The executor that an export is for; their limits differ.
enum class MscclExecutor : std::uint8_t { msccl, rccl };

struct MscclOptions {
    MscclExecutor executor = MscclExecutor::msccl;
    ir::Protocol protocol =
        ir::Protocol::automatic;                ///< automatic: the program's, where all connections agree
    std::int64_t min_bytes = 0, max_bytes = 0;  ///< calls it is for; max 0: no end
};

/// Messages that the executor keeps under way on a connection of the protocol (automatic: Simple): programs
/// that are lowered with so many slots run there.
int msccl_slots(const MscclOptions& options);

/// The program that `write_msccl_xml` writes: each threadblock with one peer a side, each reduction of two,
/// in the executor's slots (see executor_form.hpp). Reading the text gives this program back. Throws an input
/// error that names what the executor lacks.
ir::Program msccl_form(const ir::Program& program, const MscclOptions& options = {});

/// The text, with every attribute that the executors read. Throws an input error that names the limit of the
/// executor that stands in the way: threadblocks of a rank, steps of a threadblock, channels, length of the
/// name.
std::string write_msccl_xml(const ir::Program& program, const MscclOptions& options = {});

}  // namespace baton::codegen
