// Slow checks run only when asked for.
#pragma once

#include <cstdlib>

namespace baton::test {

/// True under `./dev test --full` (environment BATON_FULL=1).
inline bool full() {
    const char* value = std::getenv("BATON_FULL");
    return value != nullptr && value[0] == '1';
}

}  // namespace baton::test
