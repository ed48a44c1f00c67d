#include <baton/base/error.hpp>
#include <baton/runtime/cpu_backend.hpp>
#include <baton/runtime/fiber.hpp>
#include <baton/runtime/worker_pool.hpp>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <system_error>
#include <thread>

namespace baton::runtime {

namespace {

// A team of OS threads: a barrier that tells everybody whether somebody came with a flag. By generations.
struct Team {
    explicit Team(int n) : size(n) {}
    int size;
    std::atomic<int> waiting{0}, flag[3] = {{0}, {0}, {0}};
    std::atomic<unsigned> generation{0};
    static int arrive(void* context, int mine) {
        Team& team = *static_cast<Team*>(context);
        const unsigned now = team.generation.load(std::memory_order_relaxed);
        if (mine) team.flag[now % 3].store(1, std::memory_order_relaxed);
        if (team.waiting.fetch_add(1, std::memory_order_acq_rel) + 1 == team.size) {
            team.waiting.store(0, std::memory_order_relaxed);
            team.flag[(now + 1) % 3].store(0, std::memory_order_relaxed);
            team.generation.store(now + 1, std::memory_order_release);
        } else {
            while (team.generation.load(std::memory_order_acquire) == now) sched_yield();
        }
        return team.flag[now % 3].load(std::memory_order_relaxed);
    }
};

class CpuBackend : public Backend {
public:
    explicit CpuBackend(const CpuOptions& options) : options_(options) {
        if (options.threads_per_block < 1 || options.threads_per_block > 64) {
            throw input_error("threads per threadblock must be within 1 and 64");
        }
        cores_ = options.workers > 0 ? options.workers : usable_cores();
    }
    std::string_view name() const override { return "cpu"; }
    bool host_memory() const override { return true; }
    int place_of(int rank) const override { return rank; }
    int ranks_per_place() const override { return 1; }

    void* allocate(int, std::int64_t bytes) override {
        // Fresh pages are zero and cost nothing until they are touched. The size stands in front.
        const std::size_t size = static_cast<std::size_t>(bytes) + kFront;
        void* memory =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            throw input_error(fmt::format("not enough memory: {} bytes asked for", bytes));
        std::memcpy(memory, &size, sizeof size);
        return static_cast<char*>(memory) + kFront;
    }
    void release(int, void* memory) noexcept override {
        if (memory == nullptr) return;
        void* front = static_cast<char*>(memory) - kFront;
        std::size_t size = 0;
        std::memcpy(&size, front, sizeof size);
        munmap(front, size);
    }
    void* allocate_shared(std::int64_t bytes) override { return allocate(0, bytes); }
    void release_shared(void* memory) noexcept override { release(0, memory); }
    void write(int, void* to, const void* from, std::int64_t bytes) override {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
    void read(int, void* to, const void* from, std::int64_t bytes) override {
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
    }
    void write_in_order(int rank, void* to, const void* from, std::int64_t bytes, void*) override {
        write(rank, to, from, bytes);
    }

    const void* prepare(const Module& module, const codegen::ManifestEntry& entry, int, int, int) override {
        return reinterpret_cast<const void*>(module.host_entry(entry));
    }
    void start(std::span<const Launch> launches, int iterations, void*) override;
    void wait(int, void*) override {}

private:
    static constexpr std::size_t kFront = 128;
    void run_teams(std::span<const BlockTask> tasks) const;

    CpuOptions options_;
    int cores_ = 1;
};

void CpuBackend::run_teams(std::span<const BlockTask> tasks) const {
    const int size = options_.threads_per_block;
    std::deque<Team> teams;
    std::vector<std::thread> threads;
    std::atomic<int> go{0};  // 1: run, 2: give up
    const auto stop = [&](int word) {
        go.store(word, std::memory_order_release);
        for (std::thread& thread : threads) thread.join();
    };
    try {
        for (const BlockTask& task : tasks) {
            Team& team = teams.emplace_back(size);
            for (int t = 0; t < size; ++t) {
                threads.emplace_back([&, t] {
                    while (go.load(std::memory_order_acquire) == 0) sched_yield();
                    if (go.load(std::memory_order_relaxed) != 1) return;
                    run_task(task, {task.block, static_cast<baton_u32>(t), static_cast<baton_u32>(size), 0,
                                    &team, &Team::arrive, &host_yield, &host_now_ns});
                });
            }
        }
    } catch (const std::system_error&) {
        stop(2);
        throw input_error(
            fmt::format("cannot start {} threads", tasks.size() * static_cast<std::size_t>(size)), {},
            "use fewer ranks or threadblocks, or fibers");
    }
    stop(1);
}

void CpuBackend::start(std::span<const Launch> launches, int iterations, void*) {
    std::deque<CallGate> gates;
    std::vector<BlockTask> tasks;
    for (const Launch& launch : launches) {
        const baton_host_entry entry = reinterpret_cast<baton_host_entry>(const_cast<void*>(launch.code));
        CallGate* gate = iterations > 1 ? &gates.emplace_back() : nullptr;
        for (int b = 0; b < launch.blocks; ++b) {
            tasks.push_back({entry, launch.arguments, static_cast<baton_u32>(b), gate,
                             static_cast<baton_u32>(launch.blocks), iterations});
        }
    }
    if (tasks.empty()) return;
    const std::span<const BlockTask> all = tasks;
    const bool fibers = options_.fibers && fibers_available();
    const int parts = launches.size() == 1 ? 1 : std::min<int>(cores_, static_cast<int>(tasks.size()));
    if (options_.threads_per_block > 1 || (!fibers && tasks.size() > 1)) return run_teams(all);
    // A lone launch is one rank of several threads.
    const std::uint32_t spin =
        static_cast<int>(launches[0].arguments->calls[0].rank->ranks) <= cores_ ? 200 : 0;
    if (parts == 1) return run_fibers(all, spin);
    const std::size_t n = tasks.size(), each = static_cast<std::size_t>(parts);
    std::atomic<bool> failed{false};
    const auto part = [&](int i) {
        const std::size_t k = static_cast<std::size_t>(i);
        try {
            run_fibers(all.subspan(n * k / each, n * (k + 1) / each - n * k / each), 200);
        } catch (const Error&) {
            failed.store(true);  // no memory for stacks; the other parts run into their deadline
        }
    };
    if (!WorkerPool::instance().run(parts, part)) return run_fibers(all, spin);
    if (failed.load()) throw input_error("not enough memory for the stacks of threadblocks");
}

}  // namespace

std::shared_ptr<Backend> cpu_backend(const CpuOptions& options) {
    return std::make_shared<CpuBackend>(options);
}

}  // namespace baton::runtime
