#include <baton/topologies/import/machine_report.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/nvlink_status.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <set>

namespace baton::topologies {
namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

const char* links_of_kind(LinkKind kind) {
    switch (kind) {
        case LinkKind::nvlink: return "NVLinks";
        case LinkKind::xgmi: return "XGMI links";
        default: return "C2C links";
    }
}

bool between_gpus(LinkKind kind) { return kind == LinkKind::nvlink || kind == LinkKind::xgmi; }

std::string list_counts(const std::map<std::string, int>& counts) {
    std::string text;
    for (const auto& [what, count] : counts)
        text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", count, what);
    return text;
}

void report_gpus(const Topology& topology, std::size_t hosts, Imported& result) {
    std::map<std::string, int> by_arch;
    int idle = 0, without_numa = 0;
    for (const Node& node : topology.nodes) {
        if (node.type != NodeType::gpu) continue;
        if (node.rank < 0) {
            ++idle;
            continue;
        }
        const auto arch = node.attributes.find("arch");
        ++by_arch[arch == node.attributes.end() ? "unknown architecture" : arch->second];
        without_numa += node.attributes.count("numa") == 0;
    }
    result.found.push_back(fmt::format("{} ({}) in {}", counted(at(topology.rank_count()), "GPU"),
                                       by_arch.size() == 1 ? by_arch.begin()->first : list_counts(by_arch),
                                       counted(hosts, "host")));
    if (idle > 0)
        result.warnings.push_back(fmt::format("{} without a rank take no part", counted(at(idle), "GPU")));
    if (without_numa > 0)
        result.warnings.push_back(
            fmt::format("the NUMA node of {} is not known", counted(at(without_numa), "GPU")));
}

// "24 directed XGMI links between GPUs: 12 of 1 unit, ...", by kind and figures.
void report_gpu_links(const Topology& topology, Imported& result) {
    struct Sum {
        std::map<int, int> by_count;
        std::int64_t units = 0;
        std::set<int> switches;
        const Link* any = nullptr;
    };
    std::map<std::tuple<LinkKind, std::int64_t, NodeType>, Sum> sums;
    for (const Link& link : topology.links) {
        const NodeType from = topology.nodes[at(link.from)].type, to = topology.nodes[at(link.to)].type;
        if (from != NodeType::gpu || link.kind == LinkKind::pcie) continue;
        Sum& sum = sums[{link.kind, link.bandwidth.bytes_per_second, to}];
        ++sum.by_count[link.count];
        sum.units += link.count;
        sum.any = &link;
        if (to == NodeType::switch_node) sum.switches.insert(link.to);
    }
    for (const auto& [key, sum] : sums) {
        const auto& [kind, rate, to] = key;
        std::string text;
        if (to == NodeType::switch_node) {
            text = fmt::format("{} {} of GPUs to {}", sum.units, links_of_kind(kind),
                               counted(sum.switches.size(), "switch", "switches"));
        } else if (to == NodeType::cpu) {
            text = fmt::format("{} {} of GPUs to their CPUs", sum.units, links_of_kind(kind));
        } else {
            std::string counts;
            int total = 0;
            for (const auto& [count, links] : sum.by_count) {
                counts +=
                    fmt::format("{}{} of {}", counts.empty() ? "" : ", ", links, counted(at(count), "unit"));
                total += links;
            }
            text = fmt::format("{} directed {} between GPUs ({})", total, links_of_kind(kind), counts);
        }
        result.found.push_back(fmt::format("{}: a unit has {} per direction, usable {}", text,
                                           to_string(sum.any->bandwidth), to_string(sum.any->goodput)));
    }
    if (sums.empty() && topology.rank_count() > 1)
        result.found.push_back("no links between GPUs beside PCIe");
}

// Islands that links of GPUs (and their switches) join.
int islands(const Topology& topology) {
    std::vector<int> leader(topology.nodes.size());
    std::iota(leader.begin(), leader.end(), 0);
    const auto find = [&](int node) {
        while (leader[at(node)] != node) node = leader[at(node)] = leader[at(leader[at(node)])];
        return node;
    };
    for (const Link& link : topology.links) {
        if (between_gpus(link.kind)) leader[at(find(link.from))] = find(link.to);
    }
    std::set<int> tops;
    for (const int node : topology.rank_nodes) tops.insert(find(node));
    return static_cast<int>(tops.size());
}

void report_rest(const Topology& topology, Imported& result) {
    std::map<std::string, int> rates;
    int nics = 0, bridges = 0, cpus = 0, shared = 0;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        nics += node.type == NodeType::nic;
        bridges += node.type == NodeType::pcie;
        cpus += node.type == NodeType::cpu;
        shared += node.type == NodeType::pcie && topology.in_links[i].size() > 2;
        if (node.type != NodeType::nic) continue;
        const auto rate = node.attributes.find("port_rate");
        ++rates[rate == node.attributes.end() ? "unknown rate" : rate->second];
    }
    if (nics > 0)
        result.found.push_back(fmt::format("{}: {}", counted(at(nics), "network port"), list_counts(rates)));
    else
        result.found.push_back("no network port");
    if (bridges + cpus > 0)
        result.found.push_back(fmt::format("{} ({} shared by several devices), {}",
                                           counted(at(bridges), "PCIe bridge"), shared,
                                           counted(at(cpus), "CPU")));
}

