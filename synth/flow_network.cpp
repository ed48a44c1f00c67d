#include <baton/synth/flow_network.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/participants.hpp>
#include <baton/topologies/forwarding.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace baton::synth {
namespace {

using topologies::Forwarding;
using topologies::NodeType;
using topologies::Phase;
using topologies::Topology;
using Kind = ir::CollectiveKind;

bool is_idle(const Topology& topology, const std::vector<char>& member, int node) {
    return topology.nodes[at(node)].type == NodeType::gpu && !member[at(node)];
}

// Links that serve as one: same ends, same latency, under the same limits.
struct LinkBundle {
    int from, to;
    std::vector<int> links;
    bool nearest;
    std::vector<int> resources;
};

class Bundler {
public:
    Bundler(const Topology& topology, const std::vector<char>& member) {
        std::vector<std::vector<int>> limits_of(topology.links.size());
        for (std::size_t l = 0; l < topology.limits.size(); ++l) {
            for (const int link :
                 std::set<int>(topology.limits[l].links.begin(), topology.limits[l].links.end()))
                limits_of[at(link)].push_back(static_cast<int>(l));
        }
        std::map<std::tuple<int, int, std::int64_t, std::vector<int>>, std::vector<int>> alike;
        std::map<std::pair<int, int>, std::pair<std::int64_t, int>> least;  // latency, links that have it
        for (std::size_t l = 0; l < topology.links.size(); ++l) {
            const topologies::Link& link = topology.links[l];
            if (link.from == link.to || is_idle(topology, member, link.from) ||
                is_idle(topology, member, link.to))
                continue;
            const std::int64_t latency = link.latency.picoseconds;
            alike[{link.from, link.to, latency, limits_of[l]}].push_back(static_cast<int>(l));
            auto [place, fresh] = least.emplace(std::pair{link.from, link.to}, std::pair{latency, 1});
            if (fresh) continue;
            if (latency < place->second.first) place->second = {latency, 0};
            if (latency == place->second.first) ++place->second.second;
        }
        std::map<int, int> resource_of_limit;
        for (const auto& [key, links] : alike) {
            const auto& [from, to, latency, limits] = key;
            const auto& [nearest_latency, nearest_links] = least[{from, to}];
            const bool nearest =
                latency == nearest_latency && links.size() == static_cast<std::size_t>(nearest_links);
            // A route names all nearest links or a single one.
            std::vector<std::vector<int>> parts;
            if (nearest) {
                parts.push_back(links);
            } else {
                for (const int link : links) parts.push_back({link});
            }
            for (const std::vector<int>& part : parts) {
                LinkBundle bundle{from, to, part, nearest, {static_cast<int>(resources.size())}};
                FlowResource own;
                own.links = part;
                for (const int link : part)
                    own.capacity += topology.links[at(link)].capacity().bytes_per_second;
                resources.push_back(own);
                for (const int limit : limits) {
                    const auto [place, fresh] =
                        resource_of_limit.emplace(limit, static_cast<int>(resources.size()));
                    if (fresh)
                        resources.push_back(
                            {topology.limits[at(limit)].bandwidth.bytes_per_second, {}, limit});
                    bundle.resources.push_back(place->second);
                }
                bundles.push_back(std::move(bundle));
            }
        }
    }
    std::vector<LinkBundle> bundles;
    std::vector<FlowResource> resources;
};

void add_demands(FlowNetwork& network, const ir::Collective& c) {
    const auto vertex = [&](int group, int position) {
        return network.vertex_of_rank[at(c.rank_at(group, position))];
    };
    for (int g = 0; g < c.group_count(); ++g) {
        const int size = c.group_size(g);
        for (int s = 0; s < size; ++s) {
            if (c.kind != Kind::all_to_all && s != c.root) continue;
            FlowDemand demand{vertex(g, s), {}, g};
            for (int d = 0; d < size; ++d) {
                if (d != s && (c.kind != Kind::send_recv || d == c.receiver(g)))
                    demand.sinks.push_back(vertex(g, d));
            }
            if (!demand.sinks.empty()) network.demands.push_back(std::move(demand));
        }
    }
    network.turned = c.kind == Kind::gather;
}

void finish(FlowNetwork& network) {
    if (network.turned) {
        for (FlowArc& arc : network.arcs) std::swap(arc.from, arc.to);
    }
    network.out.assign(at(network.vertices), {});
    network.in.assign(at(network.vertices), {});
    for (std::size_t a = 0; a < network.arcs.size(); ++a) {
        network.out[at(network.arcs[a].from)].push_back(static_cast<int>(a));
        network.in[at(network.arcs[a].to)].push_back(static_cast<int>(a));
    }
}

void check_kind(const ir::Collective& c) {
    if (c.kind != Kind::all_to_all && c.kind != Kind::scatter && c.kind != Kind::gather &&
        c.kind != Kind::send_recv)
        throw input_error(fmt::format("flows serve all_to_all, scatter, gather and send_recv, not {}",
                                      ir::to_string(c.kind)));
}

// Vertices of the network under the rules, found by walking from the members.
class RuledBuilder {
public:
    RuledBuilder(const Topology& topology, const std::vector<char>& member, FlowNetwork& network)
        : topology_(topology), member_(member), network_(network), rules_(topology) {
        Bundler bundler(topology, member);
        network.resources = bundler.resources;
        out_.resize(topology.nodes.size());
        for (LinkBundle& bundle : bundler.bundles) out_[at(bundle.from)].push_back(std::move(bundle));
    }

