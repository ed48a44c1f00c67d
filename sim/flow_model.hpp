// The flow model: messages in flight share links fairly.
#pragma once

#include <baton/sim/max_min.hpp>
#include <baton/sim/network.hpp>

#include <string>
#include <vector>

namespace baton::sim {

/// Every message in flight is a flow; flows share every link and every joint limit max-min fairly, each with
/// weight 1. Rates change when messages start and end; all changes of one point of time are taken together.
class FlowModel final : public Network {
public:
    FlowModel(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit);
    void settle(Time now) override;
    std::string in_words() const override;
    std::int64_t work() const override { return work_ + sharing_.work(); }

private:
    void enter(int slot) override;
    void leave(int slot) override;
    /// What a slot is to the sharing between two calls of `settle`.
    enum class Slot : char { absent, flowing, leaving, resumed };
    Slot& state(int slot);

    MaxMin sharing_;
    std::vector<Slot> states_;
    std::vector<const Path*> paths_;  // by slot, of the flow that the sharing knows
    std::vector<int> leaving_, resumed_;
    bool changed_ = false;
};

}  // namespace baton::sim
