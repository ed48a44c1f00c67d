#include <baton/cli/interrupt.hpp>

#include <array>
#include <atomic>
#include <csignal>

namespace baton::cli {
namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "written by a signal handler");
std::array<struct sigaction, kSignals.size()> before_interrupt;

void on_interrupt(int) { interrupted.store(true, std::memory_order_relaxed); }

}  // namespace

Interrupt::Interrupt() {
    interrupted = false;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        sigaction(kSignals[i], nullptr, &before_interrupt[i]);
        if (before_interrupt[i].sa_handler == SIG_IGN) continue;
        struct sigaction action = {};
        action.sa_handler = on_interrupt;
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
        sigemptyset(&action.sa_mask);
        sigaction(kSignals[i], &action, nullptr);
    }
}

Interrupt::~Interrupt() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_interrupt[i], nullptr);
}

StopToken Interrupt::token() { return StopToken().with_flag(interrupted); }
bool Interrupt::happened() { return interrupted; }

}  // namespace baton::cli
