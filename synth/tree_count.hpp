// How many trees per root come near the optimum when edges carry whole trees only.
#pragma once

#include <baton/synth/rank_graph.hpp>
#include <baton/synth/tree_packing.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// What is left of a limit on work (arcs times flows).
struct Work {
    std::int64_t left = 0;
    /// Throws an input error when nothing is left.
    void spend(std::int64_t amount);
};

/// A graph in which trees reach the vertices 0..ranks-1; the others only forward. The references must outlive
/// it.
struct TreeGraph {
    int ranks = 0, vertices = 0;
    const std::vector<RankEdge>& edges;
    const std::vector<int>& roots;
};

/// k trees per root, and the U at which floor(U * rate) trees on every edge allow them.
struct TreeCount {
    std::int64_t per_root = 0;  ///< 0: nothing connects the ranks
    double u = 0;
    double seconds_per_byte() const { return per_root > 0 ? u / static_cast<double>(per_root) : 0; }
};

/// The least number of trees per root whose time is within the tolerance of `optimum` (seconds per byte of
/// each root, what cuts without rounding allow), from 64 trees on the least within 0.4%, else the best number
/// up to the limit; or the number asked for. For each number the least U is found exactly, by raising it to
/// what violated cuts demand.
TreeCount least_trees(const TreeGraph& graph, double optimum, const ForestOptions& options, Work& work);

/// Whole trees that a rate carries at U; what is a billionth short of a whole tree counts.
std::int64_t whole_trees(double rate, double u);

/// The least U, from `from` on, at which edges of these rates carry `wanted` trees together. REQUIRES: a rate
/// above 0.
double least_scale(const std::vector<double>& rates, std::int64_t wanted, double from);

/// Whole trees that each edge carries at U.
std::vector<std::int64_t> tree_capacities(const std::vector<RankEdge>& edges, double u);

}  // namespace baton::synth
