#include <baton/base/rational.hpp>

#include <baton/base/error.hpp>

namespace baton {
namespace {

__extension__ using Wide = __int128;

Wide wide_gcd(Wide a, Wide b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b != 0) {
        const Wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

Rational reduced(Wide num, Wide den) {
    if (den == 0) throw internal_error("a fraction with denominator zero");
    if (den < 0) {
        num = -num;
        den = -den;
    }
    const Wide divisor = num == 0 ? den : wide_gcd(num, den);
    num /= divisor;
    den /= divisor;
    if (num > INT64_MAX || num < INT64_MIN || den > INT64_MAX)
        throw internal_error("a fraction exceeds 64 bits");
    return {static_cast<std::int64_t>(num), static_cast<std::int64_t>(den)};
}

}  // namespace

Rational::Rational(std::int64_t num, std::int64_t den) : num_(num), den_(den) {
    const bool already_reduced = den > 0 && wide_gcd(num, den) == 1;
    if (!already_reduced) *this = reduced(num, den);
}

Rational operator+(const Rational& a, const Rational& b) {
    return reduced(static_cast<Wide>(a.num_) * b.den_ + static_cast<Wide>(b.num_) * a.den_,
                   static_cast<Wide>(a.den_) * b.den_);
}
Rational operator-(const Rational& a, const Rational& b) {
    return reduced(static_cast<Wide>(a.num_) * b.den_ - static_cast<Wide>(b.num_) * a.den_,
                   static_cast<Wide>(a.den_) * b.den_);
}
Rational operator*(const Rational& a, const Rational& b) {
    return reduced(static_cast<Wide>(a.num_) * b.num_, static_cast<Wide>(a.den_) * b.den_);
}
Rational operator/(const Rational& a, const Rational& b) {
    return reduced(static_cast<Wide>(a.num_) * b.den_, static_cast<Wide>(a.den_) * b.num_);
}
std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    const Wide left = static_cast<Wide>(a.num_) * b.den_;
    const Wide right = static_cast<Wide>(b.num_) * a.den_;
    if (left < right) return std::strong_ordering::less;
    return left > right ? std::strong_ordering::greater : std::strong_ordering::equal;
}

std::string to_string(const Rational& value) {
    std::string text = std::to_string(value.num());
    if (value.den() != 1) text += "/" + std::to_string(value.den());
    return text;
}

}  // namespace baton
