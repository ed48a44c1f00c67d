#include <baton/synth/host_symmetry.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace baton::synth {
namespace {

using topologies::Link;
using topologies::Node;
using topologies::Topology;

using Color = std::uint64_t;

Color mixed(Color h, std::uint64_t value) {
    h ^= value + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 29);
}

Color figures(const Node& node, bool member) {
    Color h = mixed(static_cast<Color>(node.type), member ? 1 : 0);
    h = mixed(h, static_cast<std::uint64_t>(node.latency.picoseconds));
    h = mixed(h, static_cast<std::uint64_t>(node.message_overhead.picoseconds));
    h = mixed(h, static_cast<std::uint64_t>(node.buffer.count));
    h = mixed(h, (node.multicast ? 2U : 0U) | (node.reduce ? 1U : 0U));
    return mixed(h, static_cast<std::uint64_t>(node.reduce_rate.bytes_per_second));
}

Color figures(const Link& link) {
    Color h = mixed(static_cast<Color>(link.kind), static_cast<std::uint64_t>(link.count));
    h = mixed(h, static_cast<std::uint64_t>(link.bandwidth.bytes_per_second));
    h = mixed(h, static_cast<std::uint64_t>(link.goodput.bytes_per_second));
    h = mixed(h, static_cast<std::uint64_t>(link.latency.picoseconds));
    return mixed(h, static_cast<std::uint64_t>(link.mtu));
}

/// Color refinement of all nodes. Colors are hashes, so what follows from them is checked.
class Refinement {
public:
    Refinement(const Topology& topology, const std::vector<char>& member, bool own_fabric)
        : topology_(topology) {
        for (const Link& link : topology.links) link_color_.push_back(figures(link));
        for (std::size_t l = 0; l < topology.limits.size(); ++l)
            for (const int link : topology.limits[l].links)
                link_color_[at(link)] =
                    mixed(link_color_[at(link)],
                          static_cast<std::uint64_t>(topology.limits[l].bandwidth.bytes_per_second));
        for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
            Color color = figures(topology.nodes[n], member[n] != 0);
            fixed_.push_back(own_fabric && topology.nodes[n].host.empty());
            if (fixed_.back()) color = mixed(color, n + 1);
            colors_.push_back(color);
        }
    }

    const std::vector<Color>& run() {
        constexpr int kMostRounds = 16;
        std::size_t known = count();
        for (int round = 0; round < kMostRounds; ++round) {
            refine();
            const std::size_t now = count();
            if (now == known) break;
            known = now;
        }
        return colors_;
    }

private:
    std::size_t count() const {
        std::vector<Color> sorted = colors_;
        std::sort(sorted.begin(), sorted.end());
        return static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    }
    void refine() {
        std::vector<Color> next(colors_.size());
        for (std::size_t n = 0; n < colors_.size(); ++n) {
            // Sums do not depend on the order of links.
            Color out = 0, in = 0;
            if (!fixed_[n]) {
                for (const int link : topology_.out_links[n])
                    out += mixed(link_color_[at(link)], colors_[at(topology_.links[at(link)].to)]);
                for (const int link : topology_.in_links[n])
                    in += mixed(link_color_[at(link)] + 1, colors_[at(topology_.links[at(link)].from)]);
            }
            next[n] = mixed(mixed(colors_[n], out), in);
        }
        colors_ = std::move(next);
    }

    const Topology& topology_;
    std::vector<Color> link_color_, colors_;
    std::vector<char> fixed_;
};

/// The nodes of each host by color, then in file order: the correspondence that is checked.
std::vector<std::vector<int>> lined_up(const Topology& topology, const std::vector<int>& host_of,
                                       std::size_t hosts, const std::vector<Color>& colors) {
    std::vector<std::vector<int>> nodes(hosts);
    for (std::size_t n = 0; n < topology.nodes.size(); ++n)
        if (host_of[n] >= 0) nodes[at(host_of[n])].push_back(static_cast<int>(n));
    for (auto& own : nodes)
        std::stable_sort(own.begin(), own.end(), [&](int a, int b) { return colors[at(a)] < colors[at(b)]; });
    return nodes;
}

/// Whether node i of host a stands for node i of host b: the same figures and the same links, to each other
/// and (unless `inside_only`) to the fabric.
class Comparison {
public:
    Comparison(const Topology& topology, const std::vector<std::vector<int>>& nodes,
               const std::vector<Color>& colors, bool inside_only)
        : topology_(topology), nodes_(nodes), colors_(colors), inside_only_(inside_only) {
        place_.assign(topology.nodes.size(), -1);
        host_.assign(topology.nodes.size(), -1);
        for (std::size_t h = 0; h < nodes.size(); ++h)
            for (std::size_t i = 0; i < nodes[h].size(); ++i) {
                place_[at(nodes[h][i])] = static_cast<int>(i);
                host_[at(nodes[h][i])] = static_cast<int>(h);
            }
    }

    bool same(int a, int b) const {
        const auto &left = nodes_[at(a)], &right = nodes_[at(b)];
        if (left.size() != right.size()) return false;
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (colors_[at(left[i])] != colors_[at(right[i])]) return false;
            if (links(left[i], a) != links(right[i], b)) return false;
        }
        return true;
    }

