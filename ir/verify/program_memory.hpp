// Which memory the instructions of a Program touch, out of place and in place.
#pragma once

#include <baton/ir/verify/program_graph.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace baton::ir::checks {

/// How input and output of the ranks share memory.
enum class Placement : std::uint8_t { out_of_place, in_place };
inline constexpr std::array kPlacements{Placement::out_of_place, Placement::in_place};

/// A run of memory: `buffer` stands for the memory that holds it (in place, the larger of input and output
/// holds both).
struct Memory {
    int rank = 0;
    Buffer buffer = Buffer::output;
    std::int64_t begin = 0, end = 0;
};

/// Translates places to memory.
class MemoryMap {
public:
    explicit MemoryMap(const ProgramGraph& graph);
    /// Where a Program serves one placement only, that one stands for both.
    Memory at(int rank, Buffer buffer, std::int64_t index, std::int64_t chunks, Placement placement) const;
    /// Whether placement makes a difference at this rank.
    bool shares(int rank) const { return ranks_[rank].shares; }

    const char* words(Placement placement) const {
        return only_.value_or(placement) == Placement::in_place ? "in place" : "out of place";
    }

private:
    struct Sharing {
        bool shares = false;
        Buffer holder = Buffer::output;  // the larger of the two
        std::int64_t shift = 0;          // place 0 of the other buffer in it
    };
    std::vector<Sharing> ranks_;
    std::optional<Placement> only_;
};

/// One operand's memory: places of a rank that an instruction reads or writes, the remote side of put and get
/// included.
struct Access {
    int rank = 0;
    Buffer buffer = Buffer::output;
    std::int64_t index = 0, chunks = 1;
    bool write = false;
    int connection = -1;  ///< put or get connection it happens on
};

/// Calls `visit(access)` for all memory that the instruction touches: reads first, then writes. A put is the
/// sender's write, a get the receiver's read. `k_of(connection, send)` numbers the instruction's messages.
template <typename MessageNumber, typename Visit>
void visit_accesses(const ProgramGraph& graph, Site site, MessageNumber&& k_of, Visit&& visit) {
    const int rank = graph.blocks[site.block].rank;
    const Threadblock& code = graph.code(site);
    const Instruction& instruction = graph.at(site);
    const auto sources = code.sources(instruction);
    const auto destinations = code.destinations(instruction);
    const auto mode = [&](const Operand& operand) { return graph.program->connections[operand.target].mode; };
    const auto visit_one = [&](const Operand& operand, bool write) {
        if (operand.kind == OperandKind::local)
            visit(Access{rank, operand.buffer, operand.index, operand.chunks, write, -1});
        if (operand.kind == OperandKind::remote)
            visit(Access{operand.target, operand.buffer, operand.index, operand.chunks, write, -1});
        if (operand.kind == OperandKind::switch_group) {
            for (const int member : graph.program->switch_groups[operand.target]) {
                visit(Access{member, operand.buffer, operand.index, operand.chunks, write, -1});
            }
        }
    };
    // What the instruction only announces (get) or finds already written (put) is another instruction's
    // access.
    if (sources.size() == 1 && sources[0].kind == OperandKind::message && mode(sources[0]) == Mode::put)
        return;
    bool reads = false;
    for (const Operand& operand : destinations)
        reads = reads || operand.kind != OperandKind::message || mode(operand) != Mode::get;
    for (const Operand& operand : sources) {
        if (!reads) break;
        visit_one(operand, false);
        if (operand.kind == OperandKind::message && mode(operand) == Mode::get) {
            const Operand& source = graph.get_source(operand.target, k_of(operand.target, false));
            visit(Access{graph.program->connections[operand.target].src, source.buffer, source.index,
                         source.chunks, false, operand.target});
        }
    }
    for (const Operand& operand : destinations) {
        visit_one(operand, true);
        if (operand.kind == OperandKind::message && mode(operand) == Mode::put) {
            const Operand& target = graph.put_target(operand.target, k_of(operand.target, true));
            visit(Access{graph.program->connections[operand.target].dst, target.buffer, target.index,
                         target.chunks, true, operand.target});
        }
    }
}

}  // namespace baton::ir::checks
