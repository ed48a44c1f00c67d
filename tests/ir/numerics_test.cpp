#include <baton/base/error.hpp>
#include <baton/ir/numerics.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace baton;
using namespace baton::ir;

namespace {

constexpr DataType kNarrow[] = {DataType::f16, DataType::bf16, DataType::f8e4m3, DataType::f8e5m2};
int codes_of(DataType type) { return size_of(type) == 1 ? 256 : 65536; }

template <class T>
T reduce(ReduceOp op, DataType type, std::initializer_list<T> values, NanMode mode = NanMode::propagate) {
    std::vector<T> stored(values);
    std::vector<const void*> sources;
    for (const T& each : stored) sources.push_back(&each);
    T result;
    std::memset(&result, 0xcc, sizeof result);
    reduce_buffers(op, type, mode, sources, &result, 1);
    return result;
}

struct F64Pair {
    double value;
    std::int32_t index;
    std::int32_t padding;
};
struct F32Pair {
    float value;
    std::int32_t index;
};

}  // namespace

TEST_CASE("codes of narrow floats decode to the published values") {
    CHECK(decode_narrow(DataType::f16, 0x3c00) == 1.0f);
    CHECK(decode_narrow(DataType::f16, 0x7bff) == 65504.0f);
    CHECK(decode_narrow(DataType::f16, 0x0001) == 0x1p-24f);
    CHECK(decode_narrow(DataType::f16, 0xfc00) == -std::numeric_limits<float>::infinity());
    CHECK(decode_narrow(DataType::bf16, 0x3f80) == 1.0f);
    CHECK(decode_narrow(DataType::bf16, 0x0001) == 0x1p-133f);
    CHECK(decode_narrow(DataType::f8e4m3, 0x7e) == 448.0f);
    CHECK(decode_narrow(DataType::f8e4m3, 0x01) == 0x1p-9f);
    CHECK(decode_narrow(DataType::f8e4m3, 0x38) == 1.0f);
    CHECK(std::isnan(decode_narrow(DataType::f8e4m3, 0x7f)));
    CHECK(std::isnan(decode_narrow(DataType::f8e4m3, 0xff)));
    CHECK(decode_narrow(DataType::f8e5m2, 0x7b) == 57344.0f);
    CHECK(decode_narrow(DataType::f8e5m2, 0x01) == 0x1p-16f);
    CHECK(std::isinf(decode_narrow(DataType::f8e5m2, 0x7c)));
    CHECK(std::isnan(decode_narrow(DataType::f8e5m2, 0x7d)));
}

TEST_CASE("every code of a narrow float survives decoding and encoding") {
    for (DataType type : kNarrow)
        for (int code = 0; code < codes_of(type); ++code) {
            const float value = decode_narrow(type, static_cast<std::uint16_t>(code));
            const int back = encode_narrow(type, value);
            if (std::isnan(value)) {
                std::uint16_t nan = 0;
                canonical_nan(type, &nan);
                if (back != nan) FAIL_CHECK(to_string(type) << " NaN code " << code);
            } else if (size_of(type) == 1 && std::isinf(value)) {
                if (std::fabs(decode_narrow(type, static_cast<std::uint16_t>(back))) != 57344.0f)
                    FAIL_CHECK("infinity " << code);
            } else if (back != code) {
                FAIL_CHECK(to_string(type) << " code " << code << " came back as " << back);
            }
        }
}

TEST_CASE("encoding rounds to the nearest code, ties to even") {
    for (DataType type : kNarrow) {
        for (int code = 0; code + 1 < codes_of(type) / 2; ++code) {
            const float low = decode_narrow(type, static_cast<std::uint16_t>(code));
            const float high = decode_narrow(type, static_cast<std::uint16_t>(code + 1));
            if (!std::isfinite(high) || high <= low) continue;
            const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);  // exact
            const int even = code % 2 == 0 ? code : code + 1;
            if (encode_narrow(type, middle) != even) FAIL_CHECK(to_string(type) << " tie above " << code);
            if (encode_narrow(type, std::nextafter(middle, 0.0f)) != code)
                FAIL_CHECK(to_string(type) << code);
            if (encode_narrow(type, std::nextafter(middle, high)) != code + 1)
                FAIL_CHECK(to_string(type) << code);
        }
    }
    CHECK(encode_narrow(DataType::f16, 65519.0f) == 0x7bff);
    CHECK(encode_narrow(DataType::f16, 65520.0f) == 0x7c00);
    CHECK(encode_narrow(DataType::f16, -65520.0f) == 0xfc00);
}

