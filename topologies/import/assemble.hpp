// One machine from the hosts that were imported, joined by a fabric.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>
#include <vector>

namespace baton::topologies {

/// Hosts in the given order, all of them `repeat` times over, joined by `fabric` ("ndr-rail",
/// "roce_v2-tree,oversubscription=2"; see docs/topology.md). One host without a fabric is returned as it is.
/// Throws an input error when several hosts have no fabric, or the result is too large.
Topology assemble_hosts(const std::vector<Topology>& hosts, int repeat, const std::string& fabric);

}  // namespace baton::topologies