// GPUs that have fewer links than most: a lost record, or a link that is down.
void warn_of_unlike_gpus(const Topology& topology, Imported& result) {
    std::map<int, std::vector<int>> by_links;
    for (const int node : topology.rank_nodes) {
        int units = 0;
        for (const int link : topology.out_links[at(node)]) {
            if (between_gpus(topology.links[at(link)].kind)) units += topology.links[at(link)].count;
        }
        by_links[units].push_back(node);
    }
    std::size_t most = 0;
    int usual = 0;
    for (const auto& [units, members] : by_links) {
        if (members.size() > most) most = members.size(), usual = units;
    }
    // Where several groups are of like size the machine is built so.
    if (by_links.size() < 2 || most * 4 < topology.rank_nodes.size() * 3) return;
    int named = 0;
    for (const auto& [units, members] : by_links) {
        if (units == usual) continue;
        for (const int node : members) {
            if (++named > 8) return;
            result.warnings.push_back(fmt::format(
                "{} has {} links to other GPUs or switches, most GPUs have {}: {}",
                topology.nodes[at(node)].id, units, usual,
                units < usual ? "is a record missing or a link down?" : "is a record there twice?"));
        }
    }
}

void warn_of_slow_slots(const MachineTree& tree, const std::map<int, std::string>& arch, Imported& result) {
    std::map<std::string, int> slow;
    for (const auto& [part, name] : arch) {
        const MachinePart& gpu = tree.parts[at(part)];
        if (gpu.parent < 0 || gpu.up.provenance.assumed) continue;
        const double built = pcie_of_arch(name);
        // Files round: 15.75 GB/s is the slot of 8 GT/s.
        if (built > 0 && gpu.up.bandwidth.value() < 0.98 * pcie_link(built, 16).bandwidth.value())
            ++slow[fmt::format("{}, but {} is built for {}", to_string(gpu.up.bandwidth), name,
                               to_string(pcie_link(built, 16).bandwidth))];
    }
    for (const auto& [text, count] : slow)
        result.warnings.push_back(
            fmt::format("the PCIe slot of {} gives {}; taken as it is", counted(at(count), "GPU"), text));
}

// Latencies of the kinds that the machine has, as nvlink_unit, xgmi_unit, pcie_link and socket_link give
// them.
void report_latencies(const Topology& topology, Imported& result) {
    std::map<std::string, bool> used;
    for (const Link& link : topology.links) {
        const bool to_switch = topology.nodes[at(link.to)].type == NodeType::switch_node ||
                               topology.nodes[at(link.from)].type == NodeType::switch_node;
        const std::string what = link.kind == LinkKind::nvlink && to_switch ? "an NVLink to a switch"
                                 : link.kind == LinkKind::nvlink            ? "an NVLink"
                                 : link.kind == LinkKind::xgmi              ? "an XGMI link"
                                 : link.kind == LinkKind::c2c               ? "C2C"
                                 : link.kind == LinkKind::pcie              ? "a PCIe link"
                                                                            : "a link between CPUs";
        if (link.latency > Time{}) used[what + " " + to_string(link.latency)] = true;
    }
    for (const Node& node : topology.nodes) {
        if (node.latency == Time{}) continue;
        used[std::string(node.type == NodeType::switch_node ? "a switch of GPUs" : "a bridge or CPU") + " " +
             to_string(node.latency)] = true;
    }
    std::string text;
    for (const auto& [entry, is_used] : used) text += (text.empty() ? "" : ", ") + entry;
    if (!text.empty())
        result.assumptions.push_back("latencies: " + text +
                                     " (derived from NCCL's latency constants, see docs/topology.md)");
}

void report_sources(const Topology& topology, Imported& result) {
    std::map<LinkKind, std::vector<std::string>> sources;
    std::size_t pcie = 0;
    for (const Link& link : topology.links) {
        std::vector<std::string>& known = sources[link.kind];
        const std::string& source = link.provenance.source;
        if (source.empty() || std::find(known.begin(), known.end(), source) != known.end()) continue;
        if (link.kind == LinkKind::pcie && ++pcie > 8) continue;
        known.push_back(source);
    }
    for (const auto& [kind, texts] : sources) {
        for (const std::string& text : texts) result.assumptions.push_back(text);
    }
    if (pcie > 8) result.assumptions.push_back(fmt::format("{} more PCIe rates by the same rule", pcie - 8));
    report_latencies(topology, result);
}

}  // namespace

std::string counted(std::size_t count, const std::string& singular, const std::string& plural) {
    if (count == 1) return "1 " + singular;
    return fmt::format("{} {}", count, plural.empty() ? singular + "s" : plural);
}

