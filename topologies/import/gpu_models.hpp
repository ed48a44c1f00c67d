// What a GPU is by its PCI id, and what an architecture is known for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::topologies {

/// Architecture of a PCI device ("sm_80", "gfx942"); empty when it is in no table. Chips of one generation
/// share the upper byte of NVIDIA's ids (0x20 is GA100); AMD's are listed one by one (pci.ids).
std::string arch_by_pci(std::int64_t vendor, std::int64_t device);

/// Architecture of a product by its name ("NVIDIA H100 80GB HBM3", "Tesla V100-SXM3-32GB", "AMD Instinct
/// MI300X"); empty when the name is in no table.
std::string arch_by_name(std::string_view name);

/// Compute capability of "sm_90", "sm_100a", "90"; 0 for anything else.
int sm_of_arch(std::string_view arch);

/// PCIe generation of the slots that the architecture is built for, in GT/s; 0 when not known.
double pcie_of_arch(std::string_view arch);

inline constexpr std::int64_t kNvidia = 0x10de, kAmd = 0x1002;

}  // namespace baton::topologies
