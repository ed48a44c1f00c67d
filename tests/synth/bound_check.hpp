// An independent check of bounds: recomputes every witness from the topology alone, and searches all cuts of
// small machines.
#pragma once

#include <baton/synth/bound.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::test {

__extension__ using Wide = __int128;

namespace detail {

inline bool in(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
}

// What must leave a set of nodes for one group, told apart from the library's own count: by pairs of ranks.
inline std::int64_t demand(const topologies::Topology& topology, const ir::Collective& c,
                           const std::vector<char>& inside) {
    using Kind = ir::CollectiveKind;
    std::int64_t sum = 0;
    for (int g = 0; g < c.group_count(); ++g) {
        const int n = c.group_size(g);
        const auto is_in = [&](int p) {
            return inside[static_cast<std::size_t>(
                       topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, p))])] != 0;
        };
        // Which (source, destination) pairs of positions cross, and what they have in common.
        std::set<int> sources, destinations;
        std::int64_t pairs = 0;
        for (int s = 0; s < n; ++s) {
            for (int d = 0; d < n; ++d) {
                if (s == d || !is_in(s) || is_in(d)) continue;
                const bool asked = c.kind == Kind::broadcast || c.kind == Kind::scatter ? s == c.root
                                   : c.kind == Kind::gather || c.kind == Kind::reduce   ? d == c.root
                                   : c.kind == Kind::send_recv ? s == c.root && d == c.receiver(g)
                                                               : true;
                if (!asked) continue;
                ++pairs;
                sources.insert(s);
                destinations.insert(d);
            }
        }
        if (pairs == 0) continue;
        switch (c.kind) {
            case Kind::broadcast:
            case Kind::reduce:
            case Kind::all_reduce:
            case Kind::send_recv: sum += 1; break;
            case Kind::scatter:
            case Kind::reduce_scatter: sum += static_cast<std::int64_t>(destinations.size()); break;
            case Kind::gather:
            case Kind::all_gather: sum += static_cast<std::int64_t>(sources.size()); break;
            default: sum += pairs;
        }
    }
    return sum;
}

inline bool takes_part(const topologies::Topology& topology, const ir::Collective& c, int node) {
    const topologies::Node& n = topology.nodes[static_cast<std::size_t>(node)];
    return n.type != topologies::NodeType::gpu || (n.rank >= 0 && n.rank < c.ranks);
}

// Links that lead from one set of nodes to another.
inline std::vector<int> crossing(const topologies::Topology& topology, const ir::Collective& c,
                                 const std::vector<int>& part, bool out_of) {
    std::vector<int> links;
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const topologies::Link& link = topology.links[l];
        if (!takes_part(topology, c, link.from) || !takes_part(topology, c, link.to)) continue;
        const bool from = part[static_cast<std::size_t>(link.from)] != 0,
                   to = part[static_cast<std::size_t>(link.to)] != 0;
        if (out_of ? from && !to : !from && to) links.push_back(static_cast<int>(l));
    }
    return links;
}

// True when every link of `crossed` is counted itself or by a counted limit, and the sum is as claimed.
inline std::string check_capacity(const topologies::Topology& topology, const synth::BandwidthWitness& w,
                                  const std::vector<int>& crossed) {
    Wide sum = 0;
    std::set<int> counted(w.links.begin(), w.links.end());
    for (const int link : w.links)
        sum += topology.links[static_cast<std::size_t>(link)].capacity().bytes_per_second;
    for (const int limit : w.limits) {
        sum += topology.limits[static_cast<std::size_t>(limit)].bandwidth.bytes_per_second;
        for (const int link : topology.limits[static_cast<std::size_t>(limit)].links) counted.insert(link);
    }
    for (const int link : crossed) {
        if (!counted.count(link))
            return "a crossing link is not counted: " + topology.links[static_cast<std::size_t>(link)].id;
    }
    return sum == w.capacity ? "" : "the capacities do not sum to the claimed capacity";
}

