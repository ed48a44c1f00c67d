// Threadblock assignment: a connection is owned by one threadblock per side, a fused instruction's
// threadblock owns all of its connections, and a rank has no more threadblocks than its budget.
#include <baton/codegen/passes/graph.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

namespace baton::codegen {
namespace {

struct UnionFind {
    std::vector<std::int32_t> parent;
    explicit UnionFind(std::size_t size) : parent(size) { std::iota(parent.begin(), parent.end(), 0); }
    std::int32_t find(std::int32_t x) {
        while (parent[x] != x) x = parent[x] = parent[parent[x]];
        return x;
    }
    void unite(std::int32_t a, std::int32_t b) {
        a = find(a), b = find(b);
        parent[std::max(a, b)] = std::min(a, b);
    }
};

/// Lane sides are numbered 2*lane (send) and 2*lane + 1 (receive).
std::int32_t first_side(const Node& node) {
    for (const ir::Operand& operand : node.sources) {
        if (operand.kind == ir::OperandKind::message) return 2 * operand.target + 1;
    }
    for (const ir::Operand& operand : node.destinations) {
        if (operand.kind == ir::OperandKind::message) return 2 * operand.target;
    }
    return -1;
}

void unite_sides(const Graph& graph, UnionFind& sides) {
    for (const Node& node : graph.nodes) {
        if (node.dead) continue;
        const std::int32_t first = first_side(node);
        if (first < 0) continue;
        for (const ir::Operand& operand : node.sources) {
            if (operand.kind == ir::OperandKind::message) sides.unite(first, 2 * operand.target + 1);
        }
        for (const ir::Operand& operand : node.destinations) {
            if (operand.kind == ir::OperandKind::message) sides.unite(first, 2 * operand.target);
        }
    }
}

/// Who overwrites what a get reader reads waits on the publishing end itself, so it belongs to that
/// threadblock. Returns for local nodes of that kind the side they belong to.
std::map<std::int32_t, std::int32_t> bind_overwriters(const Graph& graph,
                                                      const std::vector<std::int32_t>& order,
                                                      UnionFind& sides) {
    std::map<std::int32_t, std::int32_t> bound;
    const Aliases aliases(graph.collective);
    Hazards hazards(graph.collective, aliases);
    for (const std::int32_t number : order) {
        const Node& node = graph.nodes[number];
        announce(graph, hazards, number, [&](std::int32_t other, bool far) {
            if (far || graph.nodes[other].rank == node.rank) return;
            for (const ir::Operand& source : graph.nodes[other].sources) {
                if (source.kind != ir::OperandKind::message) continue;
                const ir::Connection& connection = graph.lanes[source.target].connection;
                if (connection.mode != ir::Mode::get || connection.src != node.rank) continue;
                std::int32_t own = first_side(node);
                if (own < 0) own = bound.try_emplace(number, 2 * source.target).first->second;
                sides.unite(own, 2 * source.target);
            }
        });
    }
    return bound;
}

/// Merges the two shortest threadblocks of a rank until the budget holds; returns the new number of each.
std::vector<int> merge_to_budget(std::vector<std::int64_t> load, int budget) {
    const int count = static_cast<int>(load.size());
    UnionFind groups(load.size());
    using Entry = std::pair<std::int64_t, std::int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> shortest;
    for (int i = 0; i < count; ++i) shortest.emplace(load[i], i);
    int left = count;
    while (left > budget) {
        const Entry a = shortest.top();
        shortest.pop();
        const Entry b = shortest.top();
        shortest.pop();
        groups.unite(a.second, b.second);
        shortest.emplace(a.first + b.first, groups.find(a.second));
        --left;
    }
    std::vector<int> number(count, -1), result(count);
    int next = 0;
    for (int i = 0; i < count; ++i) {
        const std::int32_t group = groups.find(i);
        if (number[group] < 0) number[group] = next++;
        result[i] = number[group];
    }
    return result;
}

/// Local work joins the threadblock of the last thing it waits for, else one threadblock of its own per rank.
void place_local_nodes(Graph& graph, const std::vector<std::int32_t>& order, std::vector<int>& counts) {
    const Aliases aliases(graph.collective);
    Hazards hazards(graph.collective, aliases);
    std::vector<int> own(graph.collective.ranks, -1);
    for (const std::int32_t number : order) {
        Node& node = graph.nodes[number];
        std::int32_t last = -1;
        announce(graph, hazards, number, [&](std::int32_t other, bool far) {
            if (far || graph.nodes[other].rank != node.rank) return;
            if (last < 0 || graph.nodes[other].key > graph.nodes[last].key) last = other;
        });
        if (node.threadblock >= 0) continue;
        if (last >= 0) {
            node.threadblock = graph.nodes[last].threadblock;
        } else {
            if (own[node.rank] < 0) own[node.rank] = counts[node.rank]++;
            node.threadblock = own[node.rank];
        }
    }
}

/// Slots that the total order keeps in flight at most, and at least what was asked for.
void set_slots(Graph& graph, const std::vector<std::int32_t>& order) {
    std::vector<int> in_flight(graph.lanes.size(), 0);
    for (const std::int32_t number : order) {
        for (const ir::Operand& operand : graph.nodes[number].destinations) {
            if (operand.kind != ir::OperandKind::message) continue;
            ir::Connection& connection = graph.lanes[operand.target].connection;
            connection.slots = std::max(connection.slots, ++in_flight[operand.target]);
        }
        for (const ir::Operand& operand : graph.nodes[number].sources) {
            if (operand.kind == ir::OperandKind::message) --in_flight[operand.target];
        }
    }
}

/// Lanes between the same two ranks get different channels; the hint stands where it is free.
void set_channels(Graph& graph) {
    std::map<std::pair<int, int>, std::vector<int>> pairs;
    for (std::size_t i = 0; i < graph.lanes.size(); ++i) {
        pairs[{graph.lanes[i].connection.src, graph.lanes[i].connection.dst}].push_back(static_cast<int>(i));
    }
    for (auto& [pair, lanes] : pairs) {
        std::vector<int> used;
        for (const int lane : lanes) {
            int channel = graph.lanes[lane].connection.channel;
            while (std::find(used.begin(), used.end(), channel) != used.end()) ++channel;
            used.push_back(graph.lanes[lane].connection.channel = channel);
        }
    }
}

}  // namespace

void assign_threadblocks(Graph& graph, const LowerOptions& options, bool within_budget) {
    const std::vector<std::int32_t> order = ordered(graph);
    for (Node& node : graph.nodes) node.threadblock = -1;
    UnionFind sides(graph.lanes.size() * 2);
    unite_sides(graph, sides);
    const std::map<std::int32_t, std::int32_t> bound = bind_overwriters(graph, order, sides);

    std::vector<std::int32_t> threadblock_of(graph.lanes.size() * 2, -1);
    std::vector<int> counts(graph.collective.ranks, 0);
    for (std::size_t side = 0; side < threadblock_of.size(); ++side) {
        const ir::Connection& connection = graph.lanes[side / 2].connection;
        std::int32_t& threadblock = threadblock_of[sides.find(static_cast<std::int32_t>(side))];
        if (threadblock < 0) threadblock = counts[side % 2 == 0 ? connection.src : connection.dst]++;
    }
    for (Node& node : graph.nodes) {
        if (node.dead) continue;
        const std::int32_t side = first_side(node);
        if (side >= 0) node.threadblock = threadblock_of[sides.find(side)];
    }
    for (const auto& [number, side] : bound)
        graph.nodes[number].threadblock = threadblock_of[sides.find(side)];
    place_local_nodes(graph, order, counts);
    if (within_budget) {
        std::vector<std::vector<std::int64_t>> load(graph.collective.ranks);
        for (int rank = 0; rank < graph.collective.ranks; ++rank) load[rank].assign(counts[rank], 0);
        for (const std::int32_t number : order)
            ++load[graph.nodes[number].rank][graph.nodes[number].threadblock];
        std::vector<std::vector<int>> renamed;
        for (auto& loads : load) renamed.push_back(merge_to_budget(std::move(loads), options.threadblocks));
        for (const std::int32_t number : order) {
            Node& node = graph.nodes[number];
            node.threadblock = renamed[node.rank][node.threadblock];
        }
    }
    set_slots(graph, order);
    set_channels(graph);
}

}  // namespace baton::codegen
