#include <baton/topologies/import/fabric_tree.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/gpu_models.hpp>
#include <baton/topologies/import/link_rates.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::topologies {
namespace {

constexpr double kFabricPort = 400e9;  // bits per second
constexpr Time kFabricCable{500'000}, kFabricSwitch{130'000};
constexpr int kFabricNvlinks = 18, kFabricSm = 100;

// Hosts below each switch, each counted once; throws when a switch is below itself.
class HostsBelow {
public:
    explicit HostsBelow(const FabricTree& tree)
        : tree_(tree), state_(tree.switches.size()), hosts_(tree.switches.size()) {
        for (std::size_t i = 0; i < tree.switches.size(); ++i) visit(static_cast<int>(i));
    }
    std::int64_t operator()(int number) const { return hosts_[at(number)]; }

private:
    // Without recursion, as a chain of switches may be as long as the file.
    void visit(int top) {
        std::vector<std::pair<int, std::size_t>> path = {{top, 0}};
        while (!path.empty()) {
            const auto [number, next] = path.back();
            const FabricSwitch& here = tree_.switches[at(number)];
            if (next == 0 && state_[at(number)] == 2) {
                path.pop_back();
                continue;
            }
            state_[at(number)] = 1;
            if (next < here.switches.size()) {
                ++path.back().second;
                const int child = here.switches[next];
                if (state_[at(child)] == 1)
                    throw input_error(fmt::format("the switch '{}' is below itself", shown(here.name)),
                                      tree_.switches[at(child)].where);
                if (state_[at(child)] == 0) path.emplace_back(child, 0);
                continue;
            }
            // A host below two children counts twice: it has two cables.
            hosts_[at(number)] = static_cast<std::int64_t>(here.hosts.size());
            for (const int child : here.switches)
                hosts_[at(number)] = std::min(hosts_[at(number)] + hosts_[at(child)], kMaxNodes);
            state_[at(number)] = 2;
            path.pop_back();
        }
    }
    const FabricTree& tree_;
    std::vector<int> state_;  // 0 new, 1 on the path, 2 done
    std::vector<std::int64_t> hosts_;
};

UnitLink fabric_cable() {
    UnitLink cable = network_port(kFabricPort, LinkKind::infiniband);
    cable.latency = kFabricCable;
    cable.provenance.assumed = true;
    return cable;
}

void add_switches(const FabricTree& tree, Imported& result) {
    const HostsBelow below(tree);
    const int first = static_cast<int>(tree.hosts.size());
    std::size_t empty = 0;
    for (const FabricSwitch& from : tree.switches) {
        Node node;
        node.id = id_text(from.name);
        node.type = NodeType::switch_node;
        node.latency = kFabricSwitch;
        result.topology.add_node(std::move(node));
    }
    Link cable = fabric_cable();
    for (std::size_t i = 0; i < tree.switches.size(); ++i) {
        const FabricSwitch& here = tree.switches[i];
        cable.to = first + static_cast<int>(i);
        cable.count = 1;
        for (const int host : here.hosts) {
            cable.from = host;
            result.topology.add_link(cable);
        }
        for (const int child : here.switches) {
            if (below(child) == 0) continue;
            cable.from = first + child;
            cable.count = static_cast<int>(below(child));
            result.topology.add_link(cable);
        }
        empty += below(static_cast<int>(i)) == 0;
    }
    if (empty > 0)
        result.warnings.push_back(fmt::format("{} no host below: they have no cables",
                                              counted(empty, "switch has", "switches have")));
}

// One switch between all hosts, where the file tells only domains.
void add_one_switch(const FabricTree& tree, Imported& result) {
    Node node;
    node.id = "fabric";
    while (tree.has_host(node.id)) node.id += "_";
    node.type = NodeType::switch_node;
    node.latency = kFabricSwitch;
    Link cable = fabric_cable();
    cable.to = result.topology.add_node(std::move(node));
    for (std::size_t host = 0; host < tree.hosts.size(); ++host) {
        cable.from = static_cast<int>(host);
        result.topology.add_link(cable);
    }
    result.warnings.push_back(
        "the file does not say how the blocks are joined: one switch between all hosts is assumed");
}

int fabric_sm(const FabricTree& tree, const std::string& arch, Imported& result) {
    if (const int sm = sm_of_arch(arch); sm > 0) return sm;
    std::set<int> found;
    for (const FabricHost& host : tree.hosts)
        if (!host.device.empty()) found.insert(sm_of_arch(arch_by_name(host.device)));
    found.erase(0);
    if (found.size() == 1) return *found.begin();
    result.assumptions.push_back(
        fmt::format("the file does not say which GPUs share NVLink: sm_{}, as of GB200 (--arch says another)",
                    kFabricSm));
    return kFabricSm;
}

void add_domains(const FabricTree& tree, const std::string& arch, Imported& result) {
    std::map<std::string, std::vector<int>> domains;
    for (std::size_t host = 0; host < tree.hosts.size(); ++host)
        if (!tree.hosts[host].domain.empty())
            domains[tree.hosts[host].domain].push_back(static_cast<int>(host));
    if (domains.empty()) return;
    const int sm = fabric_sm(tree, arch, result);
    auto unit = nvlink_unit(sm, true);
    if (!unit) unit = nvlink_unit(kFabricSm, true);
    std::size_t alone = 0;
    Link link = *unit;
    link.count = kFabricNvlinks;
    link.provenance.assumed = true;
    for (const auto& [name, hosts] : domains) {
        if (hosts.size() < 2) {
            ++alone;
            continue;
        }
        Node node;
        node.id = id_text("nvlink/" + name);
        node.type = NodeType::switch_node;
        node.latency = pass_latency(NodeType::switch_node);
        link.to = result.topology.add_node(std::move(node));
        for (const int host : hosts) {
            link.from = host;
            result.topology.add_link(link);
        }
    }
    result.found.push_back(fmt::format("{} of hosts that share NVLink", counted(domains.size(), "domain")));
    if (alone > 0)
        result.warnings.push_back(fmt::format("{} one host only: no NVLink leaves it",
                                              counted(alone, "domain has", "domains have")));
    result.assumptions.push_back(
        fmt::format("a rank in a domain has {} NVLinks of {} to one switch of the "
                    "domain, as one GPU has",
                    kFabricNvlinks, to_string(unit->bandwidth)));
}

}  // namespace

