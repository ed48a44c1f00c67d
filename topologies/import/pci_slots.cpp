#include <baton/topologies/import/pci_slots.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/machine_tree.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <charconv>

namespace baton::topologies {
namespace {

constexpr double kDefaultGigatransfers = 8;
constexpr int kDefaultLanes = 16;

// The fastest slot below a bridge; 0 when none is stated.
double fastest_below(const XmlReader& pci) {
    double most = 0;
    for (const XmlReader& child : pci.children("pci")) {
        const double speed = pcie_gigatransfers(child.find("link_speed").value_or("")).value_or(0);
        most = std::max({most, speed, fastest_below(child)});
    }
    return most;
}

}  // namespace

std::optional<std::int64_t> hexadecimal(std::string_view text) {
    if (text.rfind("0x", 0) == 0 || text.rfind("0X", 0) == 0) text.remove_prefix(2);
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (status != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::string normal_bus_id(std::string_view text) {
    std::array<std::int64_t, 4> fields{};  // domain, bus, device, function
    const std::size_t dot = text.rfind('.');
    std::string_view rest = text.substr(0, dot);
    bool good = dot != std::string_view::npos && std::count(rest.begin(), rest.end(), ':') <= 2;
    if (good) {
        const auto function = hexadecimal(text.substr(dot + 1));
        good = function.has_value();
        fields[3] = function.value_or(0);
    }
    for (std::size_t field = 2; good && !rest.empty(); --field) {
        const std::size_t colon = rest.rfind(':');
        const auto value = hexadecimal(colon == std::string_view::npos ? rest : rest.substr(colon + 1));
        good = value.has_value();
        fields[field] = value.value_or(0);
        rest = colon == std::string_view::npos ? std::string_view() : rest.substr(0, colon);
        if (field == 0) break;
    }
    if (good && fields[1] <= 0xff)
        return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", fields[0], fields[1], fields[2], fields[3]);
    std::string plain = shown(text);
    std::transform(plain.begin(), plain.end(), plain.begin(),
                   [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    return plain;
}

std::string arch_of_gcn(std::string_view gcn) {
    std::string name = shown(gcn.substr(0, gcn.find(':')));
    if (name.rfind("gfx", 0) != 0) name = "gfx" + name;
    // The number of gfx90a, which is hexadecimal, is written in decimal.
    return name == "gfx910" ? "gfx90a" : name;
}

std::string shown(std::string_view text) {
    std::string plain;
    for (const char c : text.substr(0, 60)) plain += c >= ' ' && c < 0x7f ? c : '?';
    return plain;
}

UnitLink PciSlots::link(const XmlReader& pci, std::string_view arch) {
    const std::string text = pci.find("link_speed").value_or("");
    std::int64_t lanes = pci.find_integer("link_width", 0, 64).value_or(0);
    std::optional<double> speed = pcie_gigatransfers(text);
    bool assumed = lanes == 0;
    without_width_ += lanes == 0;
    if (!speed) {
        ++unknown_[text.empty() ? "no link_speed" : fmt::format("link_speed=\"{}\"", shown(text))];
        assumed = true;
        speed = kDefaultGigatransfers;
    } else if (*speed == 2.5) {
        // Virtual bridges, and devices that are on the chip or save power, say 2.5 GT/s.
        const double below = fastest_below(pci);
        const double built = below > 0 ? below : pcie_of_arch(arch);
        const double taken = built > 2.5 ? built : kDefaultGigatransfers;
        if (pci.children("pci").empty() ? !arch.empty() : below > 2.5) {
            ++artifacts_[fmt::format("{} x{} taken as {:g} GT/s x{}", shown(text), lanes, taken,
                                     lanes > 1 ? lanes : kDefaultLanes)];
            speed = taken;
            if (lanes == 1) lanes = kDefaultLanes;
            assumed = true;
        }
    }
    UnitLink link = pcie_link(*speed, static_cast<int>(lanes == 0 ? kDefaultLanes : lanes));
    link.provenance.assumed = assumed;
    return link;
}

void PciSlots::report(Imported& result) const {
    for (const auto& [what, count] : unknown_)
        result.assumptions.push_back(fmt::format("{} with {}: 8 GT/s (Gen3), as NCCL takes it",
                                                 counted(at(count), "PCI device"), what));
    if (without_width_ > 0)
        result.assumptions.push_back(fmt::format("{} with link_width 0 or none: 16 lanes, as NCCL takes it",
                                                 counted(at(without_width_), "PCI device")));
    for (const auto& [what, count] : artifacts_)
        result.warnings.push_back(
            fmt::format("{}: {}; virtual machines and devices on a chip report this speed, which no GPU has",
                        counted(at(count), "PCI device"), what));
}

}  // namespace baton::topologies
