// Integer expressions of the algorithm format: "(r-s) mod N", "select(r < root, r, r-1)".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// Values of names while an expression is evaluated. Looked up from the back: inner names hide outer ones.
struct Bindings {
    std::vector<std::pair<std::string, std::int64_t>> values;
    const std::int64_t* find(std::string_view name) const;
};

/// How an expression depends on the position variable `r`, when that can be inverted in O(1).
struct PositionForm {
    enum class Kind : std::uint8_t {
        constant,    ///< does not contain r
        affine_mod,  ///< (sign*r + offset) mod N, or sign*r + offset: the r that gives p is sign*(p - offset)
                     ///< mod N if any
        xor_mask,    ///< r xor mask
        other,       ///< needs a table
    } kind = Kind::other;
    int sign = 1;
};

/// A parsed expression; cheap to copy. 64-bit integers; + - * / mod (floored), << >>, and or xor (of bits, so
/// that they serve as masks and on 0/1), not (1 for 0, else 0), comparisons (< <= > >= == !=, giving 0 or 1),
/// select(c, a, b) which evaluates only the branch it takes, min, max, ilog2, pow2floor, parentheses. `and`
/// leaves its right side alone when its left is 0. Precedence, from loose to tight: or, xor, and, not,
/// comparisons, shifts, + -, * / mod, unary -.
class Expression {
public:
    Expression() = default;          ///< empty: `present` is false
    Expression(std::int64_t value);  // NOLINT: implicit on purpose
    /// Throws an input error with the column of the fault. At most 4096 characters and 64 levels.
    static Expression parse(std::string_view text, const std::string& where = {});

    bool present() const { return node_ != nullptr; }
    /// Throws an input error for overflow, division by zero, unknown names, and shifts outside 0..62.
    std::int64_t evaluate(const Bindings& bindings) const;
    /// Whether a name occurs. Names that stand for a `let` are not looked through.
    bool uses(std::string_view name) const;
    /// Names that occur, each once, in order of appearance.
    std::vector<std::string> names() const;
    /// The constant value when it is a literal.
    std::optional<std::int64_t> literal() const;
    PositionForm position_form() const;
    /// Text that parses back to the same expression.
    std::string text() const;

    struct Node;
    /// The syntax tree (expression_node.hpp); null when not present.
    const Node* node() const { return node_.get(); }

private:
    explicit Expression(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
    std::shared_ptr<const Node> node_;
};

}  // namespace baton::ir
