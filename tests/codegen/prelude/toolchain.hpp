// Calls of the system's compilers in tests.
#pragma once

#include <baton/codegen/prelude.hpp>

#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace baton::test {

/// A folder that goes away with the object.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}
inline void write_text(const std::filesystem::path& file, const std::string& text) {
    std::ofstream(file) << text;
}

/// A file of tests/codegen/prelude.
inline std::filesystem::path fixture(const std::string& name) {
    return std::filesystem::path(BATON_SOURCE_DIR) / "tests/codegen/prelude" / name;
}

struct Outcome {
    int status = -1;
    std::string text;  // stdout and stderr
};

/// Runs a shell command line.
inline Outcome shell(const std::string& command) {
    Outcome outcome;
    FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return outcome;
    char buffer[4096];
    while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) outcome.text.append(buffer, n);
    const int raw = pclose(pipe);
    outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    return outcome;
}

inline bool available(const std::string& program) { return shell("command -v " + program).status == 0; }

/// nvcc from PATH or the usual place; "" when there is none.
inline std::string find_nvcc() {
    for (const char* each : {"nvcc", "/usr/local/cuda/bin/nvcc"})
        if (available(each)) return each;
    return {};
}

}  // namespace baton::test
