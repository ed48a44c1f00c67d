#include <baton/base/files.hpp>

#include <baton/base/error.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace baton {
namespace {

class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ > 2) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

private:
    int fd_;
};

Error cannot(const char* verb, const std::string& path, int code) {
    return input_error(fmt::format("cannot {}: {}", verb, std::strerror(code)), path);
}

}  // namespace

std::string read_file(const std::string& path, std::int64_t limit) {
    const bool standard_input = path == "-";
    const Descriptor file(standard_input ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) throw cannot("read", path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) == 0 && S_ISDIR(status.st_mode))
        throw input_error("is a folder, not a file", path);
    std::string content;
    constexpr std::size_t kPiece = 1 << 16;
    while (true) {
        const std::size_t before = content.size();
        content.resize(before + kPiece);
        const ssize_t got = ::read(file.get(), content.data() + before, kPiece);
        if (got < 0 && errno == EINTR) {
            content.resize(before);
            continue;
        }
        if (got < 0) throw cannot("read", path, errno);
        content.resize(before + static_cast<std::size_t>(got));
        if (got == 0) return content;
        if (static_cast<std::int64_t>(content.size()) > limit) {
            throw input_error(fmt::format("is larger than {} bytes", limit),
                              standard_input ? "standard input" : path);
        }
    }
}

void check_writable(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code code;
    const fs::path target(path);
    if (target.empty()) throw input_error("the path is empty", path);
    if (!target.has_filename() || fs::is_directory(target, code))
        throw input_error("is a folder, not a file", path);
    if (fs::exists(target, code) && !fs::is_regular_file(target, code)) return;
    fs::path folder = fs::absolute(target, code).parent_path();
    while (!fs::exists(folder, code) && folder.has_relative_path()) folder = folder.parent_path();
    if (!fs::is_directory(folder, code))
        throw input_error("cannot write: " + folder.string() + " is no folder", path);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) throw cannot("write", path, errno);
}

void write_file(const std::string& path, std::string_view content) {
    namespace fs = std::filesystem;
    const fs::path target(path);
    std::error_code code;
    if (target.has_parent_path()) fs::create_directories(target.parent_path(), code);
    if (code) throw input_error("cannot make the folder: " + code.message(), target.parent_path().string());
    if (fs::is_directory(target, code)) throw input_error("is a folder, not a file", path);
    // A device or pipe (/dev/stdout) cannot be replaced by a rename: write straight into it.
    const bool special = fs::exists(target, code) && !fs::is_regular_file(target, code);
    std::string temporary = special ? path : fmt::format("{}.XXXXXX", path);
    const Descriptor file(special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : ::mkstemp(temporary.data()));
    if (file.get() < 0) throw cannot("write", path, errno);
    const auto fail = [&](int error) {
        if (!special) ::unlink(temporary.c_str());
        throw cannot("write", path, error);
    };
    while (!content.empty()) {
        const ssize_t written = ::write(file.get(), content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(errno);
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (special) return;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(file.get(), 0666 & ~mask) != 0 || ::fsync(file.get()) != 0) fail(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
}

}  // namespace baton
