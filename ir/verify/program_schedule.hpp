// Running a Program without data: an order of happens-before, or the cycle that stops it.
#pragma once

#include <baton/ir/verify/program_graph.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::ir::checks {

/// What one instruction waits for before it can complete.
enum class WaitReason : std::uint8_t { need, acknowledgement, message, slot };

/// Calls `visit(reason, site, connection, back)` for every instruction of other threadblocks that must
/// complete before `site` does: needs, get readers of source_free needs, paired sends, and, for a staged
/// connection with K slots, the receive that frees the slot, `back` tiles earlier (0: in the same tile).
/// `k_of(connection, send)` is the number within its tile of the message that the instruction sends or
/// receives. `connection` is -1 for needs. Stops when `visit` returns false; returns whether all were
/// visited.
template <typename MessageNumber, typename Visit>
bool visit_waits(const ProgramGraph& graph, Site site, const std::vector<int>& slots, MessageNumber&& k_of,
                 Visit&& visit);

/// One attempt to run all instructions.
struct ScheduleResult {
    bool complete = false;
    std::string cycle;        ///< the instructions that wait for each other, when not complete
    std::vector<Site> order;  ///< all instructions in an order of happens-before, when recorded (one tile)
};

/// Runs all threadblocks over `tiles` tiles with `slots` per connection (0: unlimited; ignored for put and
/// get).
///
/// One tile decides for all. Events of tile t wait for events of the same tile (needs, messages,
/// acknowledgements) and for earlier ones: a threadblock's own order, and the slot of message n, freed by
/// message n - K, which belongs to the same or an earlier tile because every tile sends the same number of
/// messages, all received in it. So edges never point to a later tile, a cycle stays within one tile, and
/// there it is a cycle of one pass. The same holds from call to call.
ScheduleResult run_schedule(const ProgramGraph& graph, const std::vector<int>& slots, bool record_order,
                            std::int64_t tiles = 1);

/// Slot counts of the connections: `uniform` where > 0, else their own; 0 for put and get.
std::vector<int> slot_counts(const Program& program, int uniform);

/// Smallest slot count for all staged connections with which the Program runs; 0 when there is none to count.
/// The graph must run without a limit.
int smallest_uniform_slots(const ProgramGraph& graph);

// --- implementation

template <typename MessageNumber, typename Visit>
bool visit_waits(const ProgramGraph& graph, Site site, const std::vector<int>& slots, MessageNumber&& k_of,
                 Visit&& visit) {
    const Threadblock& code = graph.code(site);
    const Instruction& instruction = graph.at(site);
    for (const Need& need : code.needs_of(instruction)) {
        const Site needed{graph.block_of(need.rank, need.threadblock), need.instruction};
        if (!visit(WaitReason::need, needed, -1, 0)) return false;
        if (need.event != Event::source_free) continue;
        for (const Operand& sent : graph.code(needed).destinations(graph.at(needed))) {
            if (sent.kind != OperandKind::message ||
                graph.program->connections[sent.target].mode != Mode::get)
                continue;
            const auto& sends = graph.ends[sent.target].sends;
            const auto k = std::lower_bound(sends.begin(), sends.end(), needed.instruction) - sends.begin();
            if (!visit(WaitReason::acknowledgement, graph.receive_site(sent.target, k), sent.target, 0))
                return false;
        }
    }
    for (const Operand& source : code.sources(instruction)) {
        if (source.kind != OperandKind::message) continue;
        const Site send = graph.send_site(source.target, k_of(source.target, false));
        if (!visit(WaitReason::message, send, source.target, 0)) return false;
    }
    for (const Operand& destination : code.destinations(instruction)) {
        if (destination.kind != OperandKind::message || slots[destination.target] == 0) continue;
        const auto messages = static_cast<std::int64_t>(graph.ends[destination.target].sends.size());
        const std::int64_t k = k_of(destination.target, true) - slots[destination.target];
        const std::int64_t back = k >= 0 ? 0 : (messages - 1 - k) / messages;
        const Site receive = graph.receive_site(destination.target, k + back * messages);
        if (!visit(WaitReason::slot, receive, destination.target, back)) return false;
    }
    return true;
}

}  // namespace baton::ir::checks
