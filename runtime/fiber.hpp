// Threadblocks as fibers: any number of them that wait for one another share one operating-system thread, and
// a wait costs a switch of a few nanoseconds instead of a turn of the scheduler.
#pragma once

#include <baton/codegen/prelude/abi.h>

#include <atomic>
#include <cstdint>
#include <span>

namespace baton::runtime {

/// Lets the threadblocks of one rank begin its next call only when all have left the one before. For repeated
/// launches.
struct alignas(128) CallGate {
    std::atomic<std::uint32_t> round{0}, left{0};
};

/// One threadblock of a launch: calls `entry` `iterations` times.
struct BlockTask {
    baton_host_entry entry = nullptr;
    const baton_arguments* arguments = nullptr;
    std::uint32_t block = 0;        ///< index into arguments->blocks
    CallGate* gate = nullptr;       ///< of its rank; null when iterations == 1
    std::uint32_t gate_blocks = 1;  ///< threadblocks that share the gate
    int iterations = 1;
};

/// Whether fibers exist in this build: x86-64, or any system with ucontext; not under the address and thread
/// sanitizers, which lose track of stacks.
bool fibers_available();

/// Runs all tasks to their end on the calling thread, as fibers that take turns at every poll of a wait.
/// `spin`: polls of a lone task before it yields the processor.
void run_fibers(std::span<const BlockTask> tasks, std::uint32_t spin);

/// Runs one task on the calling thread without a stack of its own; `threads` > 1 and `thread`: as a member of
/// a team.
void run_task(const BlockTask& task, const baton_host_thread& host);

/// Host clock for baton_host_thread::now_ns.
baton_u64 host_now_ns(void*);
/// Gives up the processor; for baton_host_thread::yield.
void host_yield(void*);

}  // namespace baton::runtime
