#include <baton/codegen/compile/process.hpp>

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace baton::codegen {

ScratchFolder::ScratchFolder() {
    std::error_code error;
    const std::filesystem::path base = std::filesystem::temp_directory_path(error);
    path_ = (error ? "/tmp" : base.string()) + "/baton-module-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
        throw input_error("cannot make a temporary folder", path_,
                          "set TMPDIR to a folder that can be written");
    }
}

ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

ProcessResult run_process(const std::vector<std::string>& words, const ScratchFolder& folder) {
    const std::string file = folder / "output.txt";
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ProcessResult result;
    if (failed != 0) return result;
    int raw = 0;
    while (waitpid(child, &raw, 0) < 0) {
        if (errno != EINTR) return result;
    }
    result.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    result.output = read_file(file);
    return result;
}

std::string first_message(const std::string& output) {
    const std::size_t error = output.find("error");
    std::size_t begin = 0;
    if (error != std::string::npos) {
        const std::size_t line = output.rfind('\n', error);
        begin = line == std::string::npos ? 0 : line + 1;
    }
    return output.substr(begin, output.find('\n', begin) - begin);
}

}  // namespace baton::codegen
