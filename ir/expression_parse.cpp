// Recursive descent over one line of text.
#include <baton/base/error.hpp>
#include <baton/ir/expression_node.hpp>

#include <fmt/format.h>
#include <array>
#include <cctype>

namespace baton::ir {
namespace {

using Node = Expression::Node;
using NodePtr = std::shared_ptr<const Node>;

constexpr std::size_t kMaxLength = 4096;
constexpr int kMaxDepth = 64;

struct Word {
    std::string_view text;
    ExpressionOp op;
};

// Binary operators by level, from loose to tight. `not` stands between `and` and the comparisons.
constexpr std::array<Word, 1> kOr{{{"or", ExpressionOp::bit_or}}};
constexpr std::array<Word, 1> kXor{{{"xor", ExpressionOp::bit_xor}}};
constexpr std::array<Word, 1> kAnd{{{"and", ExpressionOp::bit_and}}};
constexpr std::array<Word, 6> kComparisons{{{"<=", ExpressionOp::less_equal},
                                            {">=", ExpressionOp::greater_equal},
                                            {"==", ExpressionOp::equal},
                                            {"!=", ExpressionOp::not_equal},
                                            {"<", ExpressionOp::less},
                                            {">", ExpressionOp::greater}}};
constexpr std::array<Word, 2> kShifts{{{"<<", ExpressionOp::shift_left}, {">>", ExpressionOp::shift_right}}};
constexpr std::array<Word, 2> kSums{{{"+", ExpressionOp::add}, {"-", ExpressionOp::subtract}}};
constexpr std::array<Word, 3> kProducts{
    {{"*", ExpressionOp::multiply}, {"/", ExpressionOp::divide}, {"mod", ExpressionOp::modulo}}};
constexpr std::array<Word, 5> kFunctions{{{"select", ExpressionOp::select},
                                          {"min", ExpressionOp::minimum},
                                          {"max", ExpressionOp::maximum},
                                          {"ilog2", ExpressionOp::ilog2},
                                          {"pow2floor", ExpressionOp::pow2floor}}};
constexpr std::array<std::string_view, 5> kWords{"or", "xor", "and", "not", "mod"};

NodePtr make(ExpressionOp op, NodePtr a, NodePtr b = nullptr, NodePtr c = nullptr) {
    auto node = std::make_shared<Node>();
    node->op = op;
    node->arguments = {std::move(a), std::move(b), std::move(c)};
    return node;
}

class Parser {
public:
    Parser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    NodePtr parse() {
        if (text_.size() > kMaxLength)
            throw input_error(
                fmt::format("expression of {} characters; at most {}", text_.size(), kMaxLength), where_);
        NodePtr node = logic_or();
        skip_blanks();
        if (at_ < text_.size()) {
            if (text_[at_] == '=') throw fault("a single \"=\"", "compare with \"==\"");
            throw fault(fmt::format("expected an operator or the end, got \"{}\"", text_.substr(at_, 12)));
        }
        return node;
    }

private:
    struct Depth {
        explicit Depth(Parser& parser) : parser_(parser) {
            if (++parser.depth_ > kMaxDepth)
                throw parser.fault(fmt::format("more than {} levels of nesting", kMaxDepth));
        }
        ~Depth() { --parser_.depth_; }
        Parser& parser_;
    };

    Error fault(std::string what, std::string remedy = {}) const {
        return input_error(fmt::format("{} at column {} of \"{}\"", what, at_ + 1, text_.substr(0, 80)),
                           where_, std::move(remedy));
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    }
    static bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
    static bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

    std::string_view peek_name() {
        skip_blanks();
        if (at_ >= text_.size() || !starts_name(text_[at_])) return {};
        std::size_t end = at_ + 1;
        while (end < text_.size() && in_name(text_[end])) ++end;
        return text_.substr(at_, end - at_);
    }

    bool accept(std::string_view token) {
        skip_blanks();
        if (starts_name(token[0])) {
            if (peek_name() != token) return false;
        } else {
            if (text_.substr(at_, token.size()) != token) return false;
            // "<" must not eat the front of "<<".
            const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
            if ((token == "<" && next == '<') || (token == ">" && next == '>')) return false;
        }
        at_ += token.size();
        return true;
    }

