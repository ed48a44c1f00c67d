// The model without contention.
#pragma once

#include <baton/sim/network.hpp>

#include <string>
#include <vector>

namespace baton::sim {

/// Every message takes alpha plus bytes over the rate that its route has for one message alone. Several
/// messages on one link do not slow each other down, so a result may be better than what the machine can do;
/// it never serves as a claim.
class AlphaBeta final : public Network {
public:
    AlphaBeta(const topologies::Topology& topology, EventQueue& queue, std::int64_t period_limit);
    void settle(Time now) override;
    std::string in_words() const override;

private:
    void enter(int slot) override;
    void leave(int slot) override;
    std::vector<int> entered_;
};

}  // namespace baton::sim
