// Machines made of hosts: which hosts are equal, and which of their ranks correspond.
#pragma once

#include <baton/topologies/topology.hpp>

#include <vector>

namespace baton::synth {

/// Ranks by host, lined up so that the ranks of one local index form a rail.
struct HostRails {
    std::vector<std::vector<int>> ranks;  ///< [host][local]: ranks of the topology
    /// Class of each host: hosts of one class are equal, their nodes and links corresponding one to one, the
    /// rank of local index l to that of local index l. Numbered by first appearance.
    std::vector<int> class_of;
    int hosts() const { return static_cast<int>(ranks.size()); }
    int locals() const { return ranks.empty() ? 0 : static_cast<int>(ranks.front().size()); }
    int classes() const;
};

/// Groups `members` (ranks of the topology, in the order of their positions) by host and finds equal hosts.
///
/// Nodes are colored by type and figures and the colors refined by the colors of neighbors over their links
/// (color refinement); nodes of the fabric, outside of every host, keep colors of their own, so that two
/// ranks of equal color hang on the same rail. Within a color ranks stay in their order. A class is formed
/// only after the correspondence of nodes was checked link by link. Where hosts hang on different fabric
/// nodes (leaves of a fat tree) fabric nodes are colored like all others, and only the links inside of hosts
/// are compared.
///
/// Throws an input error when the hosts have unequal numbers of members, when there is one host only, or one
/// member per host.
HostRails host_rails(const topologies::Topology& topology, const std::vector<int>& members);

/// One host alone, with what belongs to it: its nodes and the links among them. Rank i is `ranks[i]`; other
/// ranks of the host become nodes without one.
topologies::Topology host_alone(const topologies::Topology& topology, const std::vector<int>& ranks);

}  // namespace baton::synth
