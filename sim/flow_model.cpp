#include <baton/sim/flow_model.hpp>

namespace baton::sim {

FlowModel::FlowModel(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit)
    : Network(topology, queue, period_limit), sharing_(capacities(topology)) {}

void FlowModel::settle(Time now) {
    if (!changed_) return;
    changed_ = false;
    for (const int slot : sharing_.solve()) set_rate(slot, sharing_.rate(slot), now);
}

void FlowModel::enter(int slot) {
    sharing_.add(slot, message(slot).path->uses);
    changed_ = true;
}

void FlowModel::leave(int slot) {
    sharing_.remove(slot);
    changed_ = true;
}

std::string FlowModel::in_words() const {
    return "flow: messages in flight share every link and every joint limit max-min fairly at goodput; a "
           "message takes "
           "the latency of its route after its last byte has left; no packets, buffers or congestion control";
}

}  // namespace baton::sim
