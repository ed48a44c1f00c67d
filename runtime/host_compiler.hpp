// The system's C++ compiler: turns the source of a generated module into a shared object.
#pragma once

#include <baton/runtime/binary_cache.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace baton::runtime {

/// A C++ compiler that answered.
struct HostCompiler {
    std::string command;  ///< as found: a path or a name on PATH
    std::string version;  ///< first line of its --version; part of the key of cached objects
};

/// $BATON_CXX, else the first of $CXX, c++, g++, clang++ that answers. Asked once per process and command.
/// Throws a missing-part error (exit code 3) when none answers.
HostCompiler find_host_compiler();

struct HostCompileOptions {
    std::vector<std::string> flags;  ///< behind the standard ones, for example -fsanitize=thread
    BinaryCache cache = BinaryCache::user();
};

/// Compiles `source` to a shared object and returns its path in the cache; a sound entry of the cache is
/// returned at once. Standard flags: C++17, -O3 for this machine's processor, no contraction of
/// floating-point expressions. The key covers source, compiler, flags and the processor's features. Throws a
/// missing-part error without a compiler, an input error with the compiler's first message when the source
/// does not compile.
std::string compile_host(std::string_view source, const HostCompileOptions& options = {});

}  // namespace baton::runtime
