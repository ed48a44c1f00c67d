#include <baton/base/parallel.hpp>

#include <baton/base/stop.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace baton {
namespace {

class Pieces {
public:
    Pieces(std::size_t count, const std::function<void(std::size_t)>& work) : count_(count), work_(work) {}

    void do_some() {
        for (std::size_t i = next_++; i < count_ && !failed_; i = next_++) {
            try {
                work_(i);
            } catch (...) {
                failed_ = true;
                const std::lock_guard lock(mutex_);
                if (!error_ || i < error_at_) {
                    error_ = std::current_exception();
                    error_at_ = i;
                }
            }
        }
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

private:
    std::size_t count_;
    const std::function<void(std::size_t)>& work_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    std::exception_ptr error_;
    std::size_t error_at_ = 0;
};

}  // namespace

int hardware_threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U)); }

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
    if (threads <= 1 || count <= 1) {
        for (std::size_t i = 0; i < count; ++i) work(i);
        return;
    }
    Pieces pieces(count, work);
    const StopToken token = current_stop();
    std::vector<std::thread> helpers;
    const std::size_t wanted = std::min(count, static_cast<std::size_t>(threads)) - 1;
    for (std::size_t t = 0; t < wanted; ++t) {
        try {
            helpers.emplace_back([&] {
                const StopScope scope(token);
                pieces.do_some();
            });
        } catch (const std::system_error&) {
            break;  // fewer threads do the same work
        }
    }
    pieces.do_some();
    for (std::thread& helper : helpers) helper.join();
    pieces.rethrow();
}

}  // namespace baton
