#include <baton/codegen/passes/graph.hpp>

#include <algorithm>
#include <tuple>

namespace baton::codegen {

std::vector<std::int32_t> ordered(const Graph& graph) {
    std::vector<std::int32_t> order;
    order.reserve(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (!graph.nodes[i].dead) order.push_back(static_cast<std::int32_t>(i));
    }
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return std::tie(graph.nodes[a].key, a) < std::tie(graph.nodes[b].key, b);
    });
    return order;
}

Run run_of(int rank, const ir::Operand& operand) {
    return {rank, operand.buffer, operand.index, operand.chunks};
}

namespace {

Run only_local(const Node& node, const std::vector<ir::Operand>& operands) {
    for (const ir::Operand& operand : operands) {
        if (operand.kind == ir::OperandKind::local) return run_of(node.rank, operand);
    }
    return {node.rank, ir::Buffer::scratch, 0, 0};
}

}  // namespace

Run put_destination(const Graph& graph, const Lane& lane, std::int64_t message) {
    const Node& receive = graph.nodes[lane.receives[message]];
    return only_local(receive, receive.destinations);
}

Run get_source(const Graph& graph, const Lane& lane, std::int64_t message) {
    const Node& send = graph.nodes[lane.sends[message]];
    return only_local(send, send.sources);
}

Aliases::Aliases(const ir::Collective& collective) {
    using Kind = ir::CollectiveKind;
    windows_.resize(collective.ranks);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        const auto position = [&] { return collective.position_of(rank).second; };
        const std::int64_t inputs = collective.places(rank, ir::Buffer::input);
        const std::int64_t outputs = collective.places(rank, ir::Buffer::output);
        if (inputs == 0 || outputs == 0) continue;
        Window& window = windows_[rank];
        switch (collective.kind) {
            case Kind::all_reduce:
            case Kind::broadcast:
            case Kind::reduce:
            case Kind::all_to_all: window = {0, inputs, 0}; break;
            case Kind::all_gather:
            case Kind::gather: window = {0, inputs, position() * collective.chunks}; break;
            case Kind::reduce_scatter:
            case Kind::scatter:
                window = {position() * collective.chunks, (position() + 1) * collective.chunks,
                          -position() * collective.chunks};
                break;
            case Kind::send_recv:
            case Kind::custom: break;
        }
        any_ = any_ || window.end > window.begin;
    }
}

std::vector<Run> Aliases::memory(const Run& run) const {
    if (run.buffer != ir::Buffer::input || run.rank < 0) return {run};
    const Window& window = windows_[run.rank];
    const std::int64_t end = run.index + run.chunks;
    const std::int64_t low = std::clamp(window.begin, run.index, end),
                       high = std::clamp(window.end, low, end);
    std::vector<Run> runs;
    if (low > run.index) runs.push_back({run.rank, run.buffer, run.index, low - run.index});
    if (high > low) runs.push_back({run.rank, ir::Buffer::output, low + window.shift, high - low});
    if (end > high) runs.push_back({run.rank, run.buffer, high, end - high});
    return runs;
}

Hazards::Hazards(const ir::Collective& collective, const Aliases& aliases) : aliases_(&aliases) {
    apart_.resize(static_cast<std::size_t>(collective.ranks) * 3);
    if (aliases.any()) merged_.resize(apart_.size());
}

std::int32_t Hazards::last_writer_in_place(const Run& run) const {
    std::int32_t last = -1;
    for (const Run& part : aliases_->memory(run)) {
        const auto& maps = aliases_->any() ? merged_ : apart_;
        const auto& map =
            maps[static_cast<std::size_t>(part.rank) * 3 + static_cast<std::size_t>(part.buffer)];
        map.look(part.index, part.index + part.chunks, [&](std::int64_t, std::int64_t, const Access& access) {
            last = std::max(last, access.writer);
        });
    }
    return last;
}

}  // namespace baton::codegen
