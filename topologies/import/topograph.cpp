// Fabrics between hosts from NVIDIA topograph: its models (YAML with switches, nodes, capacity_blocks or
// blocks) and what it writes for SLURM (topology.conf, topology.yaml).
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/yaml_reader.hpp>
#include <baton/topologies/import/fabric_tree.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/host_list.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/slurm_topology.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace baton::topologies {
namespace {

// Entries of a map, or of a list whose elements have a name, as older models write them.
std::vector<std::pair<std::string, YamlReader>> named_entries(const YamlReader& value) {
    std::vector<std::pair<std::string, YamlReader>> entries;
    if (value.is_null()) return entries;
    if (!value.is_list()) return value.members();
    for (const YamlReader& item : value.elements()) {
        const auto name = item.find("name");
        entries.emplace_back(name ? name->text() : item.at("switch").text(), item);
    }
    return entries;
}

// What topograph reads of a model. Blocks may stand before the switches that hold them.
class TopographModel {
public:
    TopographModel(const YamlReader& root, Imported& result) : root_(root), result_(result) {}

    FabricTree read() {
        for (const auto& [key, value] : root_.members()) {
            if (key == "switches" || key == "nodes" || key == "capacity_blocks" || key == "blocks") continue;
            if (key != "topology") left_out_[key] = value.line();
        }
        read_blocks("capacity_blocks");
        read_switches();
        read_blocks_below_switches();
        read_nodes();
        std::vector<std::string> left_out;
        for (const auto& [key, line] : left_out_)
            left_out.push_back(fmt::format("{} (first in line {})", shown(key), line));
        warn_left_out(left_out, "values without a counterpart", result_);
        return std::move(tree_);
    }

private:
    std::vector<std::string> listed_names(const YamlReader& entry, std::string_view key) {
        std::vector<std::string> names;
        const auto value = entry.is_map() ? entry.find(key) : std::nullopt;
        if (!value || value->is_null()) return names;
        for (const YamlReader& item : value->is_list() ? value->elements() : std::vector<YamlReader>{*value})
            for (std::string& name : lists_.expand(item.text(), item.where()))
                names.push_back(std::move(name));
        return names;
    }

    void leave_out(const std::string& key, const YamlReader& value) {
        left_out_.try_emplace(key, value.line());
    }

    // "accelerator", "level-0" or "domain" behind the last slash of a label name the accelerated domain.
    std::string labelled_domain(const YamlReader& entry) {
        std::string domain;
        for (const char* key : {"labels", "annotations", "attributes"}) {
            const auto values = entry.find(key);
            if (!values || values->is_null()) continue;
            for (const auto& [label, value] : values->members()) {
                const std::string last = label.substr(label.rfind('/') + 1);
                const bool is_domain = last == "accelerator" || last == "domain" || last == "nvlink" ||
                                       (last == "level-0" && label.rfind("accelerated", 0) == 0);
                if (!is_domain)
                    leave_out(label, value);
                else if (domain.empty())
                    domain = value.text();
            }
        }
        return domain;
    }

    void set_domain(FabricHost& host, const std::string& domain, const YamlReader& place) {
        if (domain.empty()) return;
        if (!host.domain.empty() && host.domain != domain)
            throw place.error(fmt::format("'{}' is in the domains '{}' and '{}'", shown(host.name),
                                          shown(host.domain), shown(domain)));
        host.domain = domain;
    }

    void describe(const std::string& name, const YamlReader& entry) {
        FabricHost& host = tree_.hosts[at(tree_.host_number(name, entry.where()))];
        if (!entry.is_map()) return;
        set_domain(host, labelled_domain(entry), entry);
        if (const auto nvlink = entry.find("nvlink")) set_domain(host, nvlink->text(), *nvlink);
        if (const auto type = entry.find("type"); type && host.device.empty()) host.device = type->text();
    }

    // Blocks of hosts; hosts are numbered later, when the order of the switches is known.
    void read_blocks(const char* key) {
        const auto blocks = root_.find(key);
        if (!blocks) return;
        for (const auto& [name, entry] : named_entries(*blocks)) {
            const bool is_new = blocks_.try_emplace(name, entry).second;
            if (!is_new) throw entry.error(fmt::format("the block '{}' comes twice", shown(name)));
        }
    }

