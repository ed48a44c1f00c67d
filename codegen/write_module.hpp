// A module as a folder: source, C header, manifest, and compiled forms.
#pragma once

#include <baton/codegen/emit.hpp>

#include <string>
#include <vector>

namespace baton::codegen {

struct ModuleOptions {
    EmitOptions emit;
    std::vector<std::string> architectures;  ///< cubins wanted ("sm_90"); their absence is an error
    bool host = false;                       ///< a host object is wanted; its absence is an error
    bool program = true;                     ///< write the program as well (program.json)
};

struct WrittenModule {
    Manifest manifest;
    std::vector<std::string> files;  ///< names in the folder, the manifest last
};

/// Verifies and emits the program, compiles what is asked for, and writes module.cu, module.h, program.json,
/// module.so, module.sm_90.cubin, ... and, last, manifest.json: a folder with a manifest is complete. Throws
/// what `emit`, `compile_host` and `compile_cubin` throw; nothing is written unless everything compiled.
WrittenModule write_module(const std::string& folder, const ir::Program& program,
                           const ModuleOptions& options = {});

}  // namespace baton::codegen
