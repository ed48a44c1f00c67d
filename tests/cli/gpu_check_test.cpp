// The GPU check as its users meet it: packed, copied, run in an empty environment - on the processor, and on
// a stand-in for the CUDA driver. Nothing here ran on a GPU.
#include <baton/base/files.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "support/shell.hpp"

using namespace baton;
using Json = nlohmann::ordered_json;

namespace {

const std::string kScript = BATON_SOURCE_DIR "/runtime/gpu_check.sh " BATON_BINARY_DIR;
const std::string kAllReduce = "all_reduce_ring_2_staged_f32_sum";

test::ShellResult pack(const test::WorkFolder& folder, const std::string& options) {
    return test::shell(kScript + " --pack packed " + options, folder.path());
}

/// An empty environment, with the stand-in as the driver.
std::string on_fake_gpu(const std::string& options) {
    return "env -i BATON_CUDA_DRIVER=" BATON_FAKE_CUDA " packed/run.sh " + options;
}

/// Gives every module a "cubin" of sm_90 that the stand-in loads: its host object.
void add_fake_cubins(const std::string& packed) {
    for (const auto& entry : std::filesystem::directory_iterator(packed + "/modules")) {
        const std::string module = entry.path().string();
        if (!entry.is_directory()) continue;
        Json manifest = Json::parse(read_file(module + "/manifest.json"));
        manifest["binaries"].push_back({{"target", "sm_90"}, {"file", "module.sm_90.cubin"}});
        write_file(module + "/module.sm_90.cubin", std::string("fake cubin " + module + "/module.so") + '\0');
        write_file(module + "/manifest.json", manifest.dump());
    }
}

/// Puts a module in place of another whose entry for sum computes the maximum.
void plant_wrong_sum(const test::WorkFolder& folder) {
    const std::string module = "packed/modules/" + kAllReduce;
    const auto made =
        test::shell("rm -r " + module +
                        " && baton codegen examples/algorithms/ring_all_reduce.json --ranks 2 --type f32 "
                        "--op sum,max --host -o " +
                        module,
                    folder.path());
    REQUIRE_MESSAGE(made.code == 0, made.output);
    const std::string file = folder.path() + "/" + module + "/manifest.json";
    Json manifest = Json::parse(read_file(file));
    REQUIRE(manifest["entries"].size() == 2);
    std::swap(manifest["entries"][0]["name"], manifest["entries"][1]["name"]);
    write_file(file, manifest.dump());
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a packed folder runs in an empty environment, on the processor and on a stand-in for a GPU") {
    const test::WorkFolder folder;
    const auto packed = pack(folder, "--quick --host --no-cubins");
    REQUIRE_MESSAGE(packed.code == 0, packed.output);
    CHECK(contains(packed.output, "./run.sh"));
#if BATON_GPU_CHECK_ALONE
    const auto libraries =
        test::shell("ldd packed/baton-gpu-check | grep -v -E 'linux-vdso|lib(c|m|dl|pthread)\\.so|/ld-linux'",
                    folder.path());
    CHECK_MESSAGE(libraries.output == "", libraries.output);
#endif

    // Also when the build is out of reach.
    const auto cpu =
        test::shell("cd packed && env -i ./run.sh --backend cpu --sizes 1KiB,100KiB", folder.path());
    CAPTURE(cpu.output);
    CHECK(cpu.code == 0);
    for (const std::string kind : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                   "scatter", "gather", "all_to_all", "send_recv", "put", "get"})
        CHECK_MESSAGE(contains(cpu.output, kind), kind);
    CHECK(contains(cpu.output, "busbw GB/s"));
    CHECK(contains(cpu.output, "no GPU is used"));
    CHECK(contains(cpu.output, "all 22 results of 11 cases are right"));

    add_fake_cubins(folder.path() + "/packed");
    const auto gpu = test::shell(on_fake_gpu("--sizes 1KiB,100KiB"), folder.path());
    CAPTURE(gpu.output);
    CHECK(gpu.code == 0);
    CHECK(contains(gpu.output, "GPU 0: Fake GPU, compute capability 9.0, 8 multiprocessors; driver "));
    CHECK(contains(gpu.output, "for CUDA 12.4"));
    CHECK(contains(gpu.output, "all 22 results of 11 cases are right"));
    const auto probe = test::shell(on_fake_gpu("--probe"), folder.path());
    CHECK(probe.code == 0);
    CHECK(probe.output == "sm_90\n");

    const auto json = test::shell(on_fake_gpu("--json --sizes 64KiB --filter all_gather"), folder.path());
    REQUIRE(json.code == 0);
    const Json result = Json::parse(json.output);
    CHECK(result["wrong"] == 0);
    CHECK(result["results"][0]["size"] == 65536);
    const double algbw = result["results"][0]["algbw"], busbw = result["results"][0]["busbw"];
    CHECK(busbw == doctest::Approx(algbw / 2));

