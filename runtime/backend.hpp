// Where ranks live and how generated code is started there: host threads (cpu_backend.hpp) or GPUs
// (cuda_backend.hpp).
#pragma once

#include <baton/codegen/prelude/abi.h>
#include <baton/runtime/module.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace baton::runtime {

/// One start of an entry for the ranks of one place. All launches of a call run at the same time.
struct Launch {
    const void* code = nullptr;  ///< what `prepare` returned for this place
    int place = 0;
    int blocks = 0;     ///< grid: threadblocks of all ranks of the launch
    int threads = 512;  ///< CUDA threads per threadblock
    const baton_arguments* arguments =
        nullptr;  ///< `blocks` and the ranks' tables lie in the backend's memory
};

/// Memory and execution. All memory it hands out has one address for the host process and all ranks of a
/// communicator (the host may dereference it only where `host_memory`). Functions throw missing-part errors
/// when the hardware cannot serve, input errors otherwise.
class Backend {
public:
    virtual ~Backend() = default;
    virtual std::string_view name() const = 0;
    /// Whether the host may dereference the ranks' memory.
    virtual bool host_memory() const = 0;
    /// Ranks it was made for; 0: any number.
    virtual int ranks() const { return 0; }
    /// Ranks of one place are started by one launch, all at once: a rank (cpu), a device (cuda).
    virtual int place_of(int rank) const = 0;
    /// Largest number of ranks of one place.
    virtual int ranks_per_place() const = 0;

    /// Zeroed memory of a rank, aligned to 128 bytes, that all ranks reach. Never null.
    virtual void* allocate(int rank, std::int64_t bytes) = 0;
    virtual void release(int rank, void* memory) noexcept = 0;
    /// The same, readable and writable by host and ranks at any time, also while kernels run.
    virtual void* allocate_shared(std::int64_t bytes) = 0;
    virtual void release_shared(void* memory) noexcept = 0;
    /// Copies between host memory and a rank's memory; complete on return. Not while kernels use the memory.
    virtual void write(int rank, void* to, const void* from, std::int64_t bytes) = 0;
    virtual void read(int rank, void* to, const void* from, std::int64_t bytes) = 0;
    /// As `write`, in order with the launches of the rank's place on `stream`.
    virtual void write_in_order(int rank, void* to, const void* from, std::int64_t bytes, void* stream) = 0;

    /// Loads the code of an entry for a place and checks that `blocks` threadblocks can run there at once.
    /// Called before the first launch; may take long. The result lives as long as module and backend.
    virtual const void* prepare(const Module& module, const codegen::ManifestEntry& entry, int place,
                                int blocks, int threads) = 0;
    /// Starts the launches together, `iterations` times one after the other. Arguments may be reused on
    /// return. Backends with streams return before the end; `stream` null is the place's own.
    virtual void start(std::span<const Launch> launches, int iterations, void* stream) = 0;
    /// Until everything started at the place on `stream` has ended.
    virtual void wait(int place, void* stream) = 0;
};

}  // namespace baton::runtime
