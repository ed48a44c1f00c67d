// An algorithm's body compiled for walking: names resolved to slots, nested bodies flattened to jumps.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/expression_node.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::ir {

/// An expression over slots instead of names.
class CompiledExpression {
public:
    struct Node {
        ExpressionOp op = ExpressionOp::literal;
        std::array<std::int32_t, 3> arguments{-1, -1, -1};  ///< children; a name: [0] is its slot
        std::int64_t value = 0;
    };
    std::vector<Node> nodes;  ///< children before parents; the last is the root

    std::int64_t evaluate(const std::int64_t* slots) const { return evaluate(nodes.back(), slots); }
    bool is_literal() const { return nodes.back().op == ExpressionOp::literal; }

private:
    std::int64_t evaluate(const Node& node, const std::int64_t* slots) const;
};

/// Slots with a fixed meaning; params, loop variables and lets follow.
enum FixedSlot : int { kSlotR = 0, kSlotN = 1, kSlotC = 2, kSlotRoot = 3, kFixedSlots = 4 };

struct LoopProgram {
    /// Before the operands of a template are evaluated at a position: a let that depends on `r` (slot >= 0),
    /// or a condition that must hold (slot < 0).
    struct Prelude {
        int slot = -1;
        int expression = -1;
    };
    struct Template {
        const StepTemplate* step = nullptr;
        std::array<int, 6>
            operands{};  ///< src_rank, src_index, dst_rank, dst_index, chunks, channel; -1 = default
        std::vector<Prelude> prelude;
        bool per_position = false;  ///< stands for all positions
        bool always_emits = false;  ///< no condition, and a literal number of chunks above zero
        PositionForm source, destination;
        std::string place;  ///< JSON pointer
    };
    enum class Code : std::uint8_t {
        let,
        loop,
        next,
        branch,
        jump,
        par_begin,
        par_end,
        step,
        explicit_steps,
        stop
    };
    struct Instruction {
        Code code = Code::stop;
        int slot = -1;        ///< let, loop, next: the variable; the bound of a loop is in the slot after it
        int expression = -1;  ///< let: value; loop: from (to is the next one); branch: condition
        int target = -1;      ///< loop: after the end; next: first of the body; branch, jump
        int index = -1;       ///< step: template; explicit_steps: run
        std::int64_t add = 1, multiply = 0;
        bool uniform = false;  ///< loop: every iteration has the same number of steps
        std::string place;
    };

    std::vector<CompiledExpression> expressions;
    std::vector<Template> templates;
    std::vector<const std::vector<Step>*> runs;
    std::vector<Instruction> code;
    std::vector<std::int64_t> slots;  ///< initial values: C, root and params are set, N and r are not

    std::int64_t value(int expression, const std::int64_t* slot_values) const {
        return expressions[static_cast<std::size_t>(expression)].evaluate(slot_values);
    }
    /// Number of iterations of a loop from `from` to `to`; throws an input error when it never ends.
    static std::int64_t iterations(const Instruction& loop, std::int64_t from, std::int64_t to);
    /// Concrete steps of a group of `size` positions; saturates at INT64_MAX.
    std::int64_t count(std::int64_t size, bool first_group) const;
};

/// Compiles; throws an input error for unknown or reserved names, bounds that use `r`, nested par blocks and
/// the like. The result points into the algorithm.
LoopProgram compile(const Algorithm& algorithm);

/// Most loop iterations without a step, or spent on counting steps.
inline constexpr std::int64_t kIterationBudget = std::int64_t{1} << 26;

}  // namespace baton::ir
