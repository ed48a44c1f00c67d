// Emitted modules through the compilers: architectures, warnings, C launchers, modules as folders, golden
// source.
#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/codegen/compile.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/codegen/write_module.hpp>
#include <support/full.hpp>
#include <support/module_runner.hpp>
#include <support/module_sampler.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

using namespace baton;
using namespace baton::test;

namespace {

codegen::Module emit(const ir::Algorithm& algorithm, codegen::ModePreference mode,
                     const codegen::EmitOptions& options = {}) {
    codegen::LowerOptions lowering;
    lowering.mode = mode;
    return codegen::emit(codegen::lower(algorithm, lowering), options);
}

}  // namespace

TEST_CASE("emitted modules compile for every architecture the toolkit knows, without a warning") {
    const auto& compilers = codegen::cubin_compilers();
    if (compilers.empty()) {
        MESSAGE("skipped: neither NVRTC nor nvcc");
        return;
    }
    ModuleCases all;
    std::mt19937 random(4);
    for (const auto mode :
         {codegen::ModePreference::staged, codegen::ModePreference::put, codegen::ModePreference::get}) {
        const std::vector<NamedAlgorithm> pool = all_algorithms(4);
        for (std::size_t i = 0; i < pool.size(); i += full() ? 1 : 11)
            add_random_case(all, pool[i], mode, random);
    }
    const std::vector<std::string> wanted = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    const std::string small = emit(ring_all_reduce(4), codegen::ModePreference::put).source;
    for (const codegen::CubinCompiler& compiler : compilers) {
        for (const std::string& architecture : wanted) {
            const auto& known = compiler.architectures;
            if (std::find(known.begin(), known.end(), architecture) == known.end()) {
                MESSAGE("skipped: ", compiler.path, " ", compiler.version, " does not know ", architecture);
                continue;
            }
            // By default the sample goes through one compiler and one architecture, one plan through the
            // others.
            const bool sample = test::full() || (&compiler == &compilers.front() && architecture == "sm_90");
            std::string log;
            const std::string cubin =
                codegen::compile_cubin(compiler, sample ? all.source() : small, architecture, &log);
            CAPTURE(compiler.path);
            CAPTURE(architecture);
            CHECK(log == "");
            CHECK(cubin.substr(0, 4) ==
                  "\x7f"
                  "ELF");
        }
    }
}

TEST_CASE("an architecture is refused in words: no such name, none that a compiler knows") {
    for (const char* name : {"", "sm_", "sm_9", "90", "sm_90ab", "sm_90A", "compute_90", "sm_99999"}) {
        CAPTURE(name);
        CHECK_THROWS_AS(codegen::check_architecture(name), Error);
    }
    CHECK_NOTHROW(codegen::check_architecture("sm_90a"));
    try {
        codegen::compile_cubin("", "sm_12");
        FAIL("compiled for sm_12");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::missing_part);
    }
}

TEST_CASE("a module is a folder: everything that the manifest names is there, and the manifest reads back") {
    const codegen::HostObjectOptions defaults;
    if (codegen::find_host_compiler(defaults).empty()) {
        MESSAGE("skipped: no C++ compiler");
        return;
    }
    TemporaryFolder folder;
    codegen::ModuleOptions options;
    options.host = true;
    options.emit.entries = {{ir::DataType::f32, ir::ReduceOp::sum}, {ir::DataType::bf16, ir::ReduceOp::max}};
    if (!codegen::cubin_compilers().empty())
        options.architectures = {codegen::cubin_compilers()[0].architectures.back()};
    const std::string path = (folder / "module").string();
    const codegen::WrittenModule written =
        codegen::write_module(path, codegen::lower(ring_all_reduce(3)), options);
    CHECK(written.files.back() == "manifest.json");
    const codegen::Manifest read = codegen::load_manifest(path);
    CHECK(to_json(read) == to_json(written.manifest));
    CHECK(read.assurance == ir::Assurance::proved);
    CHECK(read.binaries.size() == 1 + options.architectures.size());
    for (const auto& binary : read.binaries)
        CHECK(read_file(path + "/" + binary.file).substr(0, 4) ==
              "\x7f"
              "ELF");
    const std::string symbols = shell("nm -D --defined-only " + path + "/module.so").text;
    for (const auto& entry : read.entries)
        CHECK(symbols.find(" T " + entry.name + "\n") != std::string::npos);
    // The header serves C launchers.
    write_text(folder / "launcher.c",
               "#include \"module/module.h\"\nbaton_host_entry entry;\nint main(void) { entry = " +
                   read.entries[0].name + "; return entry == 0; }\n");
    const Outcome built =
        shell("cd " + folder.path().string() +
              " && cc -std=c99 -Wall -Wextra -Wpedantic -Werror -c launcher.c -o launcher.o");
    INFO(built.text);
    CHECK(built.status == 0);
}

