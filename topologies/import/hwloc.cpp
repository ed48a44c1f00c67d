// lstopo's XML of hwloc, versions 1 to 3: packages, PCI bridges, GPUs, network adapters, and the matrices of
// GPU links. Types and attributes as hwloc's own reader takes them.
#include <baton/base/index.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/hwloc_matrix.hpp>
#include <baton/topologies/import/machine_report.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <set>

namespace baton::topologies {
namespace {

/// Of a PCIe line rate, what 128/130 leaves, and what is taken as usable (0.8): their ratio.
constexpr double kUsableOfCoded = 0.8 * 130 / 128;
/// 2.5 GT/s on 16 lanes: what a GPU at rest reports, and no GPU that computes has.
constexpr double kIdleGigabytes = 4.0;

/// Where an object stands.
struct Place {
    int package = -1;        ///< part of the CPU
    std::int64_t numa = -1;  ///< nearest NUMA node
};

bool is_io(const std::string& type) { return type == "Bridge" || type == "PCIDev" || type == "OSDev"; }

// "nvml3" and the like to 3; nothing for other devices.
std::optional<std::int64_t> number_of_gpu_device(std::string_view name, std::string_view backend) {
    if (name.rfind(backend, 0) != 0) return std::nullopt;
    name.remove_prefix(backend.size());
    if (name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    return std::stoll(std::string(name));
}

/// Class, vendor and device of "0302 [10de:1db8] [10de:131d] a1 00".
struct PciType {
    std::int64_t upper_class = 0, vendor = 0, device = 0;
};

PciType pci_type_of(const XmlReader& object) {
    const std::string text = object.find("pci_type").value_or("");
    PciType type;
    type.upper_class = hexadecimal(std::string_view(text).substr(0, 4)).value_or(0);
    const std::size_t bracket = text.find('[');
    if (bracket == std::string::npos || text.size() < bracket + 10) return type;
    type.vendor = hexadecimal(std::string_view(text).substr(bracket + 1, 4)).value_or(0);
    type.device = hexadecimal(std::string_view(text).substr(bracket + 6, 4)).value_or(0);
    return type;
}

std::string info_of(const XmlReader& object, std::string_view name) {
    for (const XmlReader& info : object.children("info")) {
        if (info.find("name") == name) return info.find("value").value_or("");
    }
    return {};
}

class Hwloc {
public:
    Hwloc(const ImportSource& source, const ImportOptions& options)
        : source_(source), options_(options), document_(XmlDocument::parse(source.text, source.name)) {}

    Imported read() {
        const XmlReader root = document_.root();
        if (root.name() != "topology")
            throw root.error("the outermost element is not <topology>",
                             "give what `lstopo --of xml` writes on a host with GPUs");
        version_ = root.find("version").value_or("1");
        const std::vector<XmlReader> objects = root.children("object");
        if (objects.empty()) throw root.error("there is no <object> in it");
        tree_.host_names.push_back("");
        vendor_ = info_of(root, "CPUVendor");
        architecture_ = info_of(root, "Architecture");
        for (const XmlReader& object : objects) {
            const std::string type = object.find("type").value_or("");
            if (type == "System")
                for (const XmlReader& machine : object.children("object")) walk(machine, {});
            else
                walk(object, {});
        }
        for (const XmlReader& child : root.children()) {
            if (child.name().rfind("distances", 0) == 0) read_distances(child);
        }
        join_switch_groups();
        apply_nvlink_status(tree_, options_, result_);
        report_notes();
        build_machine(tree_, source_, options_, result_);
        warn_of_missing_links();
        return std::move(result_);
    }

private:
    int add(MachinePart part) {
        tree_.parts.push_back(std::move(part));
        return static_cast<int>(tree_.parts.size()) - 1;
    }

    int add_cpu(const XmlReader& object, std::int64_t numa) {
        MachinePart cpu;
        cpu.type = NodeType::cpu;
        const std::string vendor = info_of(object, "CPUVendor"), model = info_of(object, "CPUModel");
        cpu.cpu_vendor = vendor.empty() ? vendor_ : vendor;
        if (architecture_ == "aarch64" || architecture_ == "arm64") cpu.cpu_vendor = "ARM";
        if (architecture_.rfind("ppc", 0) == 0) cpu.cpu_vendor = "IBM";
        std::int64_t number = 0;
        for (const char c : info_of(object, "CPUModelNumber").substr(0, 9))
            number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : number;
        cpu.cpu_model = static_cast<int>(number);
        if (numa >= 0) cpu.attributes["numa"] = std::to_string(numa);
        if (!model.empty()) cpu.attributes["model"] = shown(model);
        return add(std::move(cpu));
    }

    // The NUMA node of an object: itself (version 1), or the first memory that is attached to it.
    static std::int64_t numa_of(const XmlReader& object, std::int64_t above) {
        if (object.find("type") == "NUMANode")
            return object.find_integer("os_index", 0, INT32_MAX).value_or(-1);
        for (const XmlReader& child : object.children("object")) {
            if (child.find("type") == "NUMANode" && child.children("object").empty())
                return child.find_integer("os_index", 0, INT32_MAX).value_or(-1);
        }
        return above;
    }

    // Reads what is below an object; returns the packages among it.
    std::vector<int> walk(const XmlReader& object, Place place) {
        const std::string type = object.find("type").value_or("");
        if (type == "Machine" && vendor_.empty()) vendor_ = info_of(object, "CPUVendor");
        if (type == "Machine" && architecture_.empty()) architecture_ = info_of(object, "Architecture");
        place.numa = numa_of(object, place.numa);
        std::vector<int> packages;
        if (type == "Package" || type == "Socket") {
            place.package = add_cpu(object, place.numa);
            packages.push_back(place.package);
        }
        std::vector<XmlReader> devices;
        for (const XmlReader& child : object.children("object")) {
            if (is_io(child.find("type").value_or(""))) {
                devices.push_back(child);
                continue;
            }
            for (const int package : walk(child, place)) packages.push_back(package);
        }
        if (devices.empty()) return packages;
        int cpu = place.package;
        if (cpu < 0 && packages.size() == 1) cpu = packages.front();
        if (cpu < 0) {
            cpu = add_cpu(object, place.numa);
            if (!packages.empty()) {
                tree_.parts[at(cpu)].cpu_vendor = tree_.parts[at(packages.front())].cpu_vendor;
                tree_.parts[at(cpu)].cpu_model = tree_.parts[at(packages.front())].cpu_model;
                ++without_locality_;
            }
            packages.push_back(cpu);
        }
        read_devices(devices, cpu, true, place.numa);
        return packages;
    }

    // Devices at one bus. `inside`: below a host bridge or the upper port of a switch, where bridges are the
    // ports that lead down; else below such a port, where a bridge is the upper port of a switch.
    void read_devices(const std::vector<XmlReader>& devices, int parent, bool inside, std::int64_t numa) {
        std::map<std::string, int> cards, slots;
        for (const XmlReader& device : devices) {
            if (is_port(device)) ++cards[card_of(device)];
        }
        for (const XmlReader& device : devices) {
            const std::string type = device.find("type").value_or("");
            if (type == "Bridge") {
                read_bridge(device, parent, inside, numa);
            } else if (type == "PCIDev") {
                const std::string card = card_of(device);
                if (!is_port(device) || cards[card] < 2) {
                    read_pci_device(device, parent, numa, link_of(device, ""));
                    continue;
                }
                const auto found = slots.find(card);
                const int slot = found != slots.end() ? found->second : add_bridge(device, parent);
                slots[card] = slot;
                UnitLink at_once = tree_.parts[at(slot)].up;
                at_once.latency = {};
                read_pci_device(device, slot, numa, at_once);
            } else {
                ++left_out_["device without a PCI function"];
            }
        }
    }

    static std::string card_of(const XmlReader& device) {
        const std::string bus = normal_bus_id(device.find("pci_busid").value_or(""));
        return bus.substr(0, bus.rfind('.'));
    }

    static bool is_port(const XmlReader& device) { return pci_type_of(device).upper_class >> 8 == 0x02; }

    void read_bridge(const XmlReader& bridge, int parent, bool inside, std::int64_t numa) {
        const std::string type = bridge.find("bridge_type").value_or("1-1");
        const std::vector<XmlReader> children = bridge.children("object");
        if (type.rfind("0-", 0) == 0)
            read_devices(children, parent, true, numa);
        else if (inside)
            read_devices(children, parent, false, numa);
        else
            read_devices(children, add_bridge(bridge, parent), true, numa);
    }

    int add_bridge(const XmlReader& bridge, int parent) {
        MachinePart part;
        part.parent = parent;
        part.up = link_of(bridge, "");
        part.bus = normal_bus_id(bridge.find("pci_busid").value_or(""));
        return add(std::move(part));
    }

    UnitLink link_of(const XmlReader& device, const std::string& arch) {
        double gigabytes = device.find_number("pci_link_speed").value_or(0);
        if (gigabytes > 10'000)
            throw device.error(fmt::format("pci_link_speed={:g} GB/s is above 10 TB/s", gigabytes));
        if (!arch.empty() && gigabytes > 0 && gigabytes <= kIdleGigabytes && pcie_of_arch(arch) > 2.5) {
            ++idle_[fmt::format("{:g} GB/s taken as {:g} GT/s x16", gigabytes, pcie_of_arch(arch))];
            UnitLink link = pcie_link(pcie_of_arch(arch), 16);
            link.provenance.assumed = true;
            return link;
        }
        if (gigabytes < 0.001) {
            ++without_speed_;
            UnitLink link = pcie_link(8, 16);
            link.provenance.assumed = true;
            return link;
        }
        UnitLink link = pcie_link(8, 16);
        link.bandwidth = {static_cast<std::int64_t>(gigabytes * 1e9)};
        link.goodput = {static_cast<std::int64_t>(gigabytes * 1e9 * kUsableOfCoded)};
        link.provenance.source = fmt::format(
            "PCIe at {:.4g} GB/s (in the file); usable {:.4g} of it, which is 0.8 of the line rate (assumed)",
            gigabytes, kUsableOfCoded);
        return link;
    }

    void read_pci_device(const XmlReader& device, int parent, std::int64_t numa, const UnitLink& up) {
        const PciType type = pci_type_of(device);
        const std::vector<XmlReader> below = device.children("object");
        std::optional<std::int64_t> number;
        std::string model;
        bool computes = false, is_fabric = false;
        for (const XmlReader& child : below) {
            const std::string name = child.find("name").value_or("");
            if (name.rfind("mlx", 0) == 0 || name.rfind("hfi", 0) == 0 || name.rfind("bnxt", 0) == 0 ||
                name.rfind("rdma", 0) == 0 || name.rfind("ib", 0) == 0)
                is_fabric = true;
            for (const char* backend : {"nvml", "rsmi", "cuda", "ze", "opencl"}) {
                if (name.rfind(backend, 0) != 0) continue;
                computes = true;
                if (!number) number = number_of_gpu_device(name, backend);
            }
            if (model.empty()) model = info_of(child, "GPUModel");
        }
        const bool by_class = type.upper_class == 0x0302 || type.upper_class == 0x1200 ||
                              (type.upper_class == 0x0380 && type.vendor == kAmd);
        if (device.find("subtype") == "NVSwitch" || (type.upper_class == 0x0680 && type.vendor == kNvidia)) {
            add_switch(device);
        } else if (computes || by_class) {
            gpus_by_class_ += !computes;
            add_gpu(device, parent, numa, number, model, type);
        } else if (type.upper_class >> 8 == 0x02) {
            MachinePart nic;
            nic.type = NodeType::nic;
            nic.parent = parent;
            nic.up = up;
            nic.bus = normal_bus_id(device.find("pci_busid").value_or(""));
            if (!below.empty()) nic.attributes["name"] = shown(below.front().find("name").value_or(""));
            if (numa >= 0) nic.attributes["numa"] = std::to_string(numa);
            if (is_fabric) fabric_ports_.insert(static_cast<int>(tree_.parts.size()));
            add(std::move(nic));
        } else {
            ++left_out_["PCI device that is no GPU, network adapter or switch of GPUs"];
        }
    }

    void add_gpu(const XmlReader& device, int parent, std::int64_t numa, std::optional<std::int64_t> number,
                 const std::string& model, const PciType& type) {
        MachinePart gpu;
        gpu.type = NodeType::gpu;
        gpu.parent = parent;
        gpu.device = number;
        gpu.arch = arch_by_name(model);
        if (gpu.arch.empty()) gpu.arch = arch_by_pci(type.vendor, type.device);
        gpu.up = link_of(device, gpu.arch.empty() ? options_.arch : gpu.arch);
        gpu.bus = normal_bus_id(device.find("pci_busid").value_or(""));
        if (numa >= 0) gpu.attributes["numa"] = std::to_string(numa);
        if (number) gpu.attributes["device"] = std::to_string(*number);
        if (!model.empty()) gpu.attributes["model"] = shown(model);
        const int part = add(std::move(gpu));
        index(device, {part, {}});
        for (const XmlReader& child : device.children("object")) index(child, {part, {}});
    }

    void add_switch(const XmlReader& device) {
        const std::string bus = normal_bus_id(device.find("pci_busid").value_or(""));
        // The name sorts as the bus does, and stays apart where a bus id is missing or repeats.
        const std::string name = fmt::format("{} {:06}", bus, tree_.switches.size());
        tree_.switches[name] = bus;
        index(device, {-1, name});
    }

    void index(const XmlReader& object, MatrixEnd end) {
        if (const auto number = object.find_integer("gp_index", 0)) ends_[*number] = std::move(end);
    }

    void read_distances(const XmlReader& element) {
        const std::string name = element.find("name").value_or("");
        const LinkKind kind = name == "NVLinkBandwidth" ? LinkKind::nvlink
                              : name == "XGMIBandwidth" ? LinkKind::xgmi
                                                        : LinkKind::custom;
        if (kind == LinkKind::custom && name != "XeLinkBandwidth") {
            // Latencies of memory, and hops, which are 1 also where no link joins two GPUs.
            if (name.rfind("NUMA", 0) != 0 && !name.empty()) ++ignored_matrices_[shown(name)];
            return;
        }
        const BandwidthMatrix matrix = read_matrix(element, ends_);
        unknown_ends_ += matrix.unknown_ends;
        ++matrices_;
        for (const MatrixCell& cell : matrix.cells) {
            // Links to a switch are stated by the GPU; the switch's row says the same.
            if (cell.from.gpu < 0) continue;
            GpuLinks links;
            links.gpu = cell.from.gpu;
            links.other = cell.to.gpu;
            links.through = cell.to.through;
            links.kind = kind;
            split_into_units(links, cell.megabytes);
            tree_.links.push_back(std::move(links));
        }
    }

    // A cell is the rate of all links of the pair: units of the architecture's rate where it divides.
    void split_into_units(GpuLinks& links, std::int64_t megabytes) {
        const std::string& own = tree_.parts[at(links.gpu)].arch;
        const double total = static_cast<double>(megabytes) * 1e6;
        UnitLink unit;
        if (links.kind == LinkKind::custom) {
            unit.kind = LinkKind::custom;
            unit.bandwidth = {static_cast<std::int64_t>(total)};
            unit.goodput = {static_cast<std::int64_t>(total * 0.8)};
            unit.latency = {700'000};
            unit.provenance = {"Xe links: rate in the file; usable 0.8 of it and 700 ns (assumed)", true};
            links.unit = unit;
            return;
        }
        unit = gpu_link_unit(links.kind, own.empty() ? options_.arch : own, !links.through.empty(), 0);
        const double count = std::max(1.0, std::round(total / unit.bandwidth.value()));
        const double rate = total / count;
        links.count = static_cast<int>(std::min(count, 1024.0));
        // The usable share is that of the architecture.
        const double share = unit.goodput.value() / unit.bandwidth.value();
        unit.bandwidth = {std::max<std::int64_t>(1, std::llround(rate))};
        unit.goodput = {std::max<std::int64_t>(1, std::llround(rate * share))};
        links.unit = unit;
    }

    // NVML lists the links of GPUs only. On DGX-2 and HGX-2 the switches of the two boards face each other,
    // joined by 8 links each (NVIDIA, "NVSwitch and DGX-2", Hot Chips 2018).
    void join_switch_groups() {
        std::map<std::set<std::string>, std::vector<int>> groups;
        std::map<int, std::set<std::string>> of_gpu;
        for (const GpuLinks& links : tree_.links) {
            if (!links.through.empty()) of_gpu[links.gpu].insert(links.through);
        }
        for (const auto& [gpu, names] : of_gpu) groups[names].push_back(gpu);
        if (groups.size() < 2) return;
        const std::set<std::string>&first = groups.begin()->first, &second = std::next(groups.begin())->first;
        const bool dgx2 = groups.size() == 2 && first.size() == 6 && second.size() == 6 &&
                          *first.rbegin() < *second.begin() &&
                          tree_.parts[at(groups.begin()->second.front())].arch == "sm_70";
        if (!dgx2) {
            result_.warnings.push_back(fmt::format(
                "GPUs lead to {} different sets of switches; links between switches are not in such "
                "files: add them under \"overrides\" if there are any",
                groups.size()));
            return;
        }
        const UnitLink unit = *nvlink_unit(70, true);
        for (auto a = first.begin(), b = second.begin(); a != first.end(); ++a, ++b)
            tree_.switch_links.push_back({*a, *b, 8, unit});
        result_.warnings.push_back(
            "links between the switches of the two boards are not in the file: 8 NVLinks between facing "
            "switches "
            "taken, in the order of bus ids, as DGX-2 has them (assumed)");
    }

    void report_notes() {
        result_.found.push_back(fmt::format("hwloc XML of version {}", shown(version_)));
        if (!fabric_ports_.empty()) keep_fabric_ports();
        int ports = 0;
        for (const MachinePart& part : tree_.parts) ports += part.type == NodeType::nic;
        if (ports > 0)
            result_.warnings.push_back(
                fmt::format("the file has no rates of network ports ({}): no limit but their slots; a fabric "
                            "gives its own",
                            ports));
        if (without_speed_ > 0)
            result_.assumptions.push_back(fmt::format("{} without pci_link_speed: 8 GT/s (Gen3) x16",
                                                      counted(at(without_speed_), "PCI device")));
        for (const auto& [what, count] : idle_)
            result_.warnings.push_back(fmt::format("{}: {}: a GPU at rest lowers the speed of its link",
                                                   counted(at(count), "GPU"), what));
        if (without_locality_ > 0)
            result_.warnings.push_back(
                "devices that the file puts under no package are joined by a CPU that is not named");
        if (gpus_by_class_ > 0)
            result_.assumptions.push_back(
                fmt::format("{} known by PCI class only (lstopo without NVML or ROCm SMI)",
                            counted(at(gpus_by_class_), "GPU")));
        if (unknown_ends_ > 0)
            result_.warnings.push_back(fmt::format("{} of a matrix are neither GPU nor switch: left out",
                                                   counted(at(unknown_ends_), "object")));
        for (const auto& [name, count] : ignored_matrices_)
            result_.warnings.push_back(fmt::format("ignored: matrix {}", name));
        for (const auto& [what, count] : left_out_)
            result_.warnings.push_back(fmt::format("left out: {} x {}", count, what));
        if (!tree_.switches.empty())
            result_.found.push_back(fmt::format("PCI functions of {} only control them",
                                                counted(tree_.switches.size(), "switch", "switches")));
    }

    // Where some adapters have RDMA devices, the others serve other purposes.
    void keep_fabric_ports() {
        MachineTree kept = tree_;
        kept.parts.clear();
        std::vector<int> moved(tree_.parts.size(), -1);
        int dropped = 0;
        for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
            const MachinePart& part = tree_.parts[i];
            if (part.type == NodeType::nic && fabric_ports_.count(static_cast<int>(i)) == 0) {
                ++dropped;
                continue;
            }
            moved[i] = static_cast<int>(kept.parts.size());
            kept.parts.push_back(part);
            if (part.parent >= 0) kept.parts.back().parent = moved[at(part.parent)];
        }
        for (GpuLinks& links : kept.links) {
            links.gpu = moved[at(links.gpu)];
            if (links.other >= 0) links.other = moved[at(links.other)];
        }
        tree_ = std::move(kept);
        if (dropped > 0)
            result_.warnings.push_back(
                fmt::format("left out: {} without an RDMA device", counted(at(dropped), "network adapter")));
    }

    void warn_of_missing_links() {
        if (matrices_ > 0 || !tree_.links.empty() || result_.topology.rank_count() < 2) return;
        result_.warnings.insert(
            result_.warnings.begin(),
            "NO INFORMATION ON NVLINK OR XGMI: the file has no matrix NVLinkBandwidth or XGMIBandwidth "
            "(lstopo "
            "before version 2.5, or built without NVML or ROCm SMI), so the machine here has PCIe alone, "
            "which is "
            "many times slower if its GPUs are linked. Give `nvidia-smi nvlink -s` with --nvlink-status "
            "FILE, "
            "import `nvidia-smi topo -m` instead, or add the links under \"overrides\" of the written file "
            "(docs/topology.md)");
    }

    const ImportSource& source_;
    const ImportOptions& options_;
    XmlDocument document_;
    Imported result_;
    MachineTree tree_;
    std::string version_, vendor_, architecture_;
    std::map<std::int64_t, MatrixEnd> ends_;  // by gp_index
    std::set<int> fabric_ports_;
    std::map<std::string, int> left_out_, idle_, ignored_matrices_;
    int without_locality_ = 0, without_speed_ = 0, gpus_by_class_ = 0, unknown_ends_ = 0, matrices_ = 0;
};

}  // namespace

bool recognizes_hwloc(std::string_view text) {
    return xml_root_name(text) == "topology" && text.find("<object") != std::string_view::npos;
}

Imported read_hwloc(const ImportSource& source, const ImportOptions& options) {
    return Hwloc(source, options).read();
}

}  // namespace baton::topologies
