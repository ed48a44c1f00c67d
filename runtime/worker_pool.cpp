#include <baton/runtime/worker_pool.hpp>

#include <sched.h>
#include <atomic>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace baton::runtime {

namespace {

// Until `done`, first by polling, then asleep on `word`, which still holds `old` then.
template <class Done>
void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t old, const Done& done) {
    for (int poll = 0; poll < 200; ++poll) {
        if (done()) return;
        sched_yield();
    }
    while (!done()) word.wait(old, std::memory_order_acquire);
}

struct alignas(128) Worker {
    std::atomic<std::uint32_t> ticket{0};
    const std::function<void(int)>* work = nullptr;
    int part = 0;
};

}  // namespace

int usable_cores() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1u, std::thread::hardware_concurrency());
}

struct WorkerPool::State {
    std::mutex busy;
    std::deque<Worker> workers;
    alignas(128) std::atomic<std::uint32_t> finished{0};

    void serve(Worker& me) {
        for (std::uint32_t last = 0;; ++last) {
            wait_for(me.ticket, last, [&] { return me.ticket.load(std::memory_order_acquire) != last; });
            (*me.work)(me.part);
            finished.fetch_add(1, std::memory_order_acq_rel);
            finished.notify_one();
        }
    }
    bool grow(int count) {
        while (static_cast<int>(workers.size()) < count) {
            Worker& worker = workers.emplace_back();
            try {
                std::thread([this, &worker] { serve(worker); }).detach();
            } catch (const std::system_error&) {
                workers.pop_back();
                return false;
            }
        }
        return true;
    }
};

WorkerPool::WorkerPool() : state_(std::make_unique<State>()) {}

WorkerPool& WorkerPool::instance() {
    // Never destroyed: its threads outlive static objects.
    static WorkerPool& pool = *new WorkerPool;
    return pool;
}

bool WorkerPool::run(int parts, const std::function<void(int)>& work) {
    State& state = *state_;
    const std::unique_lock lock(state.busy, std::try_to_lock);
    if (!lock.owns_lock() || !state.grow(parts - 1)) return false;
    state.finished.store(0, std::memory_order_relaxed);
    for (int i = 1; i < parts; ++i) {
        Worker& worker = state.workers[static_cast<std::size_t>(i) - 1];
        worker.work = &work, worker.part = i;
        worker.ticket.fetch_add(1, std::memory_order_release);
        worker.ticket.notify_one();
    }
    work(0);
    const auto all = static_cast<std::uint32_t>(parts - 1);
    for (std::uint32_t seen; (seen = state.finished.load(std::memory_order_acquire)) != all;) {
        wait_for(state.finished, seen,
                 [&] { return state.finished.load(std::memory_order_acquire) != seen; });
    }
    return true;
}

}  // namespace baton::runtime
