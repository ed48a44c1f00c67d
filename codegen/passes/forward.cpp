// Copy forwarding, second half: `extract` lets reads look through opening copies; here the copies that nobody
// needs any more go, so that neither in-place nor out-of-place calls pay for them.
#include <baton/codegen/passes/liveness.hpp>

#include <algorithm>

namespace baton::codegen {
namespace {

bool local_copy(const Node& node) {
    return node.sources.size() == 1 && node.destinations.size() == 1 && !node.finalize &&
           node.sources[0].kind == ir::OperandKind::local &&
           node.destinations[0].kind == ir::OperandKind::local;
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

/// A copy that is left moves behind those who read its source instead, just before the first that touches its
/// result: in place it stores what is there already, and nobody should wait for that.
void sink_copies(Graph& graph) {
    const Aliases aliases(graph.collective);
    const std::vector<std::int32_t> order = ordered(graph);
    if (order.empty()) return;
    const std::int32_t last_level = graph.nodes[order.back()].key.level;
    // Walking backwards, the earliest later access of each place.
    std::vector<IntervalMap<std::int32_t>> next(static_cast<std::size_t>(graph.collective.ranks) * 3);
    const auto each = [&](const Node& node, auto&& f) {
        for (const auto* operands : {&node.sources, &node.destinations}) {
            for (const ir::Operand& operand : *operands) {
                if (operand.kind == ir::OperandKind::local) f(run_of(node.rank, operand));
            }
        }
    };
    const auto map = [&](const Run& run) -> IntervalMap<std::int32_t>& {
        return next[static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)];
    };
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
        Node& node = graph.nodes[*it];
        if (local_copy(node) && aliases.memory(run_of(node.rank, node.sources[0])) ==
                                    std::vector<Run>{run_of(node.rank, node.destinations[0])}) {
            const Run run = run_of(node.rank, node.destinations[0]);
            Key first{last_level + 1, 1, 0};
            map(run).look(run.index, run.index + run.chunks, [&](auto, auto, std::int32_t later) {
                if (later > 0) first = std::min(first, graph.nodes[later - 1].key);
            });
            Key key = first;
            key.number =
                (std::int64_t{1} << 40) + node.key.number;  // behind all others of its level and phase
            if (first.phase == 0) {
                key.level = first.level - 1;
                key.phase = 1;
            } else {
                key.phase = 0;
            }
            if (key > node.key) node.key = key;
        }
        each(node, [&](const Run& run) { map(run).assign(run.index, run.index + run.chunks, *it + 1); });
    }
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
    sink_copies(graph);
}

}  // namespace baton::codegen
