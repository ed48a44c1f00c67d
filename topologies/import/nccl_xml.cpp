// NCCL's topology XML: dumps (NCCL_TOPO_DUMP_FILE) of NCCL and RCCL, and the files that clouds ship.
// What attributes mean, and what stands for a missing one, follows NCCL's own reader.
#include <baton/base/index.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::topologies {
namespace {

// Attributes that are read or say nothing about the machine's shape.
constexpr std::pair<const char*, std::string_view> kKnownAttributes[] = {
    {"system", " version "},
    {"cpu", " numaid affinity arch vendor familyid modelid host_hash "},
    {"pci", " busid class vendor device subsystem_vendor subsystem_device link_speed link_width sriov "},
    {"gpu", " dev sm rank gdr gcn arch cudaver mem "},
    {"nvlink", " target count tclass "},
    {"xgmi", " target count tclass "},
    {"c2c", " bw count "},
    {"pcilink", " target "},
    {"nic", " "},
    {"net", " name dev latency speed port guid maxconn gdr coll keep "},
};

constexpr std::int64_t kUnknownRateMegabits = 10'000;

bool has_class(std::int64_t pci_class, std::initializer_list<std::int64_t> upper) {
    return std::find(upper.begin(), upper.end(), pci_class >> 8) != upper.end();
}

class NcclXml {
public:
    NcclXml(const ImportSource& source, const ImportOptions& options)
        : source_(source), options_(options), document_(XmlDocument::parse(source.text, source.name)) {}

    Imported read() {
        const XmlReader root = document_.root();
        check_root(root);
        count_elements(root);
        note_attributes(root);
        for (const XmlReader& child : root.children()) {
            if (child.name() == "cpu")
                read_cpu(child);
            else if (child.name() == "pci" || child.name() == "nic")
                read_device(child, bare_cpu(), 0);
            else
                note_element(child, root);
        }
        if (tree_.host_names.empty()) throw root.error("there is no <cpu> in it");
        require_gpus(root);
        settle_gpu_numbers();
        resolve_links();
        resolve_bridge_links();
        apply_nvlink_status(tree_, options_, result_);
        report_notes();
        build_machine(tree_, source_, options_, result_);
        report_after_build();
        return std::move(result_);
    }

private:
    void check_root(const XmlReader& root) const {
        const std::string name = root.name();
        if (name == "system") return;
        const char* what = name == "graphs" ? "this is a graph file of NCCL (rings and trees that it found)"
                           : name == "algo" ? "this is an algorithm of MSCCL"
                           : name == "topology" ? "this looks like a topology of hwloc"
                                                : "the outermost element is not <system>";
        throw root.error(what, "the machine is in the file that NCCL_TOPO_DUMP_FILE names, in a <system>");
    }

    void require_gpus(const XmlReader& root) const {
        for (const MachinePart& part : tree_.parts) {
            if (part.type == NodeType::gpu) return;
        }
        int devices = 0;
        for (const auto& [what, count] : left_out_) devices += count;
        throw root.error(
            devices == 0 ? "there is no GPU in it"
                         : fmt::format("of its {} none is known to be a GPU: there is no <gpu>, and no class",
                                       counted(at(devices), "PCI device")),
            "NCCL completes such a file with what it finds; dump that with NCCL_TOPO_DUMP_FILE and import "
            "the dump");
    }

    // How the file describes devices decides what a bare <pci> of their class means.
    void count_elements(const XmlReader& element) {
        for (const XmlReader& child : element.children()) {
            gpu_elements_ += child.name() == "gpu";
            net_elements_ += child.name() == "net";
            count_elements(child);
        }
    }

    void note_attributes(const XmlReader& element) {
        std::string_view known;
        const std::string name = element.name();
        for (const auto& [of, list] : kKnownAttributes) {
            if (name == of) known = list;
        }
        for (const auto& [attribute, value] : element.attributes()) {
            if (known.find(" " + attribute + " ") == std::string_view::npos)
                ++ignored_[fmt::format("attribute {} of <{}>", shown(attribute), name)];
        }
    }

    void note_element(const XmlReader& element, const XmlReader& parent) {
        ++ignored_[fmt::format("element <{}> in <{}>", shown(element.name()), parent.name())];
    }

