// A Program flattened for its checks: global threadblock numbers and the pairing of messages.
#pragma once

#include <baton/ir/program.hpp>
#include <baton/ir/verify.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::ir::checks {

/// An instruction: global threadblock number and position in its list.
struct Site {
    std::int32_t block = -1, instruction = 0;
    bool operator==(const Site&) const = default;
};

/// A threadblock with its rank and its number there.
struct Block {
    int rank = 0, number = 0;
    const Threadblock* code = nullptr;
    std::int32_t size() const { return static_cast<std::int32_t>(code->instructions.size()); }
};

/// Both sides of a connection: the owning threadblocks and the instructions that send and receive, in order.
struct Ends {
    std::int32_t sender = -1, receiver = -1;
    std::vector<std::int32_t> sends, receives;
};

/// Global numbers and message pairing of a Program. Building it checks the structure: see `build_graph`.
struct ProgramGraph {
    const Program* program = nullptr;
    std::vector<Block> blocks;
    std::vector<std::int32_t> first_block;            ///< of each rank, and the total at the end
    std::vector<Ends> ends;                           ///< per connection
    std::vector<std::array<std::int64_t, 3>> places;  ///< [rank][buffer]: number of places

    std::int32_t block_of(int rank, int threadblock) const { return first_block[rank] + threadblock; }
    const Instruction& at(Site site) const { return blocks[site.block].code->instructions[site.instruction]; }
    const Threadblock& code(Site site) const { return *blocks[site.block].code; }
    Site send_site(int connection, std::int64_t k) const {
        return {ends[connection].sender, ends[connection].sends[k]};
    }
    Site receive_site(int connection, std::int64_t k) const {
        return {ends[connection].receiver, ends[connection].receives[k]};
    }
    /// The local destination that a put writes: that of the k-th receive.
    const Operand& put_target(int connection, std::int64_t k) const;
    /// The local source that a get reads: that of the k-th send.
    const Operand& get_source(int connection, std::int64_t k) const;
    /// "rank 1, threadblock 0, instruction 3 (recv_reduce_send, step 7)".
    std::string name(Site site) const;
    /// "connection 2 (0 -> 1, channel 0)".
    std::string connection_name(int connection) const;
};

/// Checks everything that needs no execution (ranges, ownership, pairing, modes, needs) and returns the
/// graph. Throws a check error that names the instruction. The Program must outlive the graph.
ProgramGraph build_graph(const Program& program);

/// "output[3]" or "output[3..5]".
std::string place_name(Buffer buffer, std::int64_t index, std::int64_t chunks);

}  // namespace baton::ir::checks
