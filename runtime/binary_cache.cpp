#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/runtime/binary_cache.hpp>
#include <baton/runtime/content_hash.hpp>

#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>

namespace baton::runtime {

namespace {

// Behind the binary: this mark, then the 64 digits of its hash.
constexpr std::string_view kMark = "\nbaton-cache-1 ";
constexpr std::size_t kTrailer = kMark.size() + 64;

std::string variable(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? std::string() : std::string(text);
}

}  // namespace

BinaryCache::BinaryCache(std::string folder) : folder_(std::move(folder)) {}

BinaryCache BinaryCache::user() {
    if (const std::string folder = variable("BATON_CACHE_DIR"); !folder.empty()) return BinaryCache(folder);
    if (const std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
        return BinaryCache(folder + "/baton");
    if (const std::string home = variable("HOME"); !home.empty()) return BinaryCache(home + "/.cache/baton");
    std::error_code error;
    const std::filesystem::path temporary = std::filesystem::temp_directory_path(error);
    return BinaryCache((error ? "/tmp" : temporary.string()) + "/baton-cache-" + std::to_string(geteuid()));
}

std::string BinaryCache::path(const std::string& key, std::string_view suffix) const {
    return folder_ + "/" + key + std::string(suffix);
}

void BinaryCache::check_folder() const {
    struct stat status {};
    if (stat(folder_.c_str(), &status) != 0) return;
    if (!S_ISDIR(status.st_mode))
        throw input_error("the cache is not a folder", folder_, "set BATON_CACHE_DIR to a folder");
    // Whoever may write here may have code run by this user.
    if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        throw input_error("others may write to the cache of compiled code", folder_,
                          "chmod 700 it, or set BATON_CACHE_DIR to a folder of your own");
    }
}

std::optional<std::string> BinaryCache::find(const std::string& key, std::string_view suffix) const {
    check_folder();
    const std::string file = path(key, suffix);
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return std::nullopt;
    const std::string bytes = read_file(file);
    if (bytes.size() >= kTrailer) {
        const std::string_view all = bytes;
        const std::string_view trailer = all.substr(all.size() - kTrailer);
        if (trailer.starts_with(kMark) &&
            trailer.substr(kMark.size()) == content_hash(all.substr(0, all.size() - kTrailer))) {
            return file;
        }
    }
    std::filesystem::remove(file, error);
    return std::nullopt;
}

std::string BinaryCache::store(const std::string& key, std::string_view suffix,
                               std::string_view binary) const {
    std::error_code error;
    if (!std::filesystem::exists(folder_, error)) {
        std::filesystem::create_directories(folder_, error);
        if (!error) std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, error);
    }
    check_folder();
    const std::string file = path(key, suffix);
    write_file(file, std::string(binary) + std::string(kMark) + content_hash(binary));
    return file;
}

std::string BinaryCache::content(const std::string& path) {
    std::string bytes = read_file(path);
    if (bytes.size() >= kTrailer) bytes.resize(bytes.size() - kTrailer);
    return bytes;
}

}  // namespace baton::runtime
