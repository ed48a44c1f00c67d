// Conversions between f32 and the narrow formats: round to nearest even; f8 saturates, infinities included; a NaN
// becomes the canonical NaN of the target. Written on integers and without branches, so that host loops vectorize.

namespace baton_kernel {

constexpr u32 kNanF32 = 0x7fc00000u;
constexpr u64 kNanF64 = 0x7ff8000000000000ull;
constexpr u16 kNanF16 = 0x7e00u;
constexpr u16 kNanBf16 = 0x7fc0u;
constexpr u8 kNanE4m3 = 0x7fu;
constexpr u8 kNanE5m2 = 0x7eu;

// IEEE-like formats with `kExponent` and `kMantissa` bits below the sign, decoded by moving the bits into place and
// multiplying by a power of two, which is exact and covers subnormals.
template <int kExponent, int kMantissa>
BATON_FN float decode_ieee(u32 code) {
    const u32 sign = (code >> (kExponent + kMantissa)) << 31;
    const u32 magnitude = code & ((1u << (kExponent + kMantissa)) - 1u);
    const u32 shifted = magnitude << (23 - kMantissa);
    constexpr u32 scale = (254u - ((1u << (kExponent - 1)) - 1u)) << 23;  // 2^(127 - bias)
    const float number = bit_cast<float>(shifted) * bit_cast<float>(scale);
    const u32 special = shifted | 0x7f800000u;  // infinity or NaN
    const u32 bits = magnitude >= (((1u << kExponent) - 1u) << kMantissa) ? special : bit_cast<u32>(number);
    return bit_cast<float>(bits | sign);
}

// Rounds |x| to `kMantissa` bits above the smallest normal exponent, to multiples of the smallest subnormal below it;
// returns the code without sign, possibly beyond the largest finite code. Not for NaN.
template <int kExponent, int kMantissa>
BATON_FN u32 round_magnitude(u32 magnitude) {
    constexpr u32 bias = (1u << (kExponent - 1)) - 1u;
    constexpr int drop = 23 - kMantissa;
    // Normal: add half an ulp less one, plus the lowest kept bit: ties to even.
    const u32 rebiased = magnitude - ((127u - bias) << 23);
    const u32 normal = (rebiased + ((1u << (drop - 1)) - 1u) + ((rebiased >> drop) & 1u)) >> drop;
    // Subnormal: adding 2^(1 - bias - kMantissa + 23) leaves the rounded multiple in the low bits.
    constexpr u32 magic = (127u + 1u - bias + 23u - u32(kMantissa)) << 23;
    const u32 subnormal = bit_cast<u32>(bit_cast<float>(magnitude) + bit_cast<float>(magic)) - magic;
    return magnitude < ((128u - bias) << 23) ? subnormal : normal;
}

BATON_FN float decode_f16(u16 code) {
#if BATON_ON_DEVICE
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(code));
    return value;
#else
    return decode_ieee<5, 10>(code);
#endif
}

BATON_FN u16 encode_f16(float value) {
#if BATON_ON_DEVICE
    u16 code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(value));
    return value != value ? kNanF16 : code;
#else
    const u32 bits = bit_cast<u32>(value), magnitude = bits & 0x7fffffffu;
    const u32 rounded = round_magnitude<5, 10>(magnitude);
    const u32 number = (magnitude >= 0x47800000u ? 0x7c00u : rounded) | ((bits >> 16) & 0x8000u);
    return u16(magnitude > 0x7f800000u ? kNanF16 : number);
#endif
}

BATON_FN float decode_bf16(u16 code) { return bit_cast<float>(u32(code) << 16); }

BATON_FN u16 encode_bf16(float value) {
    const u32 bits = bit_cast<u32>(value);
    const u32 number = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return u16((bits & 0x7fffffffu) > 0x7f800000u ? kNanBf16 : number);
}

BATON_FN float decode_e4m3(u8 code) {
    const u32 sign = u32(code >> 7) << 31, magnitude = code & 0x7fu;
    const float number = bit_cast<float>(magnitude << 20) * bit_cast<float>(0x7b800000u);  // 2^120
    const u32 bits = magnitude == 0x7fu ? kNanF32 : bit_cast<u32>(number);
    return bit_cast<float>(bits | sign);
}

BATON_FN u8 encode_e4m3(float value) {
    const u32 bits = bit_cast<u32>(value), magnitude = bits & 0x7fffffffu;
    // 464 and above would round past 448; clamping before rounding keeps the code below the NaN.
    const u32 clamped = magnitude > 0x43e00000u ? 0x43e00000u : magnitude;
    const u32 number = round_magnitude<4, 3>(clamped) | (bits >> 24 & 0x80u);
    return u8(magnitude > 0x7f800000u ? kNanE4m3 : number);
}

BATON_FN float decode_e5m2(u8 code) { return decode_f16(u16(u32(code) << 8)); }

BATON_FN u8 encode_e5m2(float value) {
    const u32 bits = bit_cast<u32>(value), magnitude = bits & 0x7fffffffu;
    const u32 clamped = magnitude > 0x47600000u ? 0x47600000u : magnitude;  // 57344
    const u32 number = round_magnitude<5, 2>(clamped) | (bits >> 24 & 0x80u);
    return u8(magnitude > 0x7f800000u ? kNanE5m2 : number);
}

}  // namespace baton_kernel
