#include <baton/topologies/inspect.hpp>

#include <baton/base/index.hpp>
#include <baton/topologies/routes.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

namespace baton::topologies {
namespace {

constexpr std::size_t kMostWarnings = 32;
constexpr int kMostCountedRanks = 128;

std::string attribute(const Node& node, const char* name) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? std::string() : found->second;
}

using Cable = std::tuple<int, int, LinkKind, int, std::int64_t, std::int64_t, std::int64_t>;

Cable cable(const Link& l, int from, int to) {
    return {from,
            to,
            l.kind,
            l.count,
            l.bandwidth.bytes_per_second,
            l.goodput.bytes_per_second,
            l.latency.picoseconds};
}

std::vector<LinkGroup> group_links(const Topology& topology) {
    std::vector<LinkGroup> groups;
    std::map<std::tuple<LinkKind, NodeType, NodeType, int, std::int64_t, std::int64_t, std::int64_t>,
             std::size_t>
        places;
    std::vector<Cable> cables;
    for (const Link& link : topology.links) cables.push_back(cable(link, link.from, link.to));
    std::sort(cables.begin(), cables.end());
    for (const Link& link : topology.links) {
        const NodeType a = topology.nodes[at(link.from)].type, b = topology.nodes[at(link.to)].type;
        const auto [low, high] = std::minmax(a, b);
        const auto key = std::tuple(link.kind, low, high, link.count, link.bandwidth.bytes_per_second,
                                    link.goodput.bytes_per_second, link.latency.picoseconds);
        const auto [place, fresh] = places.emplace(key, groups.size());
        if (fresh) {
            groups.push_back({link.kind, low, high, 0, 0, link.count, link.bandwidth, link.goodput,
                              link.latency, link.provenance.source, link.provenance.assumed});
        }
        LinkGroup& group = groups[place->second];
        ++group.links;
        if (!std::binary_search(cables.begin(), cables.end(), cable(link, link.to, link.from)))
            ++group.oneway;
    }
    return groups;
}

// Units by kind on links out of a node, or into it.
std::map<std::string, int> units(const Topology& topology, const std::vector<int>& links) {
    std::map<std::string, int> result;
    for (const int link : links)
        result[std::string(to_string(topology.links[at(link)].kind))] += topology.links[at(link)].count;
    return result;
}

Rate total(const Topology& topology, const std::vector<int>& links) {
    Rate sum{};
    // 1e18 B/s a link at most: the sum saturates.
    for (const int link : links) {
        if (__builtin_add_overflow(sum.bytes_per_second, topology.links[at(link)].capacity().bytes_per_second,
                                   &sum.bytes_per_second))
            return {INT64_MAX};
    }
    return sum;
}

// What GPUs of one kind must have in common: units and rate of their device links, by kind and direction.
std::string profile(const Topology& topology, int node) {
    std::map<std::string, std::pair<int, Rate>> parts;
    for (const bool out : {true, false}) {
        for (const int index : (out ? topology.out_links : topology.in_links)[at(node)]) {
            const Link& link = topology.links[at(index)];
            if (!stripes(link.kind)) continue;
            auto& [count, rate] = parts[fmt::format("{} {}", to_string(link.kind), out ? "out" : "in")];
            count += link.count;
            rate.bytes_per_second += link.capacity().bytes_per_second / 16;  // sixteenths: never overflows
        }
    }
    std::string text;
    for (const auto& [name, part] : parts) {
        const auto rate = static_cast<std::int64_t>(
            std::min<__int128_t>(static_cast<__int128_t>(part.second.bytes_per_second) * 16, INT64_MAX));
        text +=
            fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", part.first, name, to_string(Rate{rate}));
    }
    return text.empty() ? "no device links" : text;
}

// A few GPUs that differ from all others of their model: a lost link, a lowered rate.
void warn_of_odd_gpus(const Topology& topology, std::vector<std::string>& warnings) {
    std::map<std::string, std::vector<int>> models;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        if (node.type == NodeType::gpu)
            models[attribute(node, "arch") + "|" + attribute(node, "model")].push_back(static_cast<int>(i));
    }
    for (const auto& [model, gpus] : models) {
        std::map<std::string, std::vector<int>> profiles;
        for (const int gpu : gpus) profiles[profile(topology, gpu)].push_back(gpu);
        const auto usual =
            std::max_element(profiles.begin(), profiles.end(),
                             [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
        // The rim of a mesh differs from its middle by design: only a few odd ones are suspicious.
        if (gpus.size() - usual->second.size() > std::max<std::size_t>(2, gpus.size() / 4) ||
            usual->second.size() < 2)
            continue;
        for (const auto& [text, odd] : profiles) {
            if (text == usual->first) continue;
            for (const int gpu : odd) {
                warnings.push_back(fmt::format("{} differs from its {} peers: {}; they have {}",
                                               topology.nodes[at(gpu)].id, usual->second.size(), text,
                                               usual->first));
            }
        }
    }
}

// Raw rate of a PCIe slot by GPU architecture; a lower one is a slot that trained down or a guessed figure.
void warn_of_slow_slots(const Topology& topology, std::vector<std::string>& warnings) {
    constexpr std::pair<const char*, std::int64_t> kSlots[] = {{"sm_70", 15'700'000'000},
                                                               {"sm_80", 31'500'000'000},
                                                               {"sm_90", 63'000'000'000},
                                                               {"gfx90a", 31'500'000'000},
                                                               {"gfx942", 63'000'000'000}};
    for (const Link& link : topology.links) {
        if (link.kind != LinkKind::pcie) continue;
        for (const auto& [arch, rate] : kSlots) {
            if (attribute(topology.nodes[at(link.from)], "arch") != arch ||
                link.bandwidth.bytes_per_second * link.count >= rate)
                continue;
            warnings.push_back(
                fmt::format("{}: {} of PCIe is below the {} that {} devices have; a slot that trained down, "
                            "or a virtual machine that hides its speed?",
                            link.id, to_string(Rate{link.bandwidth.bytes_per_second * link.count}),
                            to_string(Rate{rate}), arch));
        }
    }
}

void warn_of_nodes(const Topology& topology, std::vector<std::string>& warnings) {
    std::map<std::string, std::vector<std::string>> said;
    const auto is_fabric = [&](int link) {
        const LinkKind kind = topology.links[at(link)].kind;
        return !stripes(kind) && kind != LinkKind::upi;
    };
    const auto on_fabric = [&](std::size_t node) {
        return std::any_of(topology.out_links[node].begin(), topology.out_links[node].end(), is_fabric);
    };
    // Hosts by themselves have NICs without a cable; where one NIC has one, the others should too.
    bool fabric = false;
    for (std::size_t i = 0; i < topology.nodes.size(); ++i)
        fabric = fabric || (topology.nodes[i].type == NodeType::nic && on_fabric(i));
    for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
        const Node& node = topology.nodes[i];
        if (node.type == NodeType::gpu && node.rank < 0)
            said["has no rank and takes no part"].push_back(node.id);
        if (attribute(node, "numa") == "-1")
            said["has numa -1: its socket is unknown, and only its links tell what is near"].push_back(
                node.id);
        if (topology.out_links[i].empty() && topology.in_links[i].empty() && topology.nodes.size() > 1)
            said["has no link"].push_back(node.id);
        if (node.type == NodeType::nic && fabric && !on_fabric(i)) {
            said["has no link to the fabric"].push_back(node.id);
        }
    }
    for (const auto& [what, ids] : said) {
        std::string list = ids.front();
        for (std::size_t i = 1; i < ids.size() && i < 4; ++i) list += ", " + ids[i];
        if (ids.size() > 4) list += fmt::format(" and {} more", ids.size() - 4);
        warnings.push_back(fmt::format("{} {}", list, what));
    }
}

// Ranks that are not reached from rank 0, or do not reach it, when every node may relay.
std::vector<int> lost_ranks(const Topology& topology, bool backward) {
    std::vector<bool> seen(topology.nodes.size(), false);
    std::queue<int> queue;
    queue.push(topology.rank_nodes.front());
    seen[at(topology.rank_nodes.front())] = true;
    while (!queue.empty()) {
        const int node = queue.front();
        queue.pop();
        for (const int index : (backward ? topology.in_links : topology.out_links)[at(node)]) {
            const Link& link = topology.links[at(index)];
            const int next = backward ? link.from : link.to;
            if (!seen[at(next)]) queue.push(next);
            seen[at(next)] = true;
        }
    }
    std::vector<int> lost;
    for (int rank = 0; rank < topology.rank_count(); ++rank) {
        if (!seen[at(topology.rank_nodes[at(rank)])]) lost.push_back(rank);
    }
    return lost;
}

int count_pairs_without_route(const Topology& topology, const Routes& routes) {
    if (topology.rank_count() > kMostCountedRanks) return -1;
    int without = 0;
    for (int a = 0; a < topology.rank_count(); ++a) {
        for (int b = 0; b < topology.rank_count(); ++b) without += routes.between(a, b).reachable ? 0 : 1;
    }
    return without;
}

}  // namespace

Summary summarize(const Topology& topology) {
    Summary summary;
    summary.name = topology.name;
    summary.hash = topology.hash();
    summary.ranks = topology.rank_count();
    std::set<std::string> hosts;
    for (const Node& node : topology.nodes) {
        if (!node.host.empty()) hosts.insert(node.host);
    }
    summary.hosts = static_cast<int>(hosts.size());
    for (const Node& node : topology.nodes) ++summary.nodes[std::string(to_string(node.type))];
    summary.links = static_cast<int>(topology.links.size());
    summary.groups = group_links(topology);
    const Routes routes(topology);
    for (int rank = 0; rank < summary.ranks; ++rank) {
        const int node = topology.rank_nodes[at(rank)];
        RankSummary one{rank,
                        topology.nodes[at(node)].id,
                        topology.nodes[at(node)].host,
                        units(topology, topology.out_links[at(node)]),
                        total(topology, topology.out_links[at(node)]),
                        total(topology, topology.in_links[at(node)]),
                        {}};
        for (const int nic : routes.nics(rank)) one.nics.push_back(topology.nodes[at(nic)].id);
        summary.by_rank.push_back(std::move(one));
    }
    summary.pairs_without_route = count_pairs_without_route(topology, routes);
    summary.warnings = warnings(topology);
    return summary;
}

std::vector<std::string> warnings(const Topology& topology) {
    std::vector<std::string> all;
    warn_of_odd_gpus(topology, all);
    warn_of_slow_slots(topology, all);
    warn_of_nodes(topology, all);
    const Routes routes(topology);
    all.insert(all.end(), routes.warnings().begin(), routes.warnings().end());
    if (all.size() > kMostWarnings) {
        const std::size_t rest = all.size() - kMostWarnings + 1;
        all.resize(kMostWarnings - 1);
        all.push_back(fmt::format("and {} more warnings", rest));
    }
    return all;
}

std::vector<std::string> problems(const Topology& topology) {
    std::vector<std::string> all;
    if (topology.rank_count() == 0) return {"no node has a rank, so there is nobody to communicate"};
    for (const bool backward : {false, true}) {
        const std::vector<int> lost = lost_ranks(topology, backward);
        if (lost.empty()) continue;
        const std::string other = topology.nodes[at(topology.rank_nodes[at(lost.front())])].id;
        const std::string first = topology.nodes[at(topology.rank_nodes.front())].id;
        const std::string others =
            lost.size() > 1 ? fmt::format(" (and {} more ranks)", lost.size() - 1) : "";
        all.push_back(backward ? fmt::format("rank {} ({}){} cannot reach rank 0 ({}) by any path",
                                             lost.front(), other, others, first)
                               : fmt::format("rank 0 ({}) cannot reach rank {} ({}){} by any path", first,
                                             lost.front(), other, others));
    }
    return all;
}

}  // namespace baton::topologies
