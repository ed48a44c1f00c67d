// A Program as executors with one sender and one receiver per threadblock run it.
#pragma once

#include <baton/ir/program.hpp>

#include <string>

namespace baton::codegen {

/// What an executor can take.
struct ExecutorForm {
    std::string executor;                          ///< its name, for messages
    int slots = 2;                                 ///< messages under way on a connection
    int most_chunks = 71;                          ///< chunks that one instruction moves; longer runs are cut
    ir::Protocol protocol = ir::Protocol::simple;  ///< of all connections
};

/// Rewrites a program so that
///   * every connection is staged, and one threadblock owns at most one sending and one receiving connection,
///     both on the same channel;
///   * every instruction has one of the shapes send, recv, recv_copy_send, recv_reduce_send,
///   recv_reduce_copy,
///     recv_reduce_copy_send, copy, reduce, with a received message as first source, a reduction's
///     destination as first source of `reduce`;
///   * reductions of many sources and sends to many peers are taken apart, with scratch where a partial
///   result
///     has no place.
/// Instructions of a threadblock that is taken apart keep their order through needs. Marks of loops, steps of
/// origin and wide values are dropped. Chunks, groups, kinds and placement stay. The result is verified at
/// `slots`. Throws an input error that names what the executor lacks: remote and switch operands, unequal
/// weights, several groups, custom collectives, needs among ranks.
ir::Program executor_form(const ir::Program& program, const ExecutorForm& form);

}  // namespace baton::codegen
