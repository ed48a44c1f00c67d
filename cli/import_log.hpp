// The part of `baton import` that reads measurements.
#pragma once

#include <string>

namespace baton::cli {

inline constexpr const char* kLogFormat = "nccl-tests";

struct LogImport {
    std::string path, text;   ///< the file
    bool recognized = false;  ///< the format was found from the content
    std::string output;       ///< CSV to write; empty: none
    bool json = false;
};

/// Reads a log of nccl-tests, says what it found, and writes its table. Returns the exit code.
int import_log(const LogImport& request);

}  // namespace baton::cli
