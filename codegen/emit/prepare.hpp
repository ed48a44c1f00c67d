// What a Program gets before it is printed.
#pragma once

#include <baton/ir/program.hpp>

#include <optional>

namespace baton::codegen {

/// The program as it is printed, where that differs:
///   * connections of the protocols ll and ll128 are simple ones: the protocol is about speed only;
///   * a threadblock that names places of another rank gets a put connection there without messages, through
///     which it finds that rank's memory;
///   * a rank whose memory others access ends when they are done: the last instruction of its first
///     threadblock waits for them;
///   * a remote operand that names the own rank is a local one.
/// Nothing when the program is printed as it is.
std::optional<ir::Program> prepared_program(const ir::Program& program);

}  // namespace baton::codegen
