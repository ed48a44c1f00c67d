// Figures of links between GPUs, and what is said of a machine that was imported. Internal to the layer.
#pragma once

#include <baton/topologies/import/machine_tree.hpp>

#include <map>
#include <string>

namespace baton::topologies {

/// One unit of a link between GPUs, or a GPU and its switch or CPU, by architecture. Without figures for the
/// architecture the generation follows from the most links that a GPU has.
UnitLink gpu_link_unit(LinkKind kind, const std::string& arch, bool through_switch, int most_links);

/// NVLink-C2C between the CPUs of a board whose GPUs sit on CPU chips.
UnitLink chip_link_between_cpus();

/// Adds what was found, which tables the figures are from, and what is odd among the GPUs. `arch` by part.
void report_machine(const MachineTree& tree, const std::map<int, std::string>& arch, Imported& result);

}  // namespace baton::topologies
