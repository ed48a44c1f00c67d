// Groups of ranks for synthesizers that think of all ranks of a machine.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <functional>

namespace baton::synth {

/// A synthesizer for one group of all ranks of a machine.
using MakeForAll = std::function<ir::Algorithm(const topologies::Topology&, const ir::Collective&)>;

/// The machine as one group sees it: its members are ranks 0, 1, ... in the order of the group. Other ranks
/// have none and forward nothing; with `relays`, they forward like switches and hosts are forgotten, so that
/// routes lead over them.
topologies::Topology seen_by_group(const topologies::Topology& topology, const std::vector<int>& members,
                                   bool relays);

/// Runs `make` on the machine as every group sees it and puts the algorithms side by side, each step on the
/// ranks of its group, data cut finely enough for all. Groups know nothing of each other: links that several
/// use are shared when they run, nothing is planned for it. Members that no route joins without other ranks
/// send along routes over these; `with_relays` (relay.hpp) makes the steps from it. A collective without
/// groups goes to `make` as it is. Throws what `make` throws, an input error when members of a group cannot
/// reach each other at all or pinned routes lead over other ranks, and what ir::refine throws.
ir::Algorithm by_group(const topologies::Topology& topology, const ir::Collective& collective,
                       const MakeForAll& make);

}  // namespace baton::synth
