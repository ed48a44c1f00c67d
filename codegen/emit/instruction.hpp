// One instruction as text with its numbers taken out, so that instructions which differ in numbers only share
// their code.
#pragma once

#include <baton/codegen/emit/analysis.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// A number of an instruction, and what it wraps at when it advances from one copy of a loop body to the next
/// (0: nothing). Numbers of ends index arrays of the threadblock, which compilers keep in registers only
/// while the index is a literal.
struct Number {
    std::int64_t value = 0, modulus = 0;
    bool end = false;
};

/// Text in which the k-th number stands as "$k$". Lines are not indented at their first level.
struct PrintedInstruction {
    std::string text;
    std::vector<Number> numbers;
};

/// Prints instructions in the dialect of codegen/prelude/README.md. Ends are called s[0], s[1], ... (sends)
/// and r[0], r[1], ... (receives) in the order of the threadblock, the buffers behind put and get connections
/// at_s[0], at_r[0], ...; their indices are numbers, so that a form serves all ends.
class InstructionPrinter {
public:
    explicit InstructionPrinter(const EmitPlan& plan, int instances);
    PrintedInstruction print(const EmitThreadblock& threadblock, const EmitInstruction& instruction);
    /// Rows of chunks whose classes or shards follow no rule; instructions walk slices of it (kPieces in the
    /// text).
    const std::vector<std::uint32_t>& pieces() const { return pieces_; }

private:
    struct Text;
    void waits(Text& text, const EmitThreadblock& threadblock, const EmitInstruction& instruction) const;
    void moves(Text& text, const EmitThreadblock& threadblock, const EmitInstruction& instruction);
    void posts(Text& text, const EmitInstruction& instruction) const;
    bool listed(const EmitInstruction& instruction) const;
    std::string operand(Text& text, const Access& access, const std::string& place) const;
    std::string apply(Text& text, const EmitInstruction& instruction,
                      const std::vector<std::string>& places) const;

    const EmitPlan* plan_;
    int instances_;
    bool shards_;  ///< whether an address depends on a shard number
    std::vector<std::uint32_t> pieces_;
};

}  // namespace baton::codegen
