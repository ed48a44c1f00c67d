// Emitted sources to machine code: a shared object by the system's C++ compiler, cubins by NVRTC or nvcc.
#pragma once

#include <string>
#include <vector>

namespace baton::codegen {

struct HostObjectOptions {
    std::string
        compiler;  ///< command; "" = $BATON_CXX, else the first of $CXX, c++, g++, clang++ that answers
    std::vector<std::string>
        flags;  ///< behind the standard ones (-std=c++17 -O2 -shared -fPIC -ffp-contract=off)
};

/// The command of the host compiler, or "" when none answers.
std::string find_host_compiler(const HostObjectOptions& options = {});

/// The bytes of a shared object of baton_host_entry functions for any processor of this architecture. Throws
/// a missing-part error without a compiler, an internal error with the compiler's first message when the
/// source does not compile.
std::string compile_host(const std::string& source, const HostObjectOptions& options = {});

enum class CubinCompilerKind { nvrtc, nvcc };

/// A compiler of cubins. NVRTC is loaded into the process and needs no GPU and no host compiler; nvcc is
/// started.
struct CubinCompiler {
    CubinCompilerKind kind = CubinCompilerKind::nvrtc;
    std::string path;                        ///< of the library or the program
    std::string version;                     ///< "13.0"
    std::vector<std::string> architectures;  ///< it knows: "sm_75", ..., ascending
};

/// The compilers of this machine, NVRTC first. Looked for where the loader and PATH look, then in $CUDA_HOME
/// (or $CUDA_PATH) and /usr/local/cuda. Asked once per process.
const std::vector<CubinCompiler>& cubin_compilers();

/// The bytes of a cubin for one architecture ("sm_90"). Throws a missing-part error when no compiler is there
/// or none knows the architecture (the message lists what is known), an internal error with the compiler's
/// first message when the source does not compile. `log`, when given, receives what the compiler wrote.
std::string compile_cubin(const std::string& source, const std::string& architecture,
                          std::string* log = nullptr);
/// The same with one compiler. REQUIRES: `architecture` is one it knows.
std::string compile_cubin(const CubinCompiler& compiler, const std::string& source,
                          const std::string& architecture, std::string* log = nullptr);

/// Throws an input error unless `name` has the form of an architecture: sm_ and a number, optionally a
/// letter.
void check_architecture(const std::string& name, const std::string& where = {});

}  // namespace baton::codegen
