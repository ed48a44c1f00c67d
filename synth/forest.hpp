// Schedules from packed spanning trees: every link at work all the time, on any topology.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace baton::synth {

/// Where trees are packed: on the links themselves with switches removed, or on pairs of ranks alone, with
/// other ways than the default routes where these fall short, or without; or by symmetry whatever the number
/// of trees loses.
enum class TreeWays : std::uint8_t { links, detours, default_routes, symmetric };

/// What the trees may look like.
struct TreeLimits {
    /// At most (or exactly) this many trees per root.
    TreeLimits(std::int64_t trees, bool exact = false, int depth = 0)  // NOLINT: implicit on purpose
        : most_trees(trees), exactly(exact), most_depth(depth) {}
    std::int64_t most_trees;
    bool exactly;
    int most_depth;  ///< hops of the deepest tree, 0: no bound; throughput gives way to it
    TreeWays ways = TreeWays::links;
    std::int64_t most_steps = 4'000'000;  ///< schedules of more steps are not made
};

/// A forest as an Algorithm, and how good it is on its rates.
struct ForestAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t trees_per_root = 0;  ///< the larger of both phases of an all_reduce
    int depth = 0;                    ///< hops of the deepest tree
    double loss = 0;                  ///< time on links above what the best cuts allow: 0.01 is 1%
};

/// broadcast and all_gather: trees out of the roots; reduce and reduce_scatter: the same on the reversed
/// machine, run backwards; all_reduce: reduce_scatter, then all_gather. Shares of trees are weights of
/// chunks. One group of all ranks only. The optimum is that of `tree_optimum`, exact. Machines that look the
/// same from every rank get one root's trees, shifted (`symmetric_forest`). Elsewhere trees are packed on
/// pairs of ranks
/// (`pack_forest`): with shared links divided evenly and, where that is slower than the optimum, by
/// `divide_rates`. The least number of trees is taken that is within 0.1% of the best, else the best number
/// up to the limit (limits above one may be exceeded, up to 1024, by shifted trees, which are few however
/// fine their shares). Throws an input error with the reason when the case is not served, and before anything
/// is looked for when one tree per root has more than `most_steps` edges.
ForestAlgorithm forest(const topologies::Topology& topology, const ir::Collective& collective,
                       const TreeLimits& limits,
                       topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                       std::uint64_t seed = 0);

/// Pins the steps that have a channel: it is the number of a way (`RankGraph::ways`), whose route they get;
/// their channels then keep the ways of a pair apart.
void pin_ways(ir::Algorithm& algorithm, const std::map<std::tuple<int, int, int>, std::string>& ways,
              const topologies::Topology& topology);

/// Whether `forest` is made for a kind.
bool forest_serves(ir::CollectiveKind kind);

}  // namespace baton::synth
