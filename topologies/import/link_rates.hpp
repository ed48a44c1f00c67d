// Rates and latencies of links that files of other tools name but do not quantify, each with its source.
#pragma once

#include <baton/topologies/topology.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace baton::topologies {

/// One unit of a link, one direction, as it goes into a topology: `kind`, `bandwidth` (raw), `goodput`,
/// `latency` and `provenance` are set, the rest is as default.
using UnitLink = Link;

/// One NVLink of a GPU with compute capability `sm` (90 = Hopper): 60 NVLink 1, 70 to 72 NVLink 2, 80 and 86
/// NVLink 3, 90 NVLink 4, 100 and above NVLink 5. `through_switch`: the latency is that of one of the two
/// links over an NVSwitch. Nothing for architectures without NVLink figures.
std::optional<UnitLink> nvlink_unit(int sm, bool through_switch);

/// A compute capability whose GPUs have so many NVLinks (up to 6: 70, 12: 80, 18: 90), for matrices that name
/// no GPU; 0 when none has as many. What it gives is an assumption.
int sm_by_nvlinks(int most_links_of_a_gpu);

/// One Infinity Fabric (XGMI) link between GPUs by architecture name ("gfx906", "gfx908", "gfx90a", "gfx942",
/// "gfx950"); the figure of gfx942 with a word of warning in its source for unknown names.
UnitLink xgmi_unit(std::string_view arch);

/// A PCIe slot or bridge: `gigatransfers` per second and lane, `lanes`. Raw rate after line coding (8/10 to
/// 5 GT/s, 128/130 to 32 GT/s, 242/256 from 64 GT/s).
UnitLink pcie_link(double gigatransfers, int lanes);
/// "16.0 GT/s PCIe", "8 GT/s", "32.0 GT/s" and the like to GT/s; nothing when it says none ("", "Unknown
/// speed").
std::optional<double> pcie_gigatransfers(std::string_view text);

/// The link between two sockets by CPU vendor and model as CPUID tells them ("GenuineIntel", 143), "IBM" for
/// POWER and "ARM" for all of ARM.
UnitLink socket_link(std::string_view vendor, int model);

/// A port of a network adapter at so many bits per second.
UnitLink network_port(double bits_per_second, LinkKind kind);

/// Latency of an NVSwitch, a PCIe bridge or a CPU that is passed.
Time pass_latency(NodeType type);

}  // namespace baton::topologies
