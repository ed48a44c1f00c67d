// Runs command lines as a user would, with the built `baton` first in PATH.
#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace baton::test {

struct ShellResult {
    std::string output;  ///< standard output and standard error together
    int code = 0;        ///< exit status; 128 + n when ended by signal n
};

/// Runs `command` with sh in `folder`, without standard input.
inline ShellResult shell(const std::string& command, const std::string& folder) {
    const std::string line = "cd '" + folder + "' && export PATH='" BATON_BINARY_DIR "/bin':\"$PATH\" && { " +
                             command + "\n} 2>&1 </dev/null";
    ShellResult result;
    FILE* pipe = ::popen(line.c_str(), "r");
    if (!pipe) return {"cannot start sh", 127};
    char block[4096];
    std::size_t got = 0;
    while ((got = std::fread(block, 1, sizeof block, pipe)) > 0) result.output.append(block, got);
    const int status = ::pclose(pipe);
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

/// A folder that goes when the test ends, with `examples` linked into it.
class WorkFolder {
public:
    WorkFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "baton-test-XXXXXX").string();
        if (!::mkdtemp(name.data())) std::abort();
        path_ = name;
        std::filesystem::create_directory_symlink(BATON_SOURCE_DIR "/examples", path_ / "examples");
    }
    ~WorkFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

}  // namespace baton::test
