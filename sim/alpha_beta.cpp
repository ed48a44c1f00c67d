#include <baton/sim/alpha_beta.hpp>

namespace baton::sim {

AlphaBeta::AlphaBeta(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit)
    : Network(topology, queue, period_limit) {}

void AlphaBeta::settle(Time now) {
    for (const int slot : entered_) set_rate(slot, message(slot).path->alone, now);
    entered_.clear();
}

void AlphaBeta::enter(int slot) { entered_.push_back(slot); }
void AlphaBeta::leave(int) {}

std::string AlphaBeta::in_words() const {
    return "alpha_beta: a message takes the latency of its route plus its bytes over the route's goodput, as "
           "if it were "
           "alone; no contention, so the time may be below the bound";
}

}  // namespace baton::sim
