#include <baton/topologies/import/network_report.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/machine_tree.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace baton::topologies {
namespace {

constexpr std::size_t kMostGroups = 24;

// Ends of a link as they are counted together: smaller node type first.
using LinkFigures = std::tuple<LinkKind, NodeType, NodeType, int, std::int64_t, std::int64_t, double>;

std::string end_name(NodeType type) { return type == NodeType::gpu ? "rank" : std::string(to_string(type)); }

std::string describe_figures(const LinkFigures& figures) {
    const auto& [kind, from, to, count, rate, latency, loss] = figures;
    std::string text =
        fmt::format("{} to {}: ", end_name(from), end_name(to)) +
        (count == 1 ? std::string() : fmt::format("{} units of ", count)) +
        fmt::format("{}, {}, {}", to_string(Rate{rate}), to_string(Time{latency}), to_string(kind));
    if (loss > 0) text += fmt::format(", loss {:g}", loss);
    return text;
}

void report_links(const Topology& topology, Imported& result) {
    struct Sum {
        std::int64_t directed = 0;
        std::map<std::pair<int, int>, int>
            balance;  // links from the lower to the higher node less those back
    };
    std::map<LinkFigures, Sum> sums;
    for (const Link& link : topology.links) {
        const NodeType from = topology.nodes[at(link.from)].type, to = topology.nodes[at(link.to)].type;
        Sum& sum = sums[{link.kind, std::min(from, to), std::max(from, to), link.count,
                         link.bandwidth.bytes_per_second, link.latency.picoseconds, link.loss}];
        ++sum.directed;
        sum.balance[std::minmax(link.from, link.to)] += link.from < link.to ? 1 : -1;
    }
    std::size_t shown_groups = 0;
    for (const auto& [figures, sum] : sums) {
        if (++shown_groups > kMostGroups) {
            result.found.push_back(fmt::format(
                "links with {} more sets of figures; the topology file has all", sums.size() - kMostGroups));
            break;
        }
        const bool both = std::all_of(sum.balance.begin(), sum.balance.end(),
                                      [](const auto& entry) { return entry.second == 0; });
        const std::size_t links = at(sum.directed) / (both ? 2 : 1);
        result.found.push_back(counted(links, both ? "two-way link" : "one-way link") + ", " +
                               describe_figures(figures));
    }
}

void report_nodes(const Topology& topology, Imported& result) {
    std::map<NodeType, std::size_t> others;
    std::set<std::string> hosts;
    std::size_t in_switches = 0;
    for (const Node& node : topology.nodes) {
        if (node.rank < 0) ++others[node.type];
        if (node.rank >= 0 && !node.host.empty()) hosts.insert(node.host);
        in_switches += node.reduce;
    }
    std::string text = counted(at(topology.rank_count()), "rank");
    if (!hosts.empty()) text += fmt::format(" in {}", counted(hosts.size(), "host"));
    for (const auto& [type, count] : others)
        text += ", " + (type == NodeType::switch_node ? counted(count, "switch", "switches")
                                                      : counted(count, std::string(to_string(type))));
    result.found.push_back(text);
    if (in_switches > 0)
        result.found.push_back(fmt::format("{} that can reduce", counted(in_switches, "switch", "switches")));
}

int component_root(std::vector<int>& parent, int node) {
    while (parent[at(node)] != node) node = parent[at(node)] = parent[at(parent[at(node)])];
    return node;
}

void warn_if_apart(const Topology& topology, Imported& result) {
    std::vector<int> parent(topology.nodes.size());
    std::iota(parent.begin(), parent.end(), 0);
    for (const Link& link : topology.links)
        parent[at(component_root(parent, link.from))] = component_root(parent, link.to);
    std::map<int, int> ranks;
    for (const int node : topology.rank_nodes) ++ranks[component_root(parent, node)];
    if (ranks.size() > 1)
        result.warnings.push_back(fmt::format(
            "the ranks are in {} parts that no link joins; collectives over all of them are not possible",
            ranks.size()));
}

}  // namespace

void finish_network(const ImportSource& source, Imported& result) {
    if (result.topology.name.empty()) result.topology.name = source.name;
    result.topology.finish(source.name);
    report_nodes(result.topology, result);
    report_links(result.topology, result);
    warn_if_apart(result.topology, result);
}

std::optional<Rate> rate_of(double bytes_per_second) {
    if (!(bytes_per_second >= 1 && bytes_per_second <= 1e18)) return std::nullopt;
    return Rate{std::llround(bytes_per_second)};
}

std::optional<Time> latency_of(double seconds) {
    if (!(seconds >= 0 && seconds <= 1)) return std::nullopt;
    return Time{std::llround(seconds * 1e12)};
}

bool is_switch_name(std::string_view name) { return name.rfind("sw", 0) == 0; }

void check_size(double nodes, double directed_links, const std::string& where) {
    if (nodes > static_cast<double>(kMaxNodes))
        throw input_error(fmt::format("{:g} nodes; at most {} are accepted", nodes, kMaxNodes), where);
    if (directed_links > static_cast<double>(kMaxLinks))
        throw input_error(fmt::format("{:g} links; at most {} are accepted", directed_links, kMaxLinks),
                          where);
}

std::string id_text(std::string_view text) {
    std::string id;
    for (const char c : text.substr(0, 200)) {
        const bool plain = c > ' ' && c < 127 && std::string_view("*<>,").find(c) == std::string_view::npos;
        id += plain ? c : '_';
    }
    return id;
}

void warn_left_out(const std::vector<std::string>& keys, const std::string& why, Imported& result) {
    if (keys.empty()) return;
    std::string list;
    for (const std::string& key : keys) {
        if (list.size() > 400) {
            list += ", ...";
            break;
        }
        list += (list.empty() ? "" : ", ") + key;
    }
    result.warnings.push_back(fmt::format("left out, {}: {}", why, list));
}

}  // namespace baton::topologies
