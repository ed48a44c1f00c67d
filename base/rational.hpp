// Exact fractions for bounds: 64-bit numerator and denominator, 128-bit intermediate results.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace baton {

/// A reduced fraction num/den with den > 0. Arithmetic throws an internal error on overflow of 64 bits
/// after reduction, never wraps.
class Rational {
public:
    Rational() = default;
    Rational(std::int64_t value) : num_(value) {}  // NOLINT: implicit on purpose
    /// REQUIRES: den != 0 (an internal error otherwise).
    Rational(std::int64_t num, std::int64_t den);

    std::int64_t num() const { return num_; }
    std::int64_t den() const { return den_; }
    double value() const { return static_cast<double>(num_) / static_cast<double>(den_); }

    friend Rational operator+(const Rational& a, const Rational& b);
    friend Rational operator-(const Rational& a, const Rational& b);
    friend Rational operator*(const Rational& a, const Rational& b);
    friend Rational operator/(const Rational& a, const Rational& b);
    friend bool operator==(const Rational& a, const Rational& b) = default;
    friend std::strong_ordering operator<=>(const Rational& a, const Rational& b);

private:
    std::int64_t num_ = 0, den_ = 1;
};

/// "7/150", or "3" when the denominator is 1.
std::string to_string(const Rational& value);

}  // namespace baton
