// Executes a Program directly on host buffers, one instruction after the other in one thread: the oracle that
// generated code is compared with. It computes through ir/numerics.hpp, so its result is a replay of the
// Program's expression trees.
#pragma once

#include <baton/ir/program.hpp>
#include <baton/runtime/buffers.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace baton::runtime {

/// How a Program is executed.
struct InterpretOptions {
    std::int64_t tiles = 1;  ///< tiles that every chunk is cut into, 1..2^20
    int slots = 0;           ///< FIFO depth of every staged connection; 0 = each connection's own
    /// 0: every threadblock runs until it waits. Else: the seed of a random interleaving, in which a
    /// threadblock that is chosen does one chunk of its instruction, so that missing order between
    /// threadblocks shows as wrong data.
    std::uint64_t seed = 0;
    /// Whether a Program that uses its input as room (`clobbers_input`) may run.
    bool may_clobber_input = false;
    /// Most bytes of scratch and of staged messages in flight; more is refused.
    std::int64_t memory_limit = std::int64_t{16} << 30;
};

/// What a run did.
struct InterpretReport {
    std::int64_t instructions = 0;   ///< over all tiles
    std::int64_t messages = 0;       ///< sent on connections, over all tiles
    std::int64_t bytes_moved = 0;    ///< read from sources, messages included
    std::int64_t scratch_bytes = 0;  ///< of all ranks
};

/// A Program made ready for execution: operands resolved, messages paired. It may run any number of times,
/// with other counts, types, operators and buffers each time. Not for use by several threads at once.
class Interpreter {
public:
    /// Throws a check error when the Program is not well formed (ranges, ownership, pairing of messages,
    /// needs); the message names the instruction.
    explicit Interpreter(ir::Program program);
    ~Interpreter();
    Interpreter(Interpreter&&) noexcept;

    const ir::Program& program() const;

    /// Executes one call of all ranks. Throws an input error when the arguments have no meaning (see
    /// `check_buffers`, `ir::check_valid`; an always-wide operator and type on a Program that is not wide; a
    /// limit exceeded) and a check error with the cycle of waiting instructions on a deadlock, or when an
    /// instruction joins chunks of different length. Buffers may have been written then. With
    /// `clobbers_input` the inputs must be writable.
    InterpretReport run(const CallArguments& arguments, std::span<const RankBuffers> buffers,
                        const InterpretOptions& options = {});

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace baton::runtime