// Lengths: the shortest ways of all pairs by Floyd and Warshall, against length times capacity.
inline std::string check_lengths(const topologies::Topology& topology, const ir::Collective& c,
                                 const synth::BandwidthWitness& w) {
    if (c.kind != ir::CollectiveKind::all_to_all) return "lengths for another collective";
    if (w.links.size() != w.link_lengths.size() || w.limits.size() != w.limit_lengths.size())
        return "links and lengths do not match";
    std::vector<Wide> length(topology.links.size(), 0);
    Wide offer = 0;
    for (std::size_t i = 0; i < w.links.size(); ++i) {
        const auto l = static_cast<std::size_t>(w.links[i]);
        if (w.link_lengths[i] < 0 || length[l] != 0) return "a length is negative or given twice";
        length[l] = w.link_lengths[i];
        offer += static_cast<Wide>(w.link_lengths[i]) * topology.links[l].capacity().bytes_per_second;
    }
    std::set<int> limits;
    for (std::size_t i = 0; i < w.limits.size(); ++i) {
        const topologies::Limit& limit = topology.limits[static_cast<std::size_t>(w.limits[i])];
        if (w.limit_lengths[i] < 0 || !limits.insert(w.limits[i]).second)
            return "a length is negative or given twice";
        for (const int link : std::set<int>(limit.links.begin(), limit.links.end()))
            length[static_cast<std::size_t>(link)] += w.limit_lengths[i];
        offer += static_cast<Wide>(w.limit_lengths[i]) * limit.bandwidth.bytes_per_second;
    }
    const std::size_t nodes = topology.nodes.size();
    const Wide far = static_cast<Wide>(1) << 80;
    std::vector<std::vector<Wide>> least(nodes, std::vector<Wide>(nodes, far));
    for (std::size_t v = 0; v < nodes; ++v) least[v][v] = 0;
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const topologies::Link& link = topology.links[l];
        if (!takes_part(topology, c, link.from) || !takes_part(topology, c, link.to)) continue;
        Wide& entry = least[static_cast<std::size_t>(link.from)][static_cast<std::size_t>(link.to)];
        entry = std::min(entry, length[l]);
    }
    for (std::size_t k = 0; k < nodes; ++k)
        for (std::size_t i = 0; i < nodes; ++i)
            for (std::size_t j = 0; j < nodes; ++j)
                least[i][j] = std::min(least[i][j], least[i][k] + least[k][j]);
    Wide need = 0;
    for (int g = 0; g < c.group_count(); ++g) {
        for (int s = 0; s < c.group_size(g); ++s) {
            for (int d = 0; d < c.group_size(g); ++d)
                need += least[static_cast<std::size_t>(
                    topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, s))])]
                             [static_cast<std::size_t>(
                                 topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, d))])];
        }
    }
    if (offer <= 0) return "no length at all";
    // need / offer = demand / capacity; 128 bits hold both products for lengths below 2^31 or so.
    return need % w.demand == 0 && need / w.demand * w.capacity == offer
               ? ""
               : "the lengths do not give the bound";
}

}  // namespace detail

/// Empty when the witness of the latency bound holds: the way exists and its latencies sum up.
inline std::string check_latency(const topologies::Topology& topology, const synth::Bound& bound) {
    const synth::LatencyBound& latency = bound.latency;
    if (latency.source < 0) return latency.time == Time{} ? "" : "a latency without a way";
    int node = topology.rank_nodes[static_cast<std::size_t>(latency.source)];
    std::int64_t sum = 0;
    for (const int l : latency.links) {
        const topologies::Link& link = topology.links[static_cast<std::size_t>(l)];
        if (link.from != node) return "the way is broken";
        const topologies::Node& at = topology.nodes[static_cast<std::size_t>(node)];
        const bool member = at.rank >= 0 && at.rank < bound.collective.ranks;
        sum += link.latency.picoseconds + (member ? 0 : at.latency.picoseconds);
        node = link.to;
    }
    if (node != topology.rank_nodes[static_cast<std::size_t>(latency.destination)])
        return "the way ends elsewhere";
    return sum == latency.time.picoseconds ? "" : "the latencies do not sum up";
}

