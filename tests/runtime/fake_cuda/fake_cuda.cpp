// A stand-in for the CUDA driver library: the functions that the runtime uses, over host memory. A "cubin" is
// a shared object of host entries; a launch runs its threadblocks as threads. It checks how it is called:
// contexts, addresses, launch attributes, the grid. What a GPU does with real cubins it cannot show.
#include <baton/codegen/prelude/abi.h>
#include <baton/runtime/cuda_driver.hpp>

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace baton::runtime::cuda;

namespace {

std::mutex mutex;
/// Settings that tests change, and counters that they read.
std::map<std::string, long> values = {{"devices", 2},         {"major", 9},        {"minor", 0},
                                      {"multiprocessors", 8}, {"blocks", 2},       {"cooperative", 1},
                                      {"peers", 1},           {"memory", 1L << 33}};
std::map<std::string, long> failing;  // function -> the result it returns
std::map<char*, std::size_t> memory, host_memory;
thread_local std::vector<Context> contexts;

struct FakeContext {
    int device;
};
FakeContext device_contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};

/// Launches run on threads, each after the one before; any thread may wait.
struct FakeStream {
    std::mutex mutex;
    std::shared_future<void> last;
    std::shared_future<void> exchange(std::shared_future<void> next) {
        const std::lock_guard lock(mutex);
        std::swap(last, next);
        return next;
    }
    void wait() {
        std::shared_future<void> mine;
        {
            const std::lock_guard lock(mutex);
            mine = last;
        }
        if (mine.valid()) mine.wait();
    }
};
struct FakeModule {
    void* library;
};

long value(const char* name) { return values[name]; }
Result planned(const char* name) {
    const std::lock_guard lock(mutex);
    const auto found = failing.find(name);
    return found == failing.end() ? kSuccess : static_cast<Result>(found->second);
}
#define BATON_PLANNED(name) \
    if (const Result result = planned(name)) return result

constexpr Result kInvalidValue = 1, kOutOfMemory = 2, kInvalidContext = 201, kNotFound = 500,
                 kIllegalAddress = 700;

bool inside(const std::map<char*, std::size_t>& ranges, const void* at, std::size_t bytes) {
    const auto* p = static_cast<const char*>(at);
    auto found = ranges.upper_bound(const_cast<char*>(p));
    if (found == ranges.begin()) return false;
    --found;
    return p + bytes <= found->first + found->second;
}

