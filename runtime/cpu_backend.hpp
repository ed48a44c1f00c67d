// Ranks in this process: each threadblock a fiber or a team of threads, generated code compiled by the system
// compiler.
#pragma once

#include <baton/runtime/backend.hpp>

#include <memory>

namespace baton::runtime {

struct CpuOptions {
    /// OS threads per threadblock. 1 is for speed: threadblocks are fibers (where the build has them) on as
    /// many threads as there are cores. More: every thread of every team is an OS thread, as the thread
    /// sanitizer wants it.
    int threads_per_block = 1;
    /// Threads that a call of all ranks uses; 0 = the cores this process may use.
    int workers = 0;
    bool fibers = true;
};

/// Never throws for lack of a compiler; loading code does.
std::shared_ptr<Backend> cpu_backend(const CpuOptions& options = {});

}  // namespace baton::runtime
