#include <baton/codegen/interchange/dot.hpp>

#include <baton/base/index.hpp>
#include <baton/base/quantities.hpp>

#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
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

const char* dot_shape(topologies::NodeType type) {
    switch (type) {
        case topologies::NodeType::gpu: return "box";
        case topologies::NodeType::cpu: return "octagon";
        case topologies::NodeType::nic: return "cds";
        case topologies::NodeType::switch_node: return "diamond";
        case topologies::NodeType::pcie: return "point";
    }
    return "box";
}

std::string node_line(const topologies::Node& node) {
    std::string text = quoted(node.id) + " [shape=" + dot_shape(node.type);
    // The label's own line break must survive the quoting.
    std::string shown = quoted(node.id);
    if (node.rank >= 0) shown.insert(shown.size() - 1, fmt::format("\\nrank {}", node.rank));
    return text + ", label=" + shown + "];\n";
}

}  // namespace

std::string write_dot(const topologies::Topology& topology) {
    std::string text = "digraph " + quoted(topology.name) + " {\n";
    std::map<std::string, std::vector<const topologies::Node*>> hosts;
    for (const topologies::Node& node : topology.nodes) hosts[node.host].push_back(&node);
    int cluster = 0;
    for (const auto& [host, nodes] : hosts) {
        if (!host.empty())
            text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", cluster++, quoted(host));
        for (const topologies::Node* node : nodes) text += (host.empty() ? "  " : "    ") + node_line(*node);
        if (!host.empty()) text += "  }\n";
    }
    using Key = std::tuple<int, int, std::string>;
    std::map<Key, int> open;  // links whose way back was not met yet
    std::vector<std::pair<Key, bool>> edges;
    for (const topologies::Link& link : topology.links) {
        const std::string label =
            fmt::format("{}{} {}", link.count > 1 ? fmt::format("{} x ", link.count) : "",
                        to_string(link.bandwidth), topologies::to_string(link.kind));
        const auto back = open.find({link.to, link.from, label});
        if (back != open.end()) {
            edges[at(back->second)].second = true;
            open.erase(back);
            continue;
        }
        const Key key{link.from, link.to, label};
        open.insert_or_assign(key, static_cast<int>(edges.size()));
        edges.emplace_back(key, false);
    }
    for (const auto& [key, both] : edges) {
        const auto& [from, to, label] = key;
        text += fmt::format("  {} -> {} [label={}{}];\n", quoted(topology.nodes[at(from)].id),
                            quoted(topology.nodes[at(to)].id), quoted(label), both ? ", dir=both" : "");
    }
    return text + "}\n";
}

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
