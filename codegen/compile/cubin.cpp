#include <baton/codegen/compile.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/codegen/compile/process.hpp>

#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

namespace baton::codegen {

namespace {

/// The part of NVRTC's interface that is used; stable since CUDA 11.2.
struct Nvrtc {
    using Program = void*;
    int (*version)(int*, int*) = nullptr;
    int (*count_architectures)(int*) = nullptr;
    int (*architectures)(int*) = nullptr;
    int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    int (*compile)(Program, int, const char* const*) = nullptr;
    int (*log_size)(Program, std::size_t*) = nullptr;
    int (*log)(Program, char*) = nullptr;
    int (*cubin_size)(Program, std::size_t*) = nullptr;
    int (*cubin)(Program, char*) = nullptr;
    int (*destroy)(Program*) = nullptr;

    /// False when a function is missing. The library stays loaded.
    bool load(const std::string& path) {
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return false;
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            return function != nullptr;
        };
        return find(version, "nvrtcVersion") && find(count_architectures, "nvrtcGetNumSupportedArchs") &&
               find(architectures, "nvrtcGetSupportedArchs") && find(create, "nvrtcCreateProgram") &&
               find(compile, "nvrtcCompileProgram") && find(log_size, "nvrtcGetProgramLogSize") &&
               find(log, "nvrtcGetProgramLog") && find(cubin_size, "nvrtcGetCUBINSize") &&
               find(cubin, "nvrtcGetCUBIN") && find(destroy, "nvrtcDestroyProgram");
    }
};

/// Where CUDA toolkits lie, besides the places that the loader and PATH know.
std::vector<std::string> toolkit_folders() {
    std::vector<std::string> folders;
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const char* value = std::getenv(name); value != nullptr && *value != 0)
            folders.emplace_back(value);
    }
    folders.emplace_back("/usr/local/cuda");
    return folders;
}

std::vector<std::string> sorted_architectures(std::vector<int> numbers) {
    std::sort(numbers.begin(), numbers.end());
    std::vector<std::string> names;
    for (const int number : numbers) names.push_back(fmt::format("sm_{}", number));
    return names;
}

bool find_nvrtc(CubinCompiler& found) {
    std::vector<std::string> paths;
    for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}) {
        paths.emplace_back(name);
        for (const std::string& folder : toolkit_folders()) paths.push_back(folder + "/lib64/" + name);
    }
    for (const std::string& path : paths) {
        Nvrtc nvrtc;
        int major = 0, minor = 0, count = 0;
        if (!nvrtc.load(path) || nvrtc.version(&major, &minor) != 0 ||
            nvrtc.count_architectures(&count) != 0 || count <= 0)
            continue;
        std::vector<int> numbers(static_cast<std::size_t>(count));
        if (nvrtc.architectures(numbers.data()) != 0) continue;
        found = {CubinCompilerKind::nvrtc, path, fmt::format("{}.{}", major, minor),
                 sorted_architectures(numbers)};
        return true;
    }
    return false;
}

bool find_nvcc(CubinCompiler& found) {
    std::vector<std::string> commands = {"nvcc"};
    for (const std::string& folder : toolkit_folders()) commands.push_back(folder + "/bin/nvcc");
    for (const std::string& command : commands) {
        const ScratchFolder folder;
        const ProcessResult version = run_process({command, "--version"}, folder);
        const ProcessResult known =
            version.status == 0 ? run_process({command, "--list-gpu-code"}, folder) : ProcessResult{};
        if (known.status != 0) continue;
        std::vector<int> numbers;
        std::istringstream words(known.output);
        for (std::string word; words >> word;) {
            if (word.rfind("sm_", 0) == 0 && word.size() < 8 &&
                std::all_of(word.begin() + 3, word.end(), [](unsigned char c) { return std::isdigit(c); })) {
                numbers.push_back(std::stoi(word.substr(3)));
            }
        }
        const std::size_t at = version.output.find("release ");
        const std::string release =
            at == std::string::npos ? "?"
                                    : version.output.substr(at + 8, version.output.find(',', at) - at - 8);
        found = {CubinCompilerKind::nvcc, command, release, sorted_architectures(numbers)};
        return true;
    }
    return false;
}

