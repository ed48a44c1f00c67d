// Ending long work early: a token that says "stop", and the points in loops that listen to it.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace baton {

/// Says whether work should end now: when it was told to, when its time is over, or when the token it was
/// made from stops. Copies are the same token. Thread-safe.
class StopToken {
public:
    /// Never stops by itself.
    StopToken();

    /// A token that stops with this one, and when it is told to by itself.
    StopToken child() const;
    /// A token that stops with this one, and `seconds` (wall clock) from now.
    StopToken within(double seconds) const;
    /// A token that stops with this one, and when the flag is set: one that a signal handler may write. The
    /// flag must outlive all copies.
    StopToken with_flag(const std::atomic<bool>& flag) const;

    void request_stop() const;
    bool stop_requested() const;
    /// Until the nearest time limit, here or further up; nothing where there is none.
    std::optional<double> seconds_left() const;

private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Thrown by `stop_point`. Not an `Error`: whoever gave the token catches it and goes on with what there is.
class Stopped : public std::exception {
public:
    const char* what() const noexcept override { return "stopped before the work was done"; }
};

/// Makes a token the one that `stop_point` asks on this thread, until the scope ends; scopes nest. Keeps
/// algorithms free of a parameter that all would hand down.
class StopScope {
public:
    explicit StopScope(StopToken token);
    ~StopScope();
    StopScope(const StopScope&) = delete;
    StopScope& operator=(const StopScope&) = delete;

private:
    StopToken token_;
    const StopToken* before_;
};

/// The token of this thread's innermost scope, or one that never stops.
StopToken current_stop();

/// To be called in every loop that may take longer than a moment, some 10 to 10 million times a second.
/// Throws `Stopped` when this thread's token stops; nothing to do (one load) outside of any scope. Results
/// must not depend on it in any other way: what is caught is thrown away.
void stop_point();

/// Calls a function once from another thread when the token stops, within about 20 ms: for libraries that
/// must be interrupted from outside. The function is not called after the destructor has returned. Costs a
/// thread; waits are its only work.
class StopWatch {
public:
    StopWatch(const StopToken& token, std::function<void()> function);
    ~StopWatch();
    StopWatch(const StopWatch&) = delete;
    StopWatch& operator=(const StopWatch&) = delete;

private:
    struct Thread;
    std::unique_ptr<Thread> thread_;
};

}  // namespace baton
