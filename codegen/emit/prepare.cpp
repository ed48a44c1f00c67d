#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/emit/prepare.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace baton::codegen {
namespace {

using ir::Operand;
using ir::OperandKind;

bool differs(const ir::Program& program) {
    for (const ir::Connection& c : program.connections)
        if (c.protocol != ir::Protocol::simple) return true;
    for (const ir::RankProgram& rank : program.ranks)
        for (const ir::Threadblock& block : rank.threadblocks)
            for (const Operand& operand : block.operands)
                if (operand.kind == OperandKind::remote) return true;
    return false;
}

/// The number after the channels of all connections from one rank to another.
int free_channel(const ir::Program& program, int src, int dst) {
    int channel = 0;
    for (const ir::Connection& c : program.connections)
        if (c.src == src && c.dst == dst) channel = std::max(channel, c.channel + 1);
    return channel;
}

}  // namespace

std::optional<ir::Program> prepared_program(const ir::Program& program) {
    if (!differs(program)) return std::nullopt;
    ir::Program out = program;
    std::set<std::tuple<int, int, int, ir::Mode>> lanes;
    for (const ir::Connection& c : program.connections)
        if (c.protocol == ir::Protocol::simple) lanes.insert({c.src, c.dst, c.channel, c.mode});
    for (ir::Connection& c : out.connections) {
        if (c.protocol == ir::Protocol::simple) continue;
        c.protocol = ir::Protocol::simple;
        if (!lanes.insert({c.src, c.dst, c.channel, c.mode}).second) {
            c.channel = free_channel(out, c.src, c.dst);
            lanes.insert({c.src, c.dst, c.channel, c.mode});
        }
    }
    std::map<std::pair<int, int>, int> channels;
    std::map<int, std::vector<ir::Need>> last;  // of rank: the last accesses of others
    for (std::size_t r = 0; r < out.ranks.size(); ++r)
        for (std::size_t b = 0; b < out.ranks[r].threadblocks.size(); ++b) {
            ir::Threadblock& block = out.ranks[r].threadblocks[b];
            std::map<int, int> accesses;  // of rank: last instruction
            for (std::size_t i = 0; i < block.instructions.size(); ++i) {
                const ir::Instruction& instruction = block.instructions[i];
                for (int o = 0; o < instruction.sources + instruction.destinations; ++o) {
                    Operand& operand = block.operands[instruction.first_operand + at(o)];
                    if (operand.kind != OperandKind::remote) continue;
                    if (operand.target == static_cast<int>(r))
                        operand.kind = OperandKind::local, operand.target = -1;
                    else
                        accesses[operand.target] = static_cast<int>(i);
                }
            }
            for (const auto& [rank, instruction] : accesses) {
                if (rank < 0 || at(rank) >= out.ranks.size())
                    throw input_error(fmt::format("names places of rank {}", rank),
                                      fmt::format("rank {}, threadblock {}", r, b));
                const auto [channel, added] = channels.try_emplace({static_cast<int>(r), rank}, 0);
                if (added) channel->second = free_channel(out, static_cast<int>(r), rank);
                ir::Connection c;
                c.src = static_cast<int>(r), c.dst = rank, c.channel = channel->second++;
                c.mode = ir::Mode::put;
                block.sends.push_back(static_cast<int>(out.connections.size()));
                out.connections.push_back(c);
                last[rank].push_back(
                    {static_cast<int>(r), static_cast<int>(b), instruction, ir::Event::completed});
            }
        }
    for (std::size_t c = program.connections.size(); c < out.connections.size(); ++c) {
        auto& blocks = out.ranks[at(out.connections[c].dst)].threadblocks;
        if (blocks.empty()) blocks.emplace_back();
        blocks[0].receives.push_back(static_cast<int>(c));
    }
    for (const auto& [rank, needs] : last) out.ranks[at(rank)].threadblocks[0].add({}, {}, needs);
    ir::mark_posts(out);
    return out;
}

}  // namespace baton::codegen
