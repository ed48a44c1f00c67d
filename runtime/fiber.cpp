#include <baton/base/error.hpp>
#include <baton/runtime/fiber.hpp>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <chrono>
#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BATON_FIBERS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BATON_FIBERS 0
#endif
#endif
#ifndef BATON_FIBERS
#define BATON_FIBERS 1
#endif
#if BATON_FIBERS && !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace baton::runtime {

baton_u64 host_now_ns(void*) {
    return static_cast<baton_u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                      std::chrono::steady_clock::now().time_since_epoch())
                                      .count());
}

void host_yield(void*) { sched_yield(); }

void run_task(const BlockTask& task, const baton_host_thread& host) {
    for (int i = 0; i < task.iterations; ++i) {
        if (task.gate == nullptr) {
            task.entry(task.arguments, &host);
            continue;
        }
        const std::uint32_t round = static_cast<std::uint32_t>(i);
        while (task.gate->round.load(std::memory_order_acquire) != round) host.yield(host.context);
        task.entry(task.arguments, &host);
        if (task.gate->left.fetch_add(1, std::memory_order_acq_rel) + 1 ==
            task.gate_blocks * host.threads * (round + 1)) {
            task.gate->round.store(round + 1, std::memory_order_release);
        }
    }
}

bool fibers_available() { return BATON_FIBERS != 0; }

#if BATON_FIBERS

namespace {

constexpr std::size_t kStackBytes = 256 << 10;

#if defined(__x86_64__)
// Saves the registers that a call preserves, and continues where `to` was saved.
extern "C" void baton_fiber_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl baton_fiber_switch
.hidden baton_fiber_switch
.type baton_fiber_switch,@function
baton_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size baton_fiber_switch,.-baton_fiber_switch
)");
struct Context {
    void* stack_pointer = nullptr;
    void switch_to(Context& other) { baton_fiber_switch(&stack_pointer, other.stack_pointer); }
    void prepare(void* stack, std::size_t bytes, void (*start)()) {
        auto** top = reinterpret_cast<void**>(static_cast<char*>(stack) + bytes);
        // At `start` the stack is as behind a call: misaligned by one word.
        *--top = nullptr;
        *--top = reinterpret_cast<void*>(start);
        for (int i = 0; i < 6; ++i) *--top = nullptr;
        stack_pointer = top;
    }
};
#else
struct Context {
    ucontext_t state;
    void switch_to(Context& other) { swapcontext(&state, &other.state); }
    void prepare(void* stack, std::size_t bytes, void (*start)()) {
        getcontext(&state);
        state.uc_stack.ss_sp = stack;
        state.uc_stack.ss_size = bytes;
        state.uc_link = nullptr;
        makecontext(&state, start, 0);
    }
};
#endif

class Stack {
public:
    Stack() : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
        memory_ = mmap(nullptr, kStackBytes + page_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
        if (memory_ == MAP_FAILED) throw input_error("not enough memory for the stacks of threadblocks");
        mprotect(memory_, page_, PROT_NONE);
    }
    ~Stack() { munmap(memory_, kStackBytes + page_); }
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    void* base() const { return static_cast<char*>(memory_) + page_; }

private:
    void* memory_;
    std::size_t page_;
};

struct Fiber {
    Context context;
    Stack stack;
    const BlockTask* task = nullptr;
    Fiber *next = nullptr, *previous = nullptr;
};

// The fibers of one thread; kept with their stacks from call to call.
struct Loop {
    std::vector<std::unique_ptr<Fiber>> fibers;
    Context main;
    Fiber* running = nullptr;
    std::uint32_t turns = 0, turns_per_yield = 1;
};
thread_local Loop loop;

void next_turn(void*) {
    Loop& mine = loop;
    // Other threads of the machine may hold what these fibers wait for.
    if (++mine.turns >= mine.turns_per_yield) {
        mine.turns = 0;
        sched_yield();
    }
    Fiber* from = mine.running;
    if (from->next == from) return;
    mine.running = from->next;
    from->context.switch_to(mine.running->context);
}

void fiber_main() {
    Loop& mine = loop;
    Fiber* self = mine.running;
    const baton_host_thread host{self->task->block, 0, 1, 0, nullptr, nullptr, &next_turn, &host_now_ns};
    run_task(*self->task, host);
    if (self->next == self) {
        self->context.switch_to(mine.main);
    } else {
        self->previous->next = self->next;
        self->next->previous = self->previous;
        mine.running = self->next;
        self->context.switch_to(mine.running->context);
    }
}

}  // namespace

void run_fibers(std::span<const BlockTask> tasks, std::uint32_t spin) {
    if (tasks.empty()) return;
    if (tasks.size() == 1) {
        return run_task(tasks[0], {tasks[0].block, 0, 1, spin, nullptr, nullptr, &host_yield, &host_now_ns});
    }
    Loop& mine = loop;
    while (mine.fibers.size() < tasks.size()) mine.fibers.push_back(std::make_unique<Fiber>());
    const std::size_t n = tasks.size();
    for (std::size_t i = 0; i < n; ++i) {
        Fiber& fiber = *mine.fibers[i];
        fiber.task = &tasks[i];
        fiber.next = mine.fibers[(i + 1) % n].get();
        fiber.previous = mine.fibers[(i + n - 1) % n].get();
        fiber.context.prepare(fiber.stack.base(), kStackBytes, &fiber_main);
    }
    mine.turns = 0;
    // About one system call in 256 polls, but at least once in sixteen rounds.
    mine.turns_per_yield =
        static_cast<std::uint32_t>(std::max<std::size_t>(n, std::min<std::size_t>(256, 16 * n)));
    mine.running = mine.fibers[0].get();
    mine.main.switch_to(mine.running->context);
}

#else

void run_fibers(std::span<const BlockTask>, std::uint32_t) {
    throw internal_error("fibers in a build without them");
}

#endif

}  // namespace baton::runtime
