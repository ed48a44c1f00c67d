#include "prelude/prelude.inc"

#include <baton/ir/numerics.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

using namespace baton;
using ir::DataType;
namespace bk = baton_kernel;

namespace {

template <class Element>
void check_codes(DataType type) {
    const int codes = 1 << (8 * sizeof(typename Element::Bits));
    for (int code = 0; code < codes; ++code) {
        const float ours = Element::decode(static_cast<typename Element::Bits>(code));
        const float reference = ir::decode_narrow(type, static_cast<std::uint16_t>(code));
        const bool equal = std::isnan(reference) ? std::isnan(ours)
                                                 : std::bit_cast<std::uint32_t>(ours) ==
                                                       std::bit_cast<std::uint32_t>(reference);
        if (!equal) FAIL_CHECK(to_string(type) << " code " << code << " decodes to " << ours);
    }
}

template <class Element>
void check_encode(DataType type, float value) {
    const std::uint16_t ours = Element::encode(value), reference = ir::encode_narrow(type, value);
    if (ours != reference)
        FAIL_CHECK(to_string(type) << " of " << std::hexfloat << value << ": " << ours << " for "
                                   << reference);
}

// Around every code: the value, the tie above it, and the neighbors of both, of both signs; then random bits.
template <class Element>
void check_rounding(DataType type) {
    const int codes = 1 << (8 * sizeof(typename Element::Bits) - 1);
    for (int code = 0; code < codes; ++code) {
        const float low = ir::decode_narrow(type, static_cast<std::uint16_t>(code));
        if (!std::isfinite(low)) continue;
        float high = ir::decode_narrow(type, static_cast<std::uint16_t>(code + 1));
        if (!std::isfinite(high))
            high = low + (low - ir::decode_narrow(type, static_cast<std::uint16_t>(code - 1)));
        const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
        for (float center : {low, middle})
            for (float value : {center, std::nextafter(center, 0.0f), std::nextafter(center, INFINITY)}) {
                check_encode<Element>(type, value);
                check_encode<Element>(type, -value);
            }
    }
    std::mt19937 random(3);
    for (int i = 0; i < 2'000'000; ++i)
        check_encode<Element>(type, std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    for (std::uint32_t bits :
         {0u, 1u, 0x7fffffu, 0x800000u, 0x7f7fffffu, 0x7f800000u, 0x7f800001u, 0x7fffffffu})
        for (std::uint32_t sign : {0u, 0x80000000u})
            check_encode<Element>(type, std::bit_cast<float>(bits | sign));
}

}  // namespace

TEST_CASE("the prelude decodes every code of the narrow floats") {
    check_codes<bk::element::f16>(DataType::f16);
    check_codes<bk::element::bf16>(DataType::bf16);
    check_codes<bk::element::f8e4m3>(DataType::f8e4m3);
    check_codes<bk::element::f8e5m2>(DataType::f8e5m2);
}

TEST_CASE("the prelude rounds to the narrow floats like the reference") {
    check_rounding<bk::element::f16>(DataType::f16);
    check_rounding<bk::element::bf16>(DataType::bf16);
    check_rounding<bk::element::f8e4m3>(DataType::f8e4m3);
    check_rounding<bk::element::f8e5m2>(DataType::f8e5m2);
}
