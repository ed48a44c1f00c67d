// PCI addresses, classes and slots as NCCL's XML states them. Internal to the layer.
#pragma once

#include <baton/base/xml_reader.hpp>
#include <baton/topologies/import/importer.hpp>
#include <baton/topologies/import/link_rates.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace baton::topologies {

/// "0000:1b:00.0" for "0000:1B:0.0", "00000000:1B:00.0" and "1b:00.0"; other texts in lower case.
std::string normal_bus_id(std::string_view text);

/// "0x10de" or "10de" as a number; nothing for other texts.
std::optional<std::int64_t> hexadecimal(std::string_view text);

/// RCCL's attribute gcn as an architecture: "gfx942" for "942" and "gfx942:sramecc+", "gfx90a" for "910".
std::string arch_of_gcn(std::string_view gcn);

/// At most 60 bytes of a text from a file, without control characters and bytes above 127.
std::string shown(std::string_view text);

/// Slots of `<pci>` elements. Speeds that are missing or impossible get NCCL's defaults, and are counted.
class PciSlots {
public:
    /// Link between the device (of architecture `arch`, if a GPU) and what is above it.
    UnitLink link(const XmlReader& pci, std::string_view arch);
    /// Adds what was assumed.
    void report(Imported& result) const;

private:
    std::map<std::string, int> unknown_, artifacts_;
    int without_width_ = 0;
};

}  // namespace baton::topologies
