// All-reduce along trees, both phases planned together: where the roots lie and which phase gets how much of
// every link.
#pragma once

#include <baton/ir/collective.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace baton::synth {

/// The input of the linear program: a directed graph whose arcs draw on resources.
struct JointGraph {
    struct Arc {
        int from = -1, to = -1;
        std::vector<topologies::LinkShare> uses;  ///< resource, and what one unit of rate takes of it
    };
    int vertices = 0;
    std::vector<char> is_rank;  ///< others pass on exactly what they receive, in each phase
    std::vector<Arc> arcs;
    std::vector<double> capacity;  ///< per resource, bytes per second
};

/// An optimal solution, in bytes of the buffer per second.
struct JointOptimum {
    double rate = 0;
    std::vector<double> share;              ///< per vertex: rate of the data reduced there; sums to `rate`
    std::vector<double> reduce, broadcast;  ///< per arc
    std::vector<double> prices;             ///< per resource: optimal duals of the capacities; prices times
                                            ///< capacities sum to the rate
    int rounds = 0, cuts = 0;               ///< of the cutting planes
};

/// The best rate of an all_reduce that reduces every piece of the buffer along an in-tree to a root and sends
/// it out along an out-tree, over all trees, roots, shares and divisions of every link between the phases.
///
/// maximize X = sum of x_v, subject to the capacities for reduce + broadcast, to conservation in each phase
/// at vertices that are no ranks, and for every set S of vertices that holds a rank: broadcast into S >= the
/// shares outside of S; reduce out of S the same. By Edmonds' branching theorem, with switches split off
/// (their rates in and out are equal), trees of this rate exist, and no others beat it. Violated cuts are
/// found by maximum flow and added until there is none. Numbers are floating point, right to about 1e-7.
/// `most_work` as in LinearProgram::solve; throws an input error when it does not suffice. REQUIRES: ranks
/// reach each other.
JointOptimum joint_optimum(const JointGraph& graph, std::int64_t most_work = 1'500'000'000);

/// Everything the fabric can carry: an arc for every link between nodes that take part (`member`, per node)
/// or forward; resources are the links, then the joint limits. The first use of an arc is its link.
JointGraph fabric_graph(const topologies::Topology& topology, const std::vector<char>& member);

/// The optimum on `fabric_graph`: over all tree schedules on end points, under every routing; nodes that
/// multicast or reduce only pass on. Nothing for other kinds than all_reduce, for several groups, and above
/// 64 ranks, 400 arcs or a few seconds' work (counted, not timed). `tree_rate` proves it.
std::optional<JointOptimum> end_point_optimum(const topologies::Topology& topology,
                                              const ir::Collective& collective);

}  // namespace baton::synth