Result GetErrorString(Result result, const char** text) {
    static const std::map<Result, const char*> words = {
        {kInvalidValue, "invalid argument"},
        {kOutOfMemory, "out of memory"},
        {kNoDevice, "no CUDA-capable device is detected"},
        {kInvalidContext, "invalid device context"},
        {kNoBinary, "no kernel image is available for execution on the device"},
        {kIllegalAddress, "an illegal memory access was encountered"},
        {kCooperativeTooLarge, "too many blocks in cooperative launch"}};
    const auto found = words.find(result);
    *text = found == words.end() ? nullptr : found->second;
    return found == words.end() ? kInvalidValue : kSuccess;
}
Result Init(unsigned) {
    BATON_PLANNED("cuInit");
    return kSuccess;
}
Result DriverGetVersion(int* version) {
    *version = 12040;
    return kSuccess;
}
Result DeviceGetCount(int* count) {
    *count = static_cast<int>(value("devices"));
    return kSuccess;
}
Result DeviceGet(Device* device, int ordinal) {
    if (ordinal < 0 || ordinal >= value("devices")) return kInvalidValue;
    *device = ordinal + 100;  // no ordinal by accident
    return kSuccess;
}
Result DeviceGetName(char* name, int size, Device) {
    std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU");
    return kSuccess;
}
Result DeviceGetAttribute(int* result, int attribute, Device) {
    const char* name = attribute == kAttributeMajor             ? "major"
                       : attribute == kAttributeMinor           ? "minor"
                       : attribute == kAttributeMultiprocessors ? "multiprocessors"
                       : attribute == kAttributeCooperative     ? "cooperative"
                                                                : nullptr;
    if (name == nullptr) return kInvalidValue;
    *result = static_cast<int>(value(name));
    return kSuccess;
}
Result DeviceCanAccessPeer(int* can, Device, Device) {
    *can = static_cast<int>(value("peers"));
    return kSuccess;
}
Result DevicePrimaryCtxRetain(Context* context, Device device) {
    BATON_PLANNED("cuDevicePrimaryCtxRetain");
    ++values["retained"];
    *context = reinterpret_cast<Context>(&device_contexts[device - 100]);
    return kSuccess;
}
Result DevicePrimaryCtxRelease(Device) {
    --values["retained"];
    return kSuccess;
}
Result CtxPushCurrent(Context context) {
    contexts.push_back(context);
    return kSuccess;
}
Result CtxPopCurrent(Context* context) {
    if (contexts.empty()) return kInvalidContext;
    *context = contexts.back();
    contexts.pop_back();
    return kSuccess;
}
Result CtxEnablePeerAccess(Context, unsigned) {
    const std::lock_guard lock(mutex);
    return ++values["peer_enabled"] > 2 ? kPeerAlreadyEnabled : kSuccess;
}
Result MemAlloc(DevicePointer* pointer, std::size_t bytes) {
    BATON_PLANNED("cuMemAlloc");
    if (contexts.empty()) return kInvalidContext;
    if (bytes == 0) return kInvalidValue;
    if (static_cast<long>(bytes) > value("memory")) return kOutOfMemory;
    void* p = nullptr;
    if (posix_memalign(&p, 256, bytes) != 0) return kOutOfMemory;
    if (bytes < (1u << 24)) std::memset(p, 0xa5, bytes);  // memory of a GPU is not zero
    const std::lock_guard lock(mutex);
    memory[static_cast<char*>(p)] = bytes;
    *pointer = reinterpret_cast<DevicePointer>(p);
    return kSuccess;
}
Result MemFree(DevicePointer pointer) {
    const std::lock_guard lock(mutex);
    if (memory.erase(reinterpret_cast<char*>(pointer)) == 0) return kInvalidValue;
    std::free(reinterpret_cast<void*>(pointer));
    return kSuccess;
}
Result MemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    if (contexts.empty()) return kInvalidContext;
    if (flags != (kHostPortable | kHostDeviceMapped)) return kInvalidValue;
    *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    const std::lock_guard lock(mutex);
    host_memory[static_cast<char*>(*pointer)] = bytes;
    return kSuccess;
}
Result MemFreeHost(void* pointer) {
    const std::lock_guard lock(mutex);
    if (host_memory.erase(static_cast<char*>(pointer)) == 0) return kInvalidValue;
    std::free(pointer);
    return kSuccess;
}

FakeStream* fake(Stream stream) { return reinterpret_cast<FakeStream*>(stream); }
Result StreamCreate(Stream* stream, unsigned flags) {
    if (contexts.empty()) return kInvalidContext;
    if (flags != kStreamNonBlocking) return kInvalidValue;
    *stream = reinterpret_cast<Stream>(new FakeStream);
    return kSuccess;
}
Result StreamSynchronize(Stream stream) {
    if (contexts.empty()) return kInvalidContext;
    fake(stream)->wait();
    BATON_PLANNED("cuStreamSynchronize");
    return kSuccess;
}
Result StreamDestroy(Stream stream) {
    fake(stream)->wait();
    delete fake(stream);
    return kSuccess;
}
Result MemcpyHtoDAsync(DevicePointer to, const void* from, std::size_t bytes, Stream stream) {
    fake(stream)->wait();
    const std::lock_guard lock(mutex);
    if (contexts.empty() || !inside(memory, reinterpret_cast<void*>(to), bytes)) return kInvalidValue;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return kSuccess;
}
Result MemcpyDtoHAsync(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
    fake(stream)->wait();
    const std::lock_guard lock(mutex);
    if (contexts.empty() || !inside(memory, reinterpret_cast<void*>(from), bytes)) return kInvalidValue;
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return kSuccess;
}
Result MemsetD8Async(DevicePointer to, unsigned char byte, std::size_t bytes, Stream) {
    const std::lock_guard lock(mutex);
    if (contexts.empty() || !inside(memory, reinterpret_cast<void*>(to), bytes)) return kInvalidValue;
    std::memset(reinterpret_cast<void*>(to), byte, bytes);
    return kSuccess;
}

