// The cuda backend's control flow, argument layout and errors, against a stand-in for the driver that runs
// host code. Nothing here ran on a GPU.
#include <baton/runtime/baton.h>
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cuda_backend.hpp>
#include <baton/runtime/cuda_driver.hpp>
#include <baton/runtime/nvrtc.hpp>

#include "hand_modules.hpp"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <thread>

#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define BATON_HAS_CUDA_H 1
#endif

using namespace baton;
using namespace baton::runtime;

#ifdef BATON_HAS_CUDA_H
// Where the toolkit is there, the layouts and numbers that the runtime writes out are held against it.
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig) &&
              offsetof(cuda::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(cuda::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(cuda::LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs) &&
              offsetof(cuda::LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX));
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(cuda::kLaunchCooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
              cuda::kAttributeMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              cuda::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              cuda::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              cuda::kAttributeCooperative == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
static_assert(cuda::kStubLibrary == CUDA_ERROR_STUB_LIBRARY && cuda::kNoDevice == CUDA_ERROR_NO_DEVICE &&
              cuda::kPeerAlreadyEnabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED &&
              cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
              cuda::kHostPortable == CU_MEMHOSTALLOC_PORTABLE &&
              cuda::kHostDeviceMapped == CU_MEMHOSTALLOC_DEVICEMAP);
#endif

namespace {

/// The stand-in, loaded before the runtime loads it; settings go back at the end of a scope.
struct Fake {
    void (*set)(const char*, long);
    long (*get)(const char*);
    void (*fail)(const char*, long);
    long (*contexts)();
    Fake() {
        setenv("BATON_CUDA_DRIVER", BATON_FAKE_CUDA, 1);
        void* library = dlopen(BATON_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
        REQUIRE(library != nullptr);
        set = reinterpret_cast<decltype(set)>(dlsym(library, "fake_cuda_set"));
        get = reinterpret_cast<decltype(get)>(dlsym(library, "fake_cuda_get"));
        fail = reinterpret_cast<decltype(fail)>(dlsym(library, "fake_cuda_fail"));
        contexts = reinterpret_cast<decltype(contexts)>(dlsym(library, "fake_cuda_contexts"));
    }
    ~Fake() {
        for (const auto& [name, value] : {std::pair{"devices", 2},
                                          {"multiprocessors", 8},
                                          {"blocks", 2},
                                          {"cooperative", 1},
                                          {"peers", 1},
                                          {"major", 9}})
            set(name, value);
        CHECK(contexts() == 0);
        CHECK(get("retained") == 0);
        CHECK(get("allocations") == 0);
        CHECK(get("modules") == 0);
    }
};

/// A folder with a ring whose "cubin" the stand-in loads.
struct RingFolder {
    std::string path;
    std::shared_ptr<const Module> module;
    RingFolder(const std::string& name, int ranks, const char* target = "sm_90", bool with_source = false) {
        path = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
        REQUIRE(mkdtemp(path.data()) != nullptr);
        codegen::Manifest manifest = test::hand_ring(name, ranks);
        manifest.binaries.push_back({target, "module.cubin"});
        if (with_source) {
            manifest.source_file = "module.cu";
            write_file(path + "/module.cu", test::hand_source());
        }
        write_file(path + "/module.cubin", "fake cubin " + compile_host(test::hand_source()));
        write_file(path + "/manifest.json", codegen::to_json(manifest));
        module = Module::load(path);
    }
    ~RingFolder() { std::filesystem::remove_all(path); }
    RingFolder(const RingFolder&) = delete;
};

/// Buffers of an i32 all-reduce in device memory.
struct DeviceCase {
    Communicator& communicator;
    std::int64_t count;
    std::vector<RankBuffers> buffers;
    std::vector<std::int32_t> sums;

    DeviceCase(Communicator& c, std::int64_t n) : communicator(c), count(n), sums(n) {
        for (int r = 0; r < c.ranks(); ++r) {
            std::vector<std::int32_t> values(count);
            for (std::int64_t i = 0; i < count; ++i)
                values[i] = static_cast<std::int32_t>((r + 1) * 1000 + i * (r + 3)), sums[i] += values[i];
            void* input = c.backend().allocate(r, count * 4);
            c.backend().write(r, input, values.data(), count * 4);
            buffers.push_back({input, c.backend().allocate(r, count * 4)});
        }
    }
    ~DeviceCase() {
        for (int r = 0; r < communicator.ranks(); ++r) {
            communicator.backend().release(r, const_cast<void*>(buffers[r].input));
            communicator.backend().release(r, buffers[r].output);
        }
    }
    CallArguments arguments() const { return {count, ir::DataType::i32, ir::ReduceOp::sum}; }
    bool right() const {
        for (int r = 0; r < communicator.ranks(); ++r) {
            std::vector<std::int32_t> values(count);
            communicator.backend().read(r, values.data(), buffers[r].output, count * 4);
            if (values != sums) return false;
        }
        return true;
    }
};

CommunicatorOptions options_of(int ranks) {
    CommunicatorOptions options;
    options.ranks = ranks;
    options.slot_bytes = 4096;
    return options;
}

template <class F>
std::pair<ErrorKind, std::string> error_of(F call) {
    try {
        call();
    } catch (const Error& error) {
        return {error.kind(), error.what()};
    }
    return {ErrorKind::internal, "no error"};
}

}  // namespace

TEST_CASE("without a driver the cuda backend is a missing part, in a clear sentence") {
    // Before the stand-in is loaded: a success would be kept.
    setenv("BATON_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    const auto [kind, words] = error_of([] { cuda_backend({{0}}); });
    CHECK(kind == ErrorKind::missing_part);
    CHECK(words.find("no GPU can be used: there is no CUDA driver (/nowhere/libcuda.so.1 does not load)") !=
          std::string::npos);
    const Fake fake;
    fake.fail("cuInit", cuda::kNoDevice);
    CHECK(error_of([] { cuda_backend({{0}}); }).second.find("no CUDA-capable device is detected") !=
          std::string::npos);
    fake.fail("cuInit", cuda::kStubLibrary);
    CHECK(error_of([] { cuda_backend({{0}}); }).second.find("the toolkit's stub") != std::string::npos);
    fake.fail("cuInit", 0);
    fake.set("devices", 0);
    CHECK(error_of([] { cuda_backend({{0}}); }).second.find("there is no GPU in this machine") !=
          std::string::npos);
}

TEST_CASE("ranks that share a GPU run in one cooperative launch") {
    const Fake fake;
    for (const std::string name : {"ring_staged", "ring_put", "ring_get"}) {
        for (const int ranks : {2, 4, 8}) {
            const RingFolder ring(name, ranks);
            Communicator communicator(cuda_backend({std::vector<int>(ranks, 0)}), options_of(ranks));
            const Plan plan{ring.module};
            const DeviceCase small(communicator, 100), large(communicator, 20'000);
            const long before = fake.get("launches");
            communicator.run(plan, small.arguments(), small.buffers);
            communicator.run(plan, large.arguments(), large.buffers, 3);
            CHECK(fake.get("launches") == before + 4);
            CHECK(fake.get("last_grid") == ranks);
            CHECK(fake.get("last_threads") == 256);
            CHECK(small.right());
            CHECK(large.right());
        }
    }
}

TEST_CASE("ranks on two GPUs run in two launches that wait for each other") {
    const Fake fake;
    const RingFolder ring("ring_staged", 4);
    Communicator communicator(cuda_backend({{0, 1, 0, 1}}), options_of(4));
    CHECK(communicator.backend().ranks_per_place() == 2);
    const Plan plan{ring.module};
    const DeviceCase one(communicator, 3000);
    const long before = fake.get("launches");
    communicator.run(plan, one.arguments(), one.buffers);
    CHECK(fake.get("launches") == before + 2);
    CHECK(fake.get("last_grid") == 2);
    CHECK(one.right());
}

TEST_CASE("calls rank by rank are launched once all ranks of a device have called") {
    const Fake fake;
    const RingFolder ring("ring_staged", 3);
    Communicator communicator(cuda_backend({{0, 0, 0}}), options_of(3));
    const Plan plan{ring.module};
    const DeviceCase one(communicator, 500);
    for (int round = 0; round < 3; ++round) {
        const long before = fake.get("launches");
        communicator.enqueue(2, plan, one.arguments(), one.buffers[2]);
        communicator.enqueue(0, plan, one.arguments(), one.buffers[0]);
        CHECK(fake.get("launches") == before);
        communicator.enqueue(1, plan, one.arguments(), one.buffers[1]);
        CHECK(fake.get("launches") == before + 1);
        for (int r = 0; r < 3; ++r) communicator.wait(r);
        CHECK(one.right());
    }
    // And from a thread of each rank.
    std::vector<std::thread> threads;
    std::vector<std::string> failures(3);
    for (int r = 0; r < 3; ++r) {
        threads.emplace_back([&, r] {
            failures[r] = error_of([&] {
                              for (int round = 0; round < 5; ++round)
                                  communicator.run_rank(r, plan, one.arguments(), one.buffers[r]);
                          }).second;
        });
    }
    for (auto& thread : threads) thread.join();
    for (const std::string& failure : failures) CHECK(failure == "no error");
    CHECK(one.right());
}

TEST_CASE("a rank of the device that never calls is an error at the deadline") {
    const Fake fake;
    const RingFolder ring("ring_staged", 2);
    CommunicatorOptions options = options_of(2);
    options.timeout = std::chrono::milliseconds(100);
    Communicator communicator(cuda_backend({{0, 0}}), options);
    const Plan plan{ring.module};
    const DeviceCase one(communicator, 10);
    const auto [kind, words] =
        error_of([&] { communicator.run_rank(0, plan, one.arguments(), one.buffers[0]); });
    CHECK(kind == ErrorKind::check_failed);
    CHECK(words.find("rank 0 waits for other ranks of its device") != std::string::npos);
    communicator.recover();
    communicator.run(plan, one.arguments(), one.buffers);
    CHECK(one.right());
}

TEST_CASE("error records are read back from device memory") {
    const Fake fake;
    const RingFolder ring("ring_staged", 2);
    CommunicatorOptions options = options_of(2);
    options.timeout = std::chrono::milliseconds(100);
    Communicator communicator(cuda_backend({{0, 1}}), options);
    const Plan plan{ring.module};
    const DeviceCase one(communicator, 10);
    const auto [kind, words] =
        error_of([&] { communicator.run_rank(1, plan, one.arguments(), one.buffers[1]); });
    CHECK(kind == ErrorKind::check_failed);
    CHECK(words.find("rank 1, threadblock 0, instruction 0 ran past the deadline waiting for the entry into "
                     "the call of rank 0: expected 1, seen 0") != std::string::npos);
    communicator.recover();
    communicator.run(plan, one.arguments(), one.buffers);
    CHECK(one.right());
}

TEST_CASE("a grid that does not fit gets fewer threads, then is refused") {
    const Fake fake;
    const RingFolder ring("ring_staged", 8);
    const Plan plan{ring.module};
    fake.set("multiprocessors", 1);
    {
        Communicator communicator(cuda_backend({std::vector<int>(8, 0)}), options_of(8));
        const DeviceCase one(communicator, 10);
        communicator.run(plan, one.arguments(), one.buffers);  // 2 * 512 / 128 = 8 blocks
        CHECK(fake.get("last_threads") == 128);
        CHECK(one.right());
    }
    fake.set("blocks", 0);
    Communicator communicator(cuda_backend({std::vector<int>(8, 0)}), options_of(8));
    const DeviceCase one(communicator, 10);
    const auto [kind, words] = error_of([&] { communicator.run(plan, one.arguments(), one.buffers); });
    CHECK(kind == ErrorKind::missing_part);
    CHECK(words.find("8 threadblocks must run at once, GPU 0 (Fake GPU) holds 0") != std::string::npos);
}

TEST_CASE("what a GPU or driver lacks is said in words") {
    const Fake fake;
    const auto refused = [](const std::vector<int>& devices, const char* words) {
        const auto [kind, text] = error_of([&] { cuda_backend({devices}); });
        INFO(text);
        CHECK(text.find(words) != std::string::npos);
    };
    refused({}, "no devices for the ranks");
    refused({0, 2}, "there is no GPU 2");
    refused({-1}, "there is no GPU -1");
    fake.set("peers", 0);
    refused({0, 1}, "GPU 0 cannot access the memory of GPU 1");
    fake.set("cooperative", 0);
    refused({0}, "cannot keep all threadblocks of a launch resident");
    fake.set("cooperative", 1);
    fake.fail("cuDevicePrimaryCtxRetain", 2);
    refused({0}, "opening a GPU's primary context: out of memory (CUDA error 2)");
    fake.fail("cuDevicePrimaryCtxRetain", 0);
    CHECK_THROWS_WITH_AS(Communicator(cuda_backend({{0, 0}}), options_of(3)),
                         doctest::Contains("3 ranks on a backend made for 2"), Error);
    CHECK_THROWS_WITH_AS(Communicator(cuda_backend({std::vector<int>(49, 0)}), options_of(49))
                             .run({RingFolder("ring_staged", 49).module}, {0, ir::DataType::i32},
                                  std::vector<RankBuffers>(49)),
                         doctest::Contains("more than 48 ranks share a device"), Error);
}

TEST_CASE("modules that do not load, launches and kernels that fail") {
    const Fake fake;
    const RingFolder ring("ring_staged", 2), other_gpu("ring_staged", 2, "sm_80");
    Communicator communicator(cuda_backend({{0, 0}}), options_of(2));
    const DeviceCase one(communicator, 10);
    const auto refused = [&](const std::shared_ptr<const Module>& module, const char* words) {
        const auto [kind, text] = error_of([&] { communicator.run({module}, one.arguments(), one.buffers); });
        INFO(text);
        CHECK(text.find(words) != std::string::npos);
    };
    refused(other_gpu.module, "neither a cubin for compute capability 9.0 nor source");
    fake.fail("cuModuleLoadData", cuda::kNoBinary);
    refused(ring.module, "the driver does not load the module: no kernel image is available");
    fake.fail("cuModuleLoadData", 0);
    fake.fail("cuLaunchKernelEx", cuda::kCooperativeTooLarge);
    refused(ring.module, "starting a kernel: too many blocks in cooperative launch");
    fake.fail("cuLaunchKernelEx", 0);
    communicator.recover();
    communicator.run({ring.module}, one.arguments(), one.buffers);
    CHECK(one.right());
    fake.fail("cuStreamSynchronize", 700);
    refused(ring.module, "a kernel on GPU 0 failed: an illegal memory access was encountered");
    fake.fail("cuStreamSynchronize", 0);
}

TEST_CASE("NVRTC makes cubins of the source and keeps them in the cache") {
    const std::string folder =
        (std::filesystem::temp_directory_path() / ("baton-test-nvrtc-" + std::to_string(getpid()))).string();
    const BinaryCache cache(folder);
    std::string cubin;
    try {
        cubin = compile_cubin(test::hand_source(), "sm_90", cache);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::missing_part);
        MESSAGE("no NVRTC here: " << error.what());
        return;
    }
    CHECK(cubin.substr(0, 4) ==
          "\x7f"
          "ELF");
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
    CHECK(compile_cubin(test::hand_source(), "sm_90", cache) == cubin);
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
    CHECK_THROWS_WITH_AS(compile_cubin("int broken(", "sm_90", cache),
                         doctest::Contains("NVRTC does not compile the module"), Error);
    CHECK_THROWS_WITH_AS(compile_cubin("", "gfx942", cache),
                         doctest::Contains("unknown GPU architecture gfx942"), Error);
    // Newer than this NVRTC: PTX, which the driver compiles.
    CHECK(compile_cubin("extern \"C\" __global__ void nothing() {}", "sm_999", cache).find(".target") !=
          std::string::npos);
    std::filesystem::remove_all(folder);
}

namespace {

/// Ranks of the C interface on the stand-in.
struct CudaComms {
    std::vector<baton_comm> handles;
    explicit CudaComms(const std::vector<int>& devices, std::int64_t timeout_ns = 10'000'000'000)
        : handles(devices.size()) {
        baton_options options = BATON_OPTIONS_INIT;
        options.backend = BATON_BACKEND_CUDA;
        options.devices = devices.data();
        options.timeout_ns = timeout_ns;
        REQUIRE(baton_comm_init_all(handles.data(), static_cast<int>(devices.size()), &options) ==
                BATON_SUCCESS);
    }
    ~CudaComms() {
        for (const baton_comm comm : handles) baton_comm_destroy(comm);
    }
    CudaComms(const CudaComms&) = delete;
};

/// A call of all ranks on memory of their GPUs, launched in a group; whether all sums are right.
bool sums_in_c(const CudaComms& comms, baton_plan plan, std::int64_t count,
               const std::vector<void*>& streams) {
    const auto ranks = static_cast<int>(comms.handles.size());
    std::vector<void*> in(comms.handles.size()), out = in;
    std::vector<std::int32_t> values(count), sums(count);
    for (int r = 0; r < ranks; ++r) {
        for (std::int64_t i = 0; i < count; ++i)
            values[i] = static_cast<std::int32_t>(1000 * r + i), sums[i] += values[i];
        REQUIRE(baton_mem_alloc(comms.handles[r], count * 4, &in[r]) == BATON_SUCCESS);
        REQUIRE(baton_mem_alloc(comms.handles[r], count * 4, &out[r]) == BATON_SUCCESS);
        REQUIRE(baton_mem_write(comms.handles[r], in[r], values.data(), count * 4) == BATON_SUCCESS);
    }
    REQUIRE(baton_group_start() == BATON_SUCCESS);
    for (int r = 0; r < ranks; ++r) {
        // Twice: the second call of a rank waits for the launch of the first.
        for (int twice = 0; twice < 2; ++twice) {
            CHECK(baton_plan_launch(plan, in[r], out[r], count, BATON_I32, BATON_SUM, comms.handles[r],
                                    streams[r]) == BATON_SUCCESS);
        }
    }
    REQUIRE_MESSAGE(baton_group_end() == BATON_SUCCESS, baton_last_error());
    for (int r = 0; r < ranks; ++r)
        REQUIRE_MESSAGE(baton_comm_wait(comms.handles[r], streams[r]) == BATON_SUCCESS, baton_last_error());
    bool right = true;
    for (int r = 0; r < ranks; ++r) {
        REQUIRE(baton_mem_read(comms.handles[r], values.data(), out[r], count * 4) == BATON_SUCCESS);
        right = right && values == sums;
        CHECK(baton_mem_free(comms.handles[r], in[r]) ==
              BATON_SUCCESS);  // the output goes with the communicator
    }
    return right;
}

}  // namespace

TEST_CASE("C interface: ranks on GPUs, on their own streams, with the caller's context kept") {
    const Fake fake;
    for (const std::vector<int>& devices : {std::vector<int>{0, 0, 0}, {0, 1, 0}, {1, 0, 1}}) {
        const RingFolder ring("ring_staged", 3);
        baton_plan plan = nullptr;
        REQUIRE(baton_plan_load(ring.path.c_str(), &plan) == BATON_SUCCESS);
        {
            const CudaComms comms(devices);
            for (int r = 0; r < 3; ++r) {
                int device = -1;
                CHECK(baton_comm_device(comms.handles[r], &device) == BATON_SUCCESS);
                CHECK(device == devices[r]);
            }
            REQUIRE_MESSAGE(
                baton_plan_bind(plan, comms.handles[2], 500, BATON_I32, BATON_SUM) == BATON_SUCCESS,
                baton_last_error());
            CHECK(fake.contexts() == 0);
            const long before = fake.get("launches");
            CHECK(sums_in_c(comms, plan, 500, {nullptr, nullptr, nullptr}));
            CHECK(fake.get("launches") == before + (devices == std::vector<int>{0, 0, 0} ? 2 : 4));
        }
        CHECK(baton_plan_destroy(plan) == BATON_SUCCESS);
    }
}

TEST_CASE("C interface: launches of a bound plan allocate nothing") {
    const Fake fake;
    const RingFolder ring("ring_staged", 2);
    baton_plan plan = nullptr;
    REQUIRE(baton_plan_load(ring.path.c_str(), &plan) == BATON_SUCCESS);
    {
        const CudaComms comms({0, 1});
        REQUIRE(baton_plan_bind(plan, comms.handles[0], 4096, BATON_I32, BATON_SUM) == BATON_SUCCESS);
        std::vector<void*> memory(4);
        for (int k = 0; k < 4; ++k)
            REQUIRE(baton_mem_alloc(comms.handles[k % 2], 4 * 4096, &memory[k]) == BATON_SUCCESS);
        const long before = fake.get("allocations");
        fake.fail("cuMemAlloc", 2);
        fake.fail("cuModuleLoadData", 2);
        for (const std::int64_t count : {1, 100, 4096}) {
            for (int r = 0; r < 2; ++r) {
                CHECK_MESSAGE(baton_plan_launch(plan, memory[r], memory[2 + r], count, BATON_I32, BATON_SUM,
                                                comms.handles[r], nullptr) == BATON_SUCCESS,
                              baton_last_error());
            }
            for (int r = 0; r < 2; ++r) CHECK(baton_comm_wait(comms.handles[r], nullptr) == BATON_SUCCESS);
        }
        CHECK(fake.get("allocations") == before);
        fake.fail("cuMemAlloc", 0);
        fake.fail("cuModuleLoadData", 0);
    }
    CHECK(baton_plan_destroy(plan) == BATON_SUCCESS);
}

TEST_CASE("C interface: two streams on one GPU are refused, and so are GPUs that are not there") {
    const Fake fake;
    const RingFolder ring("ring_staged", 2);
    baton_plan plan = nullptr;
    REQUIRE(baton_plan_load(ring.path.c_str(), &plan) == BATON_SUCCESS);
    {
        const CudaComms comms({0, 0});
        void* memory = nullptr;
        int other = 0;
        REQUIRE(baton_mem_alloc(comms.handles[0], 64, &memory) == BATON_SUCCESS);
        const auto call = [&](int rank, void* stream) {
            return baton_plan_launch(plan, memory, static_cast<char*>(memory) + 32, 8, BATON_I32, BATON_SUM,
                                     comms.handles[rank], stream);
        };
        CHECK(call(0, nullptr) == BATON_SUCCESS);
        CHECK(call(1, &other) == BATON_INVALID_INPUT);
        CHECK(std::string(baton_last_error()).find("rank 1 names another stream") != std::string::npos);
        CHECK(call(1, nullptr) == BATON_SUCCESS);
        for (int r = 0; r < 2; ++r) CHECK(baton_comm_wait(comms.handles[r], nullptr) == BATON_SUCCESS);
    }
    CHECK(baton_plan_destroy(plan) == BATON_SUCCESS);
    baton_options options = BATON_OPTIONS_INIT;
    options.backend = BATON_BACKEND_CUDA;
    const std::vector<int> devices{0, 5};
    options.devices = devices.data();
    std::vector<baton_comm> comms(2);
    CHECK(baton_comm_init_all(comms.data(), 2, &options) == BATON_INVALID_INPUT);
    baton_unique_id id;
    REQUIRE(baton_get_unique_id(&id) == BATON_SUCCESS);
    std::vector<baton_result> results(2);
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r)
        threads.emplace_back([&, r] { results[r] = baton_comm_init_rank(&comms[r], 2, id, r, &options); });
    for (std::thread& thread : threads) thread.join();
    CHECK(results == std::vector<baton_result>(2, BATON_INVALID_INPUT));
    fake.fail("cuDevicePrimaryCtxRetain", 2);
    options.devices = nullptr;
    CHECK(baton_comm_init_all(comms.data(), 2, &options) == BATON_MISSING_PART);
    fake.fail("cuDevicePrimaryCtxRetain", 0);
}
