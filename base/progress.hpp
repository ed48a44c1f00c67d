// Progress of long work: one line on standard error when it is a terminal, silence otherwise.
#pragma once

#include <string>

namespace baton {

/// Tells a person what stage long work is in. Rewrites one line of standard error at most ten times a
/// second when it is a terminal; prints nothing otherwise. Not thread-safe.
class Progress {
public:
    explicit Progress(std::string task);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// `stage`: what is done now; `fraction` in [0, 1], or negative when unknown.
    void update(const std::string& stage, double fraction = -1);

private:
    std::string task_;
    bool terminal_ = false, shown_ = false;
    double last_ = 0;
};

}  // namespace baton
