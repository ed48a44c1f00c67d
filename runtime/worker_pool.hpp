// Threads that run the threadblocks of calls of all ranks, kept between calls.
#pragma once

#include <baton/runtime/fiber.hpp>

#include <functional>
#include <memory>

namespace baton::runtime {

/// Cores that this process may use, at least 1.
int usable_cores();

/// A process-wide pool. Workers spin for a short while after a call, then sleep.
class WorkerPool {
public:
    static WorkerPool& instance();
    /// Calls work(0), ..., work(parts - 1) at the same time: work(0) on this thread, the others on workers.
    /// False, without any call, when the pool is busy or lacks threads. `work` must not throw.
    bool run(int parts, const std::function<void(int)>& work);

private:
    WorkerPool();
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace baton::runtime
