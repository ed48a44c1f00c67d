// Reading whole files with a limit, and writing them so that no reader ever sees half a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

/// Largest input file that is read (bytes); larger ones are an input error, not an exhausted memory.
inline constexpr std::int64_t kMaxInputFileBytes = std::int64_t{1} << 30;

/// The whole file ("-" reads standard input). Throws an input error naming the path when it is absent,
/// a folder, unreadable, or larger than `limit` bytes.
std::string read_file(const std::string& path, std::int64_t limit = kMaxInputFileBytes);

/// Throws the input error that `write_file` would throw for a path that is a folder or cannot be made: to say
/// so before long work. Writes nothing; a disk that is full is only seen later.
void check_writable(const std::string& path);

/// Writes to a temporary name in the same folder, syncs and renames over `path`, so that a reader sees the
/// old file or the new one. Creates missing parent folders. Throws an input error when it cannot.
void write_file(const std::string& path, std::string_view content);

}  // namespace baton
