#include <baton/synth/bandwidth_bound.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/cut_search.hpp>
#include <baton/synth/max_flow.hpp>
#include <baton/synth/multicommodity.hpp>
#include <baton/synth/participants.hpp>

#include <algorithm>
#include <deque>
#include <map>

namespace baton::synth {
namespace {

using topologies::Topology;
using Kind = ir::CollectiveKind;

std::int64_t all_links(const CapacityGraph& graph) {
    std::int64_t sum = 0;
    for (const CapacityArc& arc : graph.arcs) sum += arc.link >= 0 ? arc.capacity : 0;
    return sum;
}

// Sum of hop distances to the other members of a node's group; limits are no hops.
std::int64_t hops_to_group(const CapacityGraph& graph, int source, const std::vector<int>& group_of) {
    std::vector<std::int64_t> distance(at(graph.vertices), -1);
    std::deque<std::pair<int, std::int64_t>> queue = {{source, 0}};
    std::int64_t sum = 0;
    while (!queue.empty()) {
        const auto [v, hops] = queue.front();
        queue.pop_front();
        if (distance[at(v)] >= 0) continue;
        distance[at(v)] = hops;
        if (v < graph.node_count && group_of[at(v)] == group_of[at(source)]) sum += hops;
        for (const int a : graph.out[at(v)]) {
            const CapacityArc& arc = graph.arcs[at(a)];
            if (arc.link >= 0)
                queue.push_back({arc.to, hops + 1});
            else
                queue.push_front({arc.to, hops});
        }
    }
    return sum;
}

void try_distances(const Topology& topology, const ir::Collective& collective, const CapacityGraph& graph,
                   BestArgument& best) {
    std::vector<int> group_of(at(graph.node_count), -1), members;
    std::int64_t pairs = 0;
    for (int g = 0; g < collective.group_count(); ++g) {
        const std::int64_t size = collective.group_size(g);
        pairs += size * (size - 1);
        for (int p = 0; p < collective.group_size(g); ++p) {
            members.push_back(topology.rank_nodes[at(collective.rank_at(g, p))]);
            group_of[at(members.back())] = g;
        }
    }
    // Beyond the allowance a pair counts one link, which is always true.
    const auto size = static_cast<std::int64_t>(graph.arcs.size() + at(graph.vertices));
    const std::int64_t allowed = std::max<std::int64_t>(1, kMaxFlowWork / std::max<std::int64_t>(1, size));
    std::int64_t demand = pairs;
    for (std::size_t i = 0; i < members.size() && static_cast<std::int64_t>(i) < allowed; ++i) {
        demand += hops_to_group(graph, members[i], group_of) -
                  (collective.group_size(group_of[at(members[i])]) - 1);
    }
    const std::int64_t capacity = all_links(graph);
    if (!best.beaten_by(demand, capacity)) return;
    best = {};
    best.kind = WitnessKind::distance;
    best.demand = demand;
    best.capacity = capacity;
}

// Nothing when the work limits left no lengths.
struct LengthArgument {
    BandwidthWitness witness;
    bool optimal = false;
};
LengthArgument length_argument(const Topology& topology, const ir::Collective& collective) {
    constexpr double kAgree = 1e-6;
    LengthArgument made;
    const FlowNetwork network = flow_network(topology, collective);
    FlowLimits limits;
    limits.keep_units = false;
    const ConcurrentFlow flow = concurrent_flow(network, limits);
    const LengthBound bound = round_lengths(network, flow);
    if (bound.capacity == 0) return made;
    BandwidthWitness& witness = made.witness;
    witness.kind = WitnessKind::lengths;
    witness.demand = bound.demand;
    witness.capacity = bound.capacity;
    for (std::size_t r = 0; r < network.resources.size(); ++r) {
        if (bound.lengths[r] == 0) continue;
        const FlowResource& resource = network.resources[r];
        if (resource.limit >= 0) {
            witness.limits.push_back(resource.limit);
            witness.limit_lengths.push_back(bound.lengths[r]);
        }
        for (const int link : resource.links) {
            witness.links.push_back(link);
            witness.link_lengths.push_back(bound.lengths[r]);
        }
    }
    made.optimal = flow.optimal && bound.value() >= flow.bound * (1 - kAgree);
    return made;
}

BandwidthWitness witness_of(const CapacityGraph& graph, const BestArgument& best) {
    BandwidthWitness witness;
    witness.kind = best.kind;
    witness.demand = best.demand;
    witness.capacity = best.capacity * graph.scale;
    const auto count_arc = [&](const CapacityArc& arc) {
        (arc.link >= 0 ? witness.links : witness.limits).push_back(arc.link >= 0 ? arc.link : arc.limit);
    };
    if (best.kind == WitnessKind::cut) {
        for (int v = 0; v < graph.node_count; ++v) {
            if (best.inside[at(v)]) witness.inside.push_back(v);
        }
        for (const CapacityArc& arc : graph.arcs) {
            if (best.inside[at(arc.from)] && !best.inside[at(arc.to)]) count_arc(arc);
        }
    } else if (best.kind == WitnessKind::partition) {
        witness.entering = best.entering;
        std::map<int, std::vector<int>> parts;
        for (int v = 0; v < graph.node_count; ++v) {
            if (best.label[at(v)] >= 0) parts[best.label[at(v)]].push_back(v);
        }
        for (auto& [label, nodes] : parts) witness.parts.push_back(std::move(nodes));
        for (const CapacityArc& arc : graph.arcs) {
            const int a = best.label[at(arc.from)], b = best.label[at(arc.to)];
            if (a != b && (best.entering ? b : a) >= 0) count_arc(arc);
        }
    }
    return witness;
}

class Builder {
public:
    Builder(const Topology& topology, const ir::Collective& collective)
        : topology_(topology),
          collective_(collective),
          member_(member_nodes(topology, collective)),
          graph_(capacity_graph(topology, member_)),
          demand_(topology, collective) {}

