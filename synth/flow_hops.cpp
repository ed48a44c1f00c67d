#include <baton/synth/flow_hops.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <algorithm>

namespace baton::synth {

using topologies::LinkShare;
using topologies::Route;
using topologies::Topology;

FlowHops::FlowHops(const FlowNetwork& network, const topologies::Routes& routes)
    : network_(network), routes_(routes), rank_of_vertex_(at(network.vertices), -1) {
    const Topology& topology = routes.topology();
    for (std::size_t rank = 0; rank < network.vertex_of_rank.size(); ++rank)
        rank_of_vertex_[at(network.vertex_of_rank[rank])] = static_cast<int>(rank);
    resources_of_link_.resize(topology.links.size());
    for (std::size_t r = 0; r < network.resources.size(); ++r) {
        const FlowResource& resource = network.resources[r];
        std::vector<int> links =
            resource.limit >= 0 ? topology.limits[at(resource.limit)].links : resource.links;
        std::sort(links.begin(), links.end());
        links.erase(std::unique(links.begin(), links.end()), links.end());
        for (const int link : links) resources_of_link_[at(link)].push_back(static_cast<int>(r));
    }
}

bool FlowHops::along(const std::vector<int>& arcs, bool exact, std::vector<int>& hops) {
    hops.clear();
    std::vector<int> part;
    for (const int a : arcs) {
        part.push_back(a);
        if (rank_of_vertex_[at(network_.arcs[at(a)].to)] < 0) continue;
        int hop = known(part, false);
        if (exact && hop >= 0 && hops_[at(hop)].via < 0) hop = known(part, true);
        if (hop < 0) return false;
        hops.push_back(hop);
        part.clear();
    }
    return part.empty();
}

int FlowHops::known(const std::vector<int>& arcs, bool exact) {
    const auto [place, fresh] = known_[exact ? 1 : 0].emplace(arcs, -1);
    if (fresh) place->second = find(arcs, exact);
    return place->second;
}

// The hop for a part between two ranks, made when it is new; -1 when no step may take it.
int FlowHops::find(const std::vector<int>& arcs, bool exact) {
    int from = rank_of_vertex_[at(network_.arcs[at(arcs.front())].from)];
    int to = rank_of_vertex_[at(network_.arcs[at(arcs.back())].to)];
    if (network_.turned) std::swap(from, to);
    const Route& usual = routes_.between(from, to);
    const bool on_it = usual.reachable && std::all_of(arcs.begin(), arcs.end(), [&](int a) {
                           const std::vector<int>& links = network_.arcs[at(a)].links;
                           return std::any_of(links.begin(), links.end(), [&](int link) {
                               return std::any_of(usual.links.begin(), usual.links.end(),
                                                  [&](const LinkShare& share) { return share.link == link; });
                           });
                       });
    std::size_t links = 0;
    for (const int a : arcs) links += network_.arcs[at(a)].links.size();
    if (on_it && (!exact || links == usual.links.size())) {
        const auto [place, fresh] = default_.emplace(std::pair{from, to}, -1);
        if (fresh) place->second = add(from, to, usual, -1);
        return place->second;
    }
    const std::string path = name(arcs);
    try {
        const Route route = routes_.via(from, to, path);
        vias_.push_back(path);
        return add(from, to, route, static_cast<int>(vias_.size()) - 1);
    } catch (const Error& error) {
        // A way that the forwarding rules allow piece by piece only.
        if (error.kind() != ErrorKind::input) throw;
        return -1;
    }
}

int FlowHops::add(int from, int to, const Route& route, int via) {
    FlowHop hop{from, to, via, -1, route.hops, {}};
    if (via >= 0) hop.channel = ++pinned_[{from, to}];
    std::map<int, double> load;
    for (const LinkShare& share : route.links) {
        for (const int r : resources_of_link_[at(share.link)]) load[r] += share.share;
    }
    hop.load.assign(load.begin(), load.end());
    hops_.push_back(std::move(hop));
    return static_cast<int>(hops_.size()) - 1;
}

// Nodes joined by '/', as the data moves; a link where not all nearest ones to the next node are meant.
std::string FlowHops::name(const std::vector<int>& arcs) const {
    const Topology& topology = routes_.topology();
    std::vector<int> order = arcs;
    if (network_.turned) std::reverse(order.begin(), order.end());
    const auto id_of = [&](int vertex) { return topology.nodes[at(network_.node_of[at(vertex)])].id; };
    std::string path;
    for (const int a : order) {
        const FlowArc& arc = network_.arcs[at(a)];
        if (path.empty()) path = id_of(network_.turned ? arc.to : arc.from);
        if (!arc.nearest) path += "/" + topology.links[at(arc.links[0])].id;
        path += "/" + id_of(network_.turned ? arc.from : arc.to);
    }
    return path;
}

}  // namespace baton::synth
