// What a GPU check runs: a folder of generated modules and the list of calls to make with them.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/ir/data_type.hpp>
#include <baton/ir/program.hpp>
#include <baton/ir/reduce_op.hpp>

#include <string>
#include <vector>

namespace baton::cli {

/// One module and the call to make with it.
struct GpuCase {
    std::string module;  ///< folder of the module, relative to the list
    ir::CollectiveKind kind = ir::CollectiveKind::all_reduce;
    int ranks = 2;
    std::string pattern;               ///< "ring", ...
    ir::Mode mode = ir::Mode::staged;  ///< preferred transfer mode; messages that it cannot serve are staged
    ir::DataType type = ir::DataType::f32;
    ir::ReduceOp op = ir::ReduceOp::sum;  ///< of reducing kinds
};

/// The cases of the check, few ranks first: all nine kinds for 2, 4 and 8 ranks, each with several patterns,
/// modes, types and operators. `quick`: one case of each kind and one of each mode, for 2 ranks only.
std::vector<GpuCase> gpu_cases(bool quick);

/// The text of cases.json ("baton": "gpu_check/1").
std::string to_json(const std::vector<GpuCase>& cases);
/// Reads DIR/cases.json. Throws an input error with the place.
std::vector<GpuCase> load_gpu_cases(const std::string& folder);

}  // namespace baton::cli
