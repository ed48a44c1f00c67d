#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/runtime/content_hash.hpp>
#include <baton/runtime/host_compiler.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

extern char** environ;

namespace baton::runtime {

namespace {

/// A folder that goes away with the object.
class WorkFolder {
public:
    WorkFolder() {
        std::error_code error;
        const std::filesystem::path base = std::filesystem::temp_directory_path(error);
        path_ = (error ? "/tmp" : base.string()) + "/baton-compile-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr) {
            throw input_error("cannot make a temporary folder", path_,
                              "set TMPDIR to a folder that can be written");
        }
    }
    ~WorkFolder() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    std::string operator/(const char* name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

std::string text_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Runs a program without a shell, its output in `file`. The exit code; -1 when it could not be started.
int run_program(const std::vector<std::string>& words, const std::string& file) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return -1;
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// First line of --version, "" when the command does not answer.
std::string version_of(const std::string& command) {
    static std::mutex mutex;
    static std::vector<std::pair<std::string, std::string>> known;
    const std::lock_guard lock(mutex);
    for (const auto& [name, version] : known) {
        if (name == command) return version;
    }
    const WorkFolder folder;
    std::string version;
    if (run_program({command, "--version"}, folder / "version") == 0) {
        version = text_of(folder / "version");
        version.resize(std::min(version.find('\n'), version.size()));
        if (version.empty()) version = "unknown version";
    }
    known.emplace_back(command, version);
    return version;
}

/// What -march=native depends on.
const std::string& processor_features() {
    static const std::string features = [] {
        std::ifstream in("/proc/cpuinfo");
        std::string line, all;
        while (std::getline(in, line) && !line.empty()) {
            for (const char* key : {"model name", "flags", "Features", "CPU part", "CPU implementer"}) {
                if (line.starts_with(key)) all += line + "\n";
            }
        }
        return all;
    }();
    return features;
}

/// The code of a large module is its many instructions, of which each runs for microseconds at most: there,
/// only the loops over elements are worth the compiler's time.
constexpr std::size_t kLargeSource = std::size_t{256} << 10;

std::vector<std::string> standard_flags(std::size_t source_bytes) {
    std::vector<std::string> flags = {"-std=c++17",        "-fPIC", "-shared", "-fvisibility=hidden",
                                      "-ffp-contract=off", "-w"};
    if (source_bytes > kLargeSource) {
        flags.insert(flags.end(), {"-O1", "-ftree-vectorize"});
    } else {
        flags.emplace_back("-O3");
    }
#if defined(__x86_64__) || defined(__i386__)
    flags.push_back("-march=native");
#elif defined(__aarch64__)
    flags.push_back("-mcpu=native");
#endif
    return flags;
}

std::string first_complaint(const std::string& output) {
    std::stringstream lines(output);
    std::string line;
    while (std::getline(lines, line)) {
        if (line.find("error") != std::string::npos) return line;
    }
    return output.substr(0, std::min<std::size_t>(output.find('\n'), 400));
}

}  // namespace

HostCompiler find_host_compiler() {
    std::vector<std::string> candidates;
    if (const char* own = std::getenv("BATON_CXX"); own != nullptr && *own != 0) {
        candidates = {own};
    } else {
        if (const char* cxx = std::getenv("CXX"); cxx != nullptr && *cxx != 0) candidates.emplace_back(cxx);
        candidates.insert(candidates.end(), {"c++", "g++", "clang++"});
    }
    for (const std::string& command : candidates) {
        if (std::string version = version_of(command); !version.empty()) return {command, std::move(version)};
    }
    throw missing_error(fmt::format("no C++ compiler answers (asked: {})", fmt::join(candidates, ", ")), {},
                        "install g++ or clang++, or set BATON_CXX");
}

std::string compile_host(std::string_view source, const HostCompileOptions& options) {
    const HostCompiler compiler = find_host_compiler();
    std::vector<std::string> flags = standard_flags(source.size());
    flags.insert(flags.end(), options.flags.begin(), options.flags.end());
    ContentHash hash;
    hash.add_field("host object 1")
        .add_field(compiler.command)
        .add_field(compiler.version)
        .add_field(processor_features());
    for (const std::string& flag : flags) hash.add_field(flag);
    const std::string key = hash.add_field(source).hex();
    if (auto found = options.cache.find(key, ".so")) return *found;

    const WorkFolder folder;
    write_file(folder / "module.cc", source);
    std::vector<std::string> words = {compiler.command};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"-o", folder / "module.so", folder / "module.cc"});
    if (run_program(words, folder / "messages") != 0) {
        throw input_error(fmt::format("{} does not compile the module: {}", compiler.command,
                                      first_complaint(text_of(folder / "messages"))));
    }
    return options.cache.store(key, ".so", read_file(folder / "module.so"));
}

}  // namespace baton::runtime