TEST_CASE("f8 sums saturate instead of becoming NaN or infinity") {
    for (DataType type : {DataType::f8e4m3, DataType::f8e5m2}) {
        const double largest = type == DataType::f8e4m3 ? 448 : 57344;
        for (int a = 0; a < 256; ++a)
            for (int b = 0; b < 256; ++b) {
                const auto x = static_cast<std::uint8_t>(a), y = static_cast<std::uint8_t>(b);
                const std::uint8_t sum = reduce<std::uint8_t>(ReduceOp::sum, type, {x, y});
                const double exact = to_double(type, &x) + to_double(type, &y), got = to_double(type, &sum);
                if (std::isnan(exact)) {
                    if (!std::isnan(got)) FAIL_CHECK("NaN lost");
                } else if (std::fabs(exact) >= largest) {
                    if (got != std::copysign(largest, exact)) FAIL_CHECK(exact << " became " << got);
                } else if (std::fabs(got - exact) > std::fabs(exact) / 8 || !std::isfinite(got)) {
                    FAIL_CHECK(exact << " became " << got);
                }
            }
    }
    CHECK(reduce<std::uint8_t>(ReduceOp::sum, DataType::f8e4m3, {0x7e, 0x59}) == 0x7e);  // 448 + 18
    CHECK(reduce<std::uint8_t>(ReduceOp::sum, DataType::f8e5m2, {0x7b, 0x6c}) == 0x7b);  // 57344 + 4096
}

TEST_CASE("integers wrap, and avg divides the wrapped sum toward zero") {
    CHECK(reduce<std::int8_t>(ReduceOp::sum, DataType::i8, {120, 100}) == -36);
    CHECK(reduce<std::uint8_t>(ReduceOp::prod, DataType::u8, {16, 17}) == 16);
    CHECK(reduce<std::int32_t>(ReduceOp::sum, DataType::i32, {std::numeric_limits<std::int32_t>::max(), 1}) ==
          std::numeric_limits<std::int32_t>::min());
    CHECK(
        reduce<std::int64_t>(ReduceOp::prod, DataType::i64, {std::numeric_limits<std::int64_t>::min(), -1}) ==
        std::numeric_limits<std::int64_t>::min());
    CHECK(reduce<std::int32_t>(ReduceOp::avg, DataType::i32, {-3, -4}) == -3);
    CHECK(reduce<std::int32_t>(ReduceOp::avg, DataType::i32, {3, 4}) == 3);
    CHECK(reduce<std::uint64_t>(ReduceOp::avg, DataType::u64, {~0ull - 1, 0ull, 0ull}) == (~0ull - 1) / 3);
    CHECK(reduce<std::int8_t>(ReduceOp::avg, DataType::i8, {120, 100}) == -18);
}

TEST_CASE("avg of narrow floats divides before it rounds") {
    CHECK(reduce<std::uint16_t>(ReduceOp::avg, DataType::f16, {0x7bff, 0x7bff}) == 0x7bff);    // 65504
    CHECK(reduce<std::uint8_t>(ReduceOp::avg, DataType::f8e4m3, {0x7e, 0x7e, 0x7e}) == 0x7e);  // 448
    CHECK(reduce<float>(ReduceOp::avg, DataType::f32, {1.0f, 1.0f, 3.0f}) == 5.0f / 3.0f);
}

