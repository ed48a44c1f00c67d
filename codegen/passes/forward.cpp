// Copy forwarding, second half: `extract` lets reads look through opening copies; here the copies that nobody needs any
// more go, so that neither in-place nor out-of-place calls pay for them.
#include <baton/codegen/passes/liveness.hpp>

#include <algorithm>

namespace baton::codegen {
namespace {

bool local_copy(const Node& node) {
    return node.sources.size() == 1 && node.destinations.size() == 1 && !node.finalize &&
           node.sources[0].kind == ir::OperandKind::local && node.destinations[0].kind == ir::OperandKind::local;
}

/// The parts of a value that somebody needs, as sorted disjoint ranges.
std::vector<std::pair<std::int64_t, std::int64_t>> needed(const Graph& graph, const StoredValue& value) {
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges, merged;
    for (const StoredValue::Range& use : value.uses) {
        if (use.reader < 0 || !graph.nodes[use.reader].dead) ranges.emplace_back(use.begin, use.end);
    }
    std::sort(ranges.begin(), ranges.end());
    for (const auto& range : ranges) {
        if (!merged.empty() && range.first <= merged.back().second) {
            merged.back().second = std::max(merged.back().second, range.second);
        } else {
            merged.push_back(range);
        }
    }
    return merged;
}

}  // namespace

void remove_dead_copies(Graph& graph) {
    const std::vector<std::int32_t> order = ordered(graph);
    const Liveness live = find_values(graph, order);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
        if (!local_copy(graph.nodes[*it])) continue;
        const StoredValue& value = live.values[live.made[*it][0]];
        const auto ranges = needed(graph, value);
        if (ranges.size() == 1 && ranges[0].second - ranges[0].first == value.run.chunks) continue;
        const Node whole = graph.nodes[*it];
        graph.nodes[*it].dead = true;
        for (const auto& [begin, end] : ranges) {
            Node part = whole;
            const auto shift = static_cast<std::int32_t>(begin - value.run.index);
            for (ir::Operand* operand : {&part.sources[0], &part.destinations[0]}) {
                operand->index += shift;
                operand->chunks = static_cast<std::int32_t>(end - begin);
            }
            graph.nodes.push_back(std::move(part));
        }
    }
}

}  // namespace baton::codegen
