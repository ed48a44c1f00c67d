// Roles: threadblocks that do the same with other peers and other numbers share one function. What differs
// among them goes to a table of constants.
#pragma once

#include <baton/codegen/emit/analysis.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// The code of all threadblocks.
struct PrintedRoles {
    std::string functions;  ///< template <class E> void roleN(Block&, const u32* c), ...
    int count = 0;          ///< of roles
    std::vector<std::pair<int, std::int64_t>>
        of;                                ///< [threadblock of the plan]: role, first index in `constants`
    std::vector<std::uint32_t> constants;  ///< kConstants in the text
    std::vector<std::uint32_t> rows;       ///< kRows: operands of instructions that follow no rule
    std::vector<std::uint32_t> pieces;     ///< kPieces: chunks that follow no rule
};

/// `straight`: threadblocks of at most so many instructions become straight-line code.
/// Throws an input error when the tables exceed 64 MiB.
PrintedRoles print_roles(const EmitPlan& plan, int instances, int straight);

}  // namespace baton::codegen