    int add(MachinePart part) {
        tree_.parts.push_back(std::move(part));
        return static_cast<int>(tree_.parts.size()) - 1;
    }

    int host_of(const std::string& hash) {
        const auto [found, is_new] = hosts_.try_emplace(hash, static_cast<int>(hosts_.size()));
        if (is_new) tree_.host_names.push_back(hash);
        return found->second;
    }

    int bare_cpu() {
        if (bare_cpu_ >= 0) return bare_cpu_;
        result_.assumptions.push_back("devices outside of any <cpu> are joined by a CPU that is not named");
        MachinePart cpu;
        cpu.type = NodeType::cpu;
        cpu.host = host_of("");
        return bare_cpu_ = add(std::move(cpu));
    }

    void read_cpu(const XmlReader& element) {
        note_attributes(element);
        MachinePart cpu;
        cpu.type = NodeType::cpu;
        cpu.host = host_of(element.find("host_hash").value_or(""));
        const std::string arch = element.find("arch").value_or("");
        cpu.cpu_vendor = arch.rfind("arm", 0) == 0 || arch == "aarch64" ? "ARM"
                         : arch.rfind("ppc", 0) == 0                    ? "IBM"
                                                                        : element.find("vendor").value_or("");
        cpu.cpu_model = static_cast<int>(element.find_integer("modelid", INT32_MIN, INT32_MAX).value_or(0));
        const std::int64_t numa = element.find_integer("numaid", -1, INT32_MAX).value_or(-1);
        if (numa >= 0) cpu.attributes["numa"] = std::to_string(numa);
        if (!cpu.cpu_vendor.empty()) cpu.attributes["vendor"] = shown(cpu.cpu_vendor);
        if (element.find("modelid")) cpu.attributes["model"] = std::to_string(cpu.cpu_model);
        numa_ = numa;
        const int part = add(std::move(cpu));
        read_devices(element, part, tree_.parts[at(part)].host);
    }

    // Devices below a CPU or a bridge. Functions of one network card share its slot.
    void read_devices(const XmlReader& element, int parent, int host) {
        const std::vector<XmlReader> children = element.children();
        std::map<std::string, int> cards;
        for (const XmlReader& child : children) {
            if (child.name() == "pci" && !nets_of(child).empty()) ++cards[card_of(child)];
        }
        std::map<std::string, int> slots;
        for (const XmlReader& child : children) {
            const std::string name = child.name();
            if (name == "pcilink" && element.name() == "pci") {
                note_attributes(child);
                bridge_link_elements_.emplace_back(parent, child);
                continue;
            }
            if (name != "pci" && name != "nic") {
                // The GPU or NIC of a device that has bridges below it is read with the device.
                if (element.name() != "pci" || (name != "gpu" && name != "net")) note_element(child, element);
                continue;
            }
            if (name == "nic" && element.name() == "pci") continue;
            const std::string card = name == "pci" ? card_of(child) : "";
            if (!card.empty() && cards[card] > 1 && !nets_of(child).empty()) {
                const auto found = slots.find(card);
                const int slot = found != slots.end() ? found->second : add_slot(child, parent, host);
                slots[card] = slot;
                note_attributes(child);
                read_nets(child, slot, host, at_once(tree_.parts[at(slot)].up));
                continue;
            }
            read_device(child, parent, host);
        }
    }

    static std::string card_of(const XmlReader& pci) {
        const std::string bus = normal_bus_id(pci.find("busid").value_or(""));
        return bus.substr(0, bus.rfind('.'));
    }

    static std::vector<XmlReader> nets_of(const XmlReader& pci) {
        // Written by hand, a <net> may stand in the <pci> itself.
        std::vector<XmlReader> nets = pci.children("net");
        for (const XmlReader& nic : pci.children("nic")) {
            for (const XmlReader& net : nic.children("net")) nets.push_back(net);
        }
        return nets;
    }

    static UnitLink at_once(UnitLink link) {
        link.latency = {};
        return link;
    }

    int add_slot(const XmlReader& pci, int parent, int host) {
        MachinePart slot;
        slot.host = host;
        slot.parent = parent;
        slot.up = slots_.link(pci, {});
        slot.bus = normal_bus_id(pci.find("busid").value_or(""));
        return add(std::move(slot));
    }

