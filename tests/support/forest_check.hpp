// An independent check of packed trees against the machine: nothing here knows how they were made.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/routes.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace baton::test {

struct ForestCheck {
    std::string fault;            ///< empty when every root has its trees and each spans all ranks
    int depth = 0;                ///< of the deepest tree
    double seconds_per_byte = 0;  ///< of the busiest link or limit, per byte of each root
};

/// Every rank (or only `root`) must have `per_root` spanning out-trees. Their edges are messages along the
/// routes of the machine (against them when `turned`); the time is that of the busiest link.
inline ForestCheck check_forest_on(const topologies::Topology& topology, const topologies::Routes& routes,
                                   const synth::Forest& forest, bool turned, int root = -1) {
    ForestCheck check;
    const int ranks = topology.rank_count();
    std::vector<std::int64_t> trees(static_cast<std::size_t>(ranks), 0);
    std::map<std::pair<int, int>, std::int64_t> messages;
    for (const synth::PackedTree& tree : forest.trees) {
        if (tree.multiplicity < 1) check.fault = "a tree without multiplicity";
        trees[static_cast<std::size_t>(tree.root)] += tree.multiplicity;
        std::map<int, int> depth = {{tree.root, 0}};
        for (const auto& [from, to] : tree.edges) {
            if (depth.count(from) == 0) check.fault = "an edge begins where the tree is not";
            if (depth.count(to) != 0) check.fault = "a rank is entered twice";
            check.depth = std::max(check.depth, depth[to] = depth[from] + 1);
            messages[{from, to}] += tree.multiplicity;
        }
        if (static_cast<int>(depth.size()) != ranks) check.fault = "a tree does not span";
    }
    for (int rank = 0; rank < ranks; ++rank) {
        const std::int64_t wanted = root < 0 || rank == root ? forest.per_root : 0;
        if (trees[static_cast<std::size_t>(rank)] != wanted)
            check.fault = "a root has another number of trees";
    }
    std::vector<double> load(topology.links.size(), 0);
    for (const auto& [pair, count] : messages) {
        const topologies::Route& route =
            turned ? routes.between(pair.second, pair.first) : routes.between(pair.first, pair.second);
        if (!route.reachable) check.fault = "an edge without a route";
        for (const topologies::LinkShare& use : route.links)
            load[static_cast<std::size_t>(use.link)] += use.share * static_cast<double>(count);
    }
    const auto busy = [&](double amount, double capacity) {
        check.seconds_per_byte =
            std::max(check.seconds_per_byte, amount / capacity / static_cast<double>(forest.per_root));
    };
    for (std::size_t l = 0; l < load.size(); ++l) busy(load[l], topology.links[l].capacity().value());
    for (const topologies::Limit& limit : topology.limits) {
        double sum = 0;
        for (const int link : limit.links) sum += load[static_cast<std::size_t>(link)];
        busy(sum, limit.bandwidth.value());
    }
    return check;
}

/// Seconds on the busiest link or limit per byte of one unit (a shard, or the whole buffer), summed over the
/// steps of a schedule along their routes.
inline double busiest_link(const topologies::Topology& topology, const topologies::Routes& routes,
                           const ir::Algorithm& algorithm) {
    const ir::Collective& c = algorithm.collective;
    const auto weight = [&](std::int64_t chunk) {
        return c.weights.empty() ? 1 : c.weights[static_cast<std::size_t>(chunk % c.chunks)];
    };
    double whole = 0;
    for (std::int64_t chunk = 0; chunk < c.chunks; ++chunk) whole += static_cast<double>(weight(chunk));
    std::vector<double> load(topology.links.size(), 0);
    ir::StepCursor cursor = algorithm.steps();
    for (ir::Step step; cursor.next(step);) {
        if (!step.crosses()) continue;
        // Partial results keep the place of their chunk; inputs of gathering kinds start at 0, all are
        // classes mod chunks.
        double amount = 0;
        for (int i = 0; i < step.chunks; ++i) amount += static_cast<double>(weight(step.dst_index + i));
        const topologies::Route route =
            step.via >= 0
                ? routes.via(step.src_rank, step.dst_rank, algorithm.vias[static_cast<std::size_t>(step.via)])
                : routes.between(step.src_rank, step.dst_rank);
        for (const topologies::LinkShare& use : route.links)
            load[static_cast<std::size_t>(use.link)] += use.share * amount / whole;
    }
    double busiest = 0;
    for (std::size_t l = 0; l < load.size(); ++l)
        busiest = std::max(busiest, load[l] / topology.links[l].capacity().value());
    for (const topologies::Limit& limit : topology.limits) {
        double sum = 0;
        for (const int link : limit.links) sum += load[static_cast<std::size_t>(link)];
        busiest = std::max(busiest, sum / limit.bandwidth.value());
    }
    return busiest;
}

}  // namespace baton::test
