// Algorithms along shortest paths of a machine: every message goes between ranks that reach each other
// without a third rank. Trees away from a root follow links forward, trees toward it backward, so one-way
// links are respected.
#pragma once

#include "support/small_algorithms.hpp"

#include <baton/topologies/topology.hpp>

#include <queue>
#include <vector>

namespace baton::test {

/// Which ranks reach which directly, and shortest paths among them.
class RankGraph {
public:
    explicit RankGraph(const topologies::Topology& topology)
        : out_(static_cast<std::size_t>(topology.rank_count())) {
        std::vector<int> rank_of(topology.nodes.size(), -1);
        for (int r = 0; r < topology.rank_count(); ++r)
            rank_of[static_cast<std::size_t>(topology.rank_nodes[static_cast<std::size_t>(r)])] = r;
        for (std::size_t r = 0; r < out_.size(); ++r) {
            std::vector<char> seen(topology.nodes.size());
            std::vector<int> open{topology.rank_nodes[r]};
            seen[static_cast<std::size_t>(open[0])] = 1;
            while (!open.empty()) {
                const int node = open.back();
                open.pop_back();
                for (const int link : topology.out_links[static_cast<std::size_t>(node)]) {
                    const int to = topology.links[static_cast<std::size_t>(link)].to;
                    if (seen[static_cast<std::size_t>(to)]) continue;
                    seen[static_cast<std::size_t>(to)] = 1;
                    const int rank = rank_of[static_cast<std::size_t>(to)];
                    if (rank >= 0)
                        out_[r].push_back(rank);
                    else
                        open.push_back(to);
                }
            }
        }
    }

    int ranks() const { return static_cast<int>(out_.size()); }

