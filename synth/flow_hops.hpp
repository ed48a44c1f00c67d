// Paths of a flow network as sends from rank to rank. Internal to the layer.
#pragma once

#include <baton/synth/flow_network.hpp>
#include <baton/topologies/routes.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace baton::synth {

/// One send between two ranks, over the default route or a pinned one.
struct FlowHop {
    int from = -1, to = -1;  ///< ranks, as the data moves (in a turned network against the arcs)
    int via = -1;            ///< index into `FlowHops::vias`, -1 for the default route
    /// -1 for the default route; pinned routes of the same two ranks have channels of their own, so that none
    /// waits for another.
    int channel = -1;
    int links = 0;                             ///< links on the way
    std::vector<std::pair<int, double>> load;  ///< resources of the network and the share that each carries
};

/// Cuts paths at the ranks that they pass, and finds for each part the route that a step takes: the default
/// one where the part lies on it (a message then spreads as the policy has it), else one pinned by `via`.
class FlowHops {
public:
    /// All must outlive this object.
    FlowHops(const FlowNetwork& network, const topologies::Routes& routes);

    /// Sends along a path of arcs from a source of the network to a sink, in the order of the arcs; false
    /// when a part is no route that a step may take. `exact`: parts that are one of several ways of a default
    /// route are pinned too.
    bool along(const std::vector<int>& arcs, bool exact, std::vector<int>& hops);

    const FlowHop& operator[](int hop) const { return hops_[static_cast<std::size_t>(hop)]; }
    const std::vector<std::string>& vias() const { return vias_; }

private:
    int known(const std::vector<int>& arcs, bool exact);
    int find(const std::vector<int>& arcs, bool exact);
    int add(int from, int to, const topologies::Route& route, int via);
    std::string name(const std::vector<int>& arcs) const;

    const FlowNetwork& network_;
    const topologies::Routes& routes_;
    std::vector<int> rank_of_vertex_;
    std::vector<std::vector<int>> resources_of_link_;
    std::vector<FlowHop> hops_;
    std::vector<std::string> vias_;
    std::map<std::vector<int>, int> known_[2];    // not exact, exact: arcs of one part: hop, -1 for none
    std::map<std::pair<int, int>, int> default_;  // ranks: hop over the default route
    std::map<std::pair<int, int>, int> pinned_;   // ranks: how many pinned routes
};

}  // namespace baton::synth
