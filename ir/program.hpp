// Program: an Algorithm projected onto each rank. Threadblocks, each a sequential list of instructions over
// connections and tokens. What kernels are printed from and other executors' formats meet.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/ir/collective.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton::ir {

/// How a connection moves data. staged: through a bounded FIFO of slots in the receiver's memory. put: the
/// sender writes straight into the destination of the paired receive, then signals. get: the sender signals
/// that its source is ready, the receiver reads it, then acknowledges.
enum class Mode : std::uint8_t { staged, put, get };
std::string_view to_string(Mode mode);

/// One directed lane between two ranks. The k-th send on it pairs with the k-th receive, in every tile.
struct Connection {
    int src = 0, dst = 0;
    int channel = 0;
    Mode mode = Mode::staged;
    Protocol protocol = Protocol::simple;
    int slots = 2;  ///< staged: FIFO depth in messages; ignored otherwise
    bool operator==(const Connection&) const = default;
};

enum class OperandKind : std::uint8_t { local, message, remote, switch_group };

/// A source or destination of an instruction. local: own places [index, index+chunks) of `buffer`. message:
/// the next message of connection `target`. remote: those places at rank `target` (the instruction must be
/// ordered by tokens). switch_group: those places on all members of switch group `target`.
struct Operand {
    OperandKind kind = OperandKind::local;
    Buffer buffer = Buffer::output;
    std::int32_t target = -1;
    std::int32_t index = 0;
    std::int32_t chunks = 1;  ///< equal for all operands of an instruction; for messages too
    bool operator==(const Operand&) const = default;
};

/// The event of an instruction that a token stands for. completed: its stores are visible to who acquires the
/// token, and its sources may be overwritten unless it published on a get connection. source_free: as
/// completed, and all get readers of what it published have acknowledged.
enum class Event : std::uint8_t { completed, source_free };

/// A token that an instruction needs: the event of instruction `instruction` of threadblock `threadblock` of
/// rank `rank`, in the same tile. Tokens are monotone: a later instruction of that threadblock implies an
/// earlier one.
struct Need {
    std::int32_t rank = 0, threadblock = 0, instruction = 0;
    Event event = Event::completed;
    bool operator==(const Need&) const = default;
};

/// need(tokens); destinations := op(sources); post(token). One source: copy. Several: reduced left to right,
/// ((s0 op s1) op s2) ..., in one pass, rounded once when stored (sent). Operands and needs are slices of the
/// threadblock's pools.
struct Instruction {
    std::uint32_t first_operand = 0;
    std::uint16_t sources = 0, destinations = 0;  ///< sources first, then destinations
    std::uint32_t first_need = 0;
    std::uint16_t needs = 0;
    bool post = false;       ///< some other threadblock needs this instruction's token
    bool finalize = false;   ///< completes a value: avg divides, a wide wire type rounds
    std::int64_t step = -1;  ///< program position of the step it came from; -1 when unknown
};

/// Marks instructions [first, first + body*times) as `times` copies of a body of `body` instructions whose
/// operand indices change by constants, modulo `modulus` places where > 0. The flat list stays the meaning;
/// kernels and dumps are printed from the marks.
struct Repeat {
    std::int32_t first = 0, body = 1, times = 1;
};

/// A sequential list of instructions. In every tile all instructions run in order.
struct Threadblock {
    std::vector<int> sends, receives;  ///< connection numbers it owns on either side, ascending
    std::vector<Instruction> instructions;
    std::vector<Operand> operands;
    std::vector<Need> needs;
    std::vector<Repeat> repeats;  ///< disjoint, ascending

    std::span<const Operand> sources(const Instruction& i) const {
        return {operands.data() + i.first_operand, i.sources};
    }
    std::span<const Operand> destinations(const Instruction& i) const {
        return {operands.data() + i.first_operand + i.sources, i.destinations};
    }
    std::span<const Need> needs_of(const Instruction& i) const { return {needs.data() + first(i), i.needs}; }
    /// Appends an instruction; returns its number.
    int add(std::span<const Operand> sources, std::span<const Operand> destinations,
            std::span<const Need> needs = {}, std::int64_t step = -1, bool finalize = false);

private:
    static std::size_t first(const Instruction& i) { return i.first_need; }
};

/// One rank's part.
struct RankProgram {
    std::vector<Threadblock> threadblocks;
    std::vector<std::int64_t>
        scratch_classes;  ///< class of each scratch place; its size is the number of places
};

/// A complete executable schedule. In each of T tiles every threadblock runs its list once; tiles touch
/// disjoint elements, so needs bind within a tile.
struct Program {
    std::string name;
    Collective collective;
    std::vector<Connection> connections;
    std::vector<RankProgram> ranks;
    std::vector<std::vector<int>> switch_groups;
    bool clobbers_input = false;  ///< writes `input`; eligible only where the caller allows it
    /// Calls that it serves: true only those in place, false only those out of place, none: both.
    std::optional<bool> in_place;
    bool wide = false;  ///< f16/bf16/f8 travel and accumulate as f32 until finalized
    std::string topology_hash;
    /// What a file of another format said beyond this type, by its place there ("algo@minBytes").
    std::map<std::string, std::string> foreign;

    std::int64_t instruction_count() const;
};

/// The usual name of an instruction's shape: "send", "recv", "recv_copy_send", "recv_reduce_copy_send",
/// "recv_reduce_send", "copy", "reduce", ...; remote operands read and write, switch operands switch_reduce
/// and multicast. A number counts the sources of a reduction of more than two ("recv_reduce_copy 3"), x and a
/// number the destinations where one kind occurs several times ("send x2").
std::string shape(const Threadblock& threadblock, const Instruction& instruction);

/// Sets `post` exactly where some other threadblock needs the instruction. Needs that do not exist are left
/// alone.
void mark_posts(Program& program);

/// Text dump for people and golden tests; stable.
std::string dump(const Program& program);
std::string dump(const Algorithm& algorithm, std::int64_t limit = 1'000'000);

}  // namespace baton::ir
