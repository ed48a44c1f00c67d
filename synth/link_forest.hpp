// Forests packed on the links themselves, switches and all, in whole trees.
#pragma once

#include <baton/synth/tree_packing.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace baton::synth {

/// Numbers for ways other than the default route, per pair of ranks in the direction of messages; the same
/// way has the same number in every forest of a schedule.
class WayNumbers {
public:
    int number(int sender, int receiver, const std::string& via);
    /// By sender, receiver and number: what `via` of a step says.
    const std::map<std::tuple<int, int, int>, std::string>& all() const { return vias_; }

private:
    std::map<std::tuple<int, int, int>, std::string> vias_;
    std::map<std::tuple<int, int, std::string>, int> numbers_;
    std::map<std::pair<int, int>, int> count_;
};

/// Seconds per byte of each root on the busiest link or limit, along the routes of the edges. `turned`: trees
/// against the messages.
double forest_time(const topologies::Topology& topology, const topologies::Routes& routes,
                   const Forest& forest, bool turned, const WayNumbers& ways);

/// k trees per root as `least_trees` finds them for links with switches between, switches removed
/// (`remove_switches`), trees packed on what remains (`pack_trees`). `optimum`: seconds per byte of each root
/// that cuts allow. The time of the forest is that of its busiest link or limit, counted on the routes of its
/// edges. Empty when the switches could not be removed, or when the trees are too deep.
std::optional<Forest> link_forest(const topologies::Topology& topology, const topologies::Routes& routes,
                                  int ranks, const std::vector<int>& roots, bool turned, double optimum,
                                  const ForestOptions& options, WayNumbers& ways);

}  // namespace baton::synth
