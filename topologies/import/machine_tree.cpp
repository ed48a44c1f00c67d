// From a tree of parts to a topology: ranks, names, links, sockets, switches of GPUs.
#include <baton/topologies/import/machine_tree.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/machine_report.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::topologies {
namespace {

// An order in which every part has a number of its own, or nothing.
std::optional<std::vector<int>> by_number(const std::vector<int>& parts, const MachineTree& tree,
                                          std::optional<std::int64_t> MachinePart::*number, bool host_first) {
    std::vector<int> order = parts;
    const auto key = [&](int part) {
        const MachinePart& p = tree.parts[at(part)];
        return std::pair(host_first ? p.host : 0, (p.*number).value_or(-1));
    };
    for (const int part : parts) {
        if (!(tree.parts[at(part)].*number)) return std::nullopt;
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (key(order[i]) == key(order[i - 1])) return std::nullopt;
    }
    return order;
}

std::vector<int> by_bus(const std::vector<int>& parts, const MachineTree& tree) {
    std::vector<int> order = parts;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const MachinePart &p = tree.parts[at(a)], &q = tree.parts[at(b)];
        return std::pair(p.host, p.bus) < std::pair(q.host, q.bus);
    });
    return order;
}

// Parallel links between two ends, as both of them state them.
struct Bundle {
    int forward = 0, backward = 0;
    std::optional<UnitLink> unit;
};

class Builder {
public:
    Builder(const MachineTree& tree, const ImportSource& source, const ImportOptions& options,
            Imported& result)
        : tree_(tree), source_(source), options_(options), result_(result), nodes_(tree.parts.size(), -1) {}

    void build() {
        if (tree_.host_names.size() > at(kMaxNodes)) throw input_error("too many hosts", source_.name);
        result_.topology.name = source_.name.substr(source_.name.find_last_of('/') + 1);
        find_used_parts();
        order_gpus();
        add_nodes();
        add_tree_links();
        join_cpus();
        add_gpu_links();
        result_.topology.finish(source_.name);
        report_machine(tree_, arch_, result_);
    }

private:
    Topology& topology() { return result_.topology; }
    bool several_hosts() const { return tree_.host_names.size() > 1; }

    // CPUs, GPUs, network ports, and the bridges that lead to them.
    void find_used_parts() {
        used_.assign(tree_.parts.size(), false);
        int unused = 0;
        for (std::size_t i = tree_.parts.size(); i-- > 0;) {
            const MachinePart& part = tree_.parts[i];
            used_[i] = used_[i] || part.type != NodeType::pcie;
            unused += !used_[i];
            if (used_[i] && part.parent >= 0) used_[at(part.parent)] = true;
        }
        if (unused > 0)
            result_.warnings.push_back(fmt::format("left out: {} with no GPU or network port below",
                                                   counted(at(unused), "PCIe bridge")));
    }

