#include <baton/codegen/passes/liveness.hpp>

namespace baton::codegen {

Liveness find_values(const Graph& graph, const std::vector<std::int32_t>& order) {
    Liveness live;
    live.made.resize(graph.nodes.size());
    live.read.resize(graph.nodes.size());
    // Value + 1 of each place; 0 = nothing was stored.
    std::vector<IntervalMap<std::int32_t>> maps(static_cast<std::size_t>(graph.collective.ranks) * 3);
    const auto map = [&](const Run& run) -> IntervalMap<std::int32_t>& {
        return maps[static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)];
    };
    for (const std::int32_t number : order) {
        const Node& node = graph.nodes[number];
        for (const ir::Operand& source : node.sources) {
            std::int32_t exact = -1;
            if (source.kind == ir::OperandKind::local) {
                const Run run = run_of(node.rank, source);
                map(run).look(run.index, run.index + run.chunks,
                              [&](std::int64_t begin, std::int64_t end, std::int32_t value) {
                                  if (value == 0) return;
                                  live.values[value - 1].uses.push_back({number, begin, end});
                                  if (begin == run.index && end == run.index + run.chunks &&
                                      live.values[value - 1].run == run)
                                      exact = value - 1;
                              });
            }
            live.read[number].push_back(exact);
        }
        for (const ir::Operand& destination : node.destinations) {
            if (destination.kind != ir::OperandKind::local) {
                live.made[number].push_back(-1);
                continue;
            }
            const Run run = run_of(node.rank, destination);
            live.made[number].push_back(static_cast<std::int32_t>(live.values.size()));
            live.values.push_back({number, run, {}, false});
            map(run).assign(run.index, run.index + run.chunks, static_cast<std::int32_t>(live.values.size()));
        }
    }
    for (int rank = 0; rank < graph.collective.ranks; ++rank) {
        for (const auto& [begin, piece] :
             maps[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(ir::Buffer::output)]
                 .pieces()) {
            if (piece.second == 0) continue;
            StoredValue& value = live.values[piece.second - 1];
            value.lasts = true;
            value.uses.push_back({-1, begin, piece.first});
        }
    }
    return live;
}

}  // namespace baton::codegen