Result ModuleLoadData(ModuleHandle* module, const void* image) {
    BATON_PLANNED("cuModuleLoadData");
    if (contexts.empty()) return kInvalidContext;
    // The image of the tests is the path of a shared object behind a mark.
    const std::string text(static_cast<const char*>(image));
    if (!text.starts_with("fake cubin ")) return kInvalidImage;
    void* library = dlopen(text.substr(11).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return kInvalidImage;
    ++values["modules"];
    *module = reinterpret_cast<ModuleHandle>(new FakeModule{library});
    return kSuccess;
}
Result ModuleUnload(ModuleHandle module) {
    --values["modules"];
    dlclose(reinterpret_cast<FakeModule*>(module)->library);
    delete reinterpret_cast<FakeModule*>(module);
    return kSuccess;
}
Result ModuleGetFunction(Function* function, ModuleHandle module, const char* name) {
    void* found = dlsym(reinterpret_cast<FakeModule*>(module)->library, name);
    if (found == nullptr) return kNotFound;
    *function = reinterpret_cast<Function>(found);
    return kSuccess;
}
// As if a multiprocessor had 1024 threads' worth of registers for this kernel.
Result OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int threads, std::size_t) {
    *blocks = static_cast<int>(value("blocks")) * 512 / threads;
    return kSuccess;
}

baton_u64 now_ns(void*) {
    return static_cast<baton_u64>(std::chrono::steady_clock::now().time_since_epoch().count());
}
void yield(void*) { sched_yield(); }

/// Everything that the arguments point to must be memory of a device, or host memory that devices reach.
bool arguments_good(const baton_arguments& a, unsigned grid) {
    const std::lock_guard lock(mutex);
    const auto reachable = [](const void* at, std::size_t bytes) {
        return inside(memory, at, bytes) || inside(host_memory, at, bytes);
    };
    if (!reachable(a.blocks, grid * sizeof(baton_block)) || a.local_ranks > BATON_MAX_LOCAL_RANKS)
        return false;
    for (unsigned i = 0; i < a.local_ranks; ++i) {
        const baton_rank* rank = a.calls[i].rank;
        if (!reachable(rank, sizeof *rank)) return false;
        if (!reachable(rank->state, sizeof *rank->state) || !reachable(rank->abort, 4)) return false;
        if (!reachable(rank->errors, rank->threadblocks * sizeof(baton_error))) return false;
        if (!reachable(rank->peers, rank->ranks * sizeof(baton_peer))) return false;
    }
    return true;
}

