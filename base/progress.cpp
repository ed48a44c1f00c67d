#include <baton/base/progress.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>

namespace baton {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Progress::Progress(std::string task) : task_(std::move(task)), terminal_(::isatty(2) == 1) {}

Progress::~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(const std::string& stage, double fraction) {
    if (!terminal_) return;
    const double time = now();
    if (shown_ && time - last_ < 0.1) return;
    last_ = time;
    shown_ = true;
    const std::string percent = fraction >= 0 ? fmt::format(" {:.0f}%", fraction * 100) : std::string();
    std::fputs(fmt::format("\r\x1b[K{}: {}{}", task_, stage, percent).c_str(), stderr);
}

}  // namespace baton