    void order_gpus() {
        std::vector<int> ranked, others;
        for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
            const MachinePart& part = tree_.parts[i];
            if (part.type == NodeType::gpu)
                (part.takes_part ? ranked : others).push_back(static_cast<int>(i));
        }
        if (ranked.empty())
            throw input_error("there is no GPU in it", source_.name, "a machine without GPUs has no ranks");
        if (auto order = by_number(ranked, tree_, &MachinePart::rank, false)) {
            gpus_ = *std::move(order);
            if (tree_.parts[at(gpus_.back())].rank != static_cast<std::int64_t>(gpus_.size()) - 1)
                result_.warnings.push_back(fmt::format(
                    "the ranks in the file are not 0 to {}; they are numbered anew in their order",
                    gpus_.size() - 1));
        } else if (auto devices = by_number(ranked, tree_, &MachinePart::device, true)) {
            gpus_ = *std::move(devices);
            result_.assumptions.push_back(
                "ranks are not stated for every GPU: in the order of device numbers");
        } else {
            gpus_ = by_bus(ranked, tree_);
            result_.assumptions.push_back(
                "GPUs have neither ranks nor device numbers of their own: ranks are in the order of bus ids, "
                "as "
                "CUDA_DEVICE_ORDER=PCI_BUS_ID has them");
        }
        idle_ = std::move(others);
    }

    std::string id(int host, const char* name, int number) const {
        return several_hosts() ? fmt::format("h{}/{}{}", host, name, number)
                               : fmt::format("{}{}", name, number);
    }

    void add_part(int part, const char* name, int number, int rank) {
        const MachinePart& p = tree_.parts[at(part)];
        Node node;
        node.id = id(p.host, name, number);
        node.type = p.type;
        node.host = fmt::format("h{}", p.host);
        node.rank = rank;
        node.latency = pass_latency(p.type);
        node.attributes = p.attributes;
        if (!p.bus.empty()) node.attributes.emplace("bus_id", p.bus);
        if (p.type == NodeType::gpu && !arch(part).empty()) node.attributes.emplace("arch", arch(part));
        nodes_[at(part)] = topology().add_node(std::move(node));
    }

    // A GPU's architecture: the file's, else what the user says.
    const std::string& arch(int part) {
        std::string& known = arch_[part];
        if (known.empty()) known = tree_.parts[at(part)].arch;
        if (known.empty()) known = options_.arch;
        return known;
    }

    void add_nodes() {
        std::vector<int> gpu_number(tree_.host_names.size(), 0);
        for (std::size_t i = 0; i < gpus_.size(); ++i) {
            int& number = gpu_number[at(tree_.parts[at(gpus_[i])].host)];
            add_part(gpus_[i], "gpu", number++, static_cast<int>(i));
        }
        for (const int part : idle_) add_part(part, "gpu", gpu_number[at(tree_.parts[at(part)].host)]++, -1);
        add_switches();
        for (const auto& [type, name] :
             {std::pair(NodeType::pcie, "pcie"), std::pair(NodeType::cpu, "cpu")}) {
            std::vector<int> number(tree_.host_names.size(), 0);
            for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
                if (tree_.parts[i].type != type || !used_[i]) continue;
                add_part(static_cast<int>(i), name, number[at(tree_.parts[i].host)]++, -1);
            }
        }
        add_nics();
    }

    void add_nics() {
        std::vector<int> nics;
        for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
            if (tree_.parts[i].type == NodeType::nic) nics.push_back(static_cast<int>(i));
        }
        if (auto order = by_number(nics, tree_, &MachinePart::device, true)) nics = *std::move(order);
        std::vector<int> number(tree_.host_names.size(), 0);
        for (const int part : nics) add_part(part, "nic", number[at(tree_.parts[at(part)].host)]++, -1);
    }

    void add_switches() {
        // A switch that GPUs of several hosts name is one switch between them, and belongs to none.
        std::map<std::string, std::set<int>> hosts;
        std::map<std::string, int> sm;
        for (const GpuLinks& links : tree_.links) {
            if (links.through.empty()) continue;
            hosts[links.through].insert(tree_.parts[at(links.gpu)].host);
            sm[links.through] = std::max(sm[links.through], sm_of_arch(arch(links.gpu)));
        }
        bool reduces = false;
        int number = 0;
        for (const auto& [name, bus] : tree_.switches) {
            Node node;
            node.id = fmt::format("nvswitch{}", number++);
            node.type = NodeType::switch_node;
            if (hosts[name].size() <= 1)
                node.host = fmt::format("h{}", hosts[name].empty() ? 0 : *hosts[name].begin());
            node.latency = pass_latency(NodeType::switch_node);
            node.multicast = node.reduce = sm[name] >= 90;
            reduces = reduces || node.reduce;
            if (!bus.empty()) node.attributes.emplace("bus_id", bus);
            switches_[name] = topology().add_node(std::move(node));
        }
        if (reduces)
            result_.assumptions.push_back(
                "switches of GPUs from sm_90 on multicast and reduce (NVLink SHARP), as in the presets");
    }

    void link(int from, int to, UnitLink unit, int count, bool oneway = false) {
        unit.from = from;
        unit.to = to;
        unit.count = count;
        topology().add_link(std::move(unit), oneway);
    }

    void add_tree_links() {
        for (const NodeType type : {NodeType::gpu, NodeType::nic, NodeType::pcie}) {
            for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
                const MachinePart& part = tree_.parts[i];
                if (part.type == type && part.parent >= 0 && used_[i])
                    link(nodes_[i], nodes_[at(part.parent)], part.up, part.up.count);
            }
        }
        for (const BridgeLink& bridges : tree_.bridge_links) {
            if (used_[at(bridges.from)] && used_[at(bridges.to)])
                link(nodes_[at(bridges.from)], nodes_[at(bridges.to)], bridges.unit, 1);
        }
    }

    void join_cpus() {
        std::map<int, std::vector<int>> cpus;
        std::set<int> on_chip;
        for (std::size_t i = 0; i < tree_.parts.size(); ++i) {
            const MachinePart& part = tree_.parts[i];
            if (part.type == NodeType::cpu) cpus[part.host].push_back(static_cast<int>(i));
            if (part.type == NodeType::gpu && part.up.kind == LinkKind::c2c) on_chip.insert(part.host);
        }
        for (const GpuLinks& links : tree_.links) {
            if (links.kind == LinkKind::c2c) on_chip.insert(tree_.parts[at(links.gpu)].host);
        }
        for (const auto& [host, members] : cpus) {
            if (members.size() > at(kMaxCpusOfHost))
                throw input_error(
                    fmt::format("{} CPUs in one host are more than {}", members.size(), kMaxCpusOfHost),
                    source_.name);
            for (std::size_t i = 0; i < members.size(); ++i) {
                for (std::size_t j = i + 1; j < members.size(); ++j) {
                    const MachinePart& cpu = tree_.parts[at(members[i])];
                    const UnitLink unit = on_chip.count(host) > 0
                                              ? chip_link_between_cpus()
                                              : socket_link(cpu.cpu_vendor, cpu.cpu_model);
                    link(nodes_[at(members[i])], nodes_[at(members[j])], unit, 1);
                }
            }
        }
    }

    UnitLink unit_of(const GpuLinks& links) {
        if (links.unit) return *links.unit;
        return gpu_link_unit(links.kind, arch(links.gpu), !links.through.empty(), most_links(links.kind));
    }

    // Most links of a kind that a GPU has.
    int most_links(LinkKind kind) {
        if (const auto known = most_.find(kind); known != most_.end()) return known->second;
        std::map<int, std::int64_t> sums;
        std::int64_t most = 0;
        for (const GpuLinks& links : tree_.links) {
            if (links.kind == kind) most = std::max(most, sums[links.gpu] += links.count);
        }
        return most_[kind] = static_cast<int>(std::min<std::int64_t>(most, 1 << 20));
    }

    void add_gpu_links() {
        std::map<std::pair<int, int>, Bundle> pairs;
        std::map<std::pair<int, std::string>, Bundle> to_switch;
        for (const GpuLinks& links : tree_.links) {
            Bundle* bundle = nullptr;
            bool backward = false;
            if (!links.through.empty()) {
                bundle = &to_switch[{nodes_[at(links.gpu)], links.through}];
            } else {
                const int a = nodes_[at(links.gpu)], b = nodes_[at(links.other)];
                backward = a > b && tree_.parts[at(links.other)].type == NodeType::gpu;
                bundle = backward ? &pairs[{b, a}] : &pairs[{a, b}];
            }
            (backward ? bundle->backward : bundle->forward) += links.count;
            if (!bundle->unit) bundle->unit = unit_of(links);
        }
        for (const auto& [ends, bundle] : pairs) {
            const bool to_gpu = topology().nodes[at(ends.second)].type == NodeType::gpu;
            if (to_gpu && bundle.forward != bundle.backward) uneven(ends, bundle);
            link(ends.first, ends.second, *bundle.unit, std::max(bundle.forward, bundle.backward));
        }
        for (const auto& [ends, bundle] : to_switch)
            link(ends.first, switches_.at(ends.second), *bundle.unit, bundle.forward);
        for (const SwitchLinks& links : tree_.switch_links)
            link(switches_.at(links.from), switches_.at(links.to), links.unit, links.count);
    }

    void uneven(const std::pair<int, int>& ends, const Bundle& bundle) {
        const std::string &a = topology().nodes[at(ends.first)].id, &b = topology().nodes[at(ends.second)].id;
        result_.warnings.push_back(
            fmt::format("{} states {} links to {}, which states {} back: {} taken in both directions", a,
                        bundle.forward, b, bundle.backward, std::max(bundle.forward, bundle.backward)));
    }

    const MachineTree& tree_;
    const ImportSource& source_;
    const ImportOptions& options_;
    Imported& result_;
    std::vector<bool> used_;        // parts that become nodes
    std::vector<int> nodes_;        // node of each part
    std::vector<int> gpus_, idle_;  // parts, in rank order; GPUs that take no part
    std::map<std::string, int> switches_;
    std::map<int, std::string> arch_;  // by part
    std::map<LinkKind, int> most_;
};

}  // namespace

void build_machine(const MachineTree& tree, const ImportSource& source, const ImportOptions& options,
                   Imported& result) {
    Builder(tree, source, options, result).build();
}

}  // namespace baton::topologies
