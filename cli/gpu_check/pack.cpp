// baton-gpu-pack: writes the modules of the GPU check, compiled for GPUs, for this machine's processor, or
// both.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/cli/gpu_check/cases.hpp>
#include <baton/codegen/compile.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/codegen/write_module.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

namespace baton::cli {
namespace {

/// The architectures that a pack is for, unless others are asked for: one of each generation since Turing.
constexpr const char* kArchitectures[] = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
/// Threadblocks of a rank: 8 ranks must be resident on one GPU of few multiprocessors.
constexpr int kThreadblocks = 4;

struct PackOptions {
    std::string folder, filter;
    std::vector<std::string> architectures;
    bool host = false, quick = false, no_cubins = false;
    int jobs = 0;
};

codegen::LowerOptions lowering(ir::Mode mode) {
    codegen::LowerOptions options;
    options.mode = codegen::parse_mode_preference(to_string(mode));
    options.threadblocks = kThreadblocks;
    return options;
}

ir::Program program_of(const GpuCase& each) {
    synth::PatternOptions options;
    options.collective.kind = each.kind;
    options.collective.ranks = each.ranks;
    return codegen::lower(synth::fixed_pattern(each.pattern, options), lowering(each.mode));
}

/// Whether the folder holds this very source with all that is wanted.
bool is_there(const std::string& folder, const ir::Program& program, const codegen::ModuleOptions& options) {
    std::error_code ignored;
    if (!std::filesystem::exists(folder + "/manifest.json", ignored)) return false;
    try {
        const codegen::Manifest manifest = codegen::load_manifest(folder);
        if (manifest.hash != codegen::emit(program, options.emit).manifest.hash) return false;
        std::set<std::string> wanted(options.architectures.begin(), options.architectures.end());
        if (options.host) wanted.insert("host");
        for (const codegen::ManifestBinary& binary : manifest.binaries) {
            if (std::filesystem::exists(folder + "/" + binary.file, ignored)) wanted.erase(binary.target);
        }
        return wanted.empty();
    } catch (const Error&) {
        return false;  // of another version, or damaged: written anew
    }
}

void write_case(const PackOptions& pack, const GpuCase& each) {
    codegen::ModuleOptions options;
    options.emit.entries = {{each.type, each.op}};
    options.architectures = pack.architectures;
    options.host = pack.host;
    options.program = false;
    const ir::Program program = program_of(each);
    const std::string folder = pack.folder + "/" + each.module;
    if (!is_there(folder, program, options)) codegen::write_module(folder, program, options);
}

/// Replaces an empty list of architectures by those that the toolkit knows; says which are left out.
void choose_architectures(PackOptions& pack) {
    if (pack.no_cubins) {
        pack.architectures.clear();
        return;
    }
    if (codegen::cubin_compilers().empty()) {
        throw missing_error("neither NVRTC nor nvcc is here, so no code for GPUs can be compiled", {},
                            "install the CUDA toolkit, or set CUDA_HOME to its folder");
    }
    if (!pack.architectures.empty()) return;
    for (const char* wanted : kArchitectures) {
        bool known = false;
        for (const auto& compiler : codegen::cubin_compilers()) {
            const auto& names = compiler.architectures;
            known = known || std::find(names.begin(), names.end(), wanted) != names.end();
        }
        if (known)
            pack.architectures.emplace_back(wanted);
        else
            std::fprintf(stderr, "baton-gpu-pack: this CUDA toolkit does not know %s; left out\n", wanted);
    }
    if (pack.architectures.empty())
        throw missing_error("this CUDA toolkit knows none of the architectures of the check");
}

/// Writes all cases on `jobs` threads; the first error ends it.
void write_cases(const PackOptions& pack, const std::vector<GpuCase>& cases) {
    std::atomic<std::size_t> next{0}, done{0};
    std::mutex mutex;
    std::exception_ptr failed;
    const auto work = [&] {
        for (std::size_t i = next++; i < cases.size(); i = next++) {
            try {
                write_case(pack, cases[i]);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!failed) failed = std::current_exception();
                next = cases.size();
                return;
            }
            const std::size_t now = ++done;
            if (now % 10 == 0 || now == cases.size())
                std::fprintf(stderr, "baton-gpu-pack: %zu of %zu modules\n", now, cases.size());
        }
    };
    const int jobs =
        pack.jobs > 0 ? pack.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (failed) std::rethrow_exception(failed);
}

int pack(PackOptions options) {
    choose_architectures(options);
    if (options.architectures.empty() && !options.host)
        throw input_error("nothing to compile: --no-cubins without --host");
    std::vector<GpuCase> cases = gpu_cases(options.quick);
    std::erase_if(cases,
                  [&](const GpuCase& each) { return each.module.find(options.filter) == std::string::npos; });
    if (cases.empty())
        throw input_error(fmt::format("no case has \"{}\" in its name", options.filter), "--filter");
    write_cases(options, cases);
    write_file(options.folder + "/cases.json", to_json(cases));
    std::string forms = options.host ? "host" : "";
    for (const std::string& name : options.architectures) forms += (forms.empty() ? "" : ", ") + name;
    std::printf("%zu modules (%s) in %s\n", cases.size(), forms.c_str(), options.folder.c_str());
    return 0;
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
    CLI::App app("writes the modules that baton-gpu-check runs", "baton-gpu-pack");
    baton::cli::PackOptions options;
    app.add_option("DIR", options.folder, "folder to write to")->required();
    app.add_option("--arch", options.architectures,
                   "cubins for these architectures (default: sm_75, 80, 90, 100 and 120 as far as known)")
        ->delimiter(',');
    app.add_flag("--no-cubins", options.no_cubins, "no code for GPUs");
    app.add_flag("--host", options.host, "code for this machine's processor as well, for --backend cpu");
    app.add_flag("--quick", options.quick, "few cases, of 2 ranks only");
    app.add_option("--filter", options.filter, "only cases whose module name contains this");
    app.add_option("--jobs", options.jobs, "compilations at a time (default: one a core)")
        ->check(CLI::Range(1, 256));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app.exit(error);
        std::fprintf(stderr, "baton-gpu-pack: %s; try --help\n", error.what());
        return 2;
    }
    try {
        return baton::cli::pack(options);
    } catch (const baton::Error& error) {
        std::fprintf(stderr, "baton-gpu-pack: %s\n", error.what());
        return baton::exit_code(error.kind());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "baton-gpu-pack: internal error: %s\n", error.what());
        return 70;
    }
}
