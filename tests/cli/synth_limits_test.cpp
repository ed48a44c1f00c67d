// How long `baton synth` works and how it ends: time limits, signals, threads, impossible inputs.
#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdlib>
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

struct Ended {
    int code = 0;  // exit status; 128 + n when ended by signal n
    std::string errors;
};

// Containers without /dev/pts have no pseudo terminals.
bool terminals_exist() {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) {
        MESSAGE("skipped: this system gives no pseudo terminals");
        return false;
    }
    ::close(terminal);
    return true;
}

// A `baton synth` whose standard error is a terminal, so that it tells how far it is; it gets the signal as
// soon as it says one of `stages` (not all that pass quickly are shown).
Ended signaled_at(const std::vector<std::string>& stages, const std::vector<std::string>& arguments,
                  const std::string& folder, int signal) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    REQUIRE(terminal >= 0);
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    const std::string name = ::ptsname(terminal);
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGINT, SIG_DFL);  // a shell may have it ignored
        if (::chdir(folder.c_str()) != 0) ::_exit(99);
        if (!std::freopen("out.txt", "w", stdout) || !std::freopen(name.c_str(), "w", stderr)) ::_exit(99);
        std::vector<char*> argv;
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        ::execv(BATON_BINARY_DIR "/bin/baton", argv.data());
        ::_exit(99);
    }
    Ended ended;
    bool sent = false;
    int status = 0;
    for (pid_t done = 0; done == 0;) {
        done = ::waitpid(child, &status, WNOHANG);
        pollfd waiting{terminal, POLLIN, 0};
        while (::poll(&waiting, 1, done == 0 ? 20 : 0) > 0 && (waiting.revents & POLLIN) != 0) {
            char block[4096];
            const ssize_t got = ::read(terminal, block, sizeof block);
            if (got <= 0) break;
            ended.errors.append(block, static_cast<std::size_t>(got));
            const bool there = std::any_of(stages.begin(), stages.end(), [&](const std::string& stage) {
                return ended.errors.find(stage) != std::string::npos;
            });
            if (sent || !there) continue;
            ::kill(child, signal);
            sent = true;
        }
    }
    ::close(terminal);
    CHECK(sent);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return ended;
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
    if (!terminals_exist()) return;
    // On one thread patterns and forests are verified and simulated before these begin, and far more is to
    // do then than a signal takes.
    for (const int signal : {SIGINT, SIGTERM}) {
        const test::WorkFolder folder;
        const Ended ended = signaled_at(
            {": compose", ": shortest_paths", ": rerouted", ": bfb", ": ring", ": multi_ring", ": joint"},
            {"baton", "synth", "dgx_h100:hosts=4", "--threads", "1", "--size", "1GiB", "-o", "made.json"},
            folder.path(), signal);
        CAPTURE(ended.errors);
        CHECK(ended.code == 0);
        CHECK(content(folder.path() + "/out.txt").find("note: interrupted before the work was done") !=
              std::string::npos);
        CHECK(test::shell("baton verify made.json", folder.path()).code == 0);
    }
}

TEST_CASE("Ctrl-C before anything is verified leaves one line and no file") {
    if (!terminals_exist()) return;
    const test::WorkFolder folder;
    // The first synthesizers, patterns of a thousand ranks, take longer than a signal.
    const Ended ended = signaled_at({"making candidates"},
                                    {"baton", "synth", "dgx_h100:hosts=128", "--algorithm", "forest",
                                     "--size", "1GiB", "-o", "made.json"},
                                    folder.path(), SIGINT);
    CAPTURE(ended.errors);
    CHECK(ended.code == 1);
    CHECK(ended.errors.find("baton: stopped before any schedule") != std::string::npos);
    CHECK(content(folder.path() + "/made.json").empty());
}

TEST_CASE("impossible inputs are refused with their cause before any search") {
    CHECK(has(limited("ring:4 --without 'gpu0>gpu1' --without 'gpu0>gpu3'"), "cannot reach"));
    CHECK(has(limited("ring:4 --collective broadcast --root 7"), "root"));
    const auto many = limited("fully_connected:5000 --collective all_to_all --algorithm shortest_paths");
    CHECK(many.code == 2);
}