Result LaunchKernelEx(const LaunchConfig* config, Function function, void** parameters, void** extra) {
    BATON_PLANNED("cuLaunchKernelEx");
    if (contexts.empty()) return kInvalidContext;
    if (extra != nullptr || config->attribute_count != 1 || config->attributes[0].id != kLaunchCooperative ||
        config->attributes[0].value.cooperative != 1)
        return kInvalidValue;
    int each = 0;
    OccupancyMaxActiveBlocksPerMultiprocessor(&each, function, static_cast<int>(config->block_x), 0);
    if (config->grid_x > static_cast<unsigned>(each * value("multiprocessors"))) return kCooperativeTooLarge;
    // Parameters are copied at the launch.
    auto arguments = std::make_shared<baton_arguments>(*static_cast<const baton_arguments*>(parameters[0]));
    if (!arguments_good(*arguments, config->grid_x)) return kInvalidValue;
    {
        const std::lock_guard lock(mutex);
        ++values["launches"];
        values["last_grid"] = config->grid_x;
        values["last_threads"] = config->block_x;
    }
    FakeStream* stream = fake(config->stream);
    const auto entry = reinterpret_cast<baton_host_entry>(function);
    const unsigned grid = config->grid_x;
    auto done = std::make_shared<std::promise<void>>();
    std::thread([entry, arguments, grid, done, before = stream->exchange(done->get_future().share())] {
        if (before.valid()) before.wait();
        std::vector<std::thread> blocks;
        for (unsigned b = 0; b < grid; ++b) {
            blocks.emplace_back([&, b] {
                const baton_host_thread host{b, 0, 1, 0, nullptr, nullptr, &yield, &now_ns};
                entry(arguments.get(), &host);
            });
        }
        for (std::thread& block : blocks) block.join();
        done->set_value();
    }).detach();
    return kSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Result cuGetProcAddress_v2(const char* name, void** address,
                                                                             int version, std::uint64_t flags,
                                                                             int* found) {
    static const std::map<std::string, void*> functions = {
#define BATON_FUNCTION(name) {"cu" #name, reinterpret_cast<void*>(&name)}
        BATON_FUNCTION(GetErrorString),
        BATON_FUNCTION(Init),
        BATON_FUNCTION(DriverGetVersion),
        BATON_FUNCTION(DeviceGetCount),
        BATON_FUNCTION(DeviceGet),
        BATON_FUNCTION(DeviceGetName),
        BATON_FUNCTION(DeviceGetAttribute),
        BATON_FUNCTION(DeviceCanAccessPeer),
        BATON_FUNCTION(DevicePrimaryCtxRetain),
        BATON_FUNCTION(DevicePrimaryCtxRelease),
        BATON_FUNCTION(CtxPushCurrent),
        BATON_FUNCTION(CtxPopCurrent),
        BATON_FUNCTION(CtxEnablePeerAccess),
        BATON_FUNCTION(MemAlloc),
        BATON_FUNCTION(MemFree),
        BATON_FUNCTION(MemHostAlloc),
        BATON_FUNCTION(MemFreeHost),
        BATON_FUNCTION(MemcpyHtoDAsync),
        BATON_FUNCTION(MemcpyDtoHAsync),
        BATON_FUNCTION(MemsetD8Async),
        BATON_FUNCTION(StreamCreate),
        BATON_FUNCTION(StreamDestroy),
        BATON_FUNCTION(StreamSynchronize),
        BATON_FUNCTION(ModuleLoadData),
        BATON_FUNCTION(ModuleUnload),
        BATON_FUNCTION(ModuleGetFunction),
        BATON_FUNCTION(OccupancyMaxActiveBlocksPerMultiprocessor),
        BATON_FUNCTION(LaunchKernelEx)};
    const auto at = functions.find(name);
    *found = at == functions.end() ? 1 : 0;
    if (at == functions.end() || version != 12000 || flags != 0) return kNotFound;
    *address = at->second;
    return kSuccess;
}

// For the tests.
extern "C" __attribute__((visibility("default"))) void fake_cuda_set(const char* name, long to) {
    const std::lock_guard lock(mutex);
    values[name] = to;
}
extern "C" __attribute__((visibility("default"))) long fake_cuda_get(const char* name) {
    const std::lock_guard lock(mutex);
    if (std::strcmp(name, "allocations") == 0) return static_cast<long>(memory.size() + host_memory.size());
    return values[name];
}
extern "C" __attribute__((visibility("default"))) void fake_cuda_fail(const char* function, long result) {
    const std::lock_guard lock(mutex);
    if (result == 0)
        failing.erase(function);
    else
        failing[function] = result;
}
extern "C" __attribute__((visibility("default"))) long fake_cuda_contexts() {
    return static_cast<long>(contexts.size());
}