TEST_CASE("max and min propagate NaN by default and put -0 below +0") {
    const float nan = std::bit_cast<float>(0xffc12345u);
    const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
    for (ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum, ReduceOp::prod, ReduceOp::avg}) {
        CHECK(bits(reduce<float>(op, DataType::f32, {nan, 1.0f})) == 0x7fc00000u);
        CHECK(bits(reduce<float>(op, DataType::f32, {1.0f, nan})) == 0x7fc00000u);
    }
    for (ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
        CHECK(reduce<float>(op, DataType::f32, {nan, 1.0f}, NanMode::ignore) == 1.0f);
        CHECK(reduce<float>(op, DataType::f32, {1.0f, nan}, NanMode::ignore) == 1.0f);
        CHECK(bits(reduce<float>(op, DataType::f32, {nan, nan}, NanMode::ignore)) == 0x7fc00000u);
    }
    CHECK(bits(reduce<float>(ReduceOp::max, DataType::f32, {-0.0f, 0.0f})) == 0u);
    CHECK(bits(reduce<float>(ReduceOp::max, DataType::f32, {0.0f, -0.0f})) == 0u);
    CHECK(bits(reduce<float>(ReduceOp::min, DataType::f32, {-0.0f, 0.0f})) == 0x80000000u);
    CHECK(bits(reduce<float>(ReduceOp::min, DataType::f32, {0.0f, -0.0f})) == 0x80000000u);
}

TEST_CASE("maxloc and minloc: ties and NaNs give the lowest index, padding is zero") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto run = [](ReduceOp op, std::initializer_list<F64Pair> pairs,
                        NanMode mode = NanMode::propagate) {
        return reduce<F64Pair>(op, DataType::f64_i32, pairs, mode);
    };
    CHECK(run(ReduceOp::maxloc, {{1, 5, -1}, {2, 9, -1}}).index == 9);
    CHECK(run(ReduceOp::minloc, {{1, 5, -1}, {2, 9, -1}}).index == 5);
    CHECK(run(ReduceOp::maxloc, {{2, 9, -1}, {2, 5, -1}}).index == 5);
    CHECK(run(ReduceOp::maxloc, {{0.0, 9, -1}, {-0.0, 5, -1}}).index == 5);
    CHECK(run(ReduceOp::minloc, {{0.0, 5, -1}, {-0.0, 9, -1}}).index == 5);
    CHECK(run(ReduceOp::maxloc, {{7, 1, -1}, {nan, 8, -1}, {nan, 6, -1}}).index == 6);
    CHECK(run(ReduceOp::minloc, {{7, 1, -1}, {nan, 8, -1}, {nan, 6, -1}}).index == 6);
    CHECK(run(ReduceOp::maxloc, {{7, 1, -1}, {nan, 8, -1}}, NanMode::ignore).index == 1);
    const F64Pair result = run(ReduceOp::maxloc, {{7, 1, -1}, {-nan, 8, -1}});
    CHECK(std::bit_cast<std::uint64_t>(result.value) == 0x7ff8000000000000ull);
    CHECK(result.padding == 0);
    CHECK(run(ReduceOp::minloc, {{7, 1, -1}}).padding == 0);  // a single contribution is completed too
    const auto both = run(ReduceOp::maxloc, {{-0.0, 3, -1}, {0.0, 3, -1}});
    CHECK_FALSE(std::signbit(both.value));
}

TEST_CASE("logical operators give 0 or 1 also for one contribution") {
    CHECK(reduce<std::int32_t>(ReduceOp::land, DataType::i32, {-7, 9}) == 1);
    CHECK(reduce<std::int32_t>(ReduceOp::lxor, DataType::i32, {-7, 9}) == 0);
    CHECK(reduce<std::int32_t>(ReduceOp::lor, DataType::i32, {0, 0}) == 0);
    CHECK(reduce<std::uint8_t>(ReduceOp::lor, DataType::u8, {128}) == 1);
    CHECK(reduce<std::uint8_t>(ReduceOp::bxor, DataType::u8, {0xf0, 0x3c}) == 0xcc);
}

