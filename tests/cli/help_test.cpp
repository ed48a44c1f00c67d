#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/shell.hpp"

using namespace baton;

namespace {

std::vector<std::string> commands() {
    const test::ShellResult help = test::shell("baton --help", ".");
    REQUIRE(help.code == 0);
    std::istringstream lines(help.output);
    std::string line;
    std::vector<std::string> names;
    bool below = false;
    while (std::getline(lines, line)) {
        if (line.rfind("Subcommands:", 0) == 0) {
            below = true;
        } else if (below && line.rfind("  ", 0) == 0 && line[2] != ' ') {
            names.push_back(line.substr(2, line.find(' ', 2) - 2));
        }
    }
    return names;
}

std::vector<std::string> examples(const std::string& command) {
    const test::ShellResult help = test::shell("baton " + command + " --help", ".");
    REQUIRE(help.code == 0);
    std::istringstream lines(help.output);
    std::string line;
    std::vector<std::string> found;
    bool below = false;
    while (std::getline(lines, line)) {
        if (line.rfind("Example:", 0) == 0) {
            below = true;
        } else if (below && line.rfind("  ", 0) == 0) {
            found.push_back(line.substr(2));
        }
    }
    return found;
}

}  // namespace

TEST_CASE("every example in every help text works as it stands") {
    const std::vector<std::string> names = commands();
    REQUIRE(!names.empty());
    for (const std::string& name : names) {
        CAPTURE(name);
        const std::vector<std::string> lines = examples(name);
        CHECK(!lines.empty());
        if (name == "quickstart") continue;  // a test of its own
        const test::WorkFolder folder;
        for (const std::string& line : lines) {
            CAPTURE(line);
            const test::ShellResult result = test::shell(line, folder.path());
            CAPTURE(result.output);
            CHECK(result.code == 0);
        }
    }
}

TEST_CASE("wrong usage is one line and exit code 2") {
    for (const std::string line : {"baton", "baton nonsense", "baton --nonsense"}) {
        CAPTURE(line);
        const test::ShellResult result = test::shell(line, ".");
        CHECK(result.code == 2);
        CHECK(result.output.rfind("baton: ", 0) == 0);
        CHECK(result.output.find('\n') == result.output.size() - 1);
    }
}

TEST_CASE("the version is printed") {
    const test::ShellResult result = test::shell("baton --version", ".");
    CHECK(result.code == 0);
    CHECK(result.output.rfind("baton 0.", 0) == 0);
}
