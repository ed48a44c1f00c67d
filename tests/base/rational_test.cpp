#include <baton/base/error.hpp>
#include <baton/base/rational.hpp>

#include <doctest/doctest.h>

#include <random>

using baton::Rational;

TEST_CASE("fractions are reduced and their denominators positive") {
    CHECK(Rational(14, 300) == Rational(7, 150));
    CHECK(Rational(3, -6) == Rational(-1, 2));
    CHECK(Rational(0, -5).den() == 1);
    CHECK(to_string(Rational(7, 150)) == "7/150");
    CHECK(to_string(Rational(6, 2)) == "3");
    CHECK_THROWS_AS(Rational(1, 0), baton::Error);
}

TEST_CASE("arithmetic on fractions is exact") {
    std::mt19937 random(7);
    const auto any = [&] {
        return Rational(static_cast<int>(random() % 2001) - 1000, 1 + static_cast<int>(random() % 1000));
    };
    for (int i = 0; i < 2000; ++i) {
        const Rational a = any(), b = any(), c = any();
        CHECK(a + b == b + a);
        CHECK((a - b) + b == a);
        CHECK(a * (b + c) == a * b + a * c);
        if (b != Rational(0)) CHECK((a / b) * b == a);
        CHECK((a < b) == (a - b < Rational(0)));
    }
}

TEST_CASE("comparison of large fractions does not overflow") {
    const Rational a(INT64_MAX, INT64_MAX - 1), b(INT64_MAX - 1, INT64_MAX - 2);
    CHECK(a < b);
    CHECK_FALSE(b < a);
}

TEST_CASE("a result beyond 64 bits is an error, never a wrong number") {
    const Rational big(INT64_MAX, 1);
    CHECK_THROWS_AS(big + big, baton::Error);
    CHECK_THROWS_AS(big * Rational(2), baton::Error);
    CHECK(big * Rational(1, 2) == Rational(INT64_MAX, 2));
}
