// Starting a compiler without a shell, in a folder that goes away.
#pragma once

#include <string>
#include <vector>

namespace baton::codegen {

/// A temporary folder that goes away with the object. Throws an input error when none can be made.
class ScratchFolder {
public:
    ScratchFolder();
    ~ScratchFolder();
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

struct ProcessResult {
    int status = -1;     ///< exit status, 128 + n when ended by signal n, -1 when it could not be started
    std::string output;  ///< standard output and standard error
};

/// Runs a program (found on PATH when its name has no slash) with its output in a file of `folder`.
ProcessResult run_process(const std::vector<std::string>& words, const ScratchFolder& folder);

/// The first line that names an error, else the first line.
std::string first_message(const std::string& output);

}  // namespace baton::codegen
