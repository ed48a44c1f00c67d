// Emitted modules on teams of threads: right results, no race, in all modes.
#include "prelude/toolchain.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/emit.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>
#include <support/full.hpp>
#include <support/module_cases.hpp>
#include <support/small_algorithms.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::test;

namespace {

const std::string kFlags = "-std=c++20 -O1 -g -fsanitize=thread -ffp-contract=off -Wall -Wextra -Werror ";

/// Compiles modules together with the driver and runs them.
class Runner {
public:
    Runner() {
        write_text(folder_ / "abi.h", std::string(codegen::abi_header()));
        const Outcome built = shell("g++ " + kFlags + "-I" + folder_.path().string() +
                                    " -x c++ -c " BATON_SOURCE_DIR "/tests/support/module_driver.cc -o " +
                                    (folder_ / "driver.o").string());
        INFO(built.text);
        REQUIRE(built.status == 0);
    }
    void build(const ModuleCases& cases, const std::string& defines = {}) {
        write_text(folder_ / "cases.txt", cases.text());
        write_text(folder_ / "modules.cpp", cases.source());
        if (const char* keep = std::getenv("BATON_KEEP")) {
            write_text(std::string(keep) + "/modules.cpp", cases.source());
            write_text(std::string(keep) + "/cases.txt", cases.text());
        }
        const Outcome built = shell("cd " + folder_.path().string() + " && g++ " + kFlags + defines +
                                    " -c modules.cpp -o modules.o && g++ " +
                                    "-fsanitize=thread -rdynamic driver.o modules.o -o driver -pthread -ldl");
        INFO(built.text);
        REQUIRE(built.status == 0);
    }
    Outcome run(int threads) {
        // Address randomization that the sanitizer cannot cope with is switched off where that is possible.
        static const std::string prefix = shell("setarch -R true").status == 0 ? "setarch -R " : "";
        return shell("cd " + folder_.path().string() + " && TSAN_OPTIONS=halt_on_error=1 " + prefix +
                     "./driver cases.txt " + std::to_string(threads));
    }

private:
    TemporaryFolder folder_;
};

std::vector<ir::Algorithm> small_algorithms(int n) {
    std::vector<ir::Algorithm> list = {
        ring_all_reduce(n),     ring_all_gather(n),       ring_all_gather(n, 3),
        one_shot_all_reduce(n), reduce_to_root(n, n / 2), chain_broadcast(n, n - 1, 5),
        direct_all_to_all(n),   direct_all_to_all(n, 2),  scratch_reduce_scatter(n),
    };
    if ((n & (n - 1)) == 0) {
        list.push_back(recursive_doubling(n));
        list.push_back(recursive_doubling(n, 3));
    }
    return list;
}

}  // namespace

TEST_CASE("emitted small algorithms give exact results and no race in every mode") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    Runner runner;
    std::mt19937 random(1);
    for (int n : full() ? std::vector<int>{1, 2, 3, 4, 5, 8} : std::vector<int>{3, 4}) {
        ModuleCases cases;
        for (const ir::Algorithm& algorithm : small_algorithms(n)) {
            for (const auto mode : {codegen::ModePreference::staged, codegen::ModePreference::put,
                                    codegen::ModePreference::get}) {
                codegen::LowerOptions lowering;
                lowering.mode = mode;
                lowering.slots = 1 + random() % 4;
                lowering.channels = 1 + random() % 2;
                lowering.threadblocks = random() % 3 == 0 ? 1 : 4;
                codegen::EmitOptions options;
                options.entries = {{ir::DataType::u32, ir::ReduceOp::sum}};
                options.straight = random() % 2 == 0 ? 40 : 0;
                options.instances = 1 + (random() % 3 == 0);
                const std::string name = fmt::format("{}, {} ranks, {}", algorithm.name, n, to_string(mode));
                CAPTURE(name);
                codegen::Module module;
                try {
                    module = codegen::emit(codegen::lower(algorithm, lowering), options);
                } catch (const Error& error) {
                    FAIL(error.what());
                }
                std::vector<CallShape> calls = {{103, 3}, {0, 1}, {5, 2, 2, true}, {64, 4, 1, true, 4, 8}};
                cases.add(name, module, module.manifest.entries[0], calls, 1024,
                          static_cast<std::uint32_t>(random()));
            }
        }
        runner.build(cases);
        for (const int threads : {1, 2}) {
            const Outcome outcome = runner.run(threads);
            INFO(n << " ranks, " << threads << " threads: " << outcome.text);
            CHECK(outcome.status == 0);
        }
    }
}