TEST_CASE("operations are commutative to the last bit for every operator and type") {
    std::mt19937_64 random(11);
    for (ReduceOp op : all_reduce_ops())
        for (DataType type : valid_types(op))
            for (NanMode mode : {NanMode::propagate, NanMode::ignore})
                for (int round = 0; round < 400; ++round) {
                    std::array<std::uint64_t, 2> a{random(), random()}, b{random(), random()}, ab{}, ba{};
                    if (round % 3 == 0) b = a;
                    if (round % 5 == 0) b[0] ^= 0x8000000080808080ull, a[0] &= b[0];
                    const void* forward[] = {&a, &b};
                    const void* backward[] = {&b, &a};
                    reduce_buffers(op, type, mode, forward, &ab, 1);
                    reduce_buffers(op, type, mode, backward, &ba, 1);
                    if (ab != ba) FAIL_CHECK(to_string(op) << " on " << to_string(type));
                }
}

TEST_CASE("wide operands keep f32 until the value is completed") {
    const std::uint16_t one = 0x3c00, tiny = 0x1000;  // 1, 2^-11: their sum is a tie in f16
    float partial = 0;
    const ConstOperand first[] = {{&one, DataType::f16}, {&tiny, DataType::f16}};
    const MutableOperand to_wire{&partial, DataType::f32};
    reduce_operands({ReduceOp::sum, DataType::f16}, first, {&to_wire, 1}, 1);
    CHECK(partial == 1.00048828125f);
    std::uint16_t result = 0;
    float forwarded = 0;
    const ConstOperand second[] = {{&partial, DataType::f32}, {&tiny, DataType::f16}};
    const MutableOperand outputs[] = {{&result, DataType::f16}, {&forwarded, DataType::f32}};
    reduce_operands({ReduceOp::sum, DataType::f16, NanMode::propagate, true, 3}, second, outputs, 1);
    CHECK(result == 0x3c01);                                   // 1 + 2^-10
    CHECK(forwarded == decode_narrow(DataType::f16, 0x3c01));  // rounded although wide: the value is complete
}

TEST_CASE("copies keep every bit") {
    const std::uint32_t nan = 0xffc12345u;
    std::uint32_t copy = 0;
    const ConstOperand source{&nan, DataType::f32};
    const MutableOperand destination{&copy, DataType::f32};
    reduce_operands({ReduceOp::sum, DataType::f32}, {&source, 1}, {&destination, 1}, 1);
    CHECK(copy == nan);
}

TEST_CASE("operands that do not fit are errors") {
    float value = 0;
    const ConstOperand source{&value, DataType::f32};
    const MutableOperand destination{&value, DataType::f32};
    CHECK_THROWS_AS(reduce_operands({ReduceOp::sum, DataType::i32}, {&source, 1}, {&destination, 1}, 1),
                    Error);
    CHECK_THROWS_AS(reduce_operands({ReduceOp::sum, DataType::f32}, {}, {&destination, 1}, 1), Error);
    CHECK_THROWS_AS(reduce_operands({ReduceOp::sum, DataType::f32}, {&source, 1}, {}, 1), Error);
    const ConstOperand two[] = {source, source};
    CHECK_THROWS_AS(reduce_operands({ReduceOp::band, DataType::f32}, two, {&destination, 1}, 1), Error);
    CHECK_THROWS_AS(canonical_nan(DataType::i32, &value), Error);
}

TEST_CASE("doubles become the nearest element") {
    std::uint16_t half = 0;
    from_double(DataType::f16, 1.0 + 0x1p-11 + 0x1p-40,
                &half);  // through f32 in two steps it would be the tie 1.0
    CHECK(half == 0x3c01);
    std::int8_t small = 0;
    from_double(DataType::i8, 300.0, &small);
    CHECK(small == 127);
    from_double(DataType::i8, -3.9, &small);
    CHECK(small == -3);
    F32Pair pair{};
    from_double(DataType::f32_i32, 2.5, &pair, 7);
    CHECK(pair.value == 2.5f);
    CHECK(pair.index == 7);
}
