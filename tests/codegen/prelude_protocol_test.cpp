// Hand-written kernels on teams of threads: results exact, clean under the thread sanitizer, planted faults
// caught.
#include "prelude/toolchain.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace baton;
using namespace baton::test;

namespace {

const std::string kFlags = "-std=c++20 -O1 -g -fsanitize=thread -ffp-contract=off -Wall -Wextra -Werror ";

class Bench {
public:
    Bench() {
        write_text(folder_ / "abi.h", std::string(codegen::abi_header()));
        write_text(folder_ / "kernels.cpp", codegen::prelude_source() + read_text(fixture("kernels.cc")));
        const Outcome built = shell("g++ " + kFlags + "-I" + folder_.path().string() + " -x c++ -c " +
                                    fixture("driver.cc").string() + " -o " + (folder_ / "driver.o").string());
        INFO(built.text);
        REQUIRE(built.status == 0);
    }

    Outcome run(const std::string& mode, int threads, const std::string& defines = {}) {
        if (defines != built_ || !kernels_built_) build(defines);
        // Address randomization that the sanitizer cannot cope with is switched off where that is possible.
        static const std::string prefix = shell("setarch -R true").status == 0 ? "setarch -R " : "";
        return shell("TSAN_OPTIONS=halt_on_error=1 " + prefix + (folder_ / "driver").string() + " " + mode +
                     " " + std::to_string(threads));
    }

private:
    void build(const std::string& defines) {
        const std::string at = folder_.path().string();
        const Outcome built =
            shell("cd " + at + " && g++ " + kFlags + defines + " -c kernels.cpp -o kernels.o && g++ " +
                  "-fsanitize=thread driver.o kernels.o -o driver -pthread");
        INFO(built.text);
        REQUIRE(built.status == 0);
        built_ = defines, kernels_built_ = true;
    }
    TemporaryFolder folder_;
    std::string built_;
    bool kernels_built_ = false;
};

Bench& bench() {
    static Bench one;
    return one;
}

}  // namespace

TEST_CASE(
    "hand-written kernels give exact results and no race, with one and several threads per threadblock") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    for (int threads : {1, 2, 4}) {
        const Outcome outcome = bench().run("results", threads);
        INFO(threads << " threads: " << outcome.text);
        CHECK(outcome.status == 0);
    }
}

TEST_CASE("waits end with a record of place and values: absent rank, other call, abort") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    for (int threads : {1, 3}) {
        const Outcome outcome = bench().run("failures", threads);
        INFO(threads << " threads: " << outcome.text);
        CHECK(outcome.status == 0);
    }
}

TEST_CASE("every planted fault of the prelude is caught") {
    if (!available("g++")) {
        MESSAGE("skipped: no g++");
        return;
    }
    for (const char* fault :
         {"RELAXED_RELEASE", "RELAXED_ACQUIRE", "NO_BARRIER_BEFORE_PUBLISH", "NO_BARRIER_AFTER_WAIT",
          "NO_CREDIT_WAIT", "CREDIT_OFF_BY_ONE", "NO_ENTRY_WAIT", "NO_REMOTE_CREDIT"}) {
        const Outcome outcome = bench().run("results", 4, std::string("-DBATON_MUTATE_") + fault);
        INFO(fault << ": exit " << outcome.status << "\n" << outcome.text);
        const bool race = outcome.text.find("ThreadSanitizer: data race") != std::string::npos;
        const bool checked = outcome.status == 3 && outcome.text.find("check failed") != std::string::npos;
        CHECK((race || checked));
    }
}
