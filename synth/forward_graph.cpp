#include <baton/synth/forward_graph.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/capacity_graph.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace baton::synth {

using topologies::NodeType;
using topologies::Topology;

ForwardGraph::ForwardGraph(const Topology& topology, const topologies::Routes& routes, int ranks, bool turned)
    : topology_(topology), routes_(routes), ranks_(ranks), turned_(turned) {
    std::vector<char> member(topology.nodes.size(), 0);
    for (int r = 0; r < ranks; ++r) member[at(topology.rank_nodes[at(r)])] = 1;
    const CapacityGraph graph = capacity_graph(topology, member);
    std::vector<int> vertex(at(graph.vertices), -1);
    for (int r = 0; r < ranks; ++r) vertex[at(topology.rank_nodes[at(r)])] = r;
    node_.assign(topology.rank_nodes.begin(), topology.rank_nodes.begin() + ranks);
    for (int v = 0; v < graph.vertices; ++v) {
        if (vertex[at(v)] >= 0) continue;
        if (graph.out[at(v)].empty() || graph.in[at(v)].empty()) continue;
        vertex[at(v)] = static_cast<int>(node_.size());
        node_.push_back(v < graph.node_count ? v : -1);
    }
    vertices_ = static_cast<int>(node_.size());
    std::map<std::string, int> hosts;
    for (int v = 0; v < vertices_; ++v) {
        const std::string host = node_[at(v)] >= 0 && !topology.nodes[at(node_[at(v)])].host.empty()
                                     ? topology.nodes[at(node_[at(v)])].host
                                     : "/" + std::to_string(v);
        host_.push_back(hosts.emplace(host, static_cast<int>(hosts.size())).first->second);
    }
    // Parallel links of equal latency are one arc.
    std::map<std::tuple<int, int, Time>, std::size_t> known;
    std::set<std::pair<int, int>> uneven;
    std::map<std::pair<int, int>, Time> latency;
    for (const topologies::Link& link : topology.links) {
        const auto [place, fresh] = latency.emplace(std::pair(link.from, link.to), link.latency);
        if (!fresh && place->second != link.latency) uneven.insert({link.from, link.to});
    }
    for (const CapacityArc& arc : graph.arcs) {
        const int from = vertex[at(arc.from)], to = vertex[at(arc.to)];
        if (from < 0 || to < 0 || from == to) continue;
        const double rate = static_cast<double>(arc.capacity) * static_cast<double>(graph.scale);
        if (arc.link < 0) {
            arcs_.push_back({from, to, rate, {}, {}});
            continue;
        }
        const topologies::Link& link = topology.links[at(arc.link)];
        const bool single = uneven.count({link.from, link.to}) != 0;
        const auto [place, fresh] = known.emplace(std::tuple(from, to, link.latency), arcs_.size());
        if (fresh || single) {
            arcs_.push_back({from, to, 0, {}, single ? link.id : topology.nodes[at(link.to)].id});
            place->second = arcs_.size() - 1;
        }
        arcs_[place->second].rate += rate;
        arcs_[place->second].links.push_back(arc.link);
    }
    split_nics();
    merge_switches();
    drop_dead_ends();
    if (turned) {
        for (ForwardArc& arc : arcs_) std::swap(arc.from, arc.to);
    }
}

void ForwardGraph::split_nics() {
    const int before = vertices_;
    for (int v = ranks_; v < before; ++v) {
        if (node_[at(v)] < 0 || topology_.nodes[at(node_[at(v)])].type != NodeType::nic) continue;
        const bool limited = std::any_of(arcs_.begin(), arcs_.end(), [&](const ForwardArc& arc) {
            return arc.links.empty() && (arc.from == v || arc.to == v);
        });
        if (limited || topology_.nodes[at(node_[at(v)])].host.empty()) continue;
        const int inward = vertices_++;
        node_.push_back(node_[at(v)]);
        host_.push_back(host_[at(v)]);
        for (ForwardArc& arc : arcs_) {
            const int other = arc.from == v ? arc.to : arc.from;
            if (arc.from != v && arc.to != v) continue;
            const bool host_side = host_[at(other)] == host_[at(v)];
            // Out of the fabric side into the host.
            if (arc.from == v && host_side) arc.from = inward;
            if (arc.to == v && !host_side) arc.to = inward;
        }
    }
}

