// An independent check of packed trees against the machine: nothing here knows how they were made.
#pragma once

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

}  // namespace baton::test