    void read_device(const XmlReader& element, int parent, int host) {
        if (element.name() == "nic") return read_nic_of_cpu(element, parent, host);
        note_attributes(element);
        const std::vector<XmlReader> gpus = element.children("gpu");
        const std::vector<XmlReader> nets = nets_of(element);
        const bool below = !element.children("pci").empty();
        if (gpus.size() + nets.size() == 1 && !below) {
            if (!gpus.empty())
                return read_gpu(element, gpus.front(), parent,
                                slots_.link(element, arch_of(element, gpus.front())));
            return read_nets(element, parent, host, slots_.link(element, {}));
        }
        if (gpus.empty() && nets.empty() && !below) return read_bare(element, parent, host);
        // A bridge, or a slot that several devices share.
        const int bridge = add_slot(element, parent, host);
        for (const XmlReader& gpu : gpus) read_gpu(element, gpu, bridge, at_once(tree_.parts[at(bridge)].up));
        if (!nets.empty()) read_nets(element, bridge, host, at_once(tree_.parts[at(bridge)].up));
        read_devices(element, bridge, host);
    }

    // A device that is known by its class only.
    void read_bare(const XmlReader& element, int parent, int host) {
        const std::int64_t pci_class = hexadecimal(element.find("class").value_or("")).value_or(0);
        const std::int64_t vendor = hexadecimal(element.find("vendor").value_or("")).value_or(0);
        const bool gpu = has_class(pci_class, {0x0302, 0x1200, 0x0380}) ||
                         (has_class(pci_class, {0x0300}) && (vendor == kNvidia || vendor == kAmd));
        if (gpu && gpu_elements_ == 0) {
            ++bare_gpus_;
            return read_gpu(element, element, parent, slots_.link(element, arch_of(element, element)));
        }
        if (pci_class >> 16 == 0x02 && net_elements_ == 0) {
            MachinePart nic;
            nic.type = NodeType::nic;
            nic.host = host;
            nic.parent = parent;
            nic.up = slots_.link(element, {});
            nic.bus = normal_bus_id(element.find("busid").value_or(""));
            add(std::move(nic));
            ++bare_nics_;
            return;
        }
        ++left_out_[gpu                       ? "GPU without a <gpu>"
                    : pci_class >> 16 == 0x02 ? "network device without a <net>"
                                              : "PCI device without a GPU or network port"];
    }

    static std::string arch_of(const XmlReader& pci, const XmlReader& gpu) {
        if (const auto gcn = gpu.find("gcn")) return arch_of_gcn(*gcn);
        const std::int64_t vendor = hexadecimal(pci.find("vendor").value_or("")).value_or(0);
        const std::int64_t sm = gpu.name() == "gpu" ? gpu.find_integer("sm", -1, INT32_MAX).value_or(0) : 0;
        if (vendor != kAmd && gpu.children("xgmi").empty() && sm >= 10 && sm < 1000)
            return fmt::format("sm_{}", sm);
        return arch_by_pci(vendor, hexadecimal(pci.find("device").value_or("")).value_or(0));
    }

    void read_gpu(const XmlReader& pci, const XmlReader& element, int parent, const UnitLink& up) {
        MachinePart gpu;
        gpu.type = NodeType::gpu;
        gpu.host = tree_.parts[at(parent)].host;
        gpu.parent = parent;
        gpu.up = up;
        gpu.arch = arch_of(pci, element);
        gpu.bus = normal_bus_id(pci.find("busid").value_or(""));
        if (numa_ >= 0) gpu.attributes["numa"] = std::to_string(numa_);
        if (element.name() == "gpu") {
            note_attributes(element);
            const auto rank = element.find_integer("rank", INT32_MIN, INT32_MAX);
            const auto device = element.find_integer("dev", INT32_MIN, INT32_MAX);
            if (rank && *rank >= 0) gpu.rank = rank;
            if (device && *device >= 0) gpu.device = device;
            gpu.takes_part = (!rank || *rank >= 0) && (!device || *device >= 0);
            if (gpu.device) gpu.attributes["device"] = std::to_string(*gpu.device);
            if (element.find("gdr") == "0") ++without_gdr_;
        }
        const int part = add(std::move(gpu));
        if (element.name() != "gpu") return;
        for (const XmlReader& child : element.children()) {
            if (child.name() == "nvlink" || child.name() == "xgmi" || child.name() == "c2c") {
                note_attributes(child);
                link_elements_.emplace_back(part, child);
            } else {
                note_element(child, element);
            }
        }
    }

