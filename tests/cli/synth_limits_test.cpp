// How long `baton synth` works and how it ends: time limits, signals, threads, impossible inputs.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/shell.hpp"

using namespace baton;

namespace {

test::ShellResult limited(const std::string& line, const std::string& folder = ".") {
    return test::shell("baton synth " + line, folder);
}

bool has(const test::ShellResult& result, const std::string& text) {
    return result.output.find(text) != std::string::npos;
}

std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A `baton synth` in the background that a signal is sent to `pauses` tenths of a second after its start.
int signaled(const std::vector<std::string>& arguments, const std::string& folder, int signal, int pauses,
             int times = 1) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::chdir(folder.c_str()) != 0) ::_exit(99);
        if (!std::freopen("out.txt", "w", stdout) || !std::freopen("err.txt", "w", stderr)) ::_exit(99);
        std::vector<char*> argv;
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        ::execv(BATON_BINARY_DIR "/bin/baton", argv.data());
        ::_exit(99);
    }
    for (int i = 0; i < times; ++i) {
        ::usleep(static_cast<useconds_t>(pauses) * 100'000);
        ::kill(child, signal);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("no time at all ends with one line and exit code 1") {
    const auto none = limited("dgx_h100 --size 1MiB --time-limit 0 -o none.json");
    CHECK(none.code == 1);
    CHECK(none.output ==
          "baton: stopped before any schedule was verified and simulated; give it more time\n");
    CHECK(limited("dgx_h100 --budget 0").code == 1);
    CHECK(limited("dgx_h100 --time-limit -1").code == 2);
    CHECK(limited("dgx_h100 --time-limit nan").code == 2);
    CHECK(limited("dgx_h100 --threads -1").code == 2);
}

TEST_CASE("a time limit that is not reached changes nothing, nor do threads") {
    const std::string line = "mesh:2x3 --sizes 1KiB..1MiB*32 --json";
    const auto plain = limited(line);
    REQUIRE(plain.code == 0);
    CHECK(has(plain, "\"stopped_early\": false"));
    CHECK(limited(line + " --time-limit 1000000").output == plain.output);
    CHECK(limited(line + " --threads 1").output == plain.output);
    CHECK(limited(line + " --threads 3").output == plain.output);
}

TEST_CASE("a short time gives what is verified by then, with a note, or nothing") {
    const test::WorkFolder folder;
    const auto some = limited("dgx_h100:hosts=32 --time-limit 1.5 --plans plans.json", folder.path());
    if (some.code == 0) {
        CHECK(has(some, "note: the time limit of 1.5 s ended before the work was done: the best of "));
        CHECK(content(folder.path() + "/plans.json").find("\"plans/1\"") != std::string::npos);
    } else {
        CHECK(some.code == 1);
        CHECK(has(some, "baton: stopped before any schedule was verified"));
    }
}

TEST_CASE("Ctrl-C ends the work with the best so far, written where it was wanted") {
    // However slow the machine is, one of these waits ends while the work is going on.
    bool stopped = false;
    for (int pauses = 5; pauses <= 320 && !stopped; pauses *= 2) {
        const test::WorkFolder folder;
        const int code =
            signaled({"baton", "synth", "dgx_h100:hosts=32", "--size", "1GiB", "-o", "made.json"},
                     folder.path(), pauses % 2 == 0 ? SIGTERM : SIGINT, pauses);
        if (code == 1) {
            CHECK(content(folder.path() + "/made.json").empty());
            CHECK(content(folder.path() + "/err.txt").find("baton: stopped before any schedule") == 0);
            continue;
        }
        REQUIRE(code == 0);
        stopped = true;
        CHECK(content(folder.path() + "/out.txt").find("note: interrupted before the work was done") !=
              std::string::npos);
        CHECK(test::shell("baton verify made.json", folder.path()).code == 0);
    }
    CHECK(stopped);
}

TEST_CASE("impossible inputs are refused with their cause before any search") {
    CHECK(has(limited("ring:4 --without 'gpu0>gpu1' --without 'gpu0>gpu3'"), "cannot reach"));
    CHECK(has(limited("ring:4 --collective broadcast --root 7"), "root"));
    const auto many = limited("fully_connected:5000 --collective all_to_all --algorithm shortest_paths");
    CHECK(many.code == 2);
}
