// From a Program back to an Algorithm.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/program.hpp>

namespace baton::codegen {

/// The steps that a program amounts to: what moves where, without threadblocks, tokens and slots. A message
/// becomes a send from the place it was read from to the place it is stored in; a value that is only passed
/// on, and one whose source is overwritten while it is under way, gets scratch of its own. Reductions become
/// a copy and reduces into one place, so that the order of rounding may differ. In a program that serves
/// calls in place only, the input is first copied to the output places that share its memory. Channels and
/// protocols stay as hints. The result is verified.
///
/// The program must be right (ir::verify). Throws an input error that says why there is no such algorithm:
/// the program writes its input, or has too many steps.
ir::Algorithm lift(const ir::Program& program);

}  // namespace baton::codegen
