// Which NICs a rank's traffic uses. Internal to the layer.
#pragma once

#include <baton/topologies/forwarding.hpp>

#include <string>
#include <vector>

namespace baton::topologies {

/// NICs of each rank of one host by the rule stated at Routes: (rank, node indices of its NICs). Adds
/// sentences to `warnings` where no locality is known.
std::vector<std::pair<int, std::vector<int>>> assign_nics(const Topology& topology, const Forwarding& rules,
                                                          int host, std::vector<std::string>& warnings);

}  // namespace baton::topologies
