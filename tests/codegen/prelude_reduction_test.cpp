// The prelude's mover against the reference, bit for bit, for every valid (operator, type).
#ifdef __GNUC__
#ifndef __clang__
#pragma GCC optimize("O1")  // hundreds of instances; optimized ones run in the tests of the backends
#endif
#endif
#include "prelude/prelude.inc"

#include <baton/codegen/prelude.hpp>
#include <baton/ir/numerics.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

using namespace baton;
using ir::DataType;
using ir::NanMode;
using ir::ReduceOp;
namespace bk = baton_kernel;

namespace {

constexpr std::int64_t kCount = 333;
constexpr std::int64_t kBytes = kCount * 16;
using Bytes = std::vector<unsigned char>;

// Bits that are often special: zeros, infinities, NaNs, extremes, small integers, equal operands.
void fill(Bytes& bytes, DataType type, std::mt19937_64& random) {
    const std::int64_t size = ir::size_of(type);
    static const double kSpecial[] = {0.0,      -0.0,      1,    -1,     2,     448,   -448, 18,
                                      57344,    4096,      1e-7, 6e-8,   -6e-8, 65504, 3e38, 1e300,
                                      INFINITY, -INFINITY, NAN,  5e-324, 1e-40, 127,   -128};
    for (std::int64_t i = 0; i * size < kBytes; ++i) {
        unsigned char* at = bytes.data() + i * size;
        const auto index = static_cast<std::int32_t>(random() % 5) - 2;
        switch (random() % 3) {
            case 0: ir::from_double(type, kSpecial[random() % std::size(kSpecial)], at, index); break;
            case 1: ir::from_double(type, static_cast<double>(random() % 41) - 20, at, index); break;
            default:
                for (std::int64_t b = 0; b < size; ++b) at[b] = static_cast<unsigned char>(random());
        }
    }
}

struct Arena {
    baton_arguments arguments{};
    baton_block place{};
    baton_rank rank{};
    baton_rank_state state{};
    baton_host_thread host{};
    Arena() {
        arguments.blocks = &place;
        arguments.calls[0].rank = &rank;
        rank.state = &state;
    }
};

// One shape: operands with these widths; both sides run on the same bytes.
template <class Op, class Element, bk::u32 kWideIn, bk::u32 kWideOut, bool kFinalize, int kOut, int kIn>
void compare(ReduceOp op, DataType type, NanMode mode, const std::array<Bytes, 3>& narrow,
             const std::array<Bytes, 3>& wide) {
    static Arena arena;
    arena.arguments.contributions = 3;
    const void* in[kIn];
    void* out[kOut];
    std::array<Bytes, kOut> ours, reference;
    std::vector<ir::ConstOperand> sources;
    std::vector<ir::MutableOperand> destinations;
    for (int s = 0; s < kIn; ++s) {
        const bool is_wide = (kWideIn >> s & 1) != 0;
        in[s] = (is_wide ? wide : narrow)[s].data();
        sources.push_back({in[s], is_wide ? DataType::f32 : type});
    }
    for (int d = 0; d < kOut; ++d) {
        ours[d].assign(kBytes, 0xcc), reference[d].assign(kBytes, 0xcc);
        out[d] = ours[d].data();
        destinations.push_back({reference[d].data(), (kWideOut >> d & 1) != 0 ? DataType::f32 : type});
    }
    for (bk::u32 team : {1u, 3u})
        for (bk::u32 thread = 0; thread < team; ++thread) {
            arena.host.thread = thread, arena.host.threads = team;
            const bk::Block block(arena.arguments, arena.host);
            bk::move<Op, Element, kWideIn, kWideOut, kFinalize>(block, out, in, kCount);
        }
    ir::reduce_operands({op, type, mode, kFinalize, 3}, sources, destinations, kCount);
    for (int d = 0; d < kOut; ++d)
        if (ours[d] != reference[d])
            FAIL_CHECK(to_string(op) << " on " << to_string(type) << ", " << to_string(mode) << ", " << kIn
                                     << " sources, finalize " << kFinalize << ", widths " << kWideIn << " "
                                     << kWideOut);
}

template <class Op, class Element>
void compare_all(ReduceOp op, DataType type, NanMode mode) {
    REQUIRE(valid(op, type));
    std::mt19937_64 random(static_cast<unsigned>(op) * 100 + static_cast<unsigned>(type));
    std::array<Bytes, 3> narrow, wide;
    for (Bytes& each : narrow) each.resize(kBytes), fill(each, type, random);
    for (Bytes& each : wide) each.resize(kBytes), fill(each, DataType::f32, random);
    compare<Op, Element, 0, 0, true, 1, 1>(op, type, mode, narrow, wide);
    compare<Op, Element, 0, 0, false, 1, 2>(op, type, mode, narrow, wide);
    compare<Op, Element, 0, 0, true, 2, 3>(op, type, mode, narrow, wide);
    if constexpr (bk::same<typename Element::Value, float>::value && sizeof(typename Element::Bits) < 4) {
        compare<Op, Element, 1, 1, false, 1, 2>(op, type, mode, narrow, wide);
        compare<Op, Element, 5, 2, true, 2, 3>(op, type, mode, narrow, wide);
    }
}

// Copies and changes of width; they do not depend on the operator.
template <class Element>
void compare_copies(DataType type) {
    std::mt19937_64 random(5);
    std::array<Bytes, 3> narrow, wide;
    for (Bytes& each : narrow) each.resize(kBytes), fill(each, type, random);
    for (Bytes& each : wide) each.resize(kBytes), fill(each, DataType::f32, random);
    const ReduceOp op = ir::is_pair(type) ? ReduceOp::maxloc : ReduceOp::sum;
    compare<bk::op::sum, Element, 0, 0, false, 2, 1>(op, type, NanMode::propagate, narrow, wide);
    if constexpr (bk::same<typename Element::Value, float>::value && sizeof(typename Element::Bits) < 4) {
        compare<bk::op::sum, Element, 1, 1, false, 1, 1>(op, type, NanMode::propagate, narrow, wide);
        compare<bk::op::sum, Element, 0, 1, false, 1, 1>(op, type, NanMode::propagate, narrow, wide);
        compare<bk::op::sum, Element, 0, 2, false, 2, 1>(op, type, NanMode::propagate, narrow, wide);
        compare<bk::op::avg, Element, 1, 0, true, 1, 1>(ReduceOp::avg, type, NanMode::propagate, narrow,
                                                        wide);
        compare<bk::op::avg, Element, 1, 1, true, 1, 1>(ReduceOp::avg, type, NanMode::propagate, narrow,
                                                        wide);
    }
}

template <class Op>
void on_integers(ReduceOp op) {
    compare_all<Op, bk::element::i8>(op, DataType::i8, NanMode::propagate);
    compare_all<Op, bk::element::u8>(op, DataType::u8, NanMode::propagate);
    compare_all<Op, bk::element::i32>(op, DataType::i32, NanMode::propagate);
    compare_all<Op, bk::element::u32>(op, DataType::u32, NanMode::propagate);
    compare_all<Op, bk::element::i64>(op, DataType::i64, NanMode::propagate);
    compare_all<Op, bk::element::u64>(op, DataType::u64, NanMode::propagate);
}
template <class Op>
void on_floats(ReduceOp op, NanMode mode = NanMode::propagate) {
    compare_all<Op, bk::element::f16>(op, DataType::f16, mode);
    compare_all<Op, bk::element::bf16>(op, DataType::bf16, mode);
    compare_all<Op, bk::element::f32>(op, DataType::f32, mode);
    compare_all<Op, bk::element::f64>(op, DataType::f64, mode);
    compare_all<Op, bk::element::f8e4m3>(op, DataType::f8e4m3, mode);
    compare_all<Op, bk::element::f8e5m2>(op, DataType::f8e5m2, mode);
}
template <class Op>
void on_pairs(ReduceOp op, NanMode mode) {
    compare_all<Op, bk::element::f32_i32>(op, DataType::f32_i32, mode);
    compare_all<Op, bk::element::f64_i32>(op, DataType::f64_i32, mode);
    compare_all<Op, bk::element::i32_i32>(op, DataType::i32_i32, mode);
    compare_all<Op, bk::element::i64_i32>(op, DataType::i64_i32, mode);
}

// All pairs of codes, as two sources of one pass.
template <class Op, class Element>
void all_pairs(ReduceOp op, DataType type) {
    std::vector<std::uint8_t> a(65536), b(65536), ours(65536), reference(65536);
    for (int i = 0; i < 65536; ++i)
        a[i] = static_cast<std::uint8_t>(i >> 8), b[i] = static_cast<std::uint8_t>(i);
    Arena arena;
    arena.host.threads = 1;
    const bk::Block block(arena.arguments, arena.host);
    bk::move<Op, Element>(block, {ours.data()}, {a.data(), b.data()}, 65536);
    const ir::ConstOperand sources[] = {{a.data(), type}, {b.data(), type}};
    const ir::MutableOperand destination{reference.data(), type};
    ir::reduce_operands({op, type}, sources, {&destination, 1}, 65536);
    if (ours != reference) FAIL_CHECK(to_string(op) << " on " << to_string(type));
}
template <class Element>
void all_pairs_of(DataType type) {
    all_pairs<bk::op::sum, Element>(ReduceOp::sum, type);
    all_pairs<bk::op::prod, Element>(ReduceOp::prod, type);
    all_pairs<bk::op::max, Element>(ReduceOp::max, type);
    all_pairs<bk::op::min, Element>(ReduceOp::min, type);
}

}  // namespace

