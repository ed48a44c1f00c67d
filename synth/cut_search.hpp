// The search for the tightest cut of a collective. Internal to the layer; bandwidth_bound.hpp is the public
// face.
#pragma once

#include <baton/synth/bandwidth_bound.hpp>
#include <baton/synth/capacity_graph.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// Counts what must leave a growing set of nodes, over all groups, in constant time per node.
class DemandCount {
public:
    DemandCount(const topologies::Topology& topology, const ir::Collective& collective);
    void clear();
    void add(int node);
    /// Units that must leave the set, and units that must leave its complement.
    std::int64_t leaving() const { return leaving_; }
    std::int64_t entering() const { return entering_; }

private:
    struct Group {
        std::int64_t size = 0, inside = 0;
        bool root_inside = false, peer_inside = false;
    };
    struct Member {
        int group = -1;
        bool root = false, peer = false;
    };
    std::int64_t demand(const Group& group, bool complement) const;

    ir::CollectiveKind kind_;
    std::vector<Group> groups_;
    std::vector<Member> members_;  // per node
    std::int64_t leaving_ = 0, entering_ = 0;
};

/// The best argument so far. `demand / capacity` is compared exactly; capacities are in units of the graph's
/// scale.
struct BestArgument {
    WitnessKind kind = WitnessKind::nothing;
    std::int64_t demand = 0, capacity = 1;
    std::vector<char> inside;  // cut: per vertex of the graph
    std::vector<int> label;    // partition: part of each vertex, -1 for vertices that only forward
    bool entering = false;     // partition
    /// True when the ratio is larger than the present one.
    bool beaten_by(std::int64_t other_demand, std::int64_t other_capacity) const;
};

/// A division of all vertices of the graph.
struct Labels {
    std::vector<int> of;  // per vertex
    int count = 0;
};

/// Divisions worth trying: every node alone; hosts; and what hangs together by links of at least c, for up to
/// 32 capacities c.
std::vector<Labels> natural_divisions(const topologies::Topology& topology, const CapacityGraph& graph);

/// Tries every part of a division, and its complement, as a cut.
void try_parts(const CapacityGraph& graph, const Labels& labels, DemandCount& demand, BestArgument& best);
/// Tries a division as a partition (all_reduce). `counted`: per node, members of the communicator and nodes
/// that multicast or reduce; parts without any are left out.
void try_partition(const topologies::Topology& topology, const ir::Collective& collective,
                   const CapacityGraph& graph, const Labels& labels, const std::vector<char>& counted,
                   BestArgument& best);
/// Tries all prefixes of the breadth-first orders from up to `sources` members.
void try_sweeps(const CapacityGraph& graph, const std::vector<char>& member, int sources, DemandCount& demand,
                BestArgument& best);

/// Raises `best` until no set S of vertices with some sink outside has |S and sources| / capacity out of S
/// above it. `reversed` holds for graphs with arcs turned round: the cut that is kept is then the complement.
/// `recount`: several groups share the network, so that a cut found for one is weighed with the demand of
/// all. False when `work` ran out.
bool raise_to_worst_cut(const CapacityGraph& graph, const std::vector<int>& sources,
                        const std::vector<int>& sinks, DemandCount* recount, std::int64_t& work,
                        BestArgument& best);

}  // namespace baton::synth
