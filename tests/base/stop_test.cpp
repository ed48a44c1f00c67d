// Stop tokens and work on several threads.
#include <baton/base/error.hpp>
#include <baton/base/parallel.hpp>
#include <baton/base/stop.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

using namespace baton;

TEST_CASE("a stop token stops with itself, its flag, its deadline and what it was made from") {
    const StopToken parent;
    std::atomic<bool> flag = false;
    const StopToken never = parent.within(1e12), later = parent.within(1e6), flagged = parent.with_flag(flag);
    CHECK_FALSE(parent.stop_requested());
    CHECK_FALSE(never.stop_requested());
    CHECK_FALSE(later.stop_requested());
    CHECK(later.within(1e7).seconds_left().value() <= 1e6);
    CHECK_FALSE(never.seconds_left().has_value());
    CHECK(parent.within(0).stop_requested());
    CHECK(parent.within(-1).stop_requested());
    flag = true;
    CHECK(flagged.stop_requested());
    CHECK_FALSE(parent.stop_requested());
    parent.request_stop();
    CHECK(later.stop_requested());
}

TEST_CASE("stop points listen to the innermost scope of their thread") {
    CHECK_NOTHROW(stop_point());
    StopToken stopped;
    stopped.request_stop();
    {
        const StopScope outer(stopped);
        CHECK_THROWS_AS(stop_point(), Stopped);
        {
            const StopScope inner{StopToken()};
            CHECK_NOTHROW(stop_point());
        }
        CHECK_THROWS_AS(stop_point(), Stopped);
    }
    CHECK_NOTHROW(stop_point());
}

TEST_CASE("a stop watch calls when its token stops, and not after it is gone") {
    std::mutex mutex;
    std::condition_variable wake;
    bool called = false;
    StopToken token;
    {
        const StopWatch watch(token, [&] {
            const std::lock_guard lock(mutex);
            called = true;
            wake.notify_all();
        });
        token.request_stop();
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return called; });
    }
    CHECK(called);
    called = false;
    {
        const StopWatch watch(StopToken(), [&] { called = true; });
    }
    CHECK_FALSE(called);
}

TEST_CASE("pieces of work are each done once, on any number of threads") {
    for (const int threads : {1, 2, 5}) {
        std::vector<int> done(1000, 0);
        parallel_for(done.size(), threads, [&](std::size_t i) { ++done[i]; });
        CHECK(done == std::vector<int>(1000, 1));
    }
    parallel_for(0, 4, [](std::size_t) { FAIL("nothing to do"); });
}

TEST_CASE("an error in a piece of work reaches the caller, the stop token reaches the pieces") {
    for (const int threads : {1, 3}) {
        CHECK_THROWS_AS(parallel_for(20, threads,
                                     [](std::size_t i) {
                                         if (i == 3) throw input_error("three");
                                     }),
                        Error);
        StopToken token;
        const StopScope scope(token);
        std::atomic<int> stopped = 0;
        parallel_for(20, threads, [&](std::size_t i) {
            if (i == 0) token.request_stop();
            try {
                stop_point();
            } catch (const Stopped&) {
                ++stopped;
            }
        });
        CHECK(stopped > 0);
        CHECK(stopped <= 20);
    }
}
