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

struct Product {
    const char* name;
    const char* arch;
};

constexpr Product kProducts[] = {
    {"P100", "sm_60"},    {"V100", "sm_70"},    {"T4", "sm_75"},      {"A100", "sm_80"},
    {"A800", "sm_80"},    {"A30", "sm_80"},     {"A10", "sm_86"},     {"A10G", "sm_86"},
    {"A40", "sm_86"},     {"A6000", "sm_86"},   {"L4", "sm_89"},      {"L20", "sm_89"},
    {"L40", "sm_89"},     {"L40S", "sm_89"},    {"H100", "sm_90"},    {"H200", "sm_90"},
    {"H800", "sm_90"},    {"H20", "sm_90"},     {"GH200", "sm_90"},   {"B100", "sm_100"},
    {"B200", "sm_100"},   {"GB200", "sm_100"},  {"B300", "sm_103"},   {"GB300", "sm_103"},
    {"GB10", "sm_121"},   {"MI50", "gfx906"},   {"MI60", "gfx906"},   {"MI100", "gfx908"},
    {"MI210", "gfx90a"},  {"MI250", "gfx90a"},  {"MI250X", "gfx90a"}, {"MI300A", "gfx942"},
    {"MI300X", "gfx942"}, {"MI308X", "gfx942"}, {"MI325X", "gfx942"}, {"MI350X", "gfx950"},
    {"MI355X", "gfx950"},
};

}  // namespace

std::string arch_by_name(std::string_view name) {
    const auto in_word = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    };
    for (std::size_t begin = 0; begin < name.size();) {
        std::size_t end = begin;
        while (end < name.size() && in_word(name[end])) ++end;
        for (const Product& product : kProducts) {
            if (name.substr(begin, end - begin) == product.name) return product.arch;
        }
        begin = end + 1;
    }
    return {};
}

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
