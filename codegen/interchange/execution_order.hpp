// An order in which the instructions of a Program can run.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace baton::codegen {

/// Gives the instructions of a Program their turn, one at a time, in an order that needs and messages allow:
/// threadblocks run as far as they can, those that wait are woken by what they wait for. The same program
/// gives the same order. The Program must outlive it and keep its needs, sources and connections.
class ExecutionOrder {
public:
    explicit ExecutionOrder(const ir::Program& program);

    /// Whether the next message of a connection is there.
    using Arrived = std::function<bool(int connection)>;
    /// Executes an instruction; false: it cannot, and its threadblock goes no further.
    using Execute = std::function<bool(int rank, int threadblock, std::int32_t instruction)>;

    /// Runs from the beginning. Whether all threadblocks came to their end. Needs that name no threadblock
    /// are never met.
    bool run(const Arrived& arrived, const Execute& execute);
    /// To be called by `execute` when it has sent a message.
    void sent(int connection);

private:
    struct Block {
        int rank = 0, threadblock = 0;
        std::int32_t next = 0;  ///< instruction
        bool queued = false;
    };

    const ir::Threadblock& code(const Block& block) const;
    void wake(std::int32_t block);
    bool step(std::int32_t number, const Arrived& arrived, const Execute& execute);

    const ir::Program& program_;
    std::vector<Block> blocks_;
    std::vector<std::int32_t> first_block_, receiver_;  // of each rank; of each connection, -1: none
    std::vector<std::vector<std::int32_t>> waiters_;    // of each block
    std::deque<std::int32_t> ready_;
};

}  // namespace baton::codegen
