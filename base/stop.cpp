#include <baton/base/stop.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWatchPause{20};

thread_local const StopToken* current_token = nullptr;

}  // namespace

struct StopToken::State {
    std::atomic<bool> requested{false};
    const std::atomic<bool>* flag = nullptr;
    std::optional<Clock::time_point> deadline;
    std::shared_ptr<const State> parent;
};

StopToken::StopToken() : state_(std::make_shared<State>()) {}

StopToken StopToken::child() const {
    StopToken token;
    token.state_->parent = state_;
    return token;
}

StopToken StopToken::within(double seconds) const {
    constexpr double kEver = 1e9;  // beyond what the clock counts
    StopToken token = child();
    if (seconds < kEver) {
        token.state_->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                    std::chrono::duration<double>(seconds));
    }
    return token;
}

StopToken StopToken::with_flag(const std::atomic<bool>& flag) const {
    StopToken token = child();
    token.state_->flag = &flag;
    return token;
}

void StopToken::request_stop() const { state_->requested.store(true, std::memory_order_relaxed); }

bool StopToken::stop_requested() const {
    for (const State* state = state_.get(); state != nullptr; state = state->parent.get()) {
        if (state->requested.load(std::memory_order_relaxed)) return true;
        if (state->flag != nullptr && state->flag->load(std::memory_order_relaxed)) return true;
        if (state->deadline && Clock::now() >= *state->deadline) return true;
    }
    return false;
}

std::optional<double> StopToken::seconds_left() const {
    std::optional<double> least;
    for (const State* state = state_.get(); state != nullptr; state = state->parent.get()) {
        if (!state->deadline) continue;
        const double left = std::chrono::duration<double>(*state->deadline - Clock::now()).count();
        if (!least || left < *least) least = left;
    }
    return least;
}

StopScope::StopScope(StopToken token) : token_(std::move(token)), before_(current_token) {
    current_token = &token_;
}
StopScope::~StopScope() { current_token = before_; }

StopToken current_stop() { return current_token != nullptr ? *current_token : StopToken(); }

void stop_point() {
    if (current_token != nullptr && current_token->stop_requested()) throw Stopped();
}

struct StopWatch::Thread {
    std::mutex mutex;
    std::condition_variable wake;
    bool done = false;
    std::thread thread;
};

StopWatch::StopWatch(const StopToken& token, std::function<void()> function)
    : thread_(std::make_unique<Thread>()) {
    thread_->thread = std::thread([own = thread_.get(), token, function = std::move(function)] {
        std::unique_lock lock(own->mutex);
        while (!own->done && !token.stop_requested()) own->wake.wait_for(lock, kWatchPause);
        if (!own->done) function();
    });
}

StopWatch::~StopWatch() {
    {
        const std::lock_guard lock(thread_->mutex);
        thread_->done = true;
    }
    thread_->wake.notify_all();
    thread_->thread.join();
}

}  // namespace baton
