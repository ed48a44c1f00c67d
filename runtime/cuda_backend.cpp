#include <baton/base/error.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/cuda_driver.hpp>
#include <baton/runtime/nvrtc.hpp>

#include <fmt/format.h>
#include <cstring>
#include <map>
#include <mutex>

namespace baton::runtime {

namespace {

using namespace cuda;

/// A context made current for a scope; the one before comes back.
class Current {
public:
    Current(const Driver& driver, Context context) : driver_(driver) {
        driver_.check(driver_.CtxPushCurrent(context), "entering a GPU's context");
    }
    ~Current() {
        Context ignored = nullptr;
        driver_.CtxPopCurrent(&ignored);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

private:
    const Driver& driver_;
};

DevicePointer address(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

class CudaBackend : public Backend {
public:
    explicit CudaBackend(const CudaOptions& options);
    ~CudaBackend() override;

    std::string_view name() const override { return "cuda"; }
    bool host_memory() const override { return false; }
    int ranks() const override { return static_cast<int>(devices_of_.size()); }
    int place_of(int rank) const override { return devices_of_[rank]; }
    int ranks_per_place() const override;

    void* allocate(int rank, std::int64_t bytes) override;
    void release(int rank, void* memory) noexcept override;
    void* allocate_shared(std::int64_t bytes) override;
    void release_shared(void* memory) noexcept override;
    void write(int rank, void* to, const void* from, std::int64_t bytes) override;
    void read(int rank, void* to, const void* from, std::int64_t bytes) override;
    void write_in_order(int rank, void* to, const void* from, std::int64_t bytes, void* stream) override;
    const void* prepare(const Module& module, const codegen::ManifestEntry& entry, int place, int blocks,
                        int threads) override;
    void start(std::span<const Launch> launches, int iterations, void* stream) override;
    void wait(int place, void* stream) override;

private:
    struct Kernel {
        Function function = nullptr;
        int threads = 0;
    };
    struct Loaded {
        std::shared_ptr<const Module>
            module;  // keeps the pointer, by which it is found, from being used again
        ModuleHandle handle = nullptr;
        std::map<std::string, std::unique_ptr<Kernel>> kernels;
    };
    struct Gpu {
        Device device = 0;
        Context context = nullptr;
        Stream stream = nullptr;
        DeviceFacts facts;
        std::map<const Module*, Loaded> modules;
    };
    Gpu& gpu(int place) { return gpus_.at(place); }
    Gpu& gpu_of(int rank) { return gpus_.at(devices_of_[rank]); }
    void open(int device);
    void connect();
    void close() noexcept;
    Loaded& load(const Module& module, int place);

    const Driver& driver_;
    std::vector<int> devices_of_;
    std::map<int, Gpu> gpus_;
    std::mutex mutex_;
};

CudaBackend::CudaBackend(const CudaOptions& options) : driver_(driver()), devices_of_(options.devices) {
    if (devices_of_.empty()) throw input_error("no devices for the ranks");
    try {
        for (const int device : devices_of_) {
            if (!gpus_.contains(device)) open(device);
        }
        connect();
    } catch (...) {
        close();
        throw;
    }
}

CudaBackend::~CudaBackend() { close(); }

void CudaBackend::open(int device) {
    const DeviceFacts facts = device_facts(device);
    if (!facts.cooperative) {
        throw missing_error(
            fmt::format("GPU {} ({}) cannot keep all threadblocks of a launch resident", device, facts.name),
            {}, "use another GPU or the cpu backend");
    }
    Gpu& mine = gpus_[device];
    mine.facts = facts;
    driver_.check(driver_.DeviceGet(&mine.device, device), "opening a GPU");
    driver_.check(driver_.DevicePrimaryCtxRetain(&mine.context, mine.device),
                  "opening a GPU's primary context");
    const Current current(driver_, mine.context);
    driver_.check(driver_.StreamCreate(&mine.stream, kStreamNonBlocking), "making a stream");
}

void CudaBackend::connect() {
    for (auto& [a, from] : gpus_) {
        for (auto& [b, to] : gpus_) {
            if (a == b) continue;
            int can = 0;
            driver_.check(driver_.DeviceCanAccessPeer(&can, from.device, to.device),
                          "asking for peer access");
            if (can == 0) {
                throw missing_error(fmt::format("GPU {} cannot access the memory of GPU {}", a, b), {},
                                    "use GPUs that are linked, or one GPU for several ranks");
            }
            const Current current(driver_, from.context);
            const Result result = driver_.CtxEnablePeerAccess(to.context, 0);
            if (result != kPeerAlreadyEnabled) driver_.check(result, "enabling peer access");
        }
    }
}

void CudaBackend::close() noexcept {
    for (auto& [place, each] : gpus_) {
        if (each.context == nullptr) continue;
        if (driver_.CtxPushCurrent(each.context) == kSuccess) {
            for (auto& [key, loaded] : each.modules) driver_.ModuleUnload(loaded.handle);
            if (each.stream != nullptr) driver_.StreamDestroy(each.stream);
            Context ignored = nullptr;
            driver_.CtxPopCurrent(&ignored);
        }
        driver_.DevicePrimaryCtxRelease(each.device);
    }
    gpus_.clear();
}

int CudaBackend::ranks_per_place() const {
    std::map<int, int> ranks;
    int most = 0;
    for (const int device : devices_of_) most = std::max(most, ++ranks[device]);
    return most;
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

void* CudaBackend::allocate(int rank, std::int64_t bytes) {
    Gpu& mine = gpu_of(rank);
    const Current current(driver_, mine.context);
    DevicePointer memory = 0;
    const std::size_t size = static_cast<std::size_t>(bytes);
    const Result result = driver_.MemAlloc(&memory, size);
    if (result != kSuccess)
        throw input_error(
            fmt::format("not enough GPU memory: {} bytes asked for, {}", bytes, driver_.words(result)));
    driver_.check(driver_.MemsetD8Async(memory, 0, size, mine.stream), "clearing GPU memory");
    driver_.check(driver_.StreamSynchronize(mine.stream), "clearing GPU memory");
    return reinterpret_cast<void*>(memory);
}

void CudaBackend::release(int rank, void* memory) noexcept {
    if (memory == nullptr) return;
    const auto found = gpus_.find(devices_of_[rank]);
    if (found == gpus_.end() || driver_.CtxPushCurrent(found->second.context) != kSuccess) return;
    driver_.MemFree(address(memory));
    Context ignored = nullptr;
    driver_.CtxPopCurrent(&ignored);
}

void* CudaBackend::allocate_shared(std::int64_t bytes) {
    const Current current(driver_, gpus_.begin()->second.context);
    void* memory = nullptr;
    driver_.check(
        driver_.MemHostAlloc(&memory, static_cast<std::size_t>(bytes), kHostPortable | kHostDeviceMapped),
        "allocating host memory for GPUs");
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    return memory;
}

void CudaBackend::release_shared(void* memory) noexcept {
    if (memory == nullptr || gpus_.empty() ||
        driver_.CtxPushCurrent(gpus_.begin()->second.context) != kSuccess)
        return;
    driver_.MemFreeHost(memory);
    Context ignored = nullptr;
    driver_.CtxPopCurrent(&ignored);
}

void CudaBackend::write(int rank, void* to, const void* from, std::int64_t bytes) {
    write_in_order(rank, to, from, bytes, nullptr);
    wait(devices_of_[rank], nullptr);
}

void CudaBackend::read(int rank, void* to, const void* from, std::int64_t bytes) {
    Gpu& mine = gpu_of(rank);
    {
        const Current current(driver_, mine.context);
        driver_.check(
            driver_.MemcpyDtoHAsync(to, address(from), static_cast<std::size_t>(bytes), mine.stream),
            "copying from a GPU");
    }
    wait(devices_of_[rank], nullptr);
}

void CudaBackend::write_in_order(int rank, void* to, const void* from, std::int64_t bytes, void* stream) {
    Gpu& mine = gpu_of(rank);
    const Current current(driver_, mine.context);
    // Pageable host memory: the driver has taken a copy when this returns.
    driver_.check(driver_.MemcpyHtoDAsync(address(to), from, static_cast<std::size_t>(bytes),
                                          stream == nullptr ? mine.stream : static_cast<Stream>(stream)),
                  "copying to a GPU");
}

// ---- code
// ------------------------------------------------------------------------------------------------------------

CudaBackend::Loaded& CudaBackend::load(const Module& module, int place) {
    Gpu& mine = gpu(place);
    if (const auto there = mine.modules.find(&module); there != mine.modules.end()) return there->second;
    std::string image;
    if (auto cubin = module.cubin(mine.facts.major, mine.facts.minor))
        image = std::move(*cubin);
    else if (!module.source().empty())
        image = compile_cubin(module.source(), fmt::format("sm_{}{}", mine.facts.major, mine.facts.minor));
    else {
        throw missing_error(
            fmt::format("the module has neither a cubin for compute capability {}.{} nor source",
                        mine.facts.major, mine.facts.minor),
            module.name(), "emit it for this architecture");
    }
    Loaded loaded;
    const Result result = driver_.ModuleLoadData(&loaded.handle, image.c_str());
    if (result != kSuccess) {
        throw missing_error(fmt::format("the driver does not load the module: {}", driver_.words(result)),
                            module.name(), "a cubin needs a driver of its toolkit's version or later");
    }
    loaded.module = module.shared_from_this();
    return mine.modules.emplace(&module, std::move(loaded)).first->second;
}

const void* CudaBackend::prepare(const Module& module, const codegen::ManifestEntry& entry, int place,
                                 int blocks, int threads) {
    const std::lock_guard lock(mutex_);
    Gpu& mine = gpu(place);
    const Current current(driver_, mine.context);
    Loaded& loaded = load(module, place);
    auto& kernel = loaded.kernels[entry.name];
    if (kernel == nullptr) kernel = std::make_unique<Kernel>();
    if (kernel->function == nullptr &&
        driver_.ModuleGetFunction(&kernel->function, loaded.handle, entry.name.c_str()) != kSuccess) {
        throw input_error(fmt::format("the cubin has no entry {}", entry.name), module.name(),
                          "emit the module again");
    }
    // Kernels run with any number of threads: fewer where the grid would not fit otherwise.
    int most = 0;
    for (int wanted = threads; wanted >= 32; wanted /= 2) {
        int each = 0;
        driver_.check(driver_.OccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel->function, wanted, 0),
                      "asking for the occupancy");
        most = std::max(most, each * mine.facts.multiprocessors);
        if (each * mine.facts.multiprocessors >= blocks) {
            kernel->threads = wanted;
            return kernel.get();
        }
    }
    throw missing_error(fmt::format("{} threadblocks must run at once, GPU {} ({}) holds {}", blocks, place,
                                    mine.facts.name, most),
                        module.name(), "use fewer ranks on this GPU, or lower with fewer threadblocks");
}

void CudaBackend::start(std::span<const Launch> launches, int iterations, void* stream) {
    for (int i = 0; i < iterations; ++i) {
        for (const Launch& launch : launches) {
            Gpu& mine = gpu(launch.place);
            const auto& kernel = *static_cast<const Kernel*>(launch.code);
            LaunchAttribute cooperative;
            cooperative.id = kLaunchCooperative;
            cooperative.value.cooperative = 1;
            LaunchConfig config;
            config.grid_x = static_cast<unsigned>(launch.blocks);
            config.block_x = static_cast<unsigned>(kernel.threads);
            config.stream = stream == nullptr ? mine.stream : static_cast<Stream>(stream);
            config.attributes = &cooperative;
            config.attribute_count = 1;
            void* parameters[] = {const_cast<baton_arguments*>(launch.arguments)};
            const Current current(driver_, mine.context);
            driver_.check(driver_.LaunchKernelEx(&config, kernel.function, parameters, nullptr),
                          "starting a kernel");
        }
    }
}

void CudaBackend::wait(int place, void* stream) {
    Gpu& mine = gpu(place);
    const Current current(driver_, mine.context);
    const Result result =
        driver_.StreamSynchronize(stream == nullptr ? mine.stream : static_cast<Stream>(stream));
    if (result != kSuccess)
        throw check_error(fmt::format("a kernel on GPU {} failed: {}", place, driver_.words(result)), {},
                          "restart the process");
}

}  // namespace

std::shared_ptr<Backend> cuda_backend(const CudaOptions& options) {
    return std::make_shared<CudaBackend>(options);
}

}  // namespace baton::runtime