// Vertices that nothing enters or leaves, or that only one neighbor has, again and again; numbers close up.
void ForwardGraph::drop_dead_ends() {
    std::vector<char> dead(at(vertices_), 0);
    for (bool again = true; again;) {
        again = false;
        std::vector<std::set<int>> in(at(vertices_)), out(at(vertices_));
        for (const ForwardArc& arc : arcs_) {
            out[at(arc.from)].insert(arc.to);
            in[at(arc.to)].insert(arc.from);
        }
        for (int v = ranks_; v < vertices_; ++v) {
            const bool back = in[at(v)].size() == 1 && in[at(v)] == out[at(v)];
            if (dead[at(v)] || (!in[at(v)].empty() && !out[at(v)].empty() && !back)) continue;
            dead[at(v)] = 1;
            again = true;
        }
        arcs_.erase(
            std::remove_if(arcs_.begin(), arcs_.end(),
                           [&](const ForwardArc& arc) { return dead[at(arc.from)] || dead[at(arc.to)]; }),
            arcs_.end());
    }
    std::vector<int> number(at(vertices_), -1);
    int kept = 0;
    for (int v = 0; v < vertices_; ++v) {
        if (dead[at(v)]) continue;
        node_[at(kept)] = node_[at(v)];
        host_[at(kept)] = host_[at(v)];
        number[at(v)] = kept++;
    }
    vertices_ = kept;
    for (ForwardArc& arc : arcs_)
        arc = {number[at(arc.from)], number[at(arc.to)], arc.rate, std::move(arc.links), std::move(arc.name)};
}

void ForwardGraph::cut_loops(std::vector<int>& path) const {
    std::vector<int> kept;
    for (const int arc : path) {
        const int to = arcs_[at(arc)].to;
        // Where has the path been there before?
        std::size_t keep = kept.size();
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (arcs_[at(kept[i])].from == to) {
                keep = i;
                break;
            }
        }
        if (keep < kept.size())
            kept.resize(keep);
        else
            kept.push_back(arc);
    }
    path = std::move(kept);
}

void ForwardGraph::merge_switches() {
    using Port = std::tuple<int, bool, Time>;  // neighbor, whether the arc leaves the switch, latency
    std::vector<std::map<Port, double>> ports(at(vertices_));
    std::vector<char> plain(at(vertices_), 0);
    for (int v = ranks_; v < vertices_; ++v)
        plain[at(v)] = node_[at(v)] >= 0 && topology_.nodes[at(node_[at(v)])].type == NodeType::switch_node;
    for (const ForwardArc& arc : arcs_) {
        if (arc.links.empty()) {
            plain[at(arc.from)] = plain[at(arc.to)] = 0;
            continue;
        }
        const Time latency = topology_.links[at(arc.links[0])].latency;
        for (const bool leaves : {true, false}) {
            const int v = leaves ? arc.from : arc.to, other = leaves ? arc.to : arc.from;
            if (!ports[at(v)].emplace(Port{other, leaves, latency}, arc.rate).second) plain[at(v)] = 0;
        }
    }
    const auto alike = [&](int a, int b) {
        if (ports[at(a)].size() != ports[at(b)].size() || host_[at(a)] < 0) return false;
        const topologies::Node &first = topology_.nodes[at(node_[at(a)])],
                               &second = topology_.nodes[at(node_[at(b)])];
        if (first.latency != second.latency || first.host != second.host) return false;
        double ratio = 0;
        for (auto x = ports[at(a)].begin(), y = ports[at(b)].begin(); x != ports[at(a)].end(); ++x, ++y) {
            if (x->first != y->first) return false;
            const double here = x->second / y->second;
            if (ratio > 0 && std::abs(here / ratio - 1) > 1e-9) return false;
            ratio = here;
        }
        return true;
    };
    std::map<std::vector<int>, std::vector<int>> by_neighbors;  // -> one switch of each kind
    std::vector<int> merged(at(vertices_));
    for (int v = 0; v < vertices_; ++v) {
        merged[at(v)] = v;
        if (!plain[at(v)]) continue;
        std::vector<int> neighbors;
        for (const auto& [port, rate] : ports[at(v)]) neighbors.push_back(std::get<0>(port));
        std::vector<int>& kinds = by_neighbors[neighbors];
        const auto found =
            std::find_if(kinds.begin(), kinds.end(), [&](int other) { return alike(other, v); });
        if (found == kinds.end())
            kinds.push_back(v);
        else
            merged[at(v)] = *found;
    }
    std::map<std::tuple<int, int, Time>, std::size_t> kept;
    std::vector<ForwardArc> arcs;
    for (ForwardArc& arc : arcs_) {
        const int from = merged[at(arc.from)], to = merged[at(arc.to)];
        const bool is_merged = from != arc.from || to != arc.to;
        if (!is_merged) {
            if (!arc.links.empty() && (plain[at(from)] || plain[at(to)]))
                kept[{from, to, topology_.links[at(arc.links[0])].latency}] = arcs.size();
            arcs.push_back(std::move(arc));
            continue;
        }
        ForwardArc& into = arcs[kept.at({from, to, topology_.links[at(arc.links[0])].latency})];
        into.rate += arc.rate;
        into.links.insert(into.links.end(), arc.links.begin(), arc.links.end());
        into.name.clear();
    }
    arcs_ = std::move(arcs);
}

