// What other formats do not say and a Program must: the class of each scratch place, and which instruction
// completes a value.
#pragma once

#include <baton/ir/program.hpp>

#include <string>
#include <vector>

namespace baton::codegen {

/// Most chunks that buffers of all ranks may have, and that all instructions may move, in a file that is
/// read.
inline constexpr std::int64_t kMostImportedPlaces = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostImportedMoves = std::int64_t{1} << 28;

/// Runs the instructions once, in any order that messages and needs allow, following which class each place
/// holds and how many contributions are in it. Sets `scratch_classes` (their number must be right already)
/// and `finalize`. Instructions that never get their turn, and what depends on them, are left as they are:
/// verify names the fault. A scratch place that holds chunks of different classes one after the other becomes
/// several places. Operands must lie within their buffers. Returns warnings.
std::vector<std::string> complete_values(ir::Program& program);

/// The places [offset, offset + count) that a file calls 'i'(nput), 'o'(utput) or 's'(cratch), as a local
/// operand of `rank`. In a program that serves calls in place only, input places that share memory with
/// output places become those.
ir::Operand own_places(const ir::Program& program, int rank, char buffer, std::int64_t offset,
                       std::int64_t count);

/// Sets `clobbers_input` where an instruction writes to input, its own or that of others.
void note_clobbers(ir::Program& program);

/// What a program in the form of an executor begins with: name, collective, placement, attributes of other
/// formats and scratch of `program`, on as many ranks without threadblocks.
ir::Program without_threadblocks(const ir::Program& program);

/// Throws an input error when chunks have unequal weights: `executor` has chunks of one size only.
void require_equal_chunks(const ir::Program& program, const std::string& executor);

/// Renumbers connections by sender, receiver and channel.
void sort_connections(ir::Program& program);

}  // namespace baton::codegen
