// Indices: ranks, links and chunks are counted in signed numbers, containers index with unsigned ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace baton {

/// A signed index as an index of a container. The caller vouches that it is not negative.
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace baton