/// The longest least latency between ranks that must inform each other, by Floyd and Warshall.
inline std::int64_t longest_latency(const topologies::Topology& topology, const ir::Collective& c) {
    using Kind = ir::CollectiveKind;
    constexpr std::int64_t kFar = INT64_MAX / 4;
    const std::size_t nodes = topology.nodes.size();
    std::vector<std::vector<std::int64_t>> least(nodes, std::vector<std::int64_t>(nodes, kFar));
    const auto member = [&](std::size_t v) {
        return topology.nodes[v].rank >= 0 && topology.nodes[v].rank < c.ranks;
    };
    for (const topologies::Link& link : topology.links) {
        if (!detail::takes_part(topology, c, link.from) || !detail::takes_part(topology, c, link.to))
            continue;
        std::int64_t& entry = least[static_cast<std::size_t>(link.from)][static_cast<std::size_t>(link.to)];
        entry = std::min(entry, link.latency.picoseconds);
    }
    for (std::size_t k = 0; k < nodes; ++k) {
        const std::int64_t turn = member(k) ? 0 : topology.nodes[k].latency.picoseconds;
        for (std::size_t i = 0; i < nodes; ++i)
            for (std::size_t j = 0; j < nodes; ++j)
                least[i][j] = std::min(least[i][j], least[i][k] + turn + least[k][j]);
    }
    std::int64_t longest = 0;
    for (int g = 0; g < c.group_count(); ++g) {
        for (int s = 0; s < c.group_size(g); ++s) {
            for (int d = 0; d < c.group_size(g); ++d) {
                if (s == d) continue;
                if ((c.kind == Kind::broadcast || c.kind == Kind::scatter || c.kind == Kind::send_recv) &&
                    s != c.root)
                    continue;
                if ((c.kind == Kind::gather || c.kind == Kind::reduce) && d != c.root) continue;
                if (c.kind == Kind::send_recv && d != c.receiver(g)) continue;
                longest = std::max(longest,
                                   least[static_cast<std::size_t>(
                                       topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, s))])]
                                        [static_cast<std::size_t>(
                                            topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, d))])]);
            }
        }
    }
    return longest;
}

/// Empty when the witness of the bandwidth bound proves the bound.
inline std::string check_bandwidth(const topologies::Topology& topology, const synth::Bound& bound) {
    const synth::BandwidthWitness& w = bound.bandwidth.witness;
    const ir::Collective& c = bound.collective;
    const std::size_t nodes = topology.nodes.size();
    if (w.kind == synth::WitnessKind::nothing)
        return bound.bandwidth.seconds_per_byte == Rational(0) ? "" : "a bound without a witness";
    if (bound.bandwidth.seconds_per_byte != Rational(w.demand, w.capacity))
        return "the fraction is not demand over capacity";
    if (w.kind == synth::WitnessKind::cut) {
        std::vector<int> inside(nodes, 0);
        for (const int v : w.inside) inside[static_cast<std::size_t>(v)] = 1;
        if (detail::demand(topology, c, std::vector<char>(inside.begin(), inside.end())) != w.demand)
            return "the demand of the cut is another";
        return detail::check_capacity(topology, w, detail::crossing(topology, c, inside, true));
    }
    if (w.kind == synth::WitnessKind::partition) {
        if (c.kind != ir::CollectiveKind::all_reduce) return "a partition for another collective";
        std::vector<int> part(nodes, -1);
        for (std::size_t p = 0; p < w.parts.size(); ++p) {
            for (const int v : w.parts[p]) {
                if (part[static_cast<std::size_t>(v)] >= 0) return "parts overlap";
                part[static_cast<std::size_t>(v)] = static_cast<int>(p);
            }
        }
        for (std::size_t v = 0; v < nodes; ++v) {
            const topologies::Node& node = topology.nodes[v];
            const bool acts = node.multicast || node.reduce || (node.rank >= 0 && node.rank < c.ranks);
            if (acts && part[v] < 0) return "a node that takes part is in no part";
        }
        std::int64_t demand = 0;
        for (int g = 0; g < c.group_count(); ++g) {
            std::set<int> holding;
            for (int p = 0; p < c.group_size(g); ++p)
                holding.insert(part[static_cast<std::size_t>(
                    topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, p))])]);
            demand += 2 * (static_cast<std::int64_t>(holding.size()) - 1);
        }
        if (demand != w.demand) return "the demand of the partition is another";
        std::vector<int> crossed;
        for (std::size_t p = 0; p < w.parts.size(); ++p) {
            std::vector<int> inside(nodes, 0);
            for (const int v : w.parts[p]) inside[static_cast<std::size_t>(v)] = 1;
            for (const int link : detail::crossing(topology, c, inside, !w.entering)) crossed.push_back(link);
        }
        return detail::check_capacity(topology, w, crossed);
    }
    if (w.kind == synth::WitnessKind::lengths) return detail::check_lengths(topology, c, w);
    // Distances: Floyd-Warshall in hops over the nodes that take part.
    constexpr std::int64_t kFar = 1 << 28;
    std::vector<std::vector<std::int64_t>> hops(nodes, std::vector<std::int64_t>(nodes, kFar));
    Wide capacity = 0;
    for (const topologies::Link& link : topology.links) {
        if (!detail::takes_part(topology, c, link.from) || !detail::takes_part(topology, c, link.to))
            continue;
        hops[static_cast<std::size_t>(link.from)][static_cast<std::size_t>(link.to)] = 1;
        capacity += link.capacity().bytes_per_second;
    }
    for (std::size_t k = 0; k < nodes; ++k)
        for (std::size_t i = 0; i < nodes; ++i)
            for (std::size_t j = 0; j < nodes; ++j)
                hops[i][j] = std::min(hops[i][j], hops[i][k] + hops[k][j]);
    std::int64_t sum = 0;
    for (int g = 0; g < c.group_count(); ++g) {
        for (int s = 0; s < c.group_size(g); ++s) {
            for (int d = 0; d < c.group_size(g); ++d) {
                if (s == d) continue;
                sum += hops[static_cast<std::size_t>(
                    topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, s))])]
                           [static_cast<std::size_t>(
                               topology.rank_nodes[static_cast<std::size_t>(c.rank_at(g, d))])];
            }
        }
    }
    if (c.kind != ir::CollectiveKind::all_to_all) return "distances for another collective";
    return sum == w.demand && capacity == w.capacity ? "" : "the distances or capacities do not sum up";
}

