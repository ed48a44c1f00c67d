// Where devices sit on PCIe, rebuilt from how close every two of them are. Internal to the layer.
#pragma once

#include <baton/topologies/import/machine_tree.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::topologies {

/// What the shortest PCIe path between two devices passes, nearest first (the cells of `nvidia-smi topo -m`).
enum class Closeness : std::uint8_t {
    unknown,      ///< not said: the pair is joined by NVLink or XGMI
    one_bridge,   ///< PIX, PSB: at most one bridge
    bridges,      ///< PXB: several bridges, no host bridge
    host_bridge,  ///< PHB
    numa_node,    ///< NODE: several host bridges of a NUMA node
    system,       ///< SYS, SOC: between NUMA nodes
};

/// GPUs and network adapters with what is known of every two.
struct DeviceCloseness {
    std::vector<MachinePart> devices;           ///< without parent and link
    std::vector<std::string> names;             ///< for messages
    std::vector<std::string> numa;              ///< equal texts: same NUMA node; empty: not known
    std::vector<std::vector<Closeness>> pairs;  ///< symmetric
};

/// Appends CPUs, bridges and the devices to `tree` (one host), each device under the nearest bridge that the
/// closeness tells, and returns the part of each device. Bridges and slots get `slot` as their link. Without
/// any closeness or NUMA node there is no PCIe in the result. Adds what was assumed and what contradicts
/// itself.
std::vector<int> add_closeness_tree(const DeviceCloseness& known, const UnitLink& slot, MachineTree& tree,
                                    Imported& result);

}  // namespace baton::topologies
