// The CUDA driver, loaded when it is first asked for: nothing of CUDA is linked or included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace baton::runtime::cuda {

// Names and layouts of the driver's own interface (cuda.h of CUDA 12), as far as it is used.
using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using ModuleHandle = struct CudaModuleHandle*;
using Function = struct FunctionHandle*;

struct LaunchAttribute {
    int id = 0;
    char padding[4] = {};
    union {
        char bytes[64];
        int cooperative;
    } value{};
};
struct LaunchConfig {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    Stream stream = nullptr;
    LaunchAttribute* attributes = nullptr;
    unsigned attribute_count = 0;
};

inline constexpr Result kSuccess = 0, kStubLibrary = 34, kNoDevice = 100, kInvalidImage = 200,
                        kNoBinary = 209, kPeerAlreadyEnabled = 704, kCooperativeTooLarge = 720;
inline constexpr int kAttributeMultiprocessors = 16, kAttributeMajor = 75, kAttributeMinor = 76,
                     kAttributeCooperative = 95;
inline constexpr int kLaunchCooperative = 2;
inline constexpr unsigned kStreamNonBlocking = 1, kHostPortable = 1, kHostDeviceMapped = 2;

/// The driver's functions; each named as there, without "cu".
struct Driver {
    Result (*GetErrorString)(Result, const char**);
    Result (*Init)(unsigned);
    Result (*DriverGetVersion)(int*);
    Result (*DeviceGetCount)(int*);
    Result (*DeviceGet)(Device*, int);
    Result (*DeviceGetName)(char*, int, Device);
    Result (*DeviceGetAttribute)(int*, int, Device);
    Result (*DeviceCanAccessPeer)(int*, Device, Device);
    Result (*DevicePrimaryCtxRetain)(Context*, Device);
    Result (*DevicePrimaryCtxRelease)(Device);
    Result (*CtxPushCurrent)(Context);
    Result (*CtxPopCurrent)(Context*);
    Result (*CtxEnablePeerAccess)(Context, unsigned);
    Result (*MemAlloc)(DevicePointer*, std::size_t);
    Result (*MemFree)(DevicePointer);
    Result (*MemHostAlloc)(void**, std::size_t, unsigned);
    Result (*MemFreeHost)(void*);
    Result (*MemcpyHtoDAsync)(DevicePointer, const void*, std::size_t, Stream);
    Result (*MemcpyDtoHAsync)(void*, DevicePointer, std::size_t, Stream);
    Result (*MemsetD8Async)(DevicePointer, unsigned char, std::size_t, Stream);
    Result (*StreamCreate)(Stream*, unsigned);
    Result (*StreamDestroy)(Stream);
    Result (*StreamSynchronize)(Stream);
    Result (*ModuleLoadData)(ModuleHandle*, const void*);
    Result (*ModuleUnload)(ModuleHandle);
    Result (*ModuleGetFunction)(Function*, ModuleHandle, const char*);
    Result (*OccupancyMaxActiveBlocksPerMultiprocessor)(int*, Function, int, std::size_t);
    Result (*LaunchKernelEx)(const LaunchConfig*, Function, void**, void**);

    /// "words (code N)".
    std::string words(Result result) const;
    /// Throws a missing-part error "DOING: WORDS" unless `result` is success.
    void check(Result result, const char* doing) const;
};

/// Loads the driver ($BATON_CUDA_DRIVER, else libcuda.so.1) through cuGetProcAddress, and initializes it. The
/// first success is kept for the life of the process. Throws a missing-part error (exit code 3) that says
/// what is absent: the library, a function (driver before CUDA 12.0), or a GPU.
const Driver& driver();

/// Number of devices; throws as `driver`.
int device_count();

/// What is known of a device.
struct DeviceFacts {
    std::string name;
    int major = 0, minor = 0, multiprocessors = 0;
    bool cooperative = false;
};
/// Throws an input error when there is no such device.
DeviceFacts device_facts(int device);

}  // namespace baton::runtime::cuda
