// The element types that collectives move and reduce.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// Element types. The values are part of the C API and never change; files use names.
///
/// f16 is IEEE binary16; bf16 the upper half of binary32; f8e4m3 and f8e5m2 are the OCP 8-bit formats (e4m3:
/// no infinity, largest finite 448, NaN 0x7f and 0xff; e5m2: IEEE-like, largest finite 57344). The pairs
/// serve maxloc and minloc: a value, then an i32 index, in the layout of the C struct {value; int32_t
/// index;}, padded to a multiple of the value's size.
enum class DataType : std::uint8_t {
    i8 = 0,
    u8 = 1,
    i32 = 2,
    u32 = 3,
    i64 = 4,
    u64 = 5,
    f16 = 6,
    bf16 = 7,
    f32 = 8,
    f64 = 9,
    f8e4m3 = 10,
    f8e5m2 = 11,
    f32_i32 = 12,
    f64_i32 = 13,
    i32_i32 = 14,
    i64_i32 = 15,
};

/// All types, in the order of their values.
const std::vector<DataType>& all_data_types();

/// The name used in files and on the command line ("f8e4m3").
std::string_view to_string(DataType type);
/// Inverse of `to_string`; throws an input error that lists the names.
DataType parse_data_type(std::string_view name, const std::string& where = {});
/// Whether `value` is the number of a type (for values that come over a C interface).
bool is_data_type(int value);

/// Bytes of one element, padding included: f32_i32 8, f64_i32 16, i32_i32 8, i64_i32 16.
std::int64_t size_of(DataType type);
/// Alignment that a buffer of this type needs, in bytes: the size of the (value of the) element.
std::int64_t alignment_of(DataType type);
/// The `a` of the partition rule: elements per 16 bytes (1 for the 16-byte pairs).
std::int64_t elements_per_16_bytes(DataType type);

/// A (value, index) pair.
bool is_pair(DataType type);
/// i8 ... u64, no pair.
bool is_integer(DataType type);
/// Signed integer, no pair.
bool is_signed_integer(DataType type);
/// f16 ... f8e5m2, no pair.
bool is_float(DataType type);
/// f16, bf16 and the 8-bit formats: reductions compute in f32 and round when they store.
bool is_narrow_float(DataType type);
/// The type of a pair's value, else `type` itself.
DataType value_type(DataType type);
/// The type in which one instruction accumulates: f32 for narrow floats, else `type` itself.
DataType accumulator_type(DataType type);

}  // namespace baton::ir