std::string compile_with_nvrtc(const CubinCompiler& compiler, const std::string& source,
                               const std::string& architecture, std::string* log) {
    Nvrtc nvrtc;
    if (!nvrtc.load(compiler.path)) throw missing_error("NVRTC cannot be loaded again", compiler.path);
    Nvrtc::Program program = nullptr;
    if (nvrtc.create(&program, source.c_str(), "module.cu", 0, nullptr, nullptr) != 0)
        throw internal_error("NVRTC takes no source", compiler.path);
    const std::string target = "--gpu-architecture=" + architecture;
    const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=false"};
    const int status = nvrtc.compile(program, 3, options);
    std::string messages, cubin;
    std::size_t size = 0;
    if (nvrtc.log_size(program, &size) == 0 && size > 1) {
        messages.resize(size);
        nvrtc.log(program, messages.data());
        messages.resize(size - 1);
    }
    size = 0;
    if (status == 0 && nvrtc.cubin_size(program, &size) == 0) {
        cubin.resize(size);
        nvrtc.cubin(program, cubin.data());
    }
    nvrtc.destroy(&program);
    if (log != nullptr) *log = messages;
    if (cubin.empty())
        throw internal_error("the emitted source does not compile: " + first_message(messages),
                             "NVRTC " + compiler.version);
    return cubin;
}

std::string compile_with_nvcc(const CubinCompiler& compiler, const std::string& source,
                              const std::string& architecture, std::string* log) {
    const ScratchFolder folder;
    write_file(folder / "module.cu", source);
    const ProcessResult result =
        run_process({compiler.path, "-std=c++17", "-O3", "--fmad=false", "-arch=" + architecture, "-cubin",
                     folder / "module.cu", "-o", folder / "module.cubin"},
                    folder);
    if (log != nullptr) *log = result.output;
    if (result.status != 0)
        throw internal_error("the emitted source does not compile: " + first_message(result.output),
                             "nvcc " + compiler.version);
    return read_file(folder / "module.cubin");
}

/// sm_90a and the like are known where sm_90 is.
bool knows(const CubinCompiler& compiler, const std::string& architecture) {
    std::string plain = architecture;
    while (!plain.empty() && std::isalpha(static_cast<unsigned char>(plain.back()))) plain.pop_back();
    return std::find(compiler.architectures.begin(), compiler.architectures.end(), plain) !=
           compiler.architectures.end();
}

}  // namespace

const std::vector<CubinCompiler>& cubin_compilers() {
    static const std::vector<CubinCompiler> all = [] {
        std::vector<CubinCompiler> list;
        CubinCompiler found;
        if (find_nvrtc(found)) list.push_back(found);
        if (find_nvcc(found)) list.push_back(found);
        return list;
    }();
    return all;
}

void check_architecture(const std::string& name, const std::string& where) {
    std::size_t digits = 0;
    if (name.rfind("sm_", 0) == 0) {
        while (3 + digits < name.size() && std::isdigit(static_cast<unsigned char>(name[3 + digits])))
            ++digits;
    }
    const std::size_t rest = name.size() - std::min(name.size(), 3 + digits);
    if (digits < 2 || digits > 4 || rest > 1 ||
        (rest == 1 && !std::islower(static_cast<unsigned char>(name.back())))) {
        throw input_error("no architecture is called \"" + name + "\"", where,
                          "use names like sm_80, sm_90, sm_100");
    }
}

std::string compile_cubin(const CubinCompiler& compiler, const std::string& source,
                          const std::string& architecture, std::string* log) {
    return compiler.kind == CubinCompilerKind::nvrtc ? compile_with_nvrtc(compiler, source, architecture, log)
                                                     : compile_with_nvcc(compiler, source, architecture, log);
}

std::string compile_cubin(const std::string& source, const std::string& architecture, std::string* log) {
    check_architecture(architecture);
    if (cubin_compilers().empty()) {
        throw missing_error("neither NVRTC nor nvcc is there", architecture,
                            "install a CUDA toolkit, or set CUDA_HOME to one");
    }
    std::string known;
    for (const CubinCompiler& compiler : cubin_compilers()) {
        if (knows(compiler, architecture)) return compile_cubin(compiler, source, architecture, log);
        known += fmt::format("{}{} {} knows {}", known.empty() ? "" : "; ",
                             compiler.kind == CubinCompilerKind::nvrtc ? "NVRTC" : "nvcc", compiler.version,
                             fmt::join(compiler.architectures, " "));
    }
    throw missing_error("no compiler for " + architecture, {}, known);
}

}  // namespace baton::codegen
