// NVRTC, NVIDIA's compiler in a library, loaded when it is first needed: source to cubin without nvcc and
// without a GPU.
#pragma once

#include <baton/runtime/binary_cache.hpp>

#include <string>
#include <string_view>

namespace baton::runtime {

/// Compiles `source` for an architecture ("sm_90"), without contraction of floating-point expressions, and
/// returns the bytes of the cubin; a sound entry of the cache is returned at once. The library is
/// $BATON_NVRTC, else the newest of libnvrtc.so.13, .12 in the loader's path or below /usr/local/cuda. Where
/// NVRTC does not know the architecture, PTX for the newest older one is returned, which the driver compiles.
/// Throws a missing-part error without NVRTC, an input error with the compiler's first message when the
/// source does not compile.
std::string compile_cubin(std::string_view source, const std::string& architecture,
                          const BinaryCache& cache = BinaryCache::user());

}  // namespace baton::runtime