TEST_CASE("copies keep every bit, changes of width equal the reference") {
    compare_copies<bk::element::i8>(DataType::i8);
    compare_copies<bk::element::i32>(DataType::i32);
    compare_copies<bk::element::i64>(DataType::i64);
    compare_copies<bk::element::f32>(DataType::f32);
    compare_copies<bk::element::f64>(DataType::f64);
    compare_copies<bk::element::f16>(DataType::f16);
    compare_copies<bk::element::bf16>(DataType::bf16);
    compare_copies<bk::element::f8e4m3>(DataType::f8e4m3);
    compare_copies<bk::element::f8e5m2>(DataType::f8e5m2);
    compare_copies<bk::element::f32_i32>(DataType::f32_i32);
    compare_copies<bk::element::i64_i32>(DataType::i64_i32);
}

TEST_CASE("arithmetic operators equal the reference") {
    on_integers<bk::op::sum>(ReduceOp::sum), on_floats<bk::op::sum>(ReduceOp::sum);
    on_integers<bk::op::prod>(ReduceOp::prod), on_floats<bk::op::prod>(ReduceOp::prod);
    on_integers<bk::op::avg>(ReduceOp::avg), on_floats<bk::op::avg>(ReduceOp::avg);
}

TEST_CASE("max and min equal the reference under both NaN rules") {
    on_integers<bk::op::max>(ReduceOp::max), on_integers<bk::op::min>(ReduceOp::min);
    on_floats<bk::op::max>(ReduceOp::max), on_floats<bk::op::min>(ReduceOp::min);
    on_floats<bk::op::max_number>(ReduceOp::max, NanMode::ignore);
    on_floats<bk::op::min_number>(ReduceOp::min, NanMode::ignore);
}

