// The prelude compiles without a warning wherever it is used.
#include "prelude/toolchain.hpp"
#include "support/full.hpp"

#include <baton/ir/reduce_op.hpp>

#include <doctest/doctest.h>

#include <dlfcn.h>

#include <string>
#include <vector>

using namespace baton;
using namespace baton::test;

namespace {

std::string kernels() { return codegen::prelude_source() + read_text(fixture("kernels.cc")); }

// A kernel per valid (operator, type, NaN rule); every `stride`-th of them.
std::string operations(int stride) {
    std::string text = codegen::prelude_source() + read_text(fixture("operations.cc"));
    int number = 0;
    for (ir::ReduceOp op : ir::all_reduce_ops())
        for (ir::DataType type : ir::valid_types(op))
            for (ir::NanMode nan : {ir::NanMode::propagate, ir::NanMode::ignore}) {
                const std::string name =
                    codegen::prelude_op(op, nan).substr(std::string("baton_kernel::op::").size());
                if (nan == ir::NanMode::ignore && name == to_string(op)) continue;
                if (number++ % stride != 0) continue;
                text += "OPERATION(operation_" + std::to_string(number) + ", " + name + ", " +
                        std::string(to_string(type)) + ")\n";
            }
    return text;
}

void check_silent(const std::string& command) {
    const Outcome outcome = shell(command);
    INFO(command << "\n" << outcome.text);
    CHECK(outcome.status == 0);
    CHECK(outcome.text == "");
}

}  // namespace

TEST_CASE("g++ and clang++ compile the prelude without a warning as C++17 and C++20") {
    TemporaryFolder folder;
    write_text(folder / "kernels.cpp", kernels());
    write_text(folder / "operations.cpp", operations(full() ? 1 : 11));
    for (const std::string compiler : {"g++", "clang++"}) {
        if (!available(compiler)) {
            MESSAGE("skipped: no " << compiler);
            continue;
        }
        for (const char* standard : {"17", "20"})
            check_silent(compiler + " -std=c++" + standard + " -O1 -Wall -Wextra -Wpedantic -Wshadow -c " +
                         (folder / "kernels.cpp").string() + " -o /dev/null");
        check_silent(compiler + " -std=c++17 -O2 -Wall -Wextra -Wpedantic -Wshadow -c " +
                     (folder / "operations.cpp").string() + " -o /dev/null");
    }
}

TEST_CASE("the loader contract is plain C") {
    if (!available("gcc")) {
        MESSAGE("skipped: no gcc");
        return;
    }
    TemporaryFolder folder;
    write_text(folder / "abi.c", std::string(codegen::abi_header()) +
                                     "int main(void) { baton_arguments a; return (int)sizeof a > 4096; }\n");
    check_silent("gcc -std=c99 -Wall -Wextra -Wpedantic -c " + (folder / "abi.c").string() + " -o /dev/null");
}

TEST_CASE("nvcc compiles the prelude without a warning and without spills") {
    const std::string nvcc = find_nvcc();
    if (nvcc.empty()) {
        MESSAGE("skipped: no nvcc");
        return;
    }
    TemporaryFolder folder;
    write_text(folder / "kernels.cu", kernels());
    write_text(folder / "operations.cu", operations(full() ? 1 : 23));
    std::vector<std::string> architectures = {"90"};
    if (full()) architectures = {"75", "80", "86", "89", "90", "100", "103", "120", "121"};
    for (const std::string& each : architectures) {
        const std::string flags = " -std=c++17 -arch sm_" + each +
                                  " -Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage -cubin ";
        check_silent(nvcc + flags + (folder / "kernels.cu").string() + " -o " +
                     (folder / "k.cubin").string());
    }
    check_silent(
        nvcc + " -std=c++17 -arch sm_75 -Werror all-warnings -Xptxas -warn-spills,-warn-lmem-usage -cubin " +
        (folder / "operations.cu").string() + " -o " + (folder / "o.cubin").string());
}

TEST_CASE("NVRTC compiles the prelude without a warning") {
    void* library = nullptr;
    for (const char* each : {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"})
        if ((library = dlopen(each, RTLD_NOW)) != nullptr) break;
    if (library == nullptr) {
        MESSAGE("skipped: no NVRTC");
        return;
    }
    using Program = void*;
    const auto create = reinterpret_cast<int (*)(Program*, const char*, const char*, int, const char* const*,
                                                 const char* const*)>(dlsym(library, "nvrtcCreateProgram"));
    const auto compile =
        reinterpret_cast<int (*)(Program, int, const char* const*)>(dlsym(library, "nvrtcCompileProgram"));
    const auto log_size =
        reinterpret_cast<int (*)(Program, std::size_t*)>(dlsym(library, "nvrtcGetProgramLogSize"));
    const auto get_log = reinterpret_cast<int (*)(Program, char*)>(dlsym(library, "nvrtcGetProgramLog"));
    const auto destroy = reinterpret_cast<int (*)(Program*)>(dlsym(library, "nvrtcDestroyProgram"));
    REQUIRE((create && compile && log_size && get_log && destroy));
    std::vector<const char*> architectures = {"--gpu-architecture=sm_80"};
    if (full())
        architectures = {"--gpu-architecture=sm_75", "--gpu-architecture=sm_90", "--gpu-architecture=sm_100"};
    for (const char* architecture : architectures) {
        Program program = nullptr;
        REQUIRE(create(&program, kernels().c_str(), "kernels.cu", 0, nullptr, nullptr) == 0);
        const char* options[] = {architecture, "--std=c++17"};
        const int result = compile(program, 2, options);
        std::size_t size = 0;
        log_size(program, &size);
        std::string log(size, '\0');
        get_log(program, log.data());
        INFO(architecture << "\n" << log);
        CHECK(result == 0);
        CHECK(size <= 1);
        destroy(&program);
    }
}