bool ForwardGraph::plausible(const std::vector<int>& path) const {
    if (path.empty()) return false;
    std::vector<int> visited;
    for (std::size_t i = 0; i < path.size(); ++i) {
        if (i == 0) visited.push_back(arcs_[at(path[0])].from);
        visited.push_back(arcs_[at(path[i])].to);
    }
    for (std::size_t i = 0; i < visited.size(); ++i) {
        if (std::find(visited.begin(), visited.begin() + static_cast<std::ptrdiff_t>(i), visited[i]) !=
            visited.begin() + static_cast<std::ptrdiff_t>(i))
            return false;
        if (i > 0 && i + 1 < visited.size() && visited[i] < ranks_) return false;
    }
    std::vector<int> nodes;
    for (const int v : visited) {
        if (node_[at(v)] >= 0) nodes.push_back(v);
    }
    bool entered = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const auto hosted = [&](std::size_t j) {
            return !topology_.nodes[at(node_[at(nodes[j])])].host.empty();
        };
        if (i > 0 && host_[at(nodes[i])] != host_[at(nodes[i - 1])]) {
            if (hosted(i - 1) && entered) return false;
            if (hosted(i)) entered = true;
        }
        if (i == 0 || i + 1 == nodes.size() || topology_.nodes[at(node_[at(nodes[i])])].type != NodeType::nic)
            continue;
        const bool before = host_[at(nodes[i - 1])] == host_[at(nodes[i])],
                   after = host_[at(nodes[i + 1])] == host_[at(nodes[i])];
        if (hosted(i) && before == after) return false;
    }
    return true;
}

std::optional<ForwardWay> ForwardGraph::way(const std::vector<int>& path) const {
    const int from = arcs_[at(path.front())].from, to = arcs_[at(path.back())].to;
    const int sender = turned_ ? to : from, receiver = turned_ ? from : to;
    std::map<int, double> links;  // -> its part of what goes this way
    std::string via;
    bool named = true;
    for (std::size_t i = 0; i < path.size(); ++i) {
        const ForwardArc& arc = arcs_[at(path[turned_ ? path.size() - 1 - i : i])];
        if (arc.links.empty()) continue;
        for (const int link : arc.links)
            links[link] = topology_.links[at(link)].capacity().value() / arc.rate;
        if (arc.name.empty()) named = false;
        via += (via.empty() ? "" : "/") + arc.name;
    }
    const topologies::Route& standard = routes_.between(sender, receiver);
    if (standard.reachable) {
        std::map<int, double> usual;
        for (const topologies::LinkShare& use : standard.links) usual[use.link] += use.share;
        const bool same = std::equal(usual.begin(), usual.end(), links.begin(), links.end(),
                                     [](const auto& x, const auto& y) {
                                         return x.first == y.first && std::abs(x.second - y.second) < 1e-9;
                                     });
        if (same) return ForwardWay{true, {}, standard.latency};
    }
    if (!named) return std::nullopt;
    try {
        return ForwardWay{false, via, routes_.via(sender, receiver, via).latency};
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::input) throw;
        return std::nullopt;
    }
}

}  // namespace baton::synth
