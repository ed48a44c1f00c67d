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

struct JointLimits {
    std::int64_t work = 1'500'000'000;       ///< as in LinearProgram::solve
    std::size_t most_arcs_apart = SIZE_MAX;  ///< up to which arcs are solved for one by one
};

/// The best rate of an all_reduce that reduces every piece of the buffer along an in-tree to a root and sends
/// it out along an out-tree, over all trees, roots, shares and divisions of every link between the phases.
///
/// maximize X = sum of x_v, subject to the capacities for reduce + broadcast, to conservation in each phase
/// at vertices that are no ranks, and for every set S of vertices that holds a rank: broadcast into S >= the
/// shares outside of S; reduce out of S the same. By Edmonds' branching theorem, with switches split off
/// (their rates in and out are equal), trees of this rate exist, and no others beat it. Violated cuts are
/// found by maximum flow and added until there is none. Numbers are floating point, right to about 1e-7.
///
/// Where color refinement finds much that looks alike, of both phases together, this has one value, and cuts
/// are asked for one rank of each class first: the mean of an optimal solution over all symmetries is
/// optimal. That what looks alike is symmetric is not assumed: unless the prices prove the rate, everything
/// is solved for apart. Throws an input error when the limits do not suffice. REQUIRES: ranks reach each
/// other.
JointOptimum joint_optimum(const JointGraph& graph, const JointLimits& limits = {});

/// Everything the fabric can carry: an arc for every link between nodes that take part (`member`, per node)
/// or forward; resources are the links, then the joint limits. The first use of an arc is its link.
JointGraph fabric_graph(const topologies::Topology& topology, const std::vector<char>& member);

/// The optimum on `fabric_graph`: over all tree schedules on end points, under every routing; nodes that
/// multicast or reduce only pass on. Nothing for other kinds than all_reduce, for several groups, above 128
/// ranks, above a few seconds' work (counted, not timed), and where nothing looks alike above 64 ranks or 400
/// arcs. `tree_rate` proves it.
std::optional<JointOptimum> end_point_optimum(const topologies::Topology& topology,
                                              const ir::Collective& collective);

}  // namespace baton::synth
