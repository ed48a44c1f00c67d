// Data races of a Program: conflicting accesses that happens-before does not order.
#pragma once

#include <baton/ir/verify/program_memory.hpp>
#include <baton/ir/verify/run_map.hpp>
#include <baton/ir/verify/vector_clocks.hpp>

#include <vector>

namespace baton::ir::checks {

/// Follows the accesses of all instructions in an order of happens-before. Slots are not counted as order, so
/// the proof holds for every slot count that does not deadlock.
class RaceCheck {
public:
    RaceCheck(const ProgramGraph& graph, const MemoryMap& memory);
    /// Visits the next instruction of its threadblock. Throws a check error that names both instructions of a
    /// race. False when `memory_budget` bytes are exceeded: nothing is proven then.
    bool visit(Site site, std::int64_t memory_budget);

private:
    struct State {
        Site write;
        std::vector<Site> reads;  // since the write, the last of each threadblock
        State advanced(std::int64_t) const { return *this; }
    };
    void check_own(Site site, const std::vector<Access>& accesses) const;
    void record(Site site, const Access& access, Placement placement);
    [[noreturn]] void fail(Site earlier, bool earlier_writes, Site site, const Access& access,
                           Placement placement) const;

    const ProgramGraph& graph_;
    const MemoryMap& memory_;
    VectorClocks clocks_;
    std::vector<RunMap<State>> states_;  // (placement * ranks + rank) * 3 + buffer
    std::vector<Access> accesses_;
};

}  // namespace baton::ir::checks
