// What `baton run` executes: a schedule, a plan set or a folder of generated code, made into a program and a
// module.
#pragma once

#include <baton/cli/bandwidth.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/program.hpp>
#include <baton/runtime/buffers.hpp>
#include <baton/runtime/module.hpp>

#include <memory>
#include <optional>
#include <string>

namespace baton::cli {

struct RunInputOptions {
    ir::LoadOptions load;  ///< ranks, root and params, instead of the file's
    codegen::LowerOptions lower;
    runtime::CallArguments arguments;  ///< type and operator; the count where `size` is none
    std::optional<std::int64_t> size;  ///< bytes as nccl-tests counts them, instead of the count
    bool in_place = false;
    int instances = 1;
    bool emit = true;  ///< false: the program is verified only, and `module` stays empty
};

/// A schedule that can be run.
struct RunInput {
    std::string name, plan;  ///< of the schedule; of the row of a plan set, "" otherwise
    ir::Collective collective;
    std::optional<ir::Program> program;  ///< none: a folder without a program
    std::shared_ptr<const runtime::Module> module;
    std::int64_t tiles = 0;            ///< of the plan; 0 = not said
    runtime::CallArguments arguments;  ///< with the count
};

/// Reads `path`: a folder with a manifest, a manifest, an algorithm, a program or a plan set. Schedules are
/// lowered, verified and emitted with one entry, for the type and operator of the call. Throws input errors,
/// and check errors when verification fails or proves nothing.
RunInput load_run_input(const std::string& path, const RunInputOptions& options);

}  // namespace baton::cli
