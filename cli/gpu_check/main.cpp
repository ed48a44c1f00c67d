// baton-gpu-check: every collective on one GPU (or on the processor), checked and timed. Needs the C library
// and, for GPUs, the driver: nothing else.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/base/quantities.hpp>
#include <baton/cli/command.hpp>
#include <baton/cli/gpu_check/check.hpp>
#include <baton/runtime/cuda_driver.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
    std::string folder, backend = "cuda", sizes = "16KiB,1MiB,16MiB", filter;
    int device = 0, limit = 270;
    bool json = false, probe = false;
};

/// The folder `modules` beside this program.
std::string own_modules() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return "modules";
    const std::string_view program(path, static_cast<std::size_t>(length));
    return std::string(program.substr(0, program.rfind('/'))) + "/modules";
}

/// "570.86.15", or "" where the kernel module does not say.
std::string driver_release() {
    try {
        const std::string text = read_file("/proc/driver/nvidia/version");
        const std::size_t at = text.find("Kernel Module");
        if (at == std::string::npos) return {};
        const std::size_t begin = text.find_first_of("0123456789", at), end = text.find(' ', begin);
        return begin == std::string::npos ? std::string() : text.substr(begin, end - begin);
    } catch (const Error&) {
        return {};
    }
}

/// What the check runs on, in words.
std::string device_words(const Arguments& arguments) {
    if (arguments.backend == "cpu") return "the processor of this machine (no GPU is used)";
    const runtime::cuda::DeviceFacts facts = runtime::cuda::device_facts(arguments.device);
    int version = 0;
    runtime::cuda::driver().check(runtime::cuda::driver().DriverGetVersion(&version),
                                  "asking for the driver's version");
    const std::string release = driver_release();
    return fmt::format("GPU {}: {}, compute capability {}.{}, {} multiprocessors; driver {}for CUDA {}.{}",
                       arguments.device, facts.name, facts.major, facts.minor, facts.multiprocessors,
                       release.empty() ? "" : release + " ", version / 1000, version % 1000 / 10);
}

std::vector<std::string> cells(const GpuCheckRow& row) {
    const double rate = row.seconds > 0 ? static_cast<double>(row.size) / row.seconds * 1e-9 : 0;
    const bool timed = row.wrong.empty();
    return {std::string(to_string(row.what.kind)),
            row.what.pattern,
            fmt::format("{}", row.what.ranks),
            std::string(to_string(row.what.mode)),
            std::string(ir::to_string(row.what.type)),
            ir::reduces(row.what.kind) ? std::string(ir::to_string(row.what.op)) : "-",
            to_string(Bytes{row.size}),
            row.wrong.empty() ? "right" : "WRONG",
            timed ? to_string(Time::from_seconds(row.seconds)) : "-",
            timed ? fmt::format("{:.3f}", rate) : "-",
            timed ? fmt::format("{:.3f}", rate * row.bus) : "-"};
}

void print(const GpuCheckResult& result) {
    Table table({"collective", "pattern", "ranks", "mode", "type", "op", "size", "result", "time",
                 "algbw GB/s", "busbw GB/s"});
    for (const GpuCheckRow& row : result.rows) table.row(cells(row));
    std::printf("%s", table.text().c_str());
    for (const GpuCheckRow& row : result.rows) {
        if (!row.wrong.empty())
            std::printf("wrong: %s at %s: %s\n", row.what.module.c_str(), to_string(Bytes{row.size}).c_str(),
                        row.wrong.c_str());
    }
    if (result.not_run > 0) std::printf("%zu of %zu cases were not run\n", result.not_run, result.cases);
    if (result.wrong == 0 && result.not_run == 0)
        std::printf("all %zu results of %zu cases are right; %.0f s\n", result.rows.size(), result.cases,
                    result.seconds);
    else
        std::printf("%d of %zu results are wrong; %.0f s\n", result.wrong, result.rows.size(),
                    result.seconds);
}

