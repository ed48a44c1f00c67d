// Emission: a Program as one readable source file that compiles as CUDA and as C++, and the manifest that
// goes with it.
#pragma once

#include <baton/codegen/manifest.hpp>
#include <baton/ir/program.hpp>

#include <string>
#include <vector>

namespace baton::codegen {

/// A (type, operator) that an entry is wanted for.
struct EntryRequest {
    ir::DataType type = ir::DataType::f32;
    ir::ReduceOp op = ir::ReduceOp::sum;
    ir::NanMode nan = ir::NanMode::propagate;
    bool operator==(const EntryRequest&) const = default;
};

/// All valid pairs of the lists. Throws an input error when a type or an operator has no partner in the other
/// list.
std::vector<EntryRequest> pair_entries(const std::vector<ir::DataType>& types,
                                       const std::vector<ir::ReduceOp>& ops,
                                       ir::NanMode nan = ir::NanMode::propagate);

struct EmitOptions {
    /// Reducing programs: the entries wanted, at least one; empty = f32 sum. Copying programs: one entry per
    /// element size of the types named here; empty = all sizes (1, 2, 4, 8 and 16 bytes).
    std::vector<EntryRequest> entries;
    int threads = 512;  ///< CUDA threads per threadblock, a multiple of 32 up to 1024
    int instances =
        1;  ///< copies of the program on separate connections; copy i executes tiles i, i + instances, ...
    int straight = 40;  ///< threadblocks of at most so many instructions become straight-line code
};

/// An emitted plan.
struct Module {
    std::string source;  ///< prelude, tables, roles and entries; needs no header
    std::string header;  ///< for C and C++ launchers: the ABI structures and the declarations of the entries
    Manifest manifest;   ///< with `hash`, without file names and binaries
};

/// True when some instruction combines values, or when a one-rank call must complete one: then entries are
/// per operator.
bool needs_operator(const ir::Program& program);

/// Emits. Connections of the protocols ll and ll128 become simple ones. The Program must have passed
/// ir::verify (which checks results, races and deadlock); structure is checked again. `report` of that
/// verification goes into the manifest; null = not proven. Throws an input error for what cannot be emitted:
/// switch operands, an always-wide (operator, type) on a program that was not lowered wide, more than 32
/// sources, tables above 64 MiB.
Module emit(const ir::Program& program, const EmitOptions& options = {},
            const ir::ProgramReport* report = nullptr);

}  // namespace baton::codegen
