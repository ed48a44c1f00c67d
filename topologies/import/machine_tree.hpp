// Machines from files that follow the PCI tree: CPUs, bridges, GPUs and network ports, and the links of GPUs
// beside the tree. Readers of such files fill a MachineTree; build_machine makes the topology of it. Internal
// to the layer.
#pragma once

#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/import/link_rates.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baton::topologies {

/// One part of a machine. Parents come before their children.
struct MachinePart {
    NodeType type = NodeType::pcie;            ///< cpu, pcie, gpu or nic
    int host = 0;                              ///< number of the host, from 0
    int parent = -1;                           ///< part above it; -1 for CPUs
    UnitLink up;                               ///< link to the parent; not used for CPUs
    std::string arch;                          ///< GPUs: "sm_90", "gfx942"; empty when not known
    bool takes_part = true;                    ///< GPUs: becomes a rank
    std::optional<std::int64_t> rank, device;  ///< numbers in the file; order ranks and network ports
    std::string bus;                           ///< PCI address as in the file; may be empty and may repeat
    std::string cpu_vendor;                    ///< CPUs: as socket_link takes it
    int cpu_model = 0;
    std::map<std::string, std::string> attributes;  ///< kept at the node
};

/// Links of a GPU beside the PCI tree, as the GPU states them. Links between two GPUs are stated by both.
struct GpuLinks {
    int gpu = -1;         ///< index of the part
    int other = -1;       ///< the other GPU or CPU; -1 with `through`
    std::string through;  ///< name of the switch that they lead to; empty otherwise
    int count = 1;        ///< units
    LinkKind kind = LinkKind::nvlink;
    std::optional<UnitLink> unit;  ///< figures, when the file has them; else by the GPU's architecture
};

/// Links between two switches.
struct SwitchLinks {
    std::string from, to;
    int count = 1;
    UnitLink unit;
};

/// A link between two bridges beside the tree.
struct BridgeLink {
    int from = -1, to = -1;  ///< parts
    UnitLink unit;
};

/// All of a machine.
struct MachineTree {
    std::vector<MachinePart> parts;
    std::vector<GpuLinks> links;
    std::vector<SwitchLinks> switch_links;
    std::vector<BridgeLink> bridge_links;         ///< each once; those of bridges left out are left out
    std::vector<std::string> host_names;          ///< one for each host
    std::map<std::string, std::string> switches;  ///< switches by name, with the bus id to keep
};

/// Most CPUs (NUMA nodes) of a host that are accepted: they are joined pairwise.
inline constexpr int kMaxCpusOfHost = 256;

/// Makes the finished topology in `result` and adds what was found and assumed. Ranks follow the numbers of
/// the file where all GPUs have different ones, else device numbers, else bus ids.
void build_machine(const MachineTree& tree, const ImportSource& source, const ImportOptions& options,
                   Imported& result);

/// Rates of `nvidia-smi nvlink -s` (options.nvlink_status) for the NVLinks of the tree. GPUs of a tree that
/// has no links get theirs, all to one switch; the assumption is said. Nothing is done when no text was
/// given.
void apply_nvlink_status(MachineTree& tree, const ImportOptions& options, Imported& result);

/// "3 GPUs", "1 GPU".
std::string counted(std::size_t count, const std::string& singular, const std::string& plural = {});

}  // namespace baton::topologies