    void read_nic_of_cpu(const XmlReader& element, int parent, int host) {
        note_attributes(element);
        for (const XmlReader& net : element.children("net")) {
            MachinePart nic = net_part(net, parent, host);
            const std::int64_t rate = parse_rate(nic.attributes["port_rate"]).bytes_per_second;
            nic.up = pcie_link(8, 16);
            if (nic.up.goodput.bytes_per_second < rate) nic.up.bandwidth = nic.up.goodput = {rate};
            nic.up.provenance = {
                "network port without a PCI device: PCIe Gen3 x16, or its own rate if that is more", true};
            add(std::move(nic));
        }
    }

    void read_nets(const XmlReader& pci, int parent, int host, const UnitLink& up) {
        for (const XmlReader& nic : pci.children("nic")) {
            note_attributes(nic);
            for (const XmlReader& child : nic.children()) {
                if (child.name() != "net") note_element(child, nic);
            }
        }
        for (const XmlReader& net : nets_of(pci)) {
            MachinePart part = net_part(net, parent, host);
            part.up = up;
            part.bus = normal_bus_id(pci.find("busid").value_or(""));
            const Rate rate = parse_rate(part.attributes["port_rate"]);
            if (rate > up.bandwidth)
                ++ports_above_slot_[fmt::format("{} behind {}", part.attributes["port_rate"],
                                                to_string(up.bandwidth))];
            add(std::move(part));
        }
    }

    MachinePart net_part(const XmlReader& net, int parent, int host) {
        note_attributes(net);
        MachinePart nic;
        nic.type = NodeType::nic;
        nic.host = host;
        nic.parent = parent;
        const auto device = net.find_integer("dev", INT32_MIN, INT32_MAX);
        if (device && *device >= 0) nic.device = device;
        double speed = net.find_number("speed").value_or(0);
        if (speed > 1e7) throw net.error(fmt::format("speed={:g} Mb/s is above 10 Tb/s", speed));
        if (speed < 1) {
            ++without_rate_;
            speed = kUnknownRateMegabits;
        }
        nic.attributes["port_rate"] = fmt::format("{}Gb/s", speed / 1000);
        for (const char* kept : {"name", "port", "guid", "coll"}) {
            if (const auto text = net.find(kept)) nic.attributes[kept] = shown(*text);
        }
        if (net.find("gdr") == "0") ++nets_without_gdr_;
        if (net.find_integer("coll").value_or(0) != 0) ++reducing_;
        return nic;
    }

    // Where some GPUs have ranks, those without one take no part.
    void settle_gpu_numbers() {
        std::size_t ranked = 0;
        for (const MachinePart& part : tree_.parts)
            ranked += part.type == NodeType::gpu && part.rank.has_value();
        if (ranked == 0) return;
        for (MachinePart& part : tree_.parts) part.takes_part = part.takes_part && part.rank.has_value();
    }

    void resolve_links() {
        for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
            const MachinePart& part = tree_.parts[i];
            if (part.type != NodeType::gpu || part.bus.empty()) continue;
            if (!gpus_by_bus_.try_emplace({part.host, part.bus}, static_cast<int>(i)).second)
                result_.warnings.push_back(fmt::format(
                    "two GPUs have the bus id {}; links to it are taken as links to the first", part.bus));
        }
        int with_self_links = 0, last = -1;
        for (const auto& [gpu, element] : link_elements_) {
            if (element.name() == "c2c") {
                read_c2c(gpu, element);
            } else if (!resolve(gpu, element)) {
                ++self_links_;
                with_self_links += gpu != last;
                last = gpu;
            }
        }
        if (self_links_ > 0)
            result_.warnings.push_back(fmt::format(
                "{} of {} lead to the GPU itself and carry nothing: left out. Which GPUs they join in "
                "truth the file does not say",
                counted(at(self_links_), "link"), counted(at(with_self_links), "GPU")));
    }

