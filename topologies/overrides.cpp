#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/load.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

namespace baton::topologies {
namespace {

std::vector<int> matching_nodes(const Topology& topology, std::string_view pattern) {
    if (const int exact = topology.node_index(pattern); exact >= 0) return {exact};
    std::vector<int> found;
    if (pattern.find('*') == std::string_view::npos) return found;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        if (glob_match(pattern, topology.nodes[i].id)) found.push_back(static_cast<int>(i));
    }
    return found;
}

Error no_match(const Topology& topology, const std::string& pattern) {
    std::vector<std::string> ids;
    if (pattern.find('>') == std::string::npos) {
        for (const Node& node : topology.nodes) ids.push_back(node.id);
    } else {
        for (const Link& link : topology.links) ids.push_back(link.id);
    }
    return input_error(
        fmt::format("no node or link matches '{}'{}", pattern.substr(0, 80), near_names(pattern, ids)),
        topology.name, "write a node id, a link id (a>b), a<>b for both directions, or a pattern with *");
}

// Drops nodes and links, renumbers ranks, and keeps limits on what is left.
void remove(Topology& topology, const std::set<int>& dead_nodes, std::set<int> dead_links) {
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link& link = topology.links[i];
        if (dead_nodes.count(link.from) != 0 || dead_nodes.count(link.to) != 0)
            dead_links.insert(static_cast<int>(i));
    }
    std::vector<int> ranks;
    for (const int node : topology.rank_nodes) {
        if (dead_nodes.count(node) == 0) ranks.push_back(node);
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) topology.nodes[at(ranks[r])].rank = static_cast<int>(r);
    std::vector<int> new_node(topology.nodes.size(), -1), new_link(topology.links.size(), -1);
    std::vector<Node> nodes;
    std::vector<Link> links;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        if (dead_nodes.count(static_cast<int>(i)) != 0) continue;
        new_node[i] = static_cast<int>(nodes.size());
        nodes.push_back(std::move(topology.nodes[i]));
    }
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        if (dead_links.count(static_cast<int>(i)) != 0) continue;
        new_link[i] = static_cast<int>(links.size());
        links.push_back(std::move(topology.links[i]));
        links.back().from = new_node[at(links.back().from)];
        links.back().to = new_node[at(links.back().to)];
    }
    topology.nodes = std::move(nodes);
    topology.links = std::move(links);
    std::vector<Limit> limits;
    for (Limit& limit : topology.limits) {
        std::vector<int> kept;
        for (const int link : limit.links) {
            if (new_link[at(link)] >= 0) kept.push_back(new_link[at(link)]);
        }
        limit.links = std::move(kept);
        if (!limit.links.empty()) limits.push_back(std::move(limit));
    }
    topology.limits = std::move(limits);
}

// "ID*2": the part before the last star and the number after it; 0 when there is none.
std::pair<std::string, int> split_units(const std::string& pattern) {
    const std::size_t star = pattern.rfind('*');
    if (star == std::string::npos || star == 0 || star + 1 == pattern.size()) return {pattern, 0};
    int units = 0;
    const auto [end, status] =
        std::from_chars(pattern.data() + star + 1, pattern.data() + pattern.size(), units);
    if (status != std::errc() || end != pattern.data() + pattern.size() || units < 1) return {pattern, 0};
    return {pattern.substr(0, star), units};
}

// Takes units from the links between each pair of nodes, the last of them first.
void remove_units(Topology& topology, const std::vector<int>& found, int units, const std::string& pattern) {
    std::map<std::pair<int, int>, std::vector<int>> between;
    for (const int link : found)
        between[{topology.links[at(link)].from, topology.links[at(link)].to}].push_back(link);
    std::set<int> dead;
    for (const auto& [ends, parallel] : between) {
        int left = units;
        std::int64_t all = 0;
        for (const int link : parallel) all += topology.links[at(link)].count;
        if (all < units) {
            throw input_error(fmt::format("'{}' asks for {} units, but '{}' has {}", pattern.substr(0, 80),
                                          units, topology.links[at(parallel.front())].id, all),
                              topology.name);
        }
        for (auto link = parallel.rbegin(); link != parallel.rend() && left > 0; ++link) {
            int& count = topology.links[at(*link)].count;
            const int taken = std::min(left, count);
            left -= taken;
            if (taken == count)
                dead.insert(*link);
            else
                count -= taken;
        }
    }
    remove(topology, {}, dead);
}

}  // namespace

