#include <baton/ir/expression.hpp>

#include <baton/base/error.hpp>

#include <doctest/doctest.h>
#include <random>
#include <string>

using baton::Error;
using baton::ir::Bindings;
using baton::ir::Expression;
using baton::ir::PositionForm;

namespace {

Bindings at(std::int64_t r, std::int64_t n = 8) { return {{{"N", n}, {"r", r}, {"s", 3}}}; }

std::int64_t value(const std::string& text, const Bindings& bindings = at(2)) {
    return Expression::parse(text).evaluate(bindings);
}

std::string message(const std::string& text, const Bindings& bindings = at(2)) {
    try {
        value(text, bindings);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string random_expression(std::mt19937& random, int depth) {
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    const auto inner = [&] { return random_expression(random, depth - 1); };
    if (depth == 0) {
        switch (pick(4)) {
            case 0: return "r";
            case 1: return "N";
            case 2: return "s";
            default: return std::to_string(pick(20));
        }
    }
    const char* binary[] = {" + ",   " - ",  " * ",   " / ", " mod ", " << ",
                            " and ", " or ", " xor ", " < ", " == "};
    switch (pick(8)) {
        case 0: return "-(" + inner() + ")";
        case 1: return "not (" + inner() + ")";
        case 2: return "select(" + inner() + ", " + inner() + ", " + inner() + ")";
        case 3: return "min(" + inner() + ", " + inner() + ")";
        default: return "(" + inner() + ")" + binary[pick(11)] + "(" + inner() + ")";
    }
}

}  // namespace

TEST_CASE("expressions follow the precedence of the format") {
    CHECK(value("1 + 2 * 3") == 7);
    CHECK(value("(1 + 2) * 3") == 9);
    CHECK(value("10 - 3 - 2") == 5);
    CHECK(value("1 << 2 + 1") == 8);
    CHECK(value("1 + 1 < 3") == 1);
    CHECK(value("not 1 == 2") == 1);
    CHECK(value("1 or 1 xor 1 and 0") == 1);
    CHECK(value("6 xor 3") == 5);
    CHECK(value("-2 mod 5") == 3);
    CHECK(value("-(2 mod 5)") == -2);
    CHECK(value("N and (N-1) == 0", at(0, 1)) == 1);
}

TEST_CASE("division and mod round toward minus infinity") {
    for (int a = -9; a <= 9; ++a)
        for (const int b : {-4, -3, -1, 1, 3, 4}) {
            const Bindings bindings{{{"a", a}, {"b", b}}};
            const auto quotient = value("a / b", bindings), rest = value("a mod b", bindings);
            CHECK(quotient * b + rest == a);
            CHECK((b > 0 ? rest >= 0 && rest < b : rest <= 0 && rest > b));
        }
}

TEST_CASE("functions") {
    CHECK(value("select(r < 3, 10, 20)") == 10);
    CHECK(value("select(0, 1/0, 5)") == 5);
    CHECK(value("min(r, N) + max(r, N)") == 10);
    CHECK(value("ilog2(1) + ilog2(7) + ilog2(8)") == 5);
    CHECK(value("pow2floor(7)") == 4);
    CHECK(value("r != 2 and 1 / (r - 2)") == 0);
}

TEST_CASE("faults of an expression are named with their column") {
    CHECK(contains(message("1 +"), "expected a value at column 4"));
    CHECK(contains(message("(1"), "expected \")\" at column 3"));
    CHECK(contains(message("1 = 2"), "compare with \"==\""));
    CHECK(contains(message("0 <= r < N"), "do not chain"));
    CHECK(contains(message("1.5"), "not an integer"));
    CHECK(contains(message("2x"), "not an integer"));
    CHECK(contains(message("f(2)"), "unknown function \"f\""));
    CHECK(contains(message("99999999999999999999"), "above 64 bits"));
    CHECK(contains(message("mod 3"), "operator \"mod\""));
    CHECK(contains(message("a b"), "expected an operator or the end"));
    CHECK(contains(message(""), "expected a value"));
    CHECK(contains(message(std::string(5000, '1')), "at most 4096"));
    CHECK(contains(message(std::string(200, '(') + "1" + std::string(200, ')')), "levels of nesting"));
    CHECK(contains(message(std::string(2000, '-') + "1"), "levels of nesting"));
    std::string nots;
    for (int i = 0; i < 500; ++i) nots += "not ";
    CHECK(contains(message(nots + "1"), "levels of nesting"));
}

TEST_CASE("overflow and undefined values are errors") {
    const Bindings big{{{"x", INT64_MAX}, {"m", INT64_MIN}}};
    for (const char* text : {"x + 1", "m - 1", "x * 2", "-m", "m / -1", "x << 1", "1 << 63", "1 >> -1",
                             "1 / 0", "1 mod 0", "ilog2(0)", "pow2floor(-1)", "unknown"})
        CHECK_THROWS_AS(value(text, big), Error);
    CHECK(value("m mod -1", big) == 0);
    CHECK(value("x + m", big) == -1);
}

TEST_CASE("the text of an expression parses back to the same expression") {
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        const auto first = Expression::parse(random_expression(random, 4));
        const auto second = Expression::parse(first.text());
        CHECK(second.text() == first.text());
        for (int r = 0; r < 5; ++r) {
            std::string a, b;
            try {
                a = std::to_string(first.evaluate(at(r)));
            } catch (const Error& error) {
                a = error.message();
            }
            try {
                b = std::to_string(second.evaluate(at(r)));
            } catch (const Error& error) {
                b = error.message();
            }
            CHECK(a == b);
        }
    }
}

TEST_CASE("position forms tell which expressions invert") {
    const auto form = [](const char* text) { return Expression::parse(text).position_form(); };
    using Kind = PositionForm::Kind;
    CHECK(form("s + 1").kind == Kind::constant);
    CHECK(form("r").kind == Kind::affine_mod);
    CHECK(form("(r + 1) mod N").kind == Kind::affine_mod);
    CHECK(form("(s - r - 1) mod N").sign == -1);
    CHECK(form("(s - r - 1) mod N").kind == Kind::affine_mod);
    CHECK(form("r xor (1 << s)").kind == Kind::xor_mask);
    CHECK(form("s xor r").kind == Kind::xor_mask);
    CHECK(form("2 * r").kind == Kind::other);
    CHECK(form("r + r").kind == Kind::other);
    CHECK(form("(r + 1) mod 4").kind == Kind::other);
    CHECK(form("r xor r").kind == Kind::other);
}
