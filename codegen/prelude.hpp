// The text that every emitted kernel begins with. Its contract is described in codegen/prelude/README.md.
#pragma once

#include <baton/ir/data_type.hpp>
#include <baton/ir/reduce_op.hpp>

#include <string>
#include <string_view>

namespace baton::codegen {

/// The whole prelude: all its files in the order they need, without any #include. Compiles as CUDA (nvcc,
/// NVRTC) and as C++17 or later.
const std::string& prelude_source();

/// The loader contract alone (codegen/prelude/abi.h): plain C, includes nothing, part of `prelude_source`.
std::string_view abi_header();

/// Names inside the prelude: "baton_kernel::element::f16", "baton_kernel::op::max_number" (a max that ignores
/// NaN).
std::string prelude_element(ir::DataType type);
std::string prelude_op(ir::ReduceOp op, ir::NanMode nan = ir::NanMode::propagate);

}  // namespace baton::codegen