std::vector<int> matching_links(const Topology& topology, std::string_view pattern) {
    if (const int exact = topology.link_index(pattern); exact >= 0) return {exact};
    std::vector<int> found;
    const auto end_matches = [&](std::string_view part, int node) {
        const std::string& id = topology.nodes[at(node)].id;
        return part.find('*') == std::string_view::npos ? part == id : glob_match(part, id);
    };
    const std::size_t both = pattern.find("<>");
    const std::size_t one = both == std::string_view::npos ? pattern.find('>') : std::string_view::npos;
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link& link = topology.links[i];
        bool match = false;
        if (both != std::string_view::npos) {
            const std::string_view a = pattern.substr(0, both), b = pattern.substr(both + 2);
            match = (end_matches(a, link.from) && end_matches(b, link.to)) ||
                    (end_matches(a, link.to) && end_matches(b, link.from));
        } else if (one != std::string_view::npos && pattern.find('#') == std::string_view::npos) {
            match = end_matches(pattern.substr(0, one), link.from) &&
                    end_matches(pattern.substr(one + 1), link.to);
        } else if (pattern.find('*') != std::string_view::npos) {
            match = glob_match(pattern, link.id);
        }
        if (match) found.push_back(static_cast<int>(i));
    }
    return found;
}

void fail(Topology& topology, const std::string& pattern) {
    const auto [id, units] = split_units(pattern);
    if (units > 0) {
        const std::vector<int> found = matching_links(topology, id);
        if (!found.empty()) {
            remove_units(topology, found, units, pattern);
            topology.finish(topology.name);
            return;
        }
        if (!matching_nodes(topology, id).empty()) {
            throw input_error(fmt::format("'{}' is a node; only links have units", id.substr(0, 80)),
                              topology.name, "write the id alone to fail the node");
        }
    }
    const std::vector<int> nodes = matching_nodes(topology, pattern);
    const std::vector<int> links = nodes.empty() ? matching_links(topology, pattern) : std::vector<int>{};
    if (nodes.empty() && links.empty()) throw no_match(topology, pattern);
    remove(topology, {nodes.begin(), nodes.end()}, {links.begin(), links.end()});
    topology.finish(topology.name);
}

void degrade(Topology& topology, const std::string& pattern, double factor) {
    if (!(factor > 0 && factor <= 1)) {
        throw input_error(fmt::format("the factor {} is not within (0, 1]", factor), topology.name,
                          "use fail to take a link away");
    }
    std::vector<int> links;
    const std::vector<int> nodes = matching_nodes(topology, pattern);
    for (const int node : nodes) {
        links.insert(links.end(), topology.out_links[at(node)].begin(), topology.out_links[at(node)].end());
        links.insert(links.end(), topology.in_links[at(node)].begin(), topology.in_links[at(node)].end());
    }
    if (nodes.empty()) links = matching_links(topology, pattern);
    if (nodes.empty() && links.empty()) throw no_match(topology, pattern);
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    for (const int link : links) {
        std::int64_t& rate = topology.links[at(link)].goodput.bytes_per_second;
        // long double holds 63 bits, so exact factors such as 0.5 stay exact.
        rate = std::max<std::int64_t>(
            1, static_cast<std::int64_t>(
                   std::floor(static_cast<long double>(rate) * static_cast<long double>(factor))));
    }
    topology.finish(topology.name);
}

namespace {

template <class Do>
void at_place(const JsonReader& place, const ReadContext& context, const Topology& topology, Do work) {
    // Each change goes over the whole machine once or twice.
    context.state->spend_work(place,
                              8 * static_cast<std::int64_t>(topology.nodes.size() + topology.links.size()));
    try {
        work();
    } catch (const Error& error) {
        throw place.error(error.message(), error.remedy());
    }
}

void read_fail(const JsonReader& value, const ReadContext& context, Topology& topology) {
    if (value.is_array()) {
        for (const JsonReader& element : value.elements()) {
            at_place(element, context, topology, [&] { fail(topology, element.string()); });
        }
        return;
    }
    at_place(value, context, topology, [&] { fail(topology, value.string()); });
}

// {"PATTERN": factor, ...}.
void read_degrade(const JsonReader& value, const ReadContext& context, Topology& topology) {
    for (const auto& member : value.members()) {
        const double by = member.second.number();
        at_place(member.second, context, topology, [&] { degrade(topology, member.first, by); });
    }
}

// {"nodes": [...], "links": [...]}.
void read_add(const JsonReader& value, const ReadContext& context, Topology& topology) {
    value.only_keys({"nodes", "links"});
    if (const auto nodes = value.find("nodes")) {
        read_nodes(*nodes, "", context, topology);
        topology.finish(value.where());
    }
    if (const auto links = value.find("links")) read_links(*links, context, topology);
    topology.finish(value.where());
}

}  // namespace

void read_overrides(const JsonReader& overrides, const ReadContext& context, Topology& topology) {
    if (overrides.is_array()) {
        for (const JsonReader& element : overrides.elements()) {
            if (element.is_array()) throw element.error("expected an object with fail, degrade or add");
            read_overrides(element, context, topology);
        }
        return;
    }
    overrides.only_keys({"fail", "degrade", "add"});
    for (const auto& [key, value] : overrides.members()) {
        if (key == "fail")
            read_fail(value, context, topology);
        else if (key == "degrade")
            read_degrade(value, context, topology);
        else
            read_add(value, context, topology);
    }
}

}  // namespace baton::topologies
