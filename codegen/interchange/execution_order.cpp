#include <baton/codegen/interchange/execution_order.hpp>

#include <baton/base/index.hpp>

#include <algorithm>

namespace baton::codegen {

ExecutionOrder::ExecutionOrder(const ir::Program& program)
    : program_(program), receiver_(program.connections.size(), -1) {
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        first_block_.push_back(static_cast<std::int32_t>(blocks_.size()));
        for (std::size_t t = 0; t < program.ranks[r].threadblocks.size(); ++t) {
            for (const int c : program.ranks[r].threadblocks[t].receives)
                receiver_[at(c)] = static_cast<std::int32_t>(blocks_.size());
            blocks_.push_back({static_cast<int>(r), static_cast<int>(t)});
        }
    }
}

bool ExecutionOrder::run(const Arrived& arrived, const Execute& execute) {
    waiters_.assign(blocks_.size(), {});
    for (Block& block : blocks_) block.next = 0;
    for (std::size_t b = 0; b < blocks_.size(); ++b) wake(static_cast<std::int32_t>(b));
    while (!ready_.empty()) {
        const std::int32_t block = ready_.front();
        ready_.pop_front();
        blocks_[at(block)].queued = false;
        while (step(block, arrived, execute)) {
        }
    }
    return std::all_of(blocks_.begin(), blocks_.end(),
                       [&](const Block& block) { return at(block.next) >= code(block).instructions.size(); });
}

void ExecutionOrder::sent(int connection) {
    if (receiver_[at(connection)] >= 0) wake(receiver_[at(connection)]);
}

const ir::Threadblock& ExecutionOrder::code(const Block& block) const {
    return program_.ranks[at(block.rank)].threadblocks[at(block.threadblock)];
}

void ExecutionOrder::wake(std::int32_t block) {
    if (blocks_[at(block)].queued) return;
    blocks_[at(block)].queued = true;
    ready_.push_back(block);
}

// The next instruction of a threadblock; false when it is at its end or must wait.
bool ExecutionOrder::step(std::int32_t number, const Arrived& arrived, const Execute& execute) {
    Block& block = blocks_[at(number)];
    const ir::Threadblock& list = code(block);
    if (at(block.next) >= list.instructions.size()) return false;
    const ir::Instruction& instruction = list.instructions[at(block.next)];
    for (const ir::Need& need : list.needs_of(instruction)) {
        if (need.rank < 0 || at(need.rank) >= program_.ranks.size() || need.threadblock < 0 ||
            at(need.threadblock) >= program_.ranks[at(need.rank)].threadblocks.size())
            return false;
        const std::int32_t other = first_block_[at(need.rank)] + need.threadblock;
        if (blocks_[at(other)].next > need.instruction) continue;
        waiters_[at(other)].push_back(number);
        return false;
    }
    for (const ir::Operand& source : list.sources(instruction))
        if (source.kind == ir::OperandKind::message && !arrived(source.target)) return false;
    if (!execute(block.rank, block.threadblock, block.next)) return false;
    ++block.next;
    for (const std::int32_t waiter : waiters_[at(number)]) wake(waiter);
    waiters_[at(number)].clear();
    return true;
}

}  // namespace baton::codegen
