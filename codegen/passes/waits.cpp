// Wait minimization: a need goes when the sequence of its threadblock, a message or an earlier need already
// implies it.
#include <baton/codegen/passes/graph.hpp>

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace baton::codegen {
namespace {

/// What a threadblock knows: for each threadblock, how many of its instructions are complete.
using Clock = std::unordered_map<std::int64_t, std::int32_t>;

void join(Clock& into, const Clock& from) {
    for (const auto& [threadblock, count] : from) {
        std::int32_t& known = into[threadblock];
        known = std::max(known, count);
    }
}

/// Leaves only needs that instructions still have in the pool.
void pack_needs(ir::Threadblock& threadblock) {
    std::vector<ir::Need> packed;
    for (ir::Instruction& instruction : threadblock.instructions) {
        const auto needs = threadblock.needs_of(instruction);
        const auto first = static_cast<std::uint32_t>(packed.size());
        packed.insert(packed.end(), needs.begin(), needs.end());
        instruction.first_need = first;
    }
    threadblock.needs = std::move(packed);
}

}  // namespace

void minimize_waits(ir::Program& program, const std::vector<Location>& order) {
    const auto id = [](std::int32_t rank, std::int32_t threadblock) {
        return (std::int64_t{rank} << 32) | threadblock;
    };
    std::unordered_map<std::int64_t, Clock> now;
    // Whoever is needed by some threadblock keeps the clock of that moment.
    std::unordered_map<std::int64_t, std::unordered_map<std::int32_t, Clock>> kept;
    bool any = false;
    for (const ir::RankProgram& rank : program.ranks) {
        for (const ir::Threadblock& threadblock : rank.threadblocks) {
            for (const ir::Instruction& instruction : threadblock.instructions) {
                for (const ir::Need& need : threadblock.needs_of(instruction)) {
                    kept[id(need.rank, need.threadblock)][need.instruction];
                    any = true;
                }
            }
        }
    }
    if (!any) return;
    std::vector<std::deque<Clock>> messages(program.connections.size());
    for (const Location& location : order) {
        ir::Threadblock& threadblock = program.ranks[location.rank].threadblocks[location.threadblock];
        ir::Instruction& instruction = threadblock.instructions[location.instruction];
        const std::int64_t self = id(location.rank, location.threadblock);
        Clock& clock = now[self];
        for (const ir::Operand& source : threadblock.sources(instruction)) {
            if (source.kind != ir::OperandKind::message) continue;
            join(clock, messages[source.target].front());
            messages[source.target].pop_front();
        }
        // The latest needs first: they tend to imply the others.
        std::vector<ir::Need> needs(threadblock.needs_of(instruction).begin(),
                                    threadblock.needs_of(instruction).end()),
            left;
        std::stable_sort(needs.begin(), needs.end(),
                         [](const ir::Need& a, const ir::Need& b) { return a.instruction > b.instruction; });
        for (const ir::Need& need : needs) {
            const std::int64_t other = id(need.rank, need.threadblock);
            const auto known = clock.find(other);
            const bool implied = need.event == ir::Event::completed && known != clock.end() &&
                                 known->second > need.instruction;
            if (implied) continue;
            left.push_back(need);
            join(clock, kept[other][need.instruction]);
            std::int32_t& count = clock[other];
            count = std::max(count, need.instruction + 1);
        }
        std::sort(left.begin(), left.end(), [](const ir::Need& a, const ir::Need& b) {
            return std::tie(a.rank, a.threadblock, a.instruction, a.event) <
                   std::tie(b.rank, b.threadblock, b.instruction, b.event);
        });
        std::copy(left.begin(), left.end(), threadblock.needs.begin() + instruction.first_need);
        instruction.needs = static_cast<std::uint16_t>(left.size());
        clock[self] = location.instruction + 1;
        for (const ir::Operand& destination : threadblock.destinations(instruction)) {
            if (destination.kind == ir::OperandKind::message) messages[destination.target].push_back(clock);
        }
        const auto holders = kept.find(self);
        if (holders != kept.end()) {
            const auto slot = holders->second.find(location.instruction);
            if (slot != holders->second.end()) slot->second = clock;
        }
    }
    for (ir::RankProgram& rank : program.ranks) {
        for (ir::Threadblock& threadblock : rank.threadblocks) pack_needs(threadblock);
    }
}

}  // namespace baton::codegen
