// Independent pieces of work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace baton {

/// How many threads help at all: those the machine runs at once, at most 64; 1 when it does not say.
int hardware_threads();

/// Calls `work(0)` to `work(count - 1)`, each once, on up to `threads` threads (this one among them); pieces
/// are begun in order of number. Returns when all have ended. With one thread, in order on this one. When
/// pieces throw, no new ones are begun and the exception of the lowest number that threw is rethrown. The
/// stop token of this thread (see stop.hpp) holds on all.
///
/// Results are the same for any number of threads as long as each piece writes to places of its own.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace baton
