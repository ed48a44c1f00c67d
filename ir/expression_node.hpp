// The syntax tree of an expression, for the parser, the evaluators and the compiler of loops.
#pragma once

#include <baton/ir/expression.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace baton::ir {

enum class ExpressionOp : std::uint8_t {
    literal,
    name,
    negate,
    logical_not,
    ilog2,
    pow2floor,
    add,
    subtract,
    multiply,
    divide,
    modulo,
    shift_left,
    shift_right,
    bit_and,
    bit_or,
    bit_xor,
    less,
    less_equal,
    greater,
    greater_equal,
    equal,
    not_equal,
    minimum,
    maximum,
    select
};

struct Expression::Node {
    ExpressionOp op = ExpressionOp::literal;
    std::int64_t value = 0;  ///< of a literal
    std::string name;        ///< of a name
    std::array<std::shared_ptr<const Node>, 3> arguments;
};

/// Number of arguments of an operator: 0 to 3.
int argument_count(ExpressionOp op);

/// Applies an operator that is not literal, name or select. Throws an input error for overflow, division by
/// zero and shifts outside 0..62. Division and modulo round toward minus infinity.
std::int64_t apply(ExpressionOp op, std::int64_t a, std::int64_t b);

}  // namespace baton::ir
