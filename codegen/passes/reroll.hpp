// Repeated bodies: runs of instructions that are copies of one body but for operands that advance by
// constants.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::codegen {

/// base, base + step, base + 2 step, ..., modulo `modulus` when that is above 0 (then 0 <= base, step <
/// modulus).
struct Affine {
    std::int64_t base = 0, step = 0, modulus = 0;
    bool operator==(const Affine&) const = default;
};

/// The sequence as an affine one, with the modulus only where it is needed; nothing when it is not affine.
std::optional<Affine> affine(const std::vector<std::int64_t>& sequence, std::int64_t modulus);

/// Number of places that indices of a buffer wrap at.
std::int64_t wrap_of(const ir::Program& program, int rank, ir::Buffer buffer);

}  // namespace baton::codegen
