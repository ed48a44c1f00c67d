// Handles, results, communicators and memory of the C interface.
#include <baton/ir/numerics.hpp>
#include <baton/runtime/c_handles.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/cuda_driver.hpp>

#include <fmt/format.h>
#include <unordered_map>

namespace baton::runtime::c_api {

namespace {

static_assert(BATON_I64_I32 == static_cast<int>(ir::DataType::i64_i32) &&
              BATON_F8E5M2 == static_cast<int>(ir::DataType::f8e5m2) &&
              BATON_F32 == static_cast<int>(ir::DataType::f32));
static_assert(BATON_MINLOC == static_cast<int>(ir::ReduceOp::minloc) &&
              BATON_AVG == static_cast<int>(ir::ReduceOp::avg) &&
              BATON_BXOR == static_cast<int>(ir::ReduceOp::bxor));
static_assert(BATON_CUSTOM == static_cast<int>(ir::CollectiveKind::custom) &&
              BATON_REDUCE_SCATTER == static_cast<int>(ir::CollectiveKind::reduce_scatter) &&
              BATON_GATHER == static_cast<int>(ir::CollectiveKind::gather));
static_assert(BATON_NAN_IGNORE == static_cast<int>(ir::NanMode::ignore));

std::string& last_error() {
    thread_local std::string text;
    return text;
}

std::uintptr_t next_handle() {
    static std::atomic<std::uintptr_t> counter{0};
    return ++counter;
}

/// Live handles of one sort.
template <typename Value, typename Handle>
class Handles {
public:
    explicit Handles(const char* what) : what_(what) {}
    Handle add(Value value) {
        const std::uintptr_t number = next_handle();
        const std::lock_guard lock(mutex_);
        live_.emplace(number, std::move(value));
        return reinterpret_cast<Handle>(number);
    }
    Value find(Handle handle) {
        const std::shared_lock lock(mutex_);
        return at(handle)->second;
    }
    Value take(Handle handle) {
        const std::lock_guard lock(mutex_);
        const auto found = at(handle);
        Value value = std::move(found->second);
        live_.erase(found);
        return value;
    }

private:
    auto at(Handle handle) {
        if (handle == nullptr) throw input_error(fmt::format("the {} is null", what_));
        const auto found = live_.find(reinterpret_cast<std::uintptr_t>(handle));
        if (found == live_.end())
            throw input_error(fmt::format("this is no {}, or one that was destroyed", what_));
        return found;
    }
    const char* what_;
    std::shared_mutex mutex_;
    std::unordered_map<std::uintptr_t, Value> live_;
};

// Never destroyed: threads of the caller may outlive static objects.
Handles<CommunicatorRank, baton_comm>& communicators() {
    static auto& handles = *new Handles<CommunicatorRank, baton_comm>("communicator");
    return handles;
}
Handles<LoadedPlan, baton_plan>& loaded_plans() {
    static auto& handles = *new Handles<LoadedPlan, baton_plan>("plan");
    return handles;
}

std::shared_ptr<Backend> make_backend(int ranks, const baton_options& options) {
    if (options.backend == BATON_BACKEND_CPU) {
        if (options.cpu_threads < 0 || options.cpu_threads > 4096)
            throw input_error(
                fmt::format("cpu_threads must be within 0 and 4096; got {}", options.cpu_threads));
        CpuOptions cpu;
        cpu.workers = options.cpu_threads;
        return cpu_backend(cpu);
    }
    if (options.backend != BATON_BACKEND_CUDA) {
        throw input_error(fmt::format("no backend has the number {}", options.backend), {},
                          "use BATON_BACKEND_CPU or BATON_BACKEND_CUDA");
    }
    CudaOptions cuda;
    if (options.devices != nullptr) {
        cuda.devices.assign(options.devices, options.devices + ranks);
    } else {
        const int there = cuda::device_count();
        for (int r = 0; r < ranks; ++r) cuda.devices.push_back(r % there);
    }
    return cuda_backend(cuda);
}

}  // namespace

SharedCommunicator::SharedCommunicator(std::shared_ptr<Backend> backend, const CommunicatorOptions& options,
                                       ir::NanMode nan_mode)
    : communicator(std::move(backend), options), nan(nan_mode) {}

SharedCommunicator::~SharedCommunicator() {
    Backend& backend = communicator.backend();
    for (int r = 0; r < communicator.ranks(); ++r) {
        try {
            backend.wait(backend.place_of(r), nullptr);
        } catch (...) {
            // A GPU that failed: there is nothing left to wait for.
        }
    }
    for (const auto& [rank, address] : memory) backend.release(rank, address);
}

baton_comm add_handle(CommunicatorRank rank) { return communicators().add(std::move(rank)); }
CommunicatorRank find_handle(baton_comm comm) { return communicators().find(comm); }
CommunicatorRank take_handle(baton_comm comm) { return communicators().take(comm); }
baton_plan add_handle(LoadedPlan plan) { return loaded_plans().add(std::move(plan)); }
LoadedPlan find_handle(baton_plan plan) { return loaded_plans().find(plan); }
LoadedPlan take_handle(baton_plan plan) { return loaded_plans().take(plan); }

std::shared_ptr<SharedCommunicator> make_communicator(int ranks, const baton_options* given) {
    baton_options options = BATON_OPTIONS_INIT;
    if (given != nullptr) {
        if (given->size != sizeof options) {
            throw input_error(
                fmt::format("options of {} bytes, this library's have {}", given->size, sizeof options), {},
                "begin with BATON_OPTIONS_INIT, and compile against this library's header");
        }
        options = *given;
    }
    if (options.nan != BATON_NAN_PROPAGATE && options.nan != BATON_NAN_IGNORE)
        throw input_error(fmt::format("no mode for NaN has the number {}", options.nan));
    CommunicatorOptions made;
    made.ranks = ranks;
    made.slots = options.slots;
    made.slot_bytes = options.slot_bytes;
    made.workspace = options.workspace;
    made.timeout = std::chrono::nanoseconds(std::min(options.timeout_ns, kLongestTimeout));
    if (ranks < 1 || ranks > 4096)
        throw input_error(fmt::format("a communicator has 1 to 4096 ranks; got {}", ranks));
    return std::make_shared<SharedCommunicator>(make_backend(ranks, options), made,
                                                static_cast<ir::NanMode>(options.nan));
}

void require(const void* pointer, const char* what) {
    if (pointer == nullptr) throw input_error(fmt::format("{} is null", what));
}

ir::DataType data_type(baton_type type) {
    if (!ir::is_data_type(type))
        throw input_error(fmt::format("no element type has the number {}", type), {},
                          "use BATON_F32 and the like");
    return static_cast<ir::DataType>(type);
}

ir::ReduceOp reduce_op(baton_op op) {
    if (!ir::is_reduce_op(op))
        throw input_error(fmt::format("no operator has the number {}", op), {}, "use BATON_SUM and the like");
    return static_cast<ir::ReduceOp>(op);
}

baton_result fail(baton_result result, const char* words) noexcept {
    try {
        last_error() = words;
    } catch (...) {
        last_error().clear();
    }
    return result;
}

baton_result result_of(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::input: return BATON_INVALID_INPUT;
        case ErrorKind::check_failed: return BATON_CHECK_FAILED;
        case ErrorKind::missing_part: return BATON_MISSING_PART;
        default: return BATON_INTERNAL;
    }
}

}  // namespace baton::runtime::c_api