TEST_CASE("manifests of all algorithms read back as they were written") {
    for (const int n : {2, 5}) {
        for (const NamedAlgorithm& each : all_algorithms(n)) {
            for (const auto mode : {codegen::ModePreference::staged, codegen::ModePreference::put,
                                    codegen::ModePreference::get}) {
                CAPTURE(each.name);
                codegen::EmitOptions options;
                options.instances = n == 2 ? 1 : 3;
                const codegen::Module module = emit(each.algorithm, mode, options);
                const std::string text = to_json(module.manifest);
                CHECK(to_json(codegen::read_manifest(JsonDocument::parse(text, "manifest").root())) == text);
            }
        }
    }
}

TEST_CASE("equal programs give equal sources, and what differs shows in the hash") {
    const codegen::Module a = emit(ring_all_reduce(4), codegen::ModePreference::staged);
    const codegen::Module b = emit(ring_all_reduce(4), codegen::ModePreference::staged);
    const codegen::Module c = emit(ring_all_reduce(4), codegen::ModePreference::get);
    CHECK(a.source == b.source);
    CHECK(a.manifest.hash == b.manifest.hash);
    CHECK(a.manifest.hash != c.manifest.hash);
    CHECK(a.manifest.entries[0].name != c.manifest.entries[0].name);
}

TEST_CASE("ranks of a ring share one role, and long rings become loops of one size") {
    codegen::EmitOptions options;
    options.straight = 0;
    const std::string small = emit(ring_all_reduce(8), codegen::ModePreference::staged, options).source;
    const std::string large = emit(ring_all_reduce(32), codegen::ModePreference::staged, options).source;
    CHECK(small.find("role0") != std::string::npos);
    CHECK(small.find("role1") == std::string::npos);
    CHECK(small.find("for (u32 i = 0; i < 6; ++i)") != std::string::npos);
    CHECK(large.find("for (u32 i = 0; i < 30; ++i)") != std::string::npos);
    CHECK(large.size() < small.size() + 3000);  // tables only
}

TEST_CASE("what cannot be emitted is refused in words") {
    const ir::Program program = codegen::lower(ring_all_reduce(3));
    const auto refused = [&](const ir::Program& of, const codegen::EmitOptions& options) {
        try {
            codegen::emit(of, options);
        } catch (const Error& error) {
            return error.kind() == ErrorKind::input;
        }
        return false;
    };
    codegen::EmitOptions options;
    options.entries = {{ir::DataType::f16, ir::ReduceOp::avg}};
    CHECK(refused(program, options));
    options.entries = {{ir::DataType::f32, ir::ReduceOp::band}};
    CHECK(refused(program, options));
    options.entries.clear();
    options.threads = 100;
    CHECK(refused(program, options));
    options.threads = 128;
    options.instances = 0;
    CHECK(refused(program, options));
    options.instances = 1;
    CHECK(!refused(program, options));
    ir::Program other = program;
    other.connections[0].protocol = ir::Protocol::ll;
    CHECK(!refused(other, options));
    CHECK(codegen::emit(other, options).source == codegen::emit(program, options).source);
    other.switch_groups = {{0, 1, 2}};
    other.ranks[0].threadblocks[0].operands[0] = {ir::OperandKind::switch_group, ir::Buffer::output, 0, 0, 1};
    CHECK(refused(other, options));
    CHECK_THROWS_AS(codegen::pair_entries({ir::DataType::f32, ir::DataType::i32}, {ir::ReduceOp::maxloc}),
                    Error);
    CHECK(
        codegen::pair_entries({ir::DataType::f32, ir::DataType::i32}, {ir::ReduceOp::sum, ir::ReduceOp::band})
            .size() == 3);
}

TEST_CASE("the source of a small program reads as the golden file says") {
    codegen::EmitOptions options;
    options.straight = 0;
    const codegen::Module module = emit(ring_all_reduce(5), codegen::ModePreference::staged, options);
    const std::string seen = module.source.substr(codegen::prelude_source().size());
    const std::string file = BATON_SOURCE_DIR "/tests/golden/emitted_ring_all_reduce.cu";
    if (std::getenv("BATON_UPDATE_GOLDEN") != nullptr) write_file(file, seen);
    CHECK(seen == read_file(file));
}
