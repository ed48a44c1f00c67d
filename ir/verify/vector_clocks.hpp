// Happens-before between threadblocks, while instructions are visited in an order of it.
#pragma once

#include <baton/ir/verify/program_schedule.hpp>

#include <cstdint>
#include <vector>

namespace baton::ir::checks {

/// One clock per threadblock: for every threadblock, the last instruction of it that happens before.
/// Snapshots are kept only while an instruction that waits for them is still to come.
class VectorClocks {
public:
    /// Slots count as waits when `slots` are given (0 for a connection: not counted); without them the order
    /// holds for every slot count.
    VectorClocks(const ProgramGraph& graph, std::vector<int> slots);

    /// Bytes for the clocks of this many threadblocks, without snapshots.
    static std::int64_t bytes(std::int64_t blocks) { return blocks * blocks * 4; }

    /// Visits the next instruction of its threadblock; false when `memory_budget` bytes are exceeded.
    bool advance(Site site, std::int64_t memory_budget);
    /// Whether `before` happens before, or is, the last instruction visited in `block`. Right for
    /// instructions visited.
    bool ordered(Site before, std::int32_t block) const {
        return clocks_[static_cast<std::size_t>(block) * blocks_ + before.block] >= before.instruction;
    }
    /// The last instruction of `other` that happens before the last one visited in `block`; -1 for none.
    std::int32_t last_before(std::int32_t other, std::int32_t block) const {
        return clocks_[static_cast<std::size_t>(block) * blocks_ + other];
    }
    /// Messages sent and received so far on a connection.
    std::int64_t sent(int connection) const { return sent_[connection]; }
    std::int64_t received(int connection) const { return received_[connection]; }

private:
    std::size_t number(Site site) const {
        return first_[site.block] + static_cast<std::size_t>(site.instruction);
    }
    std::int32_t* row(std::int32_t block) {
        return clocks_.data() + static_cast<std::size_t>(block) * blocks_;
    }
    void join(Site site, Site other);
    void release(Site other);

    const ProgramGraph& graph_;
    std::vector<int> slots_;
    std::size_t blocks_ = 0;
    std::vector<std::size_t> first_;      // number of a threadblock's first instruction
    std::vector<std::int32_t> clocks_;    // blocks x blocks
    std::vector<std::int32_t> waiters_;   // per instruction: waits for it still to come
    std::vector<std::int32_t> snapshot_;  // per instruction: its snapshot, or -1
    std::vector<std::vector<std::int32_t>> snapshots_;
    std::vector<std::int32_t> free_;
    std::vector<std::int64_t> sent_, received_;
};

}  // namespace baton::ir::checks
