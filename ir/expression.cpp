#include <baton/ir/expression.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/expression_node.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <bit>

namespace baton::ir {
namespace {

using Node = Expression::Node;

[[noreturn]] void overflow(const char* what) { throw input_error(fmt::format("{} overflows 64 bits", what)); }

std::int64_t floored_divide(std::int64_t a, std::int64_t b) {
    if (b == 0) throw input_error("division by zero");
    if (a == INT64_MIN && b == -1) overflow("a division");
    const std::int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t floored_modulo(std::int64_t a, std::int64_t b) {
    if (b == 0) throw input_error("mod by zero");
    if (b == -1) return 0;
    const std::int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t shift(ExpressionOp op, std::int64_t a, std::int64_t b) {
    if (b < 0 || b > 62) throw input_error(fmt::format("a shift by {} is outside 0..62", b));
    if (op == ExpressionOp::shift_right) return a >> b;
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, std::int64_t{1} << b, &result)) overflow("a shift");
    return result;
}

std::int64_t evaluate_node(const Node& node, const Bindings& bindings) {
    switch (node.op) {
        case ExpressionOp::literal: return node.value;
        case ExpressionOp::name: {
            const auto* value = bindings.find(node.name);
            if (!value) throw input_error(fmt::format("unknown name \"{}\"", node.name));
            return *value;
        }
        case ExpressionOp::select:
            return evaluate_node(*node.arguments[evaluate_node(*node.arguments[0], bindings) != 0 ? 1 : 2],
                                 bindings);
        default: break;
    }
    const std::int64_t a = evaluate_node(*node.arguments[0], bindings);
    if (node.op == ExpressionOp::bit_and && a == 0) return 0;
    const std::int64_t b = node.arguments[1] ? evaluate_node(*node.arguments[1], bindings) : 0;
    return apply(node.op, a, b);
}

void collect_names(const Node& node, std::vector<std::string>& names) {
    if (node.op == ExpressionOp::name && std::find(names.begin(), names.end(), node.name) == names.end())
        names.push_back(node.name);
    for (const auto& argument : node.arguments)
        if (argument) collect_names(*argument, names);
}

bool uses_name(const Node& node, std::string_view name) {
    if (node.op == ExpressionOp::name) return node.name == name;
    return std::any_of(node.arguments.begin(), node.arguments.end(),
                       [&](const auto& argument) { return argument && uses_name(*argument, name); });
}

/// Coefficient of r when the tree is (coefficient * r + something without r) by + - and unary -.
std::optional<int> coefficient(const Node& node) {
    if (node.op == ExpressionOp::name && node.name == "r") return 1;
    if (!uses_name(node, "r")) return 0;
    if (node.op != ExpressionOp::add && node.op != ExpressionOp::subtract && node.op != ExpressionOp::negate)
        return std::nullopt;
    const auto a = coefficient(*node.arguments[0]);
    if (!a) return std::nullopt;
    if (node.op == ExpressionOp::negate) return -*a;
    const auto b = coefficient(*node.arguments[1]);
    if (!b) return std::nullopt;
    const int sum = node.op == ExpressionOp::add ? *a + *b : *a - *b;
    return sum < -64 || sum > 64 ? std::nullopt : std::optional<int>(sum);
}

// ---- printing

struct Spelling {
    std::string_view text;
    int precedence;
};

Spelling spelling(ExpressionOp op) {
    switch (op) {
        case ExpressionOp::bit_or: return {" or ", 1};
        case ExpressionOp::bit_xor: return {" xor ", 2};
        case ExpressionOp::bit_and: return {" and ", 3};
        case ExpressionOp::logical_not: return {"not ", 4};
        case ExpressionOp::less: return {" < ", 5};
        case ExpressionOp::less_equal: return {" <= ", 5};
        case ExpressionOp::greater: return {" > ", 5};
        case ExpressionOp::greater_equal: return {" >= ", 5};
        case ExpressionOp::equal: return {" == ", 5};
        case ExpressionOp::not_equal: return {" != ", 5};
        case ExpressionOp::shift_left: return {" << ", 6};
        case ExpressionOp::shift_right: return {" >> ", 6};
        case ExpressionOp::add: return {" + ", 7};
        case ExpressionOp::subtract: return {" - ", 7};
        case ExpressionOp::multiply: return {" * ", 8};
        case ExpressionOp::divide: return {" / ", 8};
        case ExpressionOp::modulo: return {" mod ", 8};
        case ExpressionOp::negate: return {"-", 9};
        case ExpressionOp::minimum: return {"min", 10};
        case ExpressionOp::maximum: return {"max", 10};
        case ExpressionOp::select: return {"select", 10};
        case ExpressionOp::ilog2: return {"ilog2", 10};
        case ExpressionOp::pow2floor: return {"pow2floor", 10};
        case ExpressionOp::literal:
        case ExpressionOp::name: break;
    }
    return {"", 10};
}

void print(const Node& node, int context, std::string& out) {
    if (node.op == ExpressionOp::name) {
        out += node.name;
        return;
    }
    if (node.op == ExpressionOp::literal) {
        const bool wrap = node.value < 0 && context > 9;
        out += wrap ? fmt::format("({})", node.value) : std::to_string(node.value);
        return;
    }
    const auto [text, precedence] = spelling(node.op);
    if (precedence == 10) {
        out += text;
        for (int i = 0; i < argument_count(node.op); ++i) {
            out += i == 0 ? "(" : ", ";
            print(*node.arguments[static_cast<std::size_t>(i)], 0, out);
        }
        out += ")";
        return;
    }
    const bool wrap = precedence < context;
    if (wrap) out += "(";
    if (argument_count(node.op) == 1) {
        out += text;
        // "--5" would read as a decrement to people, and "-5" of a literal folds: keep the tree with
        // parentheses.
        print(*node.arguments[0], node.op == ExpressionOp::negate ? 10 : precedence, out);
    } else {
        const bool comparison = precedence == 5;
        print(*node.arguments[0], comparison ? precedence + 1 : precedence, out);
        out += text;
        print(*node.arguments[1], precedence + 1, out);
    }
    if (wrap) out += ")";
}

}  // namespace

int argument_count(ExpressionOp op) {
    if (op == ExpressionOp::literal || op == ExpressionOp::name) return 0;
    if (op == ExpressionOp::select) return 3;
    return op == ExpressionOp::negate || op == ExpressionOp::logical_not || op == ExpressionOp::ilog2 ||
                   op == ExpressionOp::pow2floor
               ? 1
               : 2;
}

std::int64_t apply(ExpressionOp op, std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    switch (op) {
        case ExpressionOp::negate:
            if (a == INT64_MIN) overflow("a negation");
            return -a;
        case ExpressionOp::logical_not: return a == 0;
        case ExpressionOp::ilog2:
        case ExpressionOp::pow2floor:
            if (a < 1) throw input_error(fmt::format("{} of {} is not defined", spelling(op).text, a));
            result = std::bit_width(static_cast<std::uint64_t>(a)) - 1;
            return op == ExpressionOp::ilog2 ? result : std::int64_t{1} << result;
        case ExpressionOp::add:
            if (__builtin_add_overflow(a, b, &result)) overflow("a sum");
            return result;
        case ExpressionOp::subtract:
            if (__builtin_sub_overflow(a, b, &result)) overflow("a difference");
            return result;
        case ExpressionOp::multiply:
            if (__builtin_mul_overflow(a, b, &result)) overflow("a product");
            return result;
        case ExpressionOp::divide: return floored_divide(a, b);
        case ExpressionOp::modulo: return floored_modulo(a, b);
        case ExpressionOp::shift_left:
        case ExpressionOp::shift_right: return shift(op, a, b);
        case ExpressionOp::bit_and: return a & b;
        case ExpressionOp::bit_or: return a | b;
        case ExpressionOp::bit_xor: return a ^ b;
        case ExpressionOp::less: return a < b;
        case ExpressionOp::less_equal: return a <= b;
        case ExpressionOp::greater: return a > b;
        case ExpressionOp::greater_equal: return a >= b;
        case ExpressionOp::equal: return a == b;
        case ExpressionOp::not_equal: return a != b;
        case ExpressionOp::minimum: return std::min(a, b);
        case ExpressionOp::maximum: return std::max(a, b);
        case ExpressionOp::literal:
        case ExpressionOp::name:
        case ExpressionOp::select: break;
    }
    throw internal_error("operator of an expression without a value");
}

const std::int64_t* Bindings::find(std::string_view name) const {
    for (auto it = values.rbegin(); it != values.rend(); ++it)
        if (it->first == name) return &it->second;
    return nullptr;
}

Expression::Expression(std::int64_t value) {
    auto node = std::make_shared<Node>();
    node->value = value;
    node_ = std::move(node);
}

std::int64_t Expression::evaluate(const Bindings& bindings) const {
    if (!node_) throw internal_error("an empty expression has no value");
    return evaluate_node(*node_, bindings);
}

bool Expression::uses(std::string_view name) const { return node_ && uses_name(*node_, name); }

std::vector<std::string> Expression::names() const {
    std::vector<std::string> list;
    if (node_) collect_names(*node_, list);
    return list;
}

std::optional<std::int64_t> Expression::literal() const {
    if (node_ && node_->op == ExpressionOp::literal) return node_->value;
    return std::nullopt;
}

PositionForm Expression::position_form() const {
    using Kind = PositionForm::Kind;
    if (!node_ || !uses_name(*node_, "r")) return {Kind::constant, 0};
    const Node* linear = node_.get();
    if (linear->op == ExpressionOp::modulo && linear->arguments[1]->op == ExpressionOp::name &&
        linear->arguments[1]->name == "N")
        linear = linear->arguments[0].get();
    if (const auto sign = coefficient(*linear); sign && (*sign == 1 || *sign == -1))
        return {Kind::affine_mod, *sign};
    if (node_->op == ExpressionOp::bit_xor)
        for (const int side : {0, 1}) {
            const auto& position = *node_->arguments[static_cast<std::size_t>(side)];
            const auto& mask = *node_->arguments[static_cast<std::size_t>(1 - side)];
            if (position.op == ExpressionOp::name && position.name == "r" && !uses_name(mask, "r"))
                return {Kind::xor_mask, 1};
        }
    return {Kind::other, 1};
}

std::string Expression::text() const {
    std::string out;
    if (node_) print(*node_, 0, out);
    return out;
}

}  // namespace baton::ir