TEST_CASE("logical and bitwise operators equal the reference") {
    on_integers<bk::op::land>(ReduceOp::land), on_integers<bk::op::lor>(ReduceOp::lor);
    on_integers<bk::op::lxor>(ReduceOp::lxor), on_integers<bk::op::band>(ReduceOp::band);
    on_integers<bk::op::bor>(ReduceOp::bor), on_integers<bk::op::bxor>(ReduceOp::bxor);
}

TEST_CASE("maxloc and minloc equal the reference under both NaN rules") {
    on_pairs<bk::op::maxloc>(ReduceOp::maxloc, NanMode::propagate);
    on_pairs<bk::op::minloc>(ReduceOp::minloc, NanMode::propagate);
    on_pairs<bk::op::maxloc_number>(ReduceOp::maxloc, NanMode::ignore);
    on_pairs<bk::op::minloc_number>(ReduceOp::minloc, NanMode::ignore);
}

TEST_CASE("all pairs of 8-bit codes combine like the reference") {
    all_pairs_of<bk::element::f8e4m3>(DataType::f8e4m3);
    all_pairs_of<bk::element::f8e5m2>(DataType::f8e5m2);
    all_pairs_of<bk::element::i8>(DataType::i8);
    all_pairs_of<bk::element::u8>(DataType::u8);
}

TEST_CASE("a reduction in place equals one out of place") {
    std::vector<float> a(1001), b(1001), expected(1001);
    for (int i = 0; i < 1001; ++i)
        a[i] = static_cast<float>(i), b[i] = static_cast<float>(3 * i),
        expected[i] = 4.0f * static_cast<float>(i);
    Arena arena;
    arena.host.threads = 1;
    const bk::Block block(arena.arguments, arena.host);
    bk::move<bk::op::sum, bk::element::f32>(block, {a.data()}, {a.data(), b.data()}, 1001);
    CHECK(a == expected);
}

TEST_CASE("a failed block moves nothing") {
    int from = 7, to = 1;
    Arena arena;
    arena.host.threads = 1;
    bk::Block block(arena.arguments, arena.host);
    block.failed = 1;
    bk::copy<bk::element::i32>(block, {&to}, &from, 1);
    CHECK(to == 1);
}

TEST_CASE("names of elements and operators are those of the prelude") {
    CHECK(codegen::prelude_element(DataType::f8e4m3) == "baton_kernel::element::f8e4m3");
    CHECK(codegen::prelude_op(ReduceOp::max) == "baton_kernel::op::max");
    CHECK(codegen::prelude_op(ReduceOp::maxloc, NanMode::ignore) == "baton_kernel::op::maxloc_number");
    CHECK(codegen::prelude_op(ReduceOp::sum, NanMode::ignore) == "baton_kernel::op::sum");
    CHECK(codegen::prelude_source().find("#include") == std::string::npos);
    CHECK(codegen::prelude_source().rfind("/* What a launcher", 0) == 0);
    CHECK(codegen::abi_header().find("BATON_ABI_VERSION 1") != std::string::npos);
}