void print_json(const std::string& device, const GpuCheckResult& result) {
    Json rows = Json::array();
    for (const GpuCheckRow& row : result.rows) {
        Json item = {{"module", row.what.module},        {"collective", to_string(row.what.kind)},
                     {"pattern", row.what.pattern},      {"ranks", row.what.ranks},
                     {"mode", to_string(row.what.mode)}, {"type", ir::to_string(row.what.type)}};
        if (ir::reduces(row.what.kind)) item["op"] = ir::to_string(row.what.op);
        item["size"] = row.size;
        item["result"] = row.wrong.empty() ? "right" : "wrong";
        if (row.wrong.empty()) {
            const double rate = row.seconds > 0 ? static_cast<double>(row.size) / row.seconds : 0;
            item["seconds"] = row.seconds, item["algbw"] = rate, item["busbw"] = rate * row.bus;
        } else {
            item["wrong"] = row.wrong;
        }
        rows.push_back(std::move(item));
    }
    const Json out = {{"device", device},      {"results", std::move(rows)}, {"wrong", result.wrong},
                      {"cases", result.cases}, {"not_run", result.not_run},  {"seconds", result.seconds}};
    std::printf("%s\n", out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

int run(const Arguments& arguments) {
    if (arguments.backend != "cuda" && arguments.backend != "cpu")
        throw input_error(fmt::format("unknown backend {}", arguments.backend), "--backend",
                          "use cuda or cpu");
    GpuCheckOptions options;
    options.cuda = arguments.backend == "cuda";
    options.folder = arguments.folder.empty() ? own_modules() : arguments.folder;
    options.device = arguments.device;
    options.filter = arguments.filter;
    options.limit = std::chrono::seconds(arguments.limit);
    for (const Bytes& size : parse_sizes(arguments.sizes)) options.sizes.push_back(size.count);
    const std::string device = device_words(arguments);
    if (arguments.probe) {
        const auto facts = runtime::cuda::device_facts(arguments.device);
        std::printf("sm_%d%d\n", facts.major, facts.minor);
        return 0;
    }
    if (!arguments.json) std::printf("%s\n", device.c_str());
    const bool lively = ::isatty(STDERR_FILENO) == 1;
    std::size_t rows = 0;
    const GpuCheckResult result = gpu_check(options, [&](const GpuCheckRow& row) {
        ++rows;
        if (lively) std::fprintf(stderr, "\r\033[K%zu: %s", rows, row.what.module.c_str());
    });
    if (lively) std::fprintf(stderr, "\r\033[K");
    if (arguments.json)
        print_json(device, result);
    else
        print(result);
    return result.wrong > 0 || result.not_run > 0 ? 1 : 0;
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
    CLI::App app("runs every collective on one GPU, checks the results and times the calls",
                 "baton-gpu-check");
    baton::cli::Arguments arguments;
    app.add_option("--modules", arguments.folder,
                   "folder of the modules (default: modules beside this program)");
    app.add_option("--backend", arguments.backend,
                   "cuda (default), or cpu where the modules hold a host object");
    app.add_option("--device", arguments.device, "number of the GPU (default 0)");
    app.add_option("--sizes", arguments.sizes, "sizes of the calls (default 16KiB,1MiB,16MiB)");
    app.add_option("--filter", arguments.filter, "only cases whose module name contains this");
    app.add_option("--limit", arguments.limit, "seconds after which no case is begun (default 270)")
        ->check(CLI::Range(0, 86400));
    app.add_flag("--json", arguments.json, "print the result as JSON");
    app.add_flag("--probe", arguments.probe, "only print the architecture of the GPU");
    app.footer(
        "\nExit codes: 0 all right, 1 a wrong result, 2 wrong usage, 3 no GPU, no driver or no code for "
        "it.\n");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::fprintf(stderr, "baton-gpu-check: %s; try --help\n", error.what());
        return 2;
    }
    try {
        return baton::cli::run(arguments);
    } catch (const baton::Error& error) {
        std::fflush(stdout);
        std::fprintf(stderr, "baton-gpu-check: %s\n", error.what());
        return baton::exit_code(error.kind());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "baton-gpu-check: internal error: %s\n", error.what());
        return 70;
    }
}
