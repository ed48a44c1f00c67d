#include <baton/synth/depth_bound.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace baton::synth {

Eccentricity eccentricity(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots) {
    std::vector<std::vector<int>> next(at(ranks));
    for (const RankEdge& edge : edges) next[at(edge.from)].push_back(edge.to);
    Eccentricity most;
    for (const int root : roots) {
        std::vector<int> hops(at(ranks), -1), queue = {root};
        hops[at(root)] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const int v : next[at(queue[i])]) {
                if (hops[at(v)] >= 0) continue;
                hops[at(v)] = hops[at(queue[i])] + 1;
                queue.push_back(v);
            }
        }
        for (int v = 0; v < ranks; ++v) {
            const int far = hops[at(v)] < 0 ? ranks : hops[at(v)];
            if (far > most.hops) most = {far, root, v};
        }
    }
    return most;
}

RankGraph graph_within(const topologies::Topology& topology, int ranks, const TreePhases& phases,
                       int most_depth, topologies::RoutePolicy policy, std::uint64_t seed) {
    const auto least = [&](const RankGraph& graph) {
        Eccentricity most;
        for (const bool turned : {false, true}) {
            if (!(turned ? phases.in : phases.out)) continue;
            const Eccentricity phase =
                eccentricity(ranks, turned ? graph.turned() : graph.edges(), phases.roots);
            if (phase.hops > most.hops) most = phase;
        }
        return most;
    };
    RankGraph nearest(topology, ranks, policy, seed);
    nearest.require_connected();
    if (most_depth == 0 || least(nearest).hops <= most_depth) return nearest;
    RankGraph all(topology, ranks, policy, seed, RankPairs::all);
    const Eccentricity needed = least(all);
    if (needed.hops <= most_depth) return all;
    throw input_error(
        fmt::format("no trees are at most {} hop{} deep: rank {} is {} hops from rank {}", most_depth,
                    most_depth == 1 ? "" : "s", needed.rank, needed.hops, needed.root),
        "--max-depth", fmt::format("the least depth possible is {}", needed.hops));
}

int message_depth(const ir::Algorithm& algorithm) {
    std::map<std::tuple<int, ir::Buffer, int>, int> depth;  // of the value at a place
    int most = 0;
    ir::StepCursor cursor = algorithm.steps();
    for (ir::Step step; cursor.next(step);) {
        for (int i = 0; i < step.chunks; ++i) {
            const auto source = depth.find({step.src_rank, step.src_buffer, step.src_index + i});
            const int reached = (source == depth.end() ? 0 : source->second) + (step.crosses() ? 1 : 0);
            int& target = depth[{step.dst_rank, step.dst_buffer, step.dst_index + i}];
            target = step.reducing() ? std::max(target, reached) : reached;
            most = std::max(most, target);
        }
    }
    return most;
}

}  // namespace baton::synth