    // Bridges of one PCIe switch, which both name each other. Like NCCL: the way between them is no limit.
    void resolve_bridge_links() {
        constexpr double kInsideSwitch = 5e12;
        std::map<std::pair<int, std::string>, int> bridges;
        for (const auto& [part, element] : bridge_link_elements_)
            bridges.try_emplace({tree_.parts[at(part)].host, tree_.parts[at(part)].bus}, part);
        std::set<std::pair<int, int>> joined;
        for (const auto& [part, element] : bridge_link_elements_) {
            const std::string target = normal_bus_id(element.at("target"));
            const auto other = bridges.find({tree_.parts[at(part)].host, target});
            if (other == bridges.end()) {
                result_.warnings.push_back(
                    fmt::format("{}: no bridge {} links back: left out", element.where(), shown(target)));
                continue;
            }
            if (other->second == part || !joined.insert(std::minmax(part, other->second)).second) continue;
            UnitLink unit = pcie_link(32, 16);
            unit.bandwidth = unit.goodput = {static_cast<std::int64_t>(kInsideSwitch)};
            unit.latency = pass_latency(NodeType::pcie);
            unit.provenance = {
                "bridges that pcilink joins are one PCIe switch: 5000 GB/s, no limit, as in NCCL", true};
            tree_.bridge_links.push_back({part, other->second, unit});
        }
    }

    // False for a link of the GPU to itself.
    bool resolve(int gpu, const XmlReader& element) {
        const std::string target = normal_bus_id(element.at("target"));
        const std::int64_t count = element.find_integer("count", 0, 1024).value_or(1);
        const int host = tree_.parts[at(gpu)].host;
        if (target == tree_.parts[at(gpu)].bus) return false;
        if (count == 0) {
            result_.warnings.push_back(element.where() + ": count=\"0\" is no link; left out");
            return true;
        }
        GpuLinks links;
        links.gpu = gpu;
        links.count = static_cast<int>(count);
        links.kind = element.name() == "xgmi" ? LinkKind::xgmi : LinkKind::nvlink;
        const std::string stated_class = element.find("tclass").value_or("");
        const std::int64_t target_class = hexadecimal(stated_class).value_or(0);
        if (const auto found = gpus_by_bus_.find({host, target}); found != gpus_by_bus_.end()) {
            links.other = found->second;
        } else if (target_class == 0x068001 || (target_class >> 16 == 0x06 && target_class >> 8 != 0x0680)) {
            links.other = cpu_of(gpu);
        } else if (target_class >> 16 == 0x03 || target_class >> 16 == 0x12) {
            result_.warnings.push_back(
                fmt::format("{}: {} lead to a GPU that is not in the file ({}): left out", element.where(),
                            counted(at(links.count), "link"), target));
            return true;
        } else {
            links.through = target;
            tree_.switches[target] = target;
            if (stated_class.empty()) ++switches_without_class_;
        }
        tree_.links.push_back(std::move(links));
        return true;
    }

