// The operators of reducing collectives, and which types each is defined on.
#pragma once

#include <baton/ir/data_type.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// Operators. The values are part of the C API and never change; files use names.
///
/// sum, prod: integers wrap. max, min: -0 is below +0, a NaN operand gives NaN unless `NanMode::ignore`. avg:
/// sum, then one division by the number of contributions at the end; integers truncate toward zero. land,
/// lor, lxor: operands count as true when not 0, results are 0 or 1. band, bor, bxor: bitwise. maxloc,
/// minloc: the pair with the largest (smallest) value; equal values, among them -0 and +0, and several NaNs
/// give the lowest index; NaN beats numbers unless `NanMode::ignore`. A floating-point result that is NaN is
/// always `canonical_nan` of its type.
enum class ReduceOp : std::uint8_t {
    sum = 0,
    prod = 1,
    max = 2,
    min = 3,
    avg = 4,
    land = 5,
    lor = 6,
    lxor = 7,
    band = 8,
    bor = 9,
    bxor = 10,
    maxloc = 11,
    minloc = 12,
};

/// What max, min, maxloc and minloc do with NaN. propagate: a NaN never vanishes. ignore: a number beats a
/// NaN, the result is NaN only when all operands are (the rule of NCCL and of C's fmax).
enum class NanMode : std::uint8_t { propagate = 0, ignore = 1 };

/// All operators, in the order of their values.
const std::vector<ReduceOp>& all_reduce_ops();

/// The name used in files and on the command line ("maxloc").
std::string_view to_string(ReduceOp op);
/// Inverse of `to_string`; throws an input error that lists the names.
ReduceOp parse_reduce_op(std::string_view name, const std::string& where = {});
/// Whether `value` is the number of an operator (for values that come over a C interface).
bool is_reduce_op(int value);

std::string_view to_string(NanMode mode);
/// "propagate" or "ignore"; anything else is an input error.
NanMode parse_nan_mode(std::string_view name, const std::string& where = {});

/// Whether the operator has a meaning on the type: sum prod max min avg on all but pairs, the logical and
/// bitwise operators on integers, maxloc and minloc on pairs.
bool valid(ReduceOp op, DataType type);
/// The types an operator is defined on, in the order of their values.
std::vector<DataType> valid_types(ReduceOp op);
/// Throws an input error that lists the valid types of `op` and the valid operators of `type` unless `valid`.
void check_valid(ReduceOp op, DataType type, const std::string& where = {});

/// Whether partial results must travel and rest as f32 however the call was made: avg on f16, f8e4m3 and
/// f8e5m2, whose partial sums would saturate before the division.
bool always_wide(ReduceOp op, DataType type);
/// Type of messages and scratch of a reduction: f32 for narrow floats when `wide` was asked for or
/// `always_wide`, else the data type.
DataType wire_type(ReduceOp op, DataType type, bool wide);

}  // namespace baton::ir
