// GOAL, the input of LogGOP-style simulators (LogGOPSim, ATLAHS): per rank a graph of sends, receives and
// waits.
//
// Source of the format: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language", ICPP 2009.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <string>

namespace baton::codegen {

/// One pass of the program for `bytes` of a rank's larger buffer. A message is a send and a receive with the
/// connection's number as tag; local work is `calc 0`, as GOAL has no memory; order within a threadblock and
/// needs are `requires`. FIFO depths are not part of the format. Throws an input error for remote and switch
/// operands, needs among ranks, and where the text would be longer than ten million operations.
std::string write_goal(const ir::Program& program, std::int64_t bytes);

}  // namespace baton::codegen