    plant_wrong_sum(folder);
    const auto cpu_wrong = test::shell("env -i packed/run.sh --backend cpu --sizes 1KiB", folder.path());
    CAPTURE(cpu_wrong.output);
    CHECK(cpu_wrong.code == 1);
    CHECK(contains(cpu_wrong.output, "WRONG"));
    CHECK(contains(cpu_wrong.output, "wrong: " + kAllReduce + " at 1KiB"));
    CHECK(contains(cpu_wrong.output, "1 of 11 results are wrong"));
    add_fake_cubins(folder.path() + "/packed");
    const auto gpu_wrong = test::shell(on_fake_gpu("--sizes 1KiB --json"), folder.path());
    CHECK(gpu_wrong.code == 1);
    CHECK(Json::parse(gpu_wrong.output)["wrong"] == 1);
}

TEST_CASE("cases beyond the time limit are told and fail the check") {
    const test::WorkFolder folder;
    const auto packed = pack(folder, "--quick --host --no-cubins --filter all_reduce");
    REQUIRE_MESSAGE(packed.code == 0, packed.output);
    const auto late = test::shell("packed/run.sh --backend cpu --limit 0", folder.path());
    CAPTURE(late.output);
    CHECK(late.code == 1);
    CHECK(contains(late.output, "3 of 3 cases were not run"));
}

TEST_CASE("without driver, GPU, code or modules the check says so in one line") {
    const test::WorkFolder folder;
    const auto packed = pack(folder, "--quick --host --no-cubins --filter send_recv");
    REQUIRE_MESSAGE(packed.code == 0, packed.output);
    const auto one_line = [](const std::string& text) { return text.find('\n') + 1 == text.size(); };
    const auto absent = test::shell("env -i BATON_CUDA_DRIVER=libnot_there.so packed/run.sh", folder.path());
    CAPTURE(absent.output);
    CHECK(absent.code == 3);
    CHECK(one_line(absent.output));
    CHECK(contains(absent.output, "no CUDA driver"));
    const auto whole = test::shell("BATON_CUDA_DRIVER=libnot_there.so " + kScript, folder.path());
    CHECK(whole.code == 3);
    CHECK(one_line(whole.output));
    // No cubin: the stand-in takes none that NVRTC makes, and there may be no NVRTC.
    CHECK(test::shell(on_fake_gpu(""), folder.path()).code == 3);
    const auto no_nvrtc = test::shell(
        "env -i BATON_NVRTC=/nowhere BATON_CUDA_DRIVER=" BATON_FAKE_CUDA " packed/run.sh", folder.path());
    CAPTURE(no_nvrtc.output);
    CHECK(no_nvrtc.code == 3);
    CHECK(contains(no_nvrtc.output, "NVRTC, which would compile it, does not load"));
    CHECK(test::shell(on_fake_gpu("--device 7"), folder.path()).code == 2);
    CHECK(test::shell("packed/run.sh --backend cpu --modules nowhere", folder.path()).code == 2);
    CHECK(test::shell("packed/run.sh --backend cpu --filter nothing", folder.path()).code == 2);
    CHECK(test::shell("packed/run.sh --backend nonsense", folder.path()).code == 2);
    write_file(folder.path() + "/packed/modules/cases.json",
               R"({"baton": "gpu_check/1", "cases": [{"module": "x"}]})");
    CHECK(test::shell("packed/run.sh --backend cpu", folder.path()).code == 2);
}

TEST_CASE("packing compiles for the architectures that the toolkit knows, or says that it is not there") {
    const test::WorkFolder folder;
    const auto packed = pack(folder, "--quick --filter send_recv");
    CAPTURE(packed.output);
    if (packed.code != 0) {
        CHECK(packed.code == 3);
        CHECK(contains(packed.output, "neither NVRTC nor nvcc"));
        return;
    }
    const std::string module = folder.path() + "/packed/modules/send_recv_direct_2_staged_f32";
    const Json manifest = Json::parse(read_file(module + "/manifest.json"));
    REQUIRE(!manifest["binaries"].empty());
    for (const Json& binary : manifest["binaries"]) {
        CHECK(contains(packed.output, binary["target"].get<std::string>()));
        CHECK(read_file(module + "/" + binary["file"].get<std::string>()).rfind("\177ELF", 0) == 0);
    }
    // Packing again compiles nothing: the modules are there.
    const auto before = std::filesystem::last_write_time(module + "/manifest.json");
    CHECK(pack(folder, "--quick --filter send_recv").code == 0);
    CHECK(std::filesystem::last_write_time(module + "/manifest.json") == before);
}