    void expect(std::string_view token) {
        if (accept(token)) return;
        skip_blanks();
        throw fault(fmt::format("expected \"{}\"", token));
    }

    template <std::size_t Count, class Next>
    NodePtr left_associative(const std::array<Word, Count>& words, Next next) {
        NodePtr left = next();
        for (;;) {
            bool found = false;
            for (const auto& word : words) {
                if (!accept(word.text)) continue;
                left = make(word.op, left, next());
                found = true;
                break;
            }
            if (!found) return left;
        }
    }

    NodePtr logic_or() {
        const Depth depth(*this);
        return left_associative(kOr, [this] { return logic_xor(); });
    }
    NodePtr logic_xor() {
        return left_associative(kXor, [this] { return logic_and(); });
    }
    NodePtr logic_and() {
        return left_associative(kAnd, [this] { return logic_not(); });
    }
    NodePtr logic_not() {
        if (accept("not")) {
            const Depth depth(*this);
            return make(ExpressionOp::logical_not, logic_not());
        }
        return comparison();
    }
    NodePtr comparison() {
        NodePtr left = shifts();
        for (const auto& word : kComparisons) {
            if (!accept(word.text)) continue;
            left = make(word.op, left, shifts());
            for (const auto& second : kComparisons)
                if (accept(second.text))
                    throw fault("comparisons do not chain", "join two of them with \"and\"");
            break;
        }
        return left;
    }
    NodePtr shifts() {
        return left_associative(kShifts, [this] { return sums(); });
    }
    NodePtr sums() {
        return left_associative(kSums, [this] { return products(); });
    }
    NodePtr products() {
        return left_associative(kProducts, [this] { return unary(); });
    }
    NodePtr unary() {
        if (!accept("-")) return primary();
        const Depth depth(*this);
        NodePtr operand = unary();
        if (operand->op == ExpressionOp::literal) return literal(-operand->value);
        return make(ExpressionOp::negate, operand);
    }

    static NodePtr literal(std::int64_t value) {
        auto node = std::make_shared<Node>();
        node->value = value;
        return node;
    }

    NodePtr primary() {
        skip_blanks();
        if (at_ >= text_.size()) throw fault("expected a value");
        if (std::isdigit(static_cast<unsigned char>(text_[at_]))) return number();
        if (accept("(")) {
            NodePtr inner = logic_or();
            expect(")");
            return inner;
        }
        const auto name = peek_name();
        if (name.empty()) throw fault(fmt::format("expected a value, got \"{}\"", text_.substr(at_, 12)));
        for (const auto word : kWords)
            if (name == word) throw fault(fmt::format("expected a value, got the operator \"{}\"", word));
        for (const auto& function : kFunctions)
            if (name == function.text) return call(function);
        at_ += name.size();
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '(')
            throw fault(fmt::format("unknown function \"{}\"", name),
                        "known: select, min, max, ilog2, pow2floor");
        auto node = std::make_shared<Node>();
        node->op = ExpressionOp::name;
        node->name = name;
        return node;
    }

    NodePtr call(const Word& function) {
        at_ += function.text.size();
        expect("(");
        std::array<NodePtr, 3> arguments;
        for (int i = 0; i < argument_count(function.op); ++i) {
            if (i > 0) expect(",");
            arguments[static_cast<std::size_t>(i)] = logic_or();
        }
        expect(")");
        return make(function.op, arguments[0], arguments[1], arguments[2]);
    }

    NodePtr number() {
        std::int64_t value = 0;
        const std::size_t start = at_;
        for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
            if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
                __builtin_add_overflow(value, std::int64_t{text_[at_] - '0'}, &value)) {
                at_ = start;
                throw fault("a number above 64 bits");
            }
        }
        if (at_ < text_.size() && (in_name(text_[at_]) || text_[at_] == '.'))
            throw fault(fmt::format("\"{}\" is not an integer", text_.substr(start, at_ - start + 1)));
        return literal(value);
    }

    std::string_view text_;
    const std::string& where_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace

Expression Expression::parse(std::string_view text, const std::string& where) {
    return Expression(Parser(text, where).parse());
}

}  // namespace baton::ir
