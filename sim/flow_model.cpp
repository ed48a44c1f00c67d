#include <baton/sim/flow_model.hpp>

namespace baton::sim {

FlowModel::FlowModel(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit)
    : Network(topology, queue, period_limit), sharing_(capacities(topology)) {}

FlowModel::Slot& FlowModel::state(int slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (at >= states_.size()) {
        states_.resize(at + 1, Slot::absent);
        paths_.resize(at + 1, nullptr);
    }
    return states_[at];
}

void FlowModel::settle(Time now) {
    for (const int slot : leaving_) {
        if (state(slot) != Slot::leaving) continue;
        sharing_.remove(slot);
        state(slot) = Slot::absent;
        changed_ = true;
    }
    leaving_.clear();
    if (changed_) {
        changed_ = false;
        for (const int slot : sharing_.solve()) {
            state(slot) = Slot::flowing;
            set_rate(slot, sharing_.rate(slot), now);
        }
    }
    for (const int slot : resumed_) {
        if (state(slot) != Slot::resumed) continue;  // its rate has changed as well
        state(slot) = Slot::flowing;
        set_rate(slot, sharing_.rate(slot), now);
    }
    resumed_.clear();
}

void FlowModel::enter(int slot) {
    const Path* path = message(slot).path;
    const auto at = static_cast<std::size_t>(slot);
    if (state(slot) == Slot::leaving) {
        if (paths_[at] == path) {
            state(slot) = Slot::resumed;
            resumed_.push_back(slot);
            return;
        }
        sharing_.remove(slot);
    }
    sharing_.add(slot, path->binding.empty() ? path->uses : path->binding);
    paths_[at] = path;
    state(slot) = Slot::flowing;
    changed_ = true;
}

void FlowModel::leave(int slot) {
    state(slot) = Slot::leaving;
    leaving_.push_back(slot);
}

std::string FlowModel::in_words() const {
    return "flow: messages in flight share every link and every joint limit max-min fairly at goodput; a "
           "message takes "
           "the latency of its route after its last byte has left; no packets, buffers or congestion control";
}

}  // namespace baton::sim