/// What can leave a set of nodes at most: limits hold for the part of their links that one node sends or
/// receives. Only for machines where no link is under two limits at the same end.
inline std::int64_t capacity_out(const topologies::Topology& topology, const ir::Collective& c,
                                 const std::vector<char>& inside) {
    const std::vector<int> crossed =
        detail::crossing(topology, c, std::vector<int>(inside.begin(), inside.end()), true);
    // The least over all choices of which groups count as a whole.
    struct Group {
        std::set<int> links;
        std::int64_t bandwidth;
    };
    std::vector<Group> groups;
    for (const topologies::Limit& limit : topology.limits) {
        std::map<std::pair<int, bool>, std::set<int>> parts;
        for (const int link : limit.links) {
            parts[{topology.links[static_cast<std::size_t>(link)].from, true}].insert(link);
            parts[{topology.links[static_cast<std::size_t>(link)].to, false}].insert(link);
        }
        for (auto& [place, links] : parts) {
            if (std::any_of(links.begin(), links.end(), [&](int l) { return detail::in(crossed, l); }))
                groups.push_back({links, limit.bandwidth.bytes_per_second});
        }
    }
    std::int64_t least = INT64_MAX;
    for (unsigned choice = 0; choice < 1U << groups.size(); ++choice) {
        std::int64_t sum = 0;
        std::set<int> covered;
        for (std::size_t i = 0; i < groups.size(); ++i) {
            if (!(choice >> i & 1U)) continue;
            sum += groups[i].bandwidth;
            covered.insert(groups[i].links.begin(), groups[i].links.end());
        }
        for (const int link : crossed)
            sum += covered.count(link)
                       ? 0
                       : topology.links[static_cast<std::size_t>(link)].capacity().bytes_per_second;
        least = std::min(least, sum);
    }
    return least;
}

/// The best cut of all 2^nodes, as seconds per byte of a unit.
inline Rational best_of_all_cuts(const topologies::Topology& topology, const ir::Collective& c) {
    Rational best(0);
    const std::size_t nodes = topology.nodes.size();
    for (std::uint32_t set = 1; set + 1 < std::uint32_t{1} << nodes; ++set) {
        std::vector<char> inside(nodes);
        for (std::size_t v = 0; v < nodes; ++v) inside[v] = static_cast<char>(set >> v & 1U);
        const std::int64_t demand = detail::demand(topology, c, inside);
        if (demand == 0) continue;
        best = std::max(best, Rational(demand, capacity_out(topology, c, inside)));
    }
    return best;
}

}  // namespace baton::test