    BandwidthBound build() {
        BandwidthBound bound;
        try_candidates();
        bound.best_cut = collective_.kind != Kind::all_to_all && search() && collective_.group_count() == 1;
        if (best_.kind == WitnessKind::nothing) {
            bound.best_cut = true;
            return bound;
        }
        bound.witness = witness_of(graph_, best_);
        if (collective_.kind == Kind::all_to_all) {
            LengthArgument lengths = length_argument(topology_, collective_);
            const BandwidthWitness& now = bound.witness;
            // A cut is easier to grasp where it proves the same.
            if (static_cast<Wide>(lengths.witness.demand) * now.capacity >
                static_cast<Wide>(now.demand) * lengths.witness.capacity)
                bound.witness = std::move(lengths.witness);
            bound.best_cut = lengths.optimal;
        }
        bound.seconds_per_byte = Rational(bound.witness.demand, bound.witness.capacity);
        return bound;
    }

private:
    void try_candidates() {
        const std::vector<Labels> divisions = natural_divisions(topology_, graph_);
        for (const Labels& labels : divisions) try_parts(graph_, labels, demand_, best_);
        if (collective_.kind == Kind::all_reduce) {
            std::vector<char> counted = member_;
            for (std::size_t v = 0; v < topology_.nodes.size(); ++v)
                counted[v] |= topology_.nodes[v].multicast || topology_.nodes[v].reduce;
            for (const Labels& labels : divisions)
                try_partition(topology_, collective_, graph_, labels, counted, best_);
        }
        if (collective_.kind == Kind::all_to_all || collective_.group_count() > 1) {
            const auto size = static_cast<std::int64_t>(graph_.arcs.size() + 1);
            try_sweeps(graph_, member_,
                       static_cast<int>(std::clamp<std::int64_t>(kMaxFlowWork / 10 / size, 1, 64)), demand_,
                       best_);
        }
        if (collective_.kind == Kind::all_to_all) try_distances(topology_, collective_, graph_, best_);
    }

    std::vector<int> nodes_of(int group, int without = -1) const {
        std::vector<int> nodes;
        for (int p = 0; p < collective_.group_size(group); ++p) {
            if (p != without) nodes.push_back(topology_.rank_nodes[at(collective_.rank_at(group, p))]);
        }
        return nodes;
    }

    // True when every cut was covered.
    bool search() {
        const CapacityGraph reversed = graph_.reverse();
        DemandCount* recount = collective_.group_count() > 1 ? &demand_ : nullptr;
        std::int64_t work = kMaxFlowWork;
        bool complete = true;
        for (int g = 0; g < collective_.group_count(); ++g) {
            const auto raise = [&](bool backward, const std::vector<int>& sources,
                                   const std::vector<int>& sinks) {
                complete &=
                    raise_to_worst_cut(backward ? reversed : graph_, sources, sinks, recount, work, best_);
            };
            const std::vector<int> all = nodes_of(g);
            const std::vector<int> others = nodes_of(g, collective_.root);
            const std::vector<int> root = {all[at(ir::has_root(collective_.kind) ? collective_.root : 0)]};
            switch (collective_.kind) {
                case Kind::broadcast: raise(false, root, others); break;
                case Kind::reduce: raise(true, root, others); break;
                case Kind::gather: raise(false, others, root); break;
                case Kind::scatter: raise(true, others, root); break;
                case Kind::all_gather:
                    if (all.size() > 1) raise(false, all, all);
                    break;
                case Kind::reduce_scatter:
                    if (all.size() > 1) raise(true, all, all);
                    break;
                case Kind::all_reduce:
                    raise(false, root, nodes_of(g, 0));
                    raise(true, root, nodes_of(g, 0));
                    break;
                case Kind::send_recv:
                    if (collective_.receiver(g) != collective_.root)
                        raise(false, root, {all[at(collective_.receiver(g))]});
                    break;
                case Kind::all_to_all:
                case Kind::custom: break;
            }
        }
        return complete;
    }

    const Topology& topology_;
    const ir::Collective& collective_;
    std::vector<char> member_;
    CapacityGraph graph_;
    DemandCount demand_;
    BestArgument best_;
};

}  // namespace

std::int64_t cut_demand(const Topology& topology, const ir::Collective& collective,
                        const std::vector<char>& inside_nodes) {
    DemandCount demand(topology, collective);
    for (std::size_t v = 0; v < topology.nodes.size(); ++v) {
        if (inside_nodes[v]) demand.add(static_cast<int>(v));
    }
    return demand.leaving();
}

BandwidthBound bandwidth_bound(const Topology& topology, const ir::Collective& collective) {
    if (collective.kind == Kind::custom)
        throw input_error("there is no bound for custom collectives", {}, "choose one of the standard kinds");
    return Builder(topology, collective).build();
}

}  // namespace baton::synth