    void read_switches() {
        const auto switches = root_.find("switches");
        if (!switches) return;
        const auto entries = named_entries(*switches);
        for (const auto& [name, entry] : entries) {
            if (tree_.has_switch(name))
                throw entry.error(fmt::format("the switch '{}' comes twice", shown(name)));
            tree_.switch_number(name, entry.where());
        }
        for (const auto& [name, entry] : entries) {
            if (!entry.is_map()) continue;
            const int number = tree_.switch_number(name, entry.where());
            for (const std::string& child : listed_names(entry, "switches")) {
                const int below = tree_.switch_number(child, entry.where());
                tree_.switches[at(number)].switches.push_back(below);
            }
            for (const std::string& node : listed_names(entry, "nodes")) add_host(number, node, entry);
            for (const std::string& block : listed_names(entry, "capacity_blocks")) {
                const auto found = blocks_.find(block);
                if (found == blocks_.end())
                    throw entry.error(fmt::format("there is no capacity block '{}'", shown(block)));
                for (const std::string& node : listed_names(found->second, "nodes"))
                    add_host(number, node, entry);
            }
            for (const auto& [key, value] : entry.members()) {
                if (key != "switches" && key != "nodes" && key != "capacity_blocks" && key != "name")
                    leave_out("switches: " + key, value);
            }
        }
    }

    void add_host(int number, const std::string& node, const YamlReader& entry) {
        const int host = tree_.host_number(node, entry.where());
        tree_.switches[at(number)].hosts.push_back(host);
    }

    // Newer models: each block names the switch that its nodes hang below.
    void read_blocks_below_switches() {
        const auto blocks = root_.find("blocks");
        if (!blocks || blocks->is_null()) return;
        for (const YamlReader& entry : blocks->elements()) {
            const std::vector<std::string> nodes = listed_names(entry, "nodes");
            if (const auto above = entry.find("switch"); above && !above->is_null()) {
                const int number = tree_.switch_number(above->text(), above->where());
                for (const std::string& node : nodes) add_host(number, node, entry);
            }
            for (const std::string& node : nodes) describe(node, entry);
        }
    }

    void read_nodes() {
        for (const auto& [name, entry] : blocks_)
            for (const std::string& node : listed_names(entry, "nodes")) describe(node, entry);
        const auto nodes = root_.find("nodes");
        if (!nodes) return;
        for (const auto& [name, entry] : named_entries(*nodes)) {
            describe(name, entry);
            if (!entry.is_map()) continue;
            const auto block = entry.find("capacity_block");
            if (!block || block->is_null()) continue;
            const auto found = blocks_.find(block->text());
            if (found != blocks_.end()) describe(name, found->second);
        }
    }

    YamlReader root_;
    Imported& result_;
    FabricTree tree_;
    HostLists lists_;
    std::map<std::string, YamlReader> blocks_;
    std::map<std::string, int> left_out_;
};

}  // namespace

bool recognizes_topograph(std::string_view text) {
    if (is_slurm_conf(text)) return true;
    bool list = false, body = false;
    const std::string name;
    for (const TextLine& line : text_lines({text, name})) {
        const std::string_view begin = line.text;
        for (const char* key : {"switches:", "blocks:", "capacity_blocks:"})
            if (begin.rfind(key, 0) == 0) return true;
        list = list || begin.rfind("- topology:", 0) == 0;
        for (const char* key : {"tree:", "block:", "flat:"}) {
            const auto words = line.words();
            body = body || (!words.empty() && words[0] == key);
        }
        if (list && body) return true;
    }
    return false;
}

Imported read_topograph(const ImportSource& source, const ImportOptions& options) {
    Imported result;
    if (is_slurm_conf(source.text)) {
        const FabricTree tree = read_slurm_conf(source, result);
        build_fabric(tree, options.arch, source, result);
        return result;
    }
    const YamlDocument document = YamlDocument::parse(source.text, source.name);
    const YamlReader root = document.root();
    if (!root.is_list() && !root.is_map())
        throw root.error("this is neither a model of topograph nor a topology of SLURM");
    const FabricTree tree =
        root.is_list() ? read_slurm_yaml(root, result) : TopographModel(root, result).read();
    build_fabric(tree, options.arch, source, result);
    return result;
}

}  // namespace baton::topologies
