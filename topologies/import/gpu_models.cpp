#include <baton/topologies/import/gpu_models.hpp>

#include <charconv>

namespace baton::topologies {
namespace {

struct ChipFamily {
    std::int64_t upper_byte;
    const char* arch;
};

constexpr ChipFamily kNvidiaChips[] = {
    {0x15, "sm_60"}, {0x1d, "sm_70"}, {0x1e, "sm_75"}, {0x20, "sm_80"},  {0x22, "sm_86"},  {0x25, "sm_86"},
    {0x26, "sm_89"}, {0x27, "sm_89"}, {0x23, "sm_90"}, {0x29, "sm_100"}, {0x31, "sm_103"}, {0x2b, "sm_120"},
};

struct AmdDevice {
    std::int64_t device;
    const char* arch;
};

constexpr AmdDevice kAmdDevices[] = {
    {0x66a0, "gfx906"}, {0x66a1, "gfx906"}, {0x66a2, "gfx906"}, {0x66a3, "gfx906"}, {0x66a7, "gfx906"},
    {0x66af, "gfx906"}, {0x738c, "gfx908"}, {0x738e, "gfx908"}, {0x7388, "gfx908"}, {0x7408, "gfx90a"},
    {0x740c, "gfx90a"}, {0x740f, "gfx90a"}, {0x7410, "gfx90a"}, {0x74a0, "gfx942"}, {0x74a1, "gfx942"},
    {0x74a2, "gfx942"}, {0x74a5, "gfx942"}, {0x74a8, "gfx942"}, {0x74a9, "gfx942"}, {0x74b5, "gfx942"},
    {0x74b6, "gfx942"}, {0x74b9, "gfx942"}, {0x74bd, "gfx942"}, {0x75a0, "gfx950"}, {0x75a3, "gfx950"},
    {0x75b0, "gfx950"}, {0x75b3, "gfx950"},
};

}  // namespace

std::string arch_by_pci(std::int64_t vendor, std::int64_t device) {
    if (vendor == kNvidia) {
        for (const ChipFamily& family : kNvidiaChips) {
            if (device >> 8 == family.upper_byte) return family.arch;
        }
    }
    if (vendor == kAmd) {
        for (const AmdDevice& known : kAmdDevices) {
            if (device == known.device) return known.arch;
        }
    }
    return {};
}

int sm_of_arch(std::string_view arch) {
    if (arch.rfind("sm_", 0) == 0) arch.remove_prefix(3);
    int sm = 0;
    const auto [end, status] = std::from_chars(arch.data(), arch.data() + arch.size(), sm);
    const std::string_view rest(end, static_cast<std::size_t>(arch.data() + arch.size() - end));
    if (status != std::errc() || rest.size() > 1 || sm < 10 || sm > 999) return 0;
    return sm;
}

double pcie_of_arch(std::string_view arch) {
    if (arch.rfind("gfx94", 0) == 0 || arch.rfind("gfx95", 0) == 0) return 32;
    if (arch.rfind("gfx90", 0) == 0) return 16;
    const int sm = sm_of_arch(arch);
    if (sm >= 90) return 32;
    if (sm >= 80) return 16;
    return sm >= 60 ? 8 : 0;
}

}  // namespace baton::topologies
