// Compiles emitted modules with the thread sanitizer and runs them by tests/support/module_driver.cc.
#pragma once

#include <codegen/prelude/toolchain.hpp>
#include <support/module_cases.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace baton::test {

class ModuleRunner {
public:
    /// REQUIRES: g++ is there.
    ModuleRunner() {
        write_text(folder_ / "abi.h", std::string(codegen::abi_header()));
        const Outcome built = shell("g++ " + flags() + "-I" + folder_.path().string() +
                                    " -x c++ -c " BATON_SOURCE_DIR "/tests/support/module_driver.cc -o " +
                                    (folder_ / "driver.o").string());
        INFO(built.text);
        REQUIRE(built.status == 0);
    }

    /// Compiles all modules of the cases in one go. With `source`, that text instead of theirs.
    void build(const ModuleCases& cases, const std::string& defines = {}, const std::string& source = {}) {
        write_text(folder_ / "cases.txt", cases.text());
        write_text(folder_ / "modules.cpp", source.empty() ? cases.source() : source);
        const Outcome built = shell("cd " + folder_.path().string() + " && g++ " + flags() + defines +
                                    " -c modules.cpp -o modules.o && g++ -fsanitize=thread -rdynamic "
                                    "driver.o modules.o -o driver -pthread -ldl");
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
    static std::string flags() {
        return "-std=c++20 -O1 -fsanitize=thread -ffp-contract=off -Wall -Wextra -Werror ";
    }
    TemporaryFolder folder_;
};

}  // namespace baton::test
