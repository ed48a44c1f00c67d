#include <baton/base/error.hpp>
#include <baton/runtime/content_hash.hpp>
#include <baton/runtime/nvrtc.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace baton::runtime {

namespace {

using Program = struct ProgramHandle*;

struct Nvrtc {
    int (*Version)(int*, int*);
    int (*GetNumSupportedArchs)(int*);
    int (*GetSupportedArchs)(int*);
    int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*, const char* const*);
    int (*DestroyProgram)(Program*);
    int (*CompileProgram)(Program, int, const char* const*);
    int (*GetProgramLogSize)(Program, std::size_t*);
    int (*GetProgramLog)(Program, char*);
    int (*GetCUBINSize)(Program, std::size_t*);
    int (*GetCUBIN)(Program, char*);
    int (*GetPTXSize)(Program, std::size_t*);
    int (*GetPTX)(Program, char*);
};

void* open_library() {
    if (const char* own = std::getenv("BATON_NVRTC"); own != nullptr && *own != 0)
        return dlopen(own, RTLD_NOW | RTLD_LOCAL);
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so",
                             "/usr/local/cuda/lib/libnvrtc.so"}) {
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    }
    return nullptr;
}

Nvrtc load() {
    void* library = open_library();
    if (library == nullptr) {
        throw missing_error(
            "the module has no cubin for this GPU, and NVRTC, which would compile it, does not load", {},
            "install the CUDA Toolkit's NVRTC (pip install nvidia-cuda-nvrtc, or set BATON_NVRTC), or emit "
            "with cubins");
    }
    Nvrtc n{};
    const auto resolve = [&](const char* name, auto& function) {
        void* address = dlsym(library, name);
        if (address == nullptr)
            throw missing_error(fmt::format("NVRTC has no {}", name), {}, "use NVRTC 12 or later");
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
    resolve("nvrtcVersion", n.Version);
    resolve("nvrtcGetNumSupportedArchs", n.GetNumSupportedArchs);
    resolve("nvrtcGetSupportedArchs", n.GetSupportedArchs);
    resolve("nvrtcCreateProgram", n.CreateProgram);
    resolve("nvrtcDestroyProgram", n.DestroyProgram);
    resolve("nvrtcCompileProgram", n.CompileProgram);
    resolve("nvrtcGetProgramLogSize", n.GetProgramLogSize);
    resolve("nvrtcGetProgramLog", n.GetProgramLog);
    resolve("nvrtcGetCUBINSize", n.GetCUBINSize);
    resolve("nvrtcGetCUBIN", n.GetCUBIN);
    resolve("nvrtcGetPTXSize", n.GetPTXSize);
    resolve("nvrtcGetPTX", n.GetPTX);
    return n;
}

const Nvrtc& nvrtc() {
    static std::mutex mutex;
    static Nvrtc* loaded = nullptr;
    const std::lock_guard lock(mutex);
    if (loaded == nullptr) loaded = new Nvrtc(load());
    return *loaded;
}

/// "sm_90" as it is, or "compute_X" with the newest X that NVRTC knows up to it.
std::string known_target(const Nvrtc& n, const std::string& architecture) {
    int wanted = 0, count = 0;
    const char* end = architecture.data() + architecture.size();
    if (!architecture.starts_with("sm_") ||
        std::from_chars(architecture.data() + 3, end, wanted).ec != std::errc()) {
        throw input_error(fmt::format("unknown GPU architecture {}", architecture), {},
                          "use sm_80, sm_90, ...");
    }
    n.GetNumSupportedArchs(&count);
    std::vector<int> known(static_cast<std::size_t>(std::max(count, 0)));
    if (count > 0) n.GetSupportedArchs(known.data());
    int best = 0;
    for (const int each : known) {
        if (each <= wanted) best = std::max(best, each);
    }
    if (best == 0)
        throw missing_error(fmt::format("this NVRTC does not compile for {}", architecture), {},
                            "use another version of NVRTC");
    return best == wanted ? architecture : fmt::format("compute_{}", best);
}

std::string first_error(const std::string& log) {
    std::size_t at = log.find("error");
    if (at == std::string::npos) return log.substr(0, 400);
    at = log.rfind('\n', at) == std::string::npos ? 0 : log.rfind('\n', at) + 1;
    return log.substr(at, log.find('\n', at) - at);
}

}  // namespace

std::string compile_cubin(std::string_view source, const std::string& architecture,
                          const BinaryCache& cache) {
    const Nvrtc& n = nvrtc();
    int major = 0, minor = 0;
    n.Version(&major, &minor);
    const std::string target = known_target(n, architecture);
    const std::string target_option = "--gpu-architecture=" + target;
    const std::vector<const char*> options = {target_option.c_str(), "--std=c++17", "--fmad=false"};
    ContentHash hash;
    hash.add_field("cubin 1").add_field(fmt::format("nvrtc {}.{}", major, minor));
    for (const char* option : options) hash.add_field(option);
    const std::string key = hash.add_field(source).hex();
    if (const auto found = cache.find(key, ".cubin")) return BinaryCache::content(*found);

    Program program = nullptr;
    const std::string text(source);
    if (n.CreateProgram(&program, text.c_str(), "module.cu", 0, nullptr, nullptr) != 0)
        throw missing_error("NVRTC cannot start");
    struct Guard {
        const Nvrtc& n;
        Program* program;
        ~Guard() { n.DestroyProgram(program); }
    } const guard{n, &program};
    std::size_t size = 0;
    if (n.CompileProgram(program, static_cast<int>(options.size()), options.data()) != 0) {
        n.GetProgramLogSize(program, &size);
        std::string log(size, '\0');
        if (size > 0) n.GetProgramLog(program, log.data());
        throw input_error(fmt::format("NVRTC does not compile the module: {}", first_error(log)));
    }
    const bool ptx = target != architecture;
    if ((ptx ? n.GetPTXSize : n.GetCUBINSize)(program, &size) != 0 || size == 0)
        throw missing_error("NVRTC returned no code");
    std::string code(size, '\0');
    (ptx ? n.GetPTX : n.GetCUBIN)(program, code.data());
    cache.store(key, ".cubin", code);
    return code;
}

}  // namespace baton::runtime
