// Pictures for Graphviz.
#pragma once

#include <baton/ir/program.hpp>
#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::codegen {

/// A machine: hosts are boxes, links in both directions with the same figures are one edge, labeled with rate
/// and count.
std::string write_dot(const topologies::Topology& topology);

/// The messages of a program: one node a rank, one edge a connection, labeled with channel, messages and
/// chunks.
std::string write_dot(const ir::Program& program);

}  // namespace baton::codegen