UnitLink gpu_link_unit(LinkKind kind, const std::string& arch, bool through_switch, int most_links) {
    if (kind == LinkKind::xgmi) return xgmi_unit(arch);
    if (const int sm = sm_of_arch(arch); sm > 0) {
        if (auto unit = nvlink_unit(sm, through_switch)) return *std::move(unit);
    }
    const int sm = sm_by_nvlinks(most_links);
    UnitLink unit = *nvlink_unit(sm > 0 ? sm : 90, through_switch);
    unit.provenance.source =
        fmt::format("NVLinks of {}: taken as of sm_{} from their number, at most {} a GPU; {}",
                    arch.empty() ? "GPUs of unknown architecture" : arch, sm > 0 ? sm : 90, most_links,
                    unit.provenance.source);
    unit.provenance.assumed = true;
    return unit;
}

UnitLink chip_link_between_cpus() {
    UnitLink unit;
    unit.kind = LinkKind::c2c;
    unit.bandwidth = {300 * kGigabyte};
    unit.goodput = {240 * kGigabyte};
    unit.latency = {400'000};
    unit.provenance = {
        "between CPUs with GPUs on the chip: 300 GB/s per direction, usable 240 (assumed, as on GB200)",
        true};
    return unit;
}

void apply_nvlink_status(MachineTree& tree, const ImportOptions& options, Imported& result) {
    if (options.nvlink_status.text.empty()) return;
    const std::vector<NvlinkStatus> status = read_nvlink_status(options.nvlink_status);
    // GPUs by device number, where all have one; else in the order of bus ids.
    std::vector<int> gpus;
    bool numbered = true;
    for (std::size_t i = 0; i < tree.parts.size(); ++i) {
        if (tree.parts[i].type != NodeType::gpu) continue;
        gpus.push_back(static_cast<int>(i));
        numbered = numbered && tree.parts[i].device.has_value();
    }
    std::stable_sort(gpus.begin(), gpus.end(), [&](int a, int b) {
        const MachinePart &p = tree.parts[at(a)], &q = tree.parts[at(b)];
        return numbered ? p.device < q.device : p.bus < q.bus;
    });
    if (gpus.size() != status.size())
        throw input_error(
            fmt::format("it lists {}, the machine has {}", counted(status.size(), "GPU"), gpus.size()),
            options.nvlink_status.name, "give the text of one host of the same kind");
    std::map<int, const NvlinkStatus*> of;
    for (std::size_t i = 0; i < gpus.size(); ++i) of[gpus[i]] = &status[i];
    const bool without_links = tree.links.empty();
    for (const auto& [gpu, links] : of) {
        MachinePart& part = tree.parts[at(gpu)];
        if (part.arch.empty()) part.arch = arch_by_name(links->name);
        if (without_links && links->active > 0)
            tree.links.push_back({gpu, -1, "nvswitch", links->active, LinkKind::nvlink, std::nullopt});
    }
    std::int64_t stated = 0, active = 0;
    for (const NvlinkStatus& gpu : status) active += gpu.active;
    for (GpuLinks& links : tree.links) {
        if (links.kind != LinkKind::nvlink) continue;
        stated += links.count;
        const Rate rate = of[links.gpu]->rate;
        if (rate.bytes_per_second == 0) continue;
        links.unit = gpu_link_unit(links.kind, tree.parts[at(links.gpu)].arch, !links.through.empty(),
                                   of[links.gpu]->active);
        links.unit->bandwidth = rate;
        links.unit->goodput = std::min(links.unit->goodput, rate);
        links.unit->provenance.source +=
            fmt::format("; raw rate of {} from {}", to_string(rate), options.nvlink_status.name);
    }
    if (stated != active)
        result.warnings.push_back(fmt::format("{} lists {} active NVLinks, the machine's file has {}",
                                              options.nvlink_status.name, active, stated));
    if (!without_links || active == 0) return;
    tree.switches["nvswitch"] = "";
    result.assumptions.push_back(
        fmt::format("which GPUs the {} NVLinks join is not said: all lead to one switch, as on machines with "
                    "NVSwitches",
                    active));
}

void report_machine(const MachineTree& tree, const std::map<int, std::string>& arch, Imported& result) {
    const Topology& topology = result.topology;
    report_gpus(topology, tree.host_names.size(), result);
    report_gpu_links(topology, result);
    if (const int parts = islands(topology); parts > 1 && topology.rank_count() > parts)
        result.found.push_back(
            fmt::format("{} islands of GPUs; between them there is only PCIe or the network", parts));
    report_rest(topology, result);
    warn_of_unlike_gpus(topology, result);
    warn_of_slow_slots(tree, arch, result);
    report_sources(topology, result);
    result.assumptions.push_back(
        "launch time and rate of local reductions are not in such files: none, unless \"machine\" is added "
        "to what is "
        "written (docs/topology.md)");
}

}  // namespace baton::topologies