    void build(int ranks) {
        for (int rank = 0; rank < ranks; ++rank) {
            const int node = topology_.rank_nodes[at(rank)];
            network_.vertex_of_rank.push_back(vertex({node, rules_.start(node), false}));
        }
        while (!open_.empty()) {
            stop_point();
            const State state = open_.back();
            open_.pop_back();
            expand(state);
        }
    }

private:
    struct State {
        int node;
        Phase phase;
        bool just_entered;
        auto operator<=>(const State&) const = default;
    };

    int vertex(State state) {
        if (member_[at(state.node)]) state = {state.node, rules_.start(state.node), false};
        const auto [place, fresh] = number_.emplace(state, network_.vertices);
        if (fresh) {
            ++network_.vertices;
            network_.node_of.push_back(state.node);
            open_.push_back(state);
        }
        return place->second;
    }

    void expand(const State& state) {
        const int from = number_.at(state);
        // A member sends anew whatever it has stored.
        const int source = member_[at(state.node)] ? state.node : -1;
        for (const LinkBundle& bundle : out_[at(state.node)]) {
            Phase next = Phase::away;
            const bool away = source < 0 && state.phase == Phase::away;
            const bool allowed = away ? rules_.step_away(bundle.links[0], state.just_entered)
                                      : rules_.step(source, {}, state.phase, bundle.links[0], next);
            if (!allowed) continue;
            const bool entered = !away && next == Phase::away;
            const int to = vertex({bundle.to, next, entered});
            network_.arcs.push_back({from, to, bundle.links, bundle.nearest, bundle.resources});
        }
    }

    const Topology& topology_;
    const std::vector<char>& member_;
    FlowNetwork& network_;
    Forwarding rules_;
    std::vector<std::vector<LinkBundle>> out_;
    std::map<State, int> number_;
    std::vector<State> open_;
};

}  // namespace

std::int64_t FlowNetwork::pairs() const {
    std::int64_t sum = 0;
    for (const FlowDemand& demand : demands) sum += static_cast<std::int64_t>(demand.sinks.size());
    return sum;
}

void FlowNetwork::add_load(const std::vector<double>& units, std::vector<double>& load) const {
    for (std::size_t a = 0; a < units.size(); ++a) {
        for (const int r : arcs[a].resources) load[at(r)] += units[a];
    }
}

double FlowNetwork::busiest(const std::vector<double>& load) const {
    double time = 0;
    for (std::size_t r = 0; r < load.size(); ++r)
        time = std::max(time, load[r] / static_cast<double>(resources[r].capacity));
    return time;
}

FlowNetwork flow_network(const Topology& topology, const ir::Collective& collective) {
    check_kind(collective);
    const std::vector<char> member = member_nodes(topology, collective);
    FlowNetwork network;
    network.vertices = static_cast<int>(topology.nodes.size());
    for (int v = 0; v < network.vertices; ++v) network.node_of.push_back(v);
    for (int rank = 0; rank < collective.ranks; ++rank)
        network.vertex_of_rank.push_back(topology.rank_nodes[at(rank)]);
    Bundler bundler(topology, member);
    network.resources = std::move(bundler.resources);
    for (LinkBundle& bundle : bundler.bundles)
        network.arcs.push_back(
            {bundle.from, bundle.to, std::move(bundle.links), bundle.nearest, std::move(bundle.resources)});
    add_demands(network, collective);
    finish(network);
    return network;
}

FlowNetwork routed_flow_network(const Topology& topology, const ir::Collective& collective) {
    check_kind(collective);
    const std::vector<char> member = member_nodes(topology, collective);
    FlowNetwork network;
    RuledBuilder(topology, member, network).build(collective.ranks);
    add_demands(network, collective);
    finish(network);
    return network;
}

}  // namespace baton::synth
