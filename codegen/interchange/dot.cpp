#include <baton/codegen/interchange/dot.hpp>

#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <vector>

namespace baton::codegen {
namespace {

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c == '\n' || c == '\r' ? ' ' : c;
    }
    return out + "\"";
}

}  // namespace

std::string write_dot(const ir::Program& program) {
    struct Load {
        std::int64_t messages = 0, chunks = 0;
    };
    std::vector<Load> loads(program.connections.size());
    for (const ir::RankProgram& rank : program.ranks)
        for (const ir::Threadblock& block : rank.threadblocks)
            for (const ir::Instruction& instruction : block.instructions)
                for (const ir::Operand& to : block.destinations(instruction))
                    if (to.kind == ir::OperandKind::message) {
                        ++loads[at(to.target)].messages;
                        loads[at(to.target)].chunks += to.chunks;
                    }
    std::string text = "digraph " + quoted(program.name) + " {\n  node [shape=box];\n";
    for (std::size_t r = 0; r < program.ranks.size(); ++r)
        text += fmt::format("  r{} [label=\"rank {}\"];\n", r, r);
    for (std::size_t c = 0; c < loads.size(); ++c) {
        const ir::Connection& each = program.connections[c];
        text += fmt::format("  r{} -> r{} [label=\"channel {}: {} message{}, {} chunk{}\"];\n", each.src,
                            each.dst, each.channel, loads[c].messages, loads[c].messages == 1 ? "" : "s",
                            loads[c].chunks, loads[c].chunks == 1 ? "" : "s");
    }
    return text + "}\n";
}

}  // namespace baton::codegen
