// Pictures for Graphviz.
#pragma once

#include <baton/ir/program.hpp>

#include <string>

namespace baton::codegen {

/// The messages of a program: one node a rank, one edge a connection, labeled with channel, messages and
/// chunks.
std::string write_dot(const ir::Program& program);

}  // namespace baton::codegen