using namespace baton;
using namespace baton::runtime;
using namespace baton::runtime::c_api;

extern "C" {

const char* baton_error_string(baton_result result) {
    switch (static_cast<int>(result)) {
        case BATON_SUCCESS: return "success";
        case BATON_CHECK_FAILED: return "a call failed on some rank";
        case BATON_INVALID_INPUT: return "an argument, a file or a call is wrong";
        case BATON_MISSING_PART: return "a compiler, a GPU, a driver or memory is absent";
        case BATON_INTERNAL: return "a fault of Baton itself";
        default: return "not a result of Baton";
    }
}

const char* baton_last_error(void) { return last_error().c_str(); }

int baton_version(void) {
    return 10000 * BATON_VERSION_MAJOR + 100 * BATON_VERSION_MINOR + BATON_VERSION_PATCH;
}

size_t baton_type_size(baton_type type) {
    return ir::is_data_type(type) ? static_cast<size_t>(ir::size_of(static_cast<ir::DataType>(type))) : 0;
}

baton_result baton_comm_init_all(baton_comm* comms, int ranks, const baton_options* options) {
    return guarded([&] {
        require(comms, "comms");
        const auto shared = make_communicator(ranks, options);
        for (int r = 0; r < ranks; ++r) comms[r] = add_handle(CommunicatorRank{shared, r});
    });
}

baton_result baton_comm_destroy(baton_comm comm) {
    return guarded([&] {
        if (comm != nullptr) take_handle(comm);
    });
}

baton_result baton_comm_count(baton_comm comm, int* ranks) {
    return guarded([&] {
        require(ranks, "ranks");
        *ranks = find_handle(comm).shared->communicator.ranks();
    });
}

baton_result baton_comm_rank(baton_comm comm, int* rank) {
    return guarded([&] {
        require(rank, "rank");
        *rank = find_handle(comm).rank;
    });
}

baton_result baton_comm_device(baton_comm comm, int* device) {
    return guarded([&] {
        require(device, "device");
        const CommunicatorRank mine = find_handle(comm);
        const Backend& backend = mine.shared->communicator.backend();
        *device = backend.host_memory() ? -1 : backend.place_of(mine.rank);
    });
}

baton_result baton_comm_wait(baton_comm comm, void* stream) {
    return guarded([&] {
        const CommunicatorRank mine = find_handle(comm);
        mine.shared->communicator.wait(mine.rank, stream);
    });
}

baton_result baton_comm_async_error(baton_comm comm) {
    return guarded([&] {
        const std::string failure = find_handle(comm).shared->communicator.failure();
        if (!failure.empty()) throw check_error(failure, {}, "recover the communicator");
    });
}

baton_result baton_comm_abort(baton_comm comm, const char* reason) {
    return guarded(
        [&] { find_handle(comm).shared->communicator.abort(reason == nullptr ? "aborted" : reason); });
}

baton_result baton_comm_recover(baton_comm comm) {
    return guarded([&] { find_handle(comm).shared->communicator.recover(); });
}

baton_result baton_mem_alloc(baton_comm comm, int64_t bytes, void** memory) {
    return guarded([&] {
        require(memory, "memory");
        if (bytes < 0 || bytes > INT64_C(1) << 62)
            throw input_error(fmt::format("{} bytes of memory", bytes));
        const CommunicatorRank mine = find_handle(comm);
        void* made = mine.shared->communicator.backend().allocate(mine.rank, std::max<int64_t>(bytes, 1));
        const std::lock_guard lock(mine.shared->memory_mutex);
        mine.shared->memory.emplace(mine.rank, made);
        *memory = made;
    });
}

baton_result baton_mem_free(baton_comm comm, void* memory) {
    return guarded([&] {
        const CommunicatorRank mine = find_handle(comm);
        if (memory == nullptr) return;
        {
            const std::lock_guard lock(mine.shared->memory_mutex);
            if (mine.shared->memory.erase({mine.rank, memory}) == 0)
                throw input_error(fmt::format("rank {} has no such memory", mine.rank));
        }
        mine.shared->communicator.backend().release(mine.rank, memory);
    });
}

baton_result baton_mem_write(baton_comm comm, void* to, const void* from, int64_t bytes) {
    return guarded([&] {
        const CommunicatorRank mine = find_handle(comm);
        if (bytes < 0) throw input_error(fmt::format("{} bytes to copy", bytes));
        if (bytes == 0) return;
        require(to, "to");
        require(from, "from");
        mine.shared->communicator.backend().write(mine.rank, to, from, bytes);
    });
}

baton_result baton_mem_read(baton_comm comm, void* to, const void* from, int64_t bytes) {
    return guarded([&] {
        const CommunicatorRank mine = find_handle(comm);
        if (bytes < 0) throw input_error(fmt::format("{} bytes to copy", bytes));
        if (bytes == 0) return;
        require(to, "to");
        require(from, "from");
        mine.shared->communicator.backend().read(mine.rank, to, from, bytes);
    });
}

}  // extern "C"
