#include <baton/base/error.hpp>
#include <baton/runtime/cuda_driver.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <cstdlib>
#include <mutex>

namespace baton::runtime::cuda {

namespace {

static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

// Functions are asked for in the form they have in this version.
constexpr int kVersion = 12000;
using GetProcAddress = Result (*)(const char*, void**, int, std::uint64_t, int*);

constexpr const char* kInstall = "install an NVIDIA driver of version 525 or later, or use the cpu backend";

template <class F>
void resolve(GetProcAddress get, const char* name, F& function) {
    void* address = nullptr;
    int found = 0;
    if (get(name, &address, kVersion, 0, &found) != kSuccess || address == nullptr) {
        throw missing_error(fmt::format("the CUDA driver has no {}", name), {}, kInstall);
    }
    function = reinterpret_cast<F>(address);
}

void resolve_all(GetProcAddress get, Driver& d) {
#define BATON_RESOLVE(name) resolve(get, "cu" #name, d.name)
    BATON_RESOLVE(GetErrorString);
    BATON_RESOLVE(Init);
    BATON_RESOLVE(DriverGetVersion);
    BATON_RESOLVE(DeviceGetCount);
    BATON_RESOLVE(DeviceGet);
    BATON_RESOLVE(DeviceGetName);
    BATON_RESOLVE(DeviceGetAttribute);
    BATON_RESOLVE(DeviceCanAccessPeer);
    BATON_RESOLVE(DevicePrimaryCtxRetain);
    BATON_RESOLVE(DevicePrimaryCtxRelease);
    BATON_RESOLVE(CtxPushCurrent);
    BATON_RESOLVE(CtxPopCurrent);
    BATON_RESOLVE(CtxEnablePeerAccess);
    BATON_RESOLVE(MemAlloc);
    BATON_RESOLVE(MemFree);
    BATON_RESOLVE(MemHostAlloc);
    BATON_RESOLVE(MemFreeHost);
    BATON_RESOLVE(MemcpyHtoDAsync);
    BATON_RESOLVE(MemcpyDtoHAsync);
    BATON_RESOLVE(MemsetD8Async);
    BATON_RESOLVE(StreamCreate);
    BATON_RESOLVE(StreamDestroy);
    BATON_RESOLVE(StreamSynchronize);
    BATON_RESOLVE(ModuleLoadData);
    BATON_RESOLVE(ModuleUnload);
    BATON_RESOLVE(ModuleGetFunction);
    BATON_RESOLVE(OccupancyMaxActiveBlocksPerMultiprocessor);
    BATON_RESOLVE(LaunchKernelEx);
#undef BATON_RESOLVE
}

Driver load() {
    const char* own = std::getenv("BATON_CUDA_DRIVER");
    const char* name = own != nullptr && *own != 0 ? own : "libcuda.so.1";
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw missing_error(
            fmt::format("no GPU can be used: there is no CUDA driver ({} does not load)", name), {},
            kInstall);
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    if (get == nullptr) {
        dlclose(library);
        throw missing_error("no GPU can be used: the CUDA driver is older than 12.0", {}, kInstall);
    }
    Driver d{};
    resolve_all(get, d);
    const Result started = d.Init(0);
    if (started == kStubLibrary)
        throw missing_error("no GPU can be used: the CUDA driver library is the toolkit's stub", {},
                            kInstall);
    if (started != kSuccess)
        throw missing_error(fmt::format("no GPU can be used: {}", d.words(started)), {},
                            "use the cpu backend");
    int count = 0;
    if (d.DeviceGetCount(&count) != kSuccess || count == 0)
        throw missing_error("there is no GPU in this machine", {}, "use the cpu backend");
    return d;
}

}  // namespace

std::string Driver::words(Result result) const {
    const char* text = nullptr;
    if (GetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown error";
    return fmt::format("{} (CUDA error {})", text, result);
}

void Driver::check(Result result, const char* doing) const {
    if (result != kSuccess) throw missing_error(fmt::format("{}: {}", doing, words(result)));
}

const Driver& driver() {
    static std::mutex mutex;
    static Driver* loaded = nullptr;
    const std::lock_guard lock(mutex);
    if (loaded == nullptr) loaded = new Driver(load());
    return *loaded;
}

int device_count() {
    int count = 0;
    driver().check(driver().DeviceGetCount(&count), "counting the GPUs");
    return count;
}

DeviceFacts device_facts(int device) {
    const Driver& d = driver();
    if (device < 0 || device >= device_count()) {
        throw input_error(fmt::format("there is no GPU {}", device), {},
                          fmt::format("use 0 to {}", device_count() - 1));
    }
    Device handle = 0;
    d.check(d.DeviceGet(&handle, device), "opening a GPU");
    DeviceFacts facts;
    char name[128] = {};
    d.check(d.DeviceGetName(name, sizeof name, handle), "asking a GPU for its name");
    facts.name = name;
    const auto attribute = [&](int which) {
        int value = 0;
        d.check(d.DeviceGetAttribute(&value, which, handle), "asking a GPU for an attribute");
        return value;
    };
    facts.major = attribute(kAttributeMajor);
    facts.minor = attribute(kAttributeMinor);
    facts.multiprocessors = attribute(kAttributeMultiprocessors);
    facts.cooperative = attribute(kAttributeCooperative) != 0;
    return facts;
}

}  // namespace baton::runtime::cuda
