// Ctrl-C as a wish to end long work with what there is.
#pragma once

#include <baton/base/stop.hpp>

namespace baton::cli {

/// While it lives, the first SIGINT or SIGTERM only stops `token()`; the second of the same kind kills the
/// process as usual. Signals that were ignored stay so. One at a time.
class Interrupt {
public:
    Interrupt();
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    /// Stops on the first signal.
    static StopToken token();
    static bool happened();
};

}  // namespace baton::cli