private:
    using Key = std::tuple<int, int, Color>;  // where it leads, whether that is the fabric, figures
    std::vector<Key> links(int node, int host) const {
        std::vector<Key> list;
        for (const int l : topology_.out_links[at(node)]) {
            const Link& link = topology_.links[at(l)];
            const bool inside = host_[at(link.to)] == host;
            if (!inside && inside_only_)
                list.emplace_back(-1, 1, figures(link));
            else if (inside)
                list.emplace_back(place_[at(link.to)], 0, figures(link));
            else
                list.emplace_back(link.to, 1, figures(link));
        }
        for (const int l : topology_.in_links[at(node)]) {
            const Link& link = topology_.links[at(l)];
            if (host_[at(link.from)] == host) continue;
            list.emplace_back(inside_only_ ? -1 : link.from, 2, figures(link));
        }
        std::sort(list.begin(), list.end());
        return list;
    }

    const Topology& topology_;
    const std::vector<std::vector<int>>& nodes_;
    const std::vector<Color>& colors_;
    bool inside_only_;
    std::vector<int> place_, host_;
};

std::vector<int> classes(const Comparison& comparison, std::size_t hosts) {
    std::vector<int> class_of(hosts, -1), first;
    for (std::size_t h = 0; h < hosts; ++h) {
        for (std::size_t c = 0; c < first.size() && class_of[h] < 0; ++c)
            if (comparison.same(first[c], static_cast<int>(h))) class_of[h] = static_cast<int>(c);
        if (class_of[h] >= 0) continue;
        class_of[h] = static_cast<int>(first.size());
        first.push_back(static_cast<int>(h));
        if (first.size() > 64) {  // hosts of many kinds: each by itself
            for (std::size_t i = 0; i < hosts; ++i) class_of[i] = static_cast<int>(i);
            return class_of;
        }
    }
    return class_of;
}

}  // namespace

int HostRails::classes() const {
    return class_of.empty() ? 0 : *std::max_element(class_of.begin(), class_of.end()) + 1;
}

HostRails host_rails(const Topology& topology, const std::vector<int>& members) {
    HostRails rails;
    std::vector<char> member(topology.nodes.size(), 0);
    std::unordered_map<std::string, int> names;
    for (const int rank : members) {
        const int node = topology.rank_nodes[at(rank)];
        member[at(node)] = 1;
        const std::string& name = topology.nodes[at(node)].host;
        if (name.empty()) throw input_error(fmt::format("rank {} belongs to no host", rank), topology.name);
        const auto [found, fresh] = names.try_emplace(name, static_cast<int>(rails.ranks.size()));
        if (fresh) rails.ranks.emplace_back();
        rails.ranks[at(found->second)].push_back(rank);
    }
    if (rails.ranks.size() < 2) throw input_error("all ranks are on one host", topology.name);
    for (const auto& host : rails.ranks)
        if (host.size() != rails.ranks.front().size())
            throw input_error(fmt::format("hosts have unequal numbers of ranks: one has {}, another {}",
                                          rails.ranks.front().size(), host.size()),
                              topology.name);
    if (rails.locals() < 2) throw input_error("every rank is on a host of its own", topology.name);

    std::vector<int> host_of(topology.nodes.size(), -1);
    for (std::size_t n = 0; n < topology.nodes.size(); ++n)
        if (const auto found = names.find(topology.nodes[n].host); found != names.end())
            host_of[n] = found->second;
    for (const bool own_fabric : {true, false}) {
        const std::vector<Color> colors = Refinement(topology, member, own_fabric).run();
        const auto nodes = lined_up(topology, host_of, rails.ranks.size(), colors);
        rails.class_of = classes(Comparison(topology, nodes, colors, !own_fabric), rails.ranks.size());
        if (rails.classes() > 1 && own_fabric) continue;
        if (rails.classes() > 1) return rails;  // ranks in their own order
        std::vector<int> rank_of(topology.nodes.size(), -1);
        for (const int rank : members) rank_of[at(topology.rank_nodes[at(rank)])] = rank;
        // The first host keeps its order; the others follow it by place.
        std::vector<std::size_t> place_of_local(at(rails.locals()));
        for (std::size_t i = 0; i < nodes[0].size(); ++i)
            for (int l = 0; l < rails.locals(); ++l)
                if (rank_of[at(nodes[0][i])] == rails.ranks[0][at(l)]) place_of_local[at(l)] = i;
        for (std::size_t h = 1; h < rails.ranks.size(); ++h)
            for (int l = 0; l < rails.locals(); ++l)
                rails.ranks[h][at(l)] = rank_of[at(nodes[h][place_of_local[at(l)]])];
        return rails;
    }
    return rails;
}

Topology host_alone(const Topology& topology, const std::vector<int>& ranks) {
    Topology alone;
    alone.machine = topology.machine;
    const std::string& host = topology.nodes[at(topology.rank_nodes[at(ranks.front())])].host;
    alone.name = host;
    std::vector<int> number(topology.nodes.size(), -1);
    for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
        if (topology.nodes[n].host != host) continue;
        number[n] = static_cast<int>(alone.nodes.size());
        alone.nodes.push_back(topology.nodes[n]);
        alone.nodes.back().rank = -1;
    }
    for (std::size_t i = 0; i < ranks.size(); ++i)
        alone.nodes[at(number[at(topology.rank_nodes[at(ranks[i])])])].rank = static_cast<int>(i);
    std::vector<int> link_number(topology.links.size(), -1);
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const Link& link = topology.links[l];
        if (number[at(link.from)] < 0 || number[at(link.to)] < 0) continue;
        link_number[l] = static_cast<int>(alone.links.size());
        alone.links.push_back(link);
        alone.links.back().from = number[at(link.from)];
        alone.links.back().to = number[at(link.to)];
    }
    for (const topologies::Limit& limit : topology.limits) {
        topologies::Limit kept{limit.id, {}, limit.bandwidth};
        for (const int link : limit.links)
            if (link_number[at(link)] >= 0) kept.links.push_back(link_number[at(link)]);
        if (!kept.links.empty()) alone.limits.push_back(std::move(kept));
    }
    alone.finish(alone.name);
    return alone;
}

}  // namespace baton::synth
