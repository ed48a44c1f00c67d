#include <baton/topologies/import/slurm_topology.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/host_list.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::topologies {
namespace {

std::string small_letters(std::string_view text) {
    std::string small(text);
    for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return small;
}

// A switch or block with the lists of names below it, and where it stands.
struct SlurmEntry {
    std::string name, switches, nodes, where;
    bool block = false;
};

// Switches are declared before any list of them is read, so that their order does not matter.
FabricTree slurm_tree(const std::vector<SlurmEntry>& entries, Imported& result) {
    FabricTree tree;
    HostLists lists;
    std::set<std::string> names;
    std::size_t empty_blocks = 0;
    for (const SlurmEntry& entry : entries) {
        if (!names.insert(entry.name).second)
            throw input_error(fmt::format("'{}' comes twice", shown(entry.name)), entry.where);
        if (!entry.block) tree.switch_number(entry.name, entry.where);
    }
    for (const SlurmEntry& entry : entries) {
        const std::vector<std::string> nodes = lists.expand(entry.nodes, entry.where);
        if (entry.block) {
            empty_blocks += nodes.empty();
            for (const std::string& node : nodes) {
                FabricHost& host = tree.hosts[at(tree.host_number(node, entry.where))];
                if (!host.domain.empty())
                    throw input_error(
                        fmt::format("'{}' is in the block '{}' already", shown(node), shown(host.domain)),
                        entry.where);
                host.domain = entry.name;
            }
            continue;
        }
        const int number = tree.switch_number(entry.name, entry.where);
        for (const std::string& node : nodes)
            tree.switches[at(number)].hosts.push_back(tree.host_number(node, entry.where));
        for (const std::string& child : lists.expand(entry.switches, entry.where)) {
            if (!tree.has_switch(child))
                throw input_error(fmt::format("there is no switch '{}'", shown(child)), entry.where);
            tree.switches[at(number)].switches.push_back(tree.switch_number(child, entry.where));
        }
        if (nodes.empty() && entry.switches.empty())
            throw input_error(
                fmt::format("the switch '{}' has neither switches nor nodes", shown(entry.name)),
                entry.where);
    }
    if (empty_blocks > 0)
        result.warnings.push_back(
            fmt::format("{} no host: a place kept free", counted(empty_blocks, "block has", "blocks have")));
    if (std::any_of(entries.begin(), entries.end(), [](const SlurmEntry& entry) { return entry.block; }))
        result.assumptions.push_back("hosts of one block share NVLink, as accelerated domains do");
    return tree;
}

std::string_view without_note(std::string_view line) { return line.substr(0, line.find('#')); }

}  // namespace

bool is_slurm_conf(std::string_view text) {
    const std::string name;
    for (const TextLine& line : text_lines({text, name})) {
        const TextLine plain{line.number, without_note(line.text), nullptr};
        if (plain.words().empty()) continue;
        const std::string first = small_letters(plain.words()[0]);
        return first.rfind("switchname=", 0) == 0 || first.rfind("blockname=", 0) == 0 ||
               first.rfind("blocksizes=", 0) == 0;
    }
    return false;
}

FabricTree read_slurm_conf(const ImportSource& source, Imported& result) {
    std::vector<SlurmEntry> entries;
    std::vector<std::string> left_out;
    for (const TextLine& line : text_lines(source)) {
        const TextLine plain{line.number, without_note(line.text), &source.name};
        SlurmEntry entry;
        entry.where = line.where();
        bool named = false;
        for (const std::string_view word : plain.words()) {
            const std::size_t equals = word.find('=');
            if (equals == std::string_view::npos)
                throw line.error(fmt::format("'{}' where KEY=VALUE was expected", shown(word)));
            const std::string key = small_letters(word.substr(0, equals));
            const std::string value(word.substr(equals + 1));
            if (key == "switchname" || key == "blockname") {
                if (named) throw line.error("a line names one switch or block");
                named = true;
                entry.block = key == "blockname";
                entry.name = value;
                if (value.empty()) throw line.error("the name is empty");
            } else if (key == "switches") {
                entry.switches = value;
            } else if (key == "nodes") {
                entry.nodes = value;
            } else {
                left_out.push_back(fmt::format("{} (line {})", shown(word), line.number));
            }
        }
        if (!named && (!entry.switches.empty() || !entry.nodes.empty()))
            throw line.error("the line names no switch and no block",
                             "start it with SwitchName= or BlockName=");
        if (named) entries.push_back(std::move(entry));
    }
    FabricTree tree = slurm_tree(entries, result);
    warn_left_out(left_out, "values without a counterpart", result);
    return tree;
}

FabricTree read_slurm_yaml(const YamlReader& root, Imported& result) {
    std::optional<YamlReader> chosen, of_default;
    std::vector<std::string> left_out;
    const std::vector<YamlReader> all = root.elements();
    for (const YamlReader& topology : all) {
        const auto flag = topology.find("cluster_default");
        if (!topology.find("tree") && !topology.find("block")) continue;
        if (!chosen) chosen = topology;
        if (!of_default && flag && small_letters(flag->text()) == "true") of_default = topology;
    }
    if (of_default) chosen = of_default;
    if (!chosen)
        throw root.error("there is no topology with a tree or with blocks",
                         "flat ones say nothing of the network");
    for (const YamlReader& topology : all) {
        if (topology.where() != chosen->where())
            left_out.push_back(
                fmt::format("{} (line {})", shown(topology.at("topology").text()), topology.line()));
    }
    if (chosen->find("tree") && chosen->find("block"))
        throw chosen->error("a topology is a tree or of blocks, not both");
    const bool tree = chosen->find("tree").has_value();
    const YamlReader body = chosen->at(tree ? "tree" : "block");
    std::vector<SlurmEntry> entries;
    for (const YamlReader& item : body.at(tree ? "switches" : "blocks").elements()) {
        SlurmEntry entry;
        entry.where = item.where();
        entry.block = !tree;
        entry.name = item.at(tree ? "switch" : "block").text();
        const auto list = [&](std::string_view key) {
            const auto value = item.find(key);
            return value && !value->is_null() ? value->text() : std::string();
        };
        entry.nodes = list("nodes");
        if (tree) entry.switches = list("children");
        for (const auto& [key, value] : item.members()) {
            if (key != "switch" && key != "block" && key != "nodes" && key != "children")
                left_out.push_back(fmt::format("{} (line {})", shown(key), value.line()));
        }
        entries.push_back(std::move(entry));
    }
    if (const auto sizes = body.find("block_sizes"))
        left_out.push_back(fmt::format("block_sizes (line {})", sizes->line()));
    FabricTree result_tree = slurm_tree(entries, result);
    result.topology.name = shown(chosen->at("topology").text());
    warn_left_out(left_out, "other topologies and values without a counterpart", result);
    return result_tree;
}

}  // namespace baton::topologies