    void read_c2c(int gpu, const XmlReader& element) {
        const double megabytes = element.find_number("bw").value_or(0);
        const std::int64_t count = element.find_integer("count", 1, 1024).value_or(1);
        if (megabytes < 1 || megabytes > 1e8) throw element.error("bw is not a rate in MB/s");
        UnitLink unit;
        unit.kind = LinkKind::c2c;
        unit.bandwidth = {static_cast<std::int64_t>(megabytes * 1e6)};
        unit.goodput = {static_cast<std::int64_t>(megabytes * 0.8e6)};
        unit.latency = {400'000};
        unit.provenance = {
            fmt::format("C2C at {:g} MB/s a unit (in the file); usable 0.8 of it (assumed)", megabytes),
            true};
        const int cpu = cpu_of(gpu);
        MachinePart& part = tree_.parts[at(gpu)];
        if (part.parent == cpu && part.up.kind == LinkKind::pcie) {
            // The GPU's PCI entry is how the system lists it; its traffic takes the links on the board.
            ++on_chip_;
            part.up = unit;
            part.up.count = static_cast<int>(count);
            return;
        }
        tree_.links.push_back({gpu, cpu, {}, static_cast<int>(count), LinkKind::c2c, unit});
    }

    void report_notes() {
        slots_.report(result_);
        const auto assumed = [&](int count, const char* text) {
            if (count > 0) result_.assumptions.push_back(fmt::format(fmt::runtime(text), count));
        };
        const auto warned = [&](int count, const char* text) {
            if (count > 0) result_.warnings.push_back(fmt::format(fmt::runtime(text), count));
        };
        assumed(without_rate_, "network ports without a rate ({}): 10 Gb/s, as NCCL takes it");
        assumed(on_chip_,
                "GPUs on CPU chips ({}): all their traffic takes C2C, their PCIe entry is left out");
        assumed(switches_without_class_, "links to a device of unknown class ({}): taken as a switch");
        for (const auto& [name, bus] : tree_.switches) {
            if (name.rfind("fffffff", 0) == 0)
                result_.assumptions.push_back("the switches of the NVLinks are hidden (" + name +
                                              "): one switch that joins all GPUs");
        }
        if (tree_.host_names.size() > 1 && !tree_.switches.empty())
            result_.assumptions.push_back(
                "several hosts in one dump are one NVLink domain: switches of the same bus id are shared");
        warned(without_gdr_, "GPUs ({}) say gdr=\"0\" (no direct access for network adapters); not modeled");
        warned(nets_without_gdr_,
               "network ports ({}) say gdr=\"0\" (data passes through memory of the host); not modeled");
        warned(bare_nics_,
               "network adapters ({}) have no rate: no limit but their slots; a fabric gives its own");
        for (const auto& [what, count] : ports_above_slot_)
            result_.warnings.push_back(
                fmt::format("{}: {}: the slot is the bottleneck", counted(at(count), "network port"), what));
        for (const auto& [what, count] : left_out_)
            result_.warnings.push_back(fmt::format("left out: {} x {}", count, what));
        for (const auto& [what, count] : ignored_)
            result_.warnings.push_back(fmt::format("ignored: {} ({} times)", what, count));
    }

    void report_after_build() {
        if (reducing_ > 0)
            result_.found.push_back(fmt::format("{} can reduce in the network (coll=\"1\")",
                                                counted(at(reducing_), "network port")));
        // NVLinks that the file cannot tell are the one thing that must not pass in silence.
        if (bare_gpus_ == 0 || !tree_.links.empty()) return;
        result_.warnings.insert(
            result_.warnings.begin(),
            "NO NVLINK INFORMATION: the file lists GPUs by PCI class only, so the machine here has PCIe "
            "alone, "
            "which is many times slower if its GPUs are joined by NVLink. Give `nvidia-smi nvlink -s` of "
            "such a "
            "host with --nvlink-status FILE, import `nvidia-smi topo -m` or a dump of NCCL_TOPO_DUMP_FILE "
            "instead, "
            "or add the links under \"overrides\" of the written file (docs/topology.md)");
    }

    int cpu_of(int part) const {
        while (tree_.parts[at(part)].parent >= 0) part = tree_.parts[at(part)].parent;
        return part;
    }

    const ImportSource& source_;
    const ImportOptions& options_;
    XmlDocument document_;
    Imported result_;
    MachineTree tree_;
    PciSlots slots_;
    std::map<std::string, int> hosts_;
    std::map<std::pair<int, std::string>, int> gpus_by_bus_;
    std::vector<std::pair<int, XmlReader>> link_elements_, bridge_link_elements_;
    std::map<std::string, int> ignored_, left_out_, ports_above_slot_;
    std::int64_t numa_ = -1;
    int bare_cpu_ = -1;
    int gpu_elements_ = 0, net_elements_ = 0;
    int bare_gpus_ = 0, bare_nics_ = 0, self_links_ = 0, switches_without_class_ = 0;
    int without_rate_ = 0, without_gdr_ = 0, nets_without_gdr_ = 0, reducing_ = 0, on_chip_ = 0;
};

}  // namespace

bool recognizes_nccl_xml(std::string_view text) { return xml_root_name(text) == "system"; }

Imported read_nccl_xml(const ImportSource& source, const ImportOptions& options) {
    return NcclXml(source, options).read();
}

}  // namespace baton::topologies
