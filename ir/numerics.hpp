// What the operators compute, value by value: the reference that generated code is compared with. Written
// apart from the device prelude (arithmetic on numbers where the prelude moves bits), so that an error in one
// shows in the other.
#pragma once

#include <baton/ir/data_type.hpp>
#include <baton/ir/reduce_op.hpp>

#include <cstdint>
#include <span>

namespace baton::ir {

/// Narrow floats (f16, bf16, f8e4m3, f8e5m2) to f32, exactly. A NaN code gives a NaN.
float decode_narrow(DataType type, std::uint16_t code);
/// f32 to a narrow float: round to nearest, ties to even. The 8-bit formats saturate (448, 57344), also
/// infinities; f16 and bf16 overflow to infinity. A NaN gives the canonical NaN.
std::uint16_t encode_narrow(DataType type, float value);

/// The element of a type as a number: integers and floats by value (i64 and u64 rounded), pairs by their
/// value.
double to_double(DataType type, const void* element);
/// Stores the nearest element to `value`; a pair gets `index` and zero padding. Floats as in `encode_narrow`
/// (f32 and f64 round to nearest); integers truncate toward zero and saturate, NaN gives 0.
void from_double(DataType type, double value, void* element, std::int32_t index = 0);
/// Writes the canonical quiet NaN: f16 0x7e00, bf16 0x7fc0, f32 0x7fc00000, f64 0x7ff8000000000000, f8e4m3
/// 0x7f, f8e5m2 0x7e; pairs with index 0. Throws an input error for types without NaN.
void canonical_nan(DataType type, void* element);

/// A buffer operand: `type` is the data type of the reduction, or f32 where a narrow float travels wide.
struct ConstOperand {
    const void* data = nullptr;
    DataType type = DataType::f32;
};
struct MutableOperand {
    void* data = nullptr;
    DataType type = DataType::f32;
};

/// How an instruction computes.
struct ReduceRule {
    ReduceOp op = ReduceOp::sum;
    DataType type = DataType::f32;  ///< of the data; operands hold this or, for narrow floats, f32
    NanMode nan = NanMode::propagate;
    bool finalize = false;  ///< completes the value: avg divides, logical operators give 0 or 1, narrow
                            ///< floats round to `type` even for wide destinations
    std::int64_t contributions = 1;  ///< divisor of avg; >= 1, read only when `finalize`
};

/// destinations[d][i] := op(sources[0][i], sources[1][i], ...) for i in [0, count), folded left to right in
/// the accumulator type and rounded once per destination. One source of the destination's type without
/// `finalize` is copied bit for bit; every other store writes canonical NaN and zero padding. Destinations
/// may equal sources exactly; other overlap is not allowed. Throws an input error when the operator has no
/// meaning on the type (not checked for pure copies), an operand's type fits neither, or sources or
/// destinations are missing.
void reduce_operands(const ReduceRule& rule, std::span<const ConstOperand> sources,
                     std::span<const MutableOperand> destinations, std::int64_t count);

/// Left fold of whole buffers of the data type with `finalize`: what a reducing collective returns in rank
/// order when nothing is rounded in between. Sources of f16, bf16 and f8 are summed in f32 and rounded once.
void reduce_buffers(ReduceOp op, DataType type, NanMode nan, std::span<const void* const> sources,
                    void* destination, std::int64_t count);

}  // namespace baton::ir