    /// Parents of the breadth-first tree that starts at `root` (-1 at the root); `order` are its ranks, the
    /// root first. Backward: every rank's next hop on a shortest path to `root`. Parents of unreachable ranks
    /// are -2.
    std::vector<int> tree(int root, bool backward, std::vector<int>& order) const {
        std::vector<int> parent(out_.size(), -2);
        parent[static_cast<std::size_t>(root)] = -1;
        order = {root};
        for (std::size_t i = 0; i < order.size(); ++i) {
            for (int next = 0; next < ranks(); ++next) {
                if (parent[static_cast<std::size_t>(next)] != -2) continue;
                const int from = backward ? next : order[i], to = backward ? order[i] : next;
                const auto& list = out_[static_cast<std::size_t>(from)];
                if (std::find(list.begin(), list.end(), to) == list.end()) continue;
                parent[static_cast<std::size_t>(next)] = order[i];
                order.push_back(next);
            }
        }
        return parent;
    }
    bool strongly_connected() const {
        std::vector<int> order;
        for (const bool backward : {false, true}) {
            tree(0, backward, order);
            if (static_cast<int>(order.size()) != ranks()) return false;
        }
        return true;
    }
    /// Ranks on the way from `from` to `to`, both included.
    std::vector<int> path(int from, int to) const {
        std::vector<int> order, hops{from};
        const auto next = tree(to, true, order);
        while (hops.back() != to) hops.push_back(next[static_cast<std::size_t>(hops.back())]);
        return hops;
    }

private:
    std::vector<std::vector<int>> out_;
};

/// A shortest-path algorithm for any kind. `chunks`: of a shard or of the buffer.
inline ir::Algorithm tree_algorithm(const RankGraph& graph, ir::CollectiveKind kind, int root, int chunks) {
    using enum ir::Buffer;
    using enum ir::CollectiveKind;
    const int n = graph.ranks();
    ir::Collective c = collective(kind, n, chunks, root);
    ir::AlgorithmBuilder b("shortest-path " + std::string(to_string(kind)), c);
    std::vector<int> order;
    // Sends the run at `at` of `from` down the tree, into the same places of everyone.
    const auto spread = [&](int from, ir::Buffer buffer, int index) {
        const auto parent = graph.tree(from, false, order);
        for (const int rank : order) {
            const int above = parent[static_cast<std::size_t>(rank)];
            if (above >= 0) b.send({above, buffer, index}, {rank, buffer, index}, chunks);
        }
    };
    // Adds up the run at `index` of everyone along the tree toward `to`.
    const auto collect = [&](int to, ir::Buffer buffer, int index) {
        const auto parent = graph.tree(to, true, order);
        for (std::size_t i = order.size(); i-- > 1;)
            b.send_reduce({order[i], buffer, index},
                          {parent[static_cast<std::size_t>(order[i])], buffer, index}, chunks);
    };
    // Carries a run along the path; scratch places from `relay` on are free for it.
    const auto carry = [&](ir::Place from, ir::Place to, int relay) {
        const auto hops = graph.path(from.rank, to.rank);
        ir::Place at = from;
        for (std::size_t i = 1; i < hops.size(); ++i) {
            const ir::Place next = i + 1 == hops.size() ? to : ir::Place{hops[i], scratch, relay};
            b.send(at, next, chunks);
            at = next;
        }
        if (hops.size() == 1) b.copy(from, to, chunks);
    };
    switch (kind) {
        case broadcast:
            b.copy({root, input, 0}, {root, output, 0}, chunks);
            spread(root, output, 0);
            break;
        case all_gather:
            for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, r * chunks}, chunks);
            for (int r = 0; r < n; ++r) spread(r, output, r * chunks);
            break;
        case reduce:
        case all_reduce:
        case reduce_scatter: {
            const int shards = kind == reduce_scatter ? n : 1;
            for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, scratch, 0}, shards * chunks);
            for (int s = 0; s < shards; ++s) {
                const int owner = kind == reduce_scatter ? s : root;
                collect(owner, scratch, s * chunks);
                b.copy({owner, scratch, s * chunks}, {owner, output, 0}, chunks);
            }
            if (kind == all_reduce) spread(root, output, 0);
            break;
        }
        case scatter:
            for (int r = 0; r < n; ++r) carry({root, input, r * chunks}, {r, output, 0}, r * chunks);
            break;
        case gather:
            for (int r = 0; r < n; ++r) carry({r, input, 0}, {root, output, r * chunks}, r * chunks);
            break;
        case all_to_all:
            // In place, what arrives overwrites what is still to be sent: everything leaves from scratch.
            for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, scratch, r * n * chunks}, n * chunks);
            for (int r = 0; r < n; ++r)
                for (int q = 0; q < n; ++q)
                    carry({r, scratch, (r * n + q) * chunks}, {q, output, r * chunks}, (r * n + q) * chunks);
            break;
        case send_recv: carry({root, input, 0}, {c.receiver(), output, 0}, 0); break;
        case custom: break;
    }
    return b.build();
}

/// The inverse of an all-gather in which every place is written once: all steps in reverse order, copies
/// become reductions. A reduce_scatter whose partial sums rest in scratch.
inline ir::Algorithm reversed_all_gather(const ir::Algorithm& all_gather) {
    using enum ir::Buffer;
    const int n = all_gather.collective.ranks;
    const auto chunks = all_gather.collective.chunks;
    ir::AlgorithmBuilder b(all_gather.name + ", reversed",
                           collective(ir::CollectiveKind::reduce_scatter, n, chunks));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, scratch, 0}, n * chunks);
    const auto steps = ir::expand(all_gather);
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
        if (step->op == ir::StepOp::copy) continue;  // the own shard, which stays where it is
        const auto place = [&](int rank, ir::Buffer buffer, std::int64_t index) {
            return ir::Place{rank, scratch, buffer == input ? rank * chunks + index : index};
        };
        b.send_reduce(place(step->dst_rank, step->dst_buffer, step->dst_index),
                      place(step->src_rank, step->src_buffer, step->src_index), step->chunks);
    }
    for (int r = 0; r < n; ++r) b.copy({r, scratch, r * chunks}, {r, output, 0}, chunks);
    return b.build();
}

}  // namespace baton::test
