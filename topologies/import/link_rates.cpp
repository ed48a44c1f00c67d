#include <baton/topologies/import/link_rates.hpp>

#include <fmt/format.h>
#include <charconv>
#include <cmath>

namespace baton::topologies {
namespace {

constexpr double kGiga = 1e9;

struct NvlinkFigures {
    int sm_from, sm_to;
    double raw, goodput;  // 1e9 bytes per second and direction
    const char* source;
};

constexpr NvlinkFigures kNvlink[] = {
    {60, 62, 20, 18, "NVLink 1: 20 GB/s per direction; usable 18 (NCCL bandwidth constant of Pascal)"},
    {70, 75, 25, 20, "NVLink 2: 25 GB/s per direction; usable 20 (NCCL bandwidth constant of Volta)"},
    {80, 80, 25, 20, "NVLink 3: 25 GB/s per direction; usable 20 (NCCL bandwidth constant of Ampere)"},
    {86, 87, 14.0625, 12, "NVLink 3 of GA10x: 14.06 GB/s per direction; usable 12 (NCCL bandwidth constant)"},
    {90, 90, 25, 20.6, "NVLink 4: 25 GB/s per direction; usable 20.6 (NCCL bandwidth constant of Hopper)"},
    {100, 110, 50, 40.1,
     "NVLink 5: 50 GB/s per direction; usable 40.1 (NCCL bandwidth constant of Blackwell)"},
};

struct XgmiFigures {
    const char* arch;
    double raw, goodput;
    const char* source;
};

constexpr XgmiFigures kXgmi[] = {
    {"gfx906", 46, 24,
     "Infinity Fabric link of MI50/MI60, 46 GB/s per direction; usable 24 (RCCL constant of Vega)"},
    {"gfx908", 46, 24,
     "Infinity Fabric link of MI100, 46 GB/s per direction; usable 24 (RCCL constant of Vega)"},
    {"gfx90a", 50, 36,
     "Infinity Fabric link of MI250X, 50 GB/s per direction; usable 36 (RCCL constant of MI200)"},
    {"gfx942", 64, 48, "Infinity Fabric link of MI300X, 64 GB/s per direction; usable 48 (ROCm/rccl#1210)"},
    {"gfx950", 76.8, 58,
     "Infinity Fabric link of MI350X, 76.8 GB/s per direction; usable 58: three quarters, as of MI300X"},
};

Rate whole(double bytes_per_second) { return {std::llround(bytes_per_second)}; }

UnitLink unit(LinkKind kind, double raw, double goodput, Time latency, std::string source, bool assumed) {
    UnitLink link;
    link.kind = kind;
    link.bandwidth = whole(raw * kGiga);
    link.goodput = whole(goodput * kGiga);
    link.latency = latency;
    link.provenance = {std::move(source), assumed};
    return link;
}

Time nanoseconds(std::int64_t count) { return {count * 1000}; }

}  // namespace

std::optional<UnitLink> nvlink_unit(int sm, bool through_switch) {
    for (const NvlinkFigures& figures : kNvlink) {
        if (sm < figures.sm_from || sm > figures.sm_to) continue;
        // 0.6 us for a hop over a switch of 100 ns (NCCL's LL constant); 0.7 us measured without one (TACCL).
        const Time latency = through_switch ? nanoseconds(250) : nanoseconds(700);
        return unit(LinkKind::nvlink, figures.raw, figures.goodput, latency, figures.source, false);
    }
    return std::nullopt;
}

int sm_by_nvlinks(int most_links_of_a_gpu) {
    if (most_links_of_a_gpu > 18) return 0;
    if (most_links_of_a_gpu > 12) return 90;
    if (most_links_of_a_gpu > 6) return 80;
    return most_links_of_a_gpu > 0 ? 70 : 0;
}

UnitLink xgmi_unit(std::string_view arch) {
    for (const XgmiFigures& figures : kXgmi) {
        if (arch.rfind(figures.arch, 0) == 0)
            return unit(LinkKind::xgmi, figures.raw, figures.goodput, nanoseconds(600), figures.source,
                        false);
    }
    return unit(LinkKind::xgmi, 64, 48, nanoseconds(600),
                "architecture not known: Infinity Fabric link of MI300X, 64 GB/s per direction, usable 48",
                true);
}

UnitLink pcie_link(double gigatransfers, int lanes) {
    const double line = gigatransfers * lanes / 8;
    const double coding = gigatransfers <= 5 ? 8.0 / 10 : gigatransfers <= 32 ? 128.0 / 130 : 242.0 / 256;
    return unit(LinkKind::pcie, line * coding, line * (gigatransfers <= 5 ? 0.65 : 0.8), nanoseconds(300),
                fmt::format("PCIe {:g} GT/s x{} after line coding; usable {:g} of the line rate (assumed)",
                            gigatransfers, lanes, gigatransfers <= 5 ? 0.65 : 0.8),
                false);
}

std::optional<double> pcie_gigatransfers(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || !std::isfinite(value) || value <= 0 || value > 1024) return std::nullopt;
    std::string_view unit_text(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (!unit_text.empty() && unit_text.front() == ' ') unit_text.remove_prefix(1);
    if (unit_text.rfind("GT/s", 0) != 0) return std::nullopt;
    return value;
}

UnitLink socket_link(std::string_view vendor, int model) {
    const auto link = [](double goodput, const char* source) {
        return unit(LinkKind::upi, goodput, goodput, nanoseconds(150), source, true);
    };
    if (vendor == "AuthenticAMD") return link(16, "between AMD sockets: 16 GB/s (NCCL constant)");
    if ((vendor == "CentaurHauls" || vendor == "  Shanghai  ") && model == 91)
        return link(9, "between Zhaoxin sockets of Yongfeng: 9 GB/s (NCCL constant)");
    if (vendor == "CentaurHauls" || vendor == "  Shanghai  ")
        return link(6, "between Zhaoxin sockets: 6 GB/s (NCCL constant)");
    if (vendor == "ARM") return link(6, "between ARM sockets: 6 GB/s (NCCL constant)");
    // 173 and 174 are Granite Rapids, whose links are faster still (NVIDIA/nccl#2107).
    if (vendor == "GenuineIntel" && (model >= 207 || model == 173 || model == 174))
        return link(40, "between Intel sockets from Emerald Rapids: 40 GB/s (NCCL constant)");
    if (vendor == "GenuineIntel" && model >= 143)
        return link(22, "between Intel sockets of Sapphire Rapids: 22 GB/s (NCCL constant)");
    if (vendor == "GenuineIntel" && model >= 85)
        return link(10, "between Intel sockets of Skylake to Ice Lake: 10 GB/s (NCCL constant)");
    if (vendor == "GenuineIntel") return link(6, "between older Intel sockets: 6 GB/s (NCCL constant)");
    if (vendor == "IBM") return link(32, "between POWER9 sockets: 32 GB/s (NCCL constant)");
    return link(16, "between sockets of a vendor that is not known: 16 GB/s (assumed)");
}

UnitLink network_port(double bits_per_second, LinkKind kind) {
    UnitLink link;
    link.kind = kind;
    link.bandwidth = whole(bits_per_second / 8);
    link.latency = nanoseconds(500);
    link.provenance = {"rate of the port", false};
    return link;
}

Time pass_latency(NodeType type) {
    switch (type) {
        case NodeType::switch_node: return nanoseconds(100);
        case NodeType::pcie:
        case NodeType::cpu: return nanoseconds(150);
        default: return {};
    }
}

}  // namespace baton::topologies
