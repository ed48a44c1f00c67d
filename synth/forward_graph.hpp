// The machine as trees see it: ranks that store and pass on, and what only forwards between them.
#pragma once

#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::synth {

/// Links side by side between two vertices, or a joint limit.
struct ForwardArc {
    int from = -1, to = -1;
    double rate = 0;         ///< bytes per second
    std::vector<int> links;  ///< empty for a limit
    std::string name;        ///< the hop in a `via`; empty for limits and for links of merged switches
};

/// A way between two ranks through forwarding vertices.
struct ForwardWay {
    bool standard = false;  ///< the default route of the pair
    std::string via;        ///< else the route to pin
    Time latency{};
};

/// Vertices 0..ranks-1 are the ranks; behind them stand all other nodes with links, and one vertex for each
/// joint limit on links of one node (as in `CapacityGraph`). A NIC is two vertices, one towards its fabric
/// and one towards its host; vertices that lead nowhere are left out. Switches side by side (the same
/// neighbors at proportional rates and equal latencies) are one vertex, since the default route spreads over
/// all of them. `turned`: every arc turned round, for trees of reductions.
class ForwardGraph {
public:
    ForwardGraph(const topologies::Topology& topology, const topologies::Routes& routes, int ranks,
                 bool turned);

    int ranks() const { return ranks_; }
    int vertices() const { return vertices_; }
    const std::vector<ForwardArc>& arcs() const { return arcs_; }
    /// Host of a vertex as a number; vertices without host have one of their own.
    int host(int vertex) const { return host_[static_cast<std::size_t>(vertex)]; }
    /// Takes out of a path, a list of arcs, what lies between two visits of a vertex.
    void cut_loops(std::vector<int>& path) const;
    /// Whether a path, a list of arcs, may be a part of a route as far as its inner vertices tell: no vertex
    /// twice, no rank inside, NICs between host and fabric, hosts entered once.
    bool plausible(const std::vector<int>& path) const;
    /// The way that a path from rank to rank stands for; nothing when no route goes so.
    std::optional<ForwardWay> way(const std::vector<int>& path) const;

private:
    void split_nics();
    void merge_switches();
    void drop_dead_ends();

    const topologies::Topology& topology_;
    const topologies::Routes& routes_;
    int ranks_, vertices_ = 0;
    bool turned_;
    std::vector<ForwardArc> arcs_;
    std::vector<int> host_, node_;  // node_: -1 for limits
};

}  // namespace baton::synth
