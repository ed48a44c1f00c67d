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
        affine_mod,  ///< (sign*r + offset) mod modulus, modulus = N
        xor_mask,    ///< r xor mask
        other,       ///< needs a table
    } kind = Kind::other;
    int sign = 1;
};

/// A parsed expression; cheap to copy. 64-bit integers; + - * / mod (floored), << >>, and or xor not, comparisons
/// (< <= > >= == !=, giving 0 or 1), select(c, a, b), min, max, ilog2, pow2floor, parentheses. Precedence, from
/// loose to tight: or, xor, and, not, comparisons, shifts, + -, * / mod, unary -.
class Expression {
public:
    Expression() = default;               ///< empty: `present` is false
    Expression(std::int64_t value);       // NOLINT: implicit on purpose
    /// Throws an input error with the column of the fault. At most 4096 characters and 64 levels.
    static Expression parse(std::string_view text, const std::string& where = {});

    bool present() const { return node_ != nullptr; }
    /// Throws an input error for overflow, division by zero, unknown names, and shifts outside 0..62.
    std::int64_t evaluate(const Bindings& bindings) const;
    bool uses(std::string_view name) const;
    /// The constant value when it is a literal.
    std::optional<std::int64_t> literal() const;
    PositionForm position_form() const;
    /// Text that parses back to the same expression.
    std::string text() const;

    struct Node;

private:
    explicit Expression(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
    std::shared_ptr<const Node> node_;
};

}  // namespace baton::ir
