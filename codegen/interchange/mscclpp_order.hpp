// What orders the operations of a MSCCL++ plan: signals, packets, semaphores and barriers become needs.
// Internal to the folder.
#pragma once

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace baton::codegen::mscclpp {

/// Collects, while the threadblocks are read one after the other, who signals and who waits; then pairs them.
/// A wait becomes a need of the next instruction of its threadblock (of an empty one at the end), a signal
/// stands for all instructions in front of it.
class PlanOrder {
public:
    PlanOrder(const File& file, const std::string& name, Remarks& remarks);

    void enter(int rank, int threadblock, ir::Threadblock& code);
    void leave();

    void signal(const Op& op);
    void wait(const Op& op);
    void barrier(const Op& op);
    void acquire(const Op& op);
    void release(const Op& op);
    void wait_for_packets(const Op& op, const ir::Operand& source);
    /// The next instruction that is added carries what was waited for.
    void carry();
    /// Packets that the last instruction wrote; own ones of `rank` unless the operand is remote.
    void write_packets(int rank, const Op& op, const ir::Operand& destination);

    /// Throws an input error where a wait never ends, or where it is not determined what it waits for.
    void set_needs(ir::Program& program);

private:
    /// An instruction, and the operation that it is there for.
    struct Site {
        int rank = 0, threadblock = 0, instruction = 0;
        std::int32_t position = -1, inner = -1;
    };
    /// Of one counter: who adds to it, and who waits until it has grown once more.
    struct Counter {
        std::int64_t initial = 0;
        std::vector<Site> adds, waits;
    };
    /// (kind, ranks and numbers): a channel, a semaphore or a barrier.
    using Key = std::tuple<int, int, int, std::int64_t>;
    struct PacketRead {
        Site site;
        std::int64_t first = 0, count = 0;
    };

    Key channel_key(const Op& op, std::int64_t channel, bool from_here) const;
    Site here(const Op& op) const;
    void wait_here(Counter& counter, const Op& op);
    void add_here(Counter& counter, const Op& op);
    void pair(const Counter& counter, const char* what);
    void pair_barrier(const Counter& counter, std::int64_t threadblocks);
    void pair_packets(const ir::Program& program);
    void need(const Site& waiter, const Site& other);
    Error error_at(const Site& site, std::string what, std::string remedy = {}) const;
    std::string place(const Site& site) const;

    const File& file_;
    const std::string& name_;
    Remarks& remarks_;
    std::map<Key, Counter> counters_;
    std::map<Key, std::int64_t> barrier_sizes_;
    std::vector<std::vector<std::int64_t>>
        numbers_[2];  ///< [type][rank][channel]: number among those of the pair
    std::vector<PacketRead> packet_reads_;
    struct PacketWrite {
        Site site;
        int rank;
        std::int64_t first, count;
    };
    std::vector<PacketWrite> packet_writes_;
    std::vector<std::vector<std::vector<std::pair<int, ir::Need>>>> needs_;  ///< [rank][threadblock]
    int rank_ = 0, threadblock_ = 0;
    ir::Threadblock* code_ = nullptr;
    bool pending_ = false;  ///< the next instruction waits for something
};

}  // namespace baton::codegen::mscclpp
