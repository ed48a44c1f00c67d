// Sessions as text: tests/golden/*.txt hold "$ command" lines, each followed by what it prints and "[exit N]"
// when N is not 0. The hash of the emitted source in names of entries is written ########, or every change of
// the prelude would change sessions. BATON_UPDATE_GOLDEN=1 rewrites them; read the difference before
// committing it.
#include <baton/base/files.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/shell.hpp"

using namespace baton;
namespace fs = std::filesystem;

namespace {

std::string without_hashes(std::string text) {
    return std::regex_replace(text, std::regex("(baton_[a-z0-9_]*_)[0-9a-f]{8}_"), "$1########_");
}

/// The session with the outputs that its commands print now.
std::string replay(const std::string& session) {
    const test::WorkFolder folder;
    std::istringstream lines(session);
    std::string out, line;
    bool header = true;
    while (std::getline(lines, line)) {
        if (line.rfind("$ ", 0) == 0) {
            header = false;
            const test::ShellResult result = test::shell(line.substr(2), folder.path());
            out += line + "\n" + result.output;
            if (!result.output.empty() && result.output.back() != '\n') out += "\n";
            if (result.code != 0) out += "[exit " + std::to_string(result.code) + "]\n";
            out += "\n";
        } else if (header) {
            out += line + "\n";  // remarks before the first command
        }
    }
    return without_hashes(out);
}

}  // namespace

TEST_CASE("sessions print what their golden files say") {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(BATON_SOURCE_DIR "/tests/golden")) {
        if (entry.path().extension() == ".txt") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    REQUIRE(!files.empty());
    const bool update = std::getenv("BATON_UPDATE_GOLDEN") != nullptr;
    for (const fs::path& file : files) {
        CAPTURE(file.filename().string());
        const std::string expected = read_file(file.string());
        const std::string seen = replay(expected);
        if (update) write_file(file.string(), seen);
        CHECK(seen == expected);
    }
}