void FabricTree::check_name(const std::string& name, const std::map<std::string, int>& others,
                            const std::string& where) const {
    if (name.empty()) throw input_error("a name is empty", where);
    if (others.count(name) > 0)
        throw input_error(fmt::format("'{}' is a host and a switch", shown(name)), where);
    check_size(static_cast<double>(switches.size() + hosts.size() + 1), 0, where);
}

int FabricTree::switch_number(const std::string& name, const std::string& where) {
    if (const auto found = switch_numbers_.find(name); found != switch_numbers_.end()) return found->second;
    check_name(name, host_numbers_, where);
    const int number = switch_numbers_[name] = static_cast<int>(switches.size());
    switches.push_back({name, {}, {}, where});
    return number;
}

int FabricTree::host_number(const std::string& name, const std::string& where) {
    if (const auto found = host_numbers_.find(name); found != host_numbers_.end()) return found->second;
    check_name(name, switch_numbers_, where);
    const int number = host_numbers_[name] = static_cast<int>(hosts.size());
    hosts.push_back({name, {}, {}, {}});
    return number;
}

void build_fabric(const FabricTree& tree, const std::string& arch, const ImportSource& source,
                  Imported& result) {
    if (tree.hosts.empty()) throw input_error("there is no host in it", source.name);
    std::vector<int> parents(tree.hosts.size()), above(tree.switches.size());
    double links = 0;
    for (const FabricSwitch& from : tree.switches) {
        links += static_cast<double>(from.hosts.size() + from.switches.size());
        for (const int host : from.hosts) ++parents[at(host)];
        for (const int child : from.switches) ++above[at(child)];
    }
    check_size(static_cast<double>(2 * tree.hosts.size() + tree.switches.size()),
               2 * (links + 2.0 * static_cast<double>(tree.hosts.size())), source.name);
    for (const FabricHost& host : tree.hosts) {
        Node node;
        node.id = node.host = id_text(host.name);
        node.attributes = host.attributes;
        if (!host.device.empty()) node.attributes["device"] = shown(host.device);
        result.topology.add_node(std::move(node));
    }
    if (tree.switches.empty())
        add_one_switch(tree, result);
    else
        add_switches(tree, result);
    add_domains(tree, arch, result);
    finish_network(source, result);
    result.assumptions.push_back(
        "what is inside the hosts is not in the file: each host is one rank with one adapter");
    result.assumptions.push_back(
        fmt::format("rates are not in the file: cables of {} (NDR), {}; switches {}; to the switch above as "
                    "many cables as there "
                    "are hosts below, so that no level is oversubscribed (overrides say otherwise)",
                    to_string(*rate_of(kFabricPort / 8)), to_string(kFabricCable), to_string(kFabricSwitch)));
    const auto several = [&](const std::vector<int>& counts, const char* one, const char* many) {
        const auto number = std::count_if(counts.begin(), counts.end(), [](int n) { return n > 1; });
        if (number > 0)
            result.warnings.push_back(
                fmt::format("{} under several switches: each gets cables to all of them",
                            counted(static_cast<std::size_t>(number), one, many)));
    };
    several(parents, "host is", "hosts are");
    several(above, "switch is", "switches are");
    const auto loose = static_cast<std::size_t>(std::count(parents.begin(), parents.end(), 0));
    if (!tree.switches.empty() && loose > 0)
        result.warnings.push_back(fmt::format("{} under no switch", counted(loose, "host is", "hosts are")));
}

}  // namespace baton::topologies
