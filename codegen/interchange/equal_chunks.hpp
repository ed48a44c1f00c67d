// Algorithms for executors that have chunks of one size only.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <string>

namespace baton::codegen {

/// Most chunks of one size that a shard is cut into.
inline constexpr std::int64_t kMostEqualChunks = 2048;

struct EqualChunks {
    ir::Algorithm algorithm;  ///< moves the same data, in chunks without weights
    std::string note;         ///< one line on what was changed, without a final stop; empty when nothing was
};

/// Cuts chunks of weight w into w chunks of one size, after weights lost their common factor. Where that
/// takes more than kMostEqualChunks chunks, weights are rounded first: the algorithm stays right, and the
/// note tells what part of the data lies in other chunks than before. Throws an input error where
/// ir::refine does.
EqualChunks equal_chunks(ir::Algorithm algorithm);

}  // namespace baton::codegen
