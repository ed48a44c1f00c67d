#include <baton/synth/cut_search.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace baton::synth {
namespace {

using topologies::Topology;
using Kind = ir::CollectiveKind;

}  // namespace

DemandCount::DemandCount(const Topology& topology, const ir::Collective& collective)
    : kind_(collective.kind) {
    members_.resize(topology.nodes.size());
    for (int g = 0; g < collective.group_count(); ++g) {
        groups_.push_back({collective.group_size(g), 0, false, false});
        for (int p = 0; p < collective.group_size(g); ++p) {
            const int node = topology.rank_nodes[at(collective.rank_at(g, p))];
            members_[at(node)] = {g, p == collective.root, p == collective.receiver(g)};
        }
    }
    clear();
}

void DemandCount::clear() {
    leaving_ = entering_ = 0;
    for (Group& group : groups_) group.inside = 0, group.root_inside = group.peer_inside = false;
}

std::int64_t DemandCount::demand(const Group& group, bool complement) const {
    const std::int64_t inside = complement ? group.size - group.inside : group.inside,
                       outside = group.size - inside;
    const bool root = complement != group.root_inside, peer = complement != group.peer_inside;
    switch (kind_) {
        case Kind::broadcast: return root && outside > 0 ? 1 : 0;
        case Kind::scatter: return root ? outside : 0;
        case Kind::gather: return root ? 0 : inside;
        case Kind::reduce: return !root && inside > 0 ? 1 : 0;
        case Kind::all_gather: return outside > 0 ? inside : 0;
        case Kind::reduce_scatter: return inside > 0 ? outside : 0;
        case Kind::all_reduce: return inside > 0 && outside > 0 ? 1 : 0;
        case Kind::all_to_all: return inside * outside;
        case Kind::send_recv: return root && !peer ? 1 : 0;
        case Kind::custom: return 0;
    }
    return 0;
}

void DemandCount::add(int node) {
    if (at(node) >= members_.size() || members_[at(node)].group < 0) return;
    const Member& member = members_[at(node)];
    Group& group = groups_[at(member.group)];
    leaving_ -= demand(group, false);
    entering_ -= demand(group, true);
    ++group.inside;
    group.root_inside |= member.root;
    group.peer_inside |= member.peer;
    leaving_ += demand(group, false);
    entering_ += demand(group, true);
}

bool BestArgument::beaten_by(std::int64_t other_demand, std::int64_t other_capacity) const {
    return other_capacity > 0 &&
           static_cast<Wide>(other_demand) * capacity > static_cast<Wide>(demand) * other_capacity;
}

namespace {

void keep_cut(BestArgument& best, std::int64_t demand, std::int64_t capacity, std::vector<char> inside) {
    best = {};
    best.kind = WitnessKind::cut;
    best.demand = demand;
    best.capacity = capacity;
    best.inside = std::move(inside);
}

std::vector<char> turned(std::vector<char> inside) {
    for (char& c : inside) c = static_cast<char>(!c);
    return inside;
}

// Extra vertices of limits go with the node they belong to.
void label_extra_vertices(const CapacityGraph& graph, std::vector<int>& label) {
    bool changed = graph.vertices > graph.node_count;
    while (changed) {
        changed = false;
        for (const CapacityArc& arc : graph.arcs) {
            if (arc.limit < 0) continue;
            const int a = label[at(arc.from)], b = label[at(arc.to)];
            if (a < 0 && b >= 0) label[at(arc.from)] = b, changed = true;
            if (b < 0 && a >= 0) label[at(arc.to)] = a, changed = true;
        }
    }
}

class Union {
public:
    explicit Union(int size) : parent_(at(size)) { std::iota(parent_.begin(), parent_.end(), 0); }
    int find(int v) {
        while (parent_[at(v)] != v) v = parent_[at(v)] = parent_[at(parent_[at(v)])];
        return v;
    }
    void join(int a, int b) { parent_[at(find(a))] = find(b); }

private:
    std::vector<int> parent_;
};

Labels by_capacity(const CapacityGraph& graph, std::int64_t least) {
    Union joined(graph.vertices);
    for (const CapacityArc& arc : graph.arcs) {
        if (arc.limit >= 0 || arc.capacity >= least) joined.join(arc.from, arc.to);
    }
    Labels labels;
    labels.of.assign(at(graph.vertices), -1);
    std::vector<int> number(at(graph.vertices), -1);
    for (int v = 0; v < graph.vertices; ++v) {
        int& n = number[at(joined.find(v))];
        if (n < 0) n = labels.count++;
        labels.of[at(v)] = n;
    }
    return labels;
}

}  // namespace

std::vector<Labels> natural_divisions(const Topology& topology, const CapacityGraph& graph) {
    std::vector<Labels> divisions;
    Labels single;
    single.of.assign(at(graph.vertices), -1);
    single.count = graph.node_count;
    std::iota(single.of.begin(), single.of.begin() + graph.node_count, 0);
    label_extra_vertices(graph, single.of);
    divisions.push_back(single);

    Labels hosts;
    hosts.of.assign(at(graph.vertices), -1);
    std::unordered_map<std::string, int> numbers;
    for (int v = 0; v < graph.node_count; ++v) {
        const std::string& host = topology.nodes[at(v)].host;
        if (host.empty())
            hosts.of[at(v)] = hosts.count++;
        else {
            const auto [place, fresh] = numbers.emplace(host, hosts.count);
            if (fresh) ++hosts.count;
            hosts.of[at(v)] = place->second;
        }
    }
    label_extra_vertices(graph, hosts.of);
    divisions.push_back(std::move(hosts));

    std::vector<std::int64_t> capacities;
    for (const CapacityArc& arc : graph.arcs) {
        if (arc.link >= 0) capacities.push_back(arc.capacity);
    }
    std::sort(capacities.begin(), capacities.end());
    capacities.erase(std::unique(capacities.begin(), capacities.end()), capacities.end());
    constexpr std::size_t kMost = 32;
    const std::size_t step = 1 + capacities.size() / kMost;
    for (std::size_t i = 0; i < capacities.size(); i += step)
        divisions.push_back(by_capacity(graph, capacities[i]));
    return divisions;
}

void try_parts(const CapacityGraph& graph, const Labels& labels, DemandCount& demand, BestArgument& best) {
    std::vector<std::int64_t> out(at(labels.count), 0), in(at(labels.count), 0);
    for (const CapacityArc& arc : graph.arcs) {
        const int a = labels.of[at(arc.from)], b = labels.of[at(arc.to)];
        if (a == b) continue;
        if (a >= 0) out[at(a)] += arc.capacity;
        if (b >= 0) in[at(b)] += arc.capacity;
    }
    std::vector<std::vector<int>> nodes(at(labels.count));
    for (int v = 0; v < graph.node_count; ++v) nodes[at(labels.of[at(v)])].push_back(v);
    for (int part = 0; part < labels.count; ++part) {
        demand.clear();
        for (const int v : nodes[at(part)]) demand.add(v);
        const auto inside = [&] {
            std::vector<char> set(at(graph.vertices));
            for (int v = 0; v < graph.vertices; ++v) set[at(v)] = labels.of[at(v)] == part;
            return set;
        };
        if (best.beaten_by(demand.leaving(), out[at(part)]))
            keep_cut(best, demand.leaving(), out[at(part)], inside());
        if (best.beaten_by(demand.entering(), in[at(part)]))
            keep_cut(best, demand.entering(), in[at(part)], turned(inside()));
    }
}

void try_partition(const Topology& topology, const ir::Collective& collective, const CapacityGraph& graph,
                   const Labels& labels, const std::vector<char>& counted, BestArgument& best) {
    std::vector<char> part_counts(at(labels.count), 0);
    for (int v = 0; v < graph.node_count; ++v) {
        if (counted[at(v)]) part_counts[at(labels.of[at(v)])] = 1;
    }
    std::int64_t demand = 0;
    for (int g = 0; g < collective.group_count(); ++g) {
        std::vector<int> parts;
        for (int p = 0; p < collective.group_size(g); ++p)
            parts.push_back(labels.of[at(topology.rank_nodes[at(collective.rank_at(g, p))])]);
        std::sort(parts.begin(), parts.end());
        demand += 2 * (std::unique(parts.begin(), parts.end()) - parts.begin() - 1);
    }
    std::int64_t out = 0, in = 0;
    for (const CapacityArc& arc : graph.arcs) {
        const int a = labels.of[at(arc.from)], b = labels.of[at(arc.to)];
        if (a == b) continue;
        if (a >= 0 && part_counts[at(a)]) out += arc.capacity;
        if (b >= 0 && part_counts[at(b)]) in += arc.capacity;
    }
    const std::int64_t capacity = std::min(out, in);
    if (demand == 0 || !best.beaten_by(demand, capacity)) return;
    best = {};
    best.kind = WitnessKind::partition;
    best.demand = demand;
    best.capacity = capacity;
    best.entering = in <= out;
    best.label = labels.of;
    for (int& label : best.label) {
        if (label >= 0 && !part_counts[at(label)]) label = -1;
    }
}

void try_sweeps(const CapacityGraph& graph, const std::vector<char>& member, int sources, DemandCount& demand,
                BestArgument& best) {
    std::vector<int> starts;
    for (int v = 0; v < graph.node_count; ++v) {
        if (member[at(v)]) starts.push_back(v);
    }
    const std::size_t stride = 1 + (starts.size() - 1) / static_cast<std::size_t>(sources);
    for (std::size_t s = 0; s < starts.size(); s += stride) {
        std::vector<int> order = {starts[s]};
        std::vector<char> inside(at(graph.vertices), 0), seen(at(graph.vertices), 0);
        seen[at(starts[s])] = 1;
        demand.clear();
        std::int64_t out = 0, in = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            const int v = order[i];
            for (const int a : graph.out[at(v)]) {
                const CapacityArc& arc = graph.arcs[at(a)];
                if (inside[at(arc.to)])
                    in -= arc.capacity;
                else
                    out += arc.capacity;
                if (!seen[at(arc.to)]) seen[at(arc.to)] = 1, order.push_back(arc.to);
            }
            for (const int a : graph.in[at(v)]) {
                const CapacityArc& arc = graph.arcs[at(a)];
                if (inside[at(arc.from)])
                    out -= arc.capacity;
                else
                    in += arc.capacity;
            }
            inside[at(v)] = 1;
            demand.add(v);
            if (best.beaten_by(demand.leaving(), out)) keep_cut(best, demand.leaving(), out, inside);
            if (best.beaten_by(demand.entering(), in)) keep_cut(best, demand.entering(), in, turned(inside));
        }
    }
}

namespace {

template <class Amount>
class RatioSearch {
public:
    RatioSearch(const CapacityGraph& graph, const std::vector<int>& sources)
        : graph_(graph), sources_(sources), flow_(graph.vertices + 1) {
        for (const CapacityArc& arc : graph.arcs) flow_.add(arc.from, arc.to, 0);
        for (const int source : sources) flow_.add(graph.vertices, source, 0);
    }

    // The set of a violated cut at ratio p/q with `sink` outside, empty when there is none.
    std::vector<char> violated(int sink, std::int64_t p, std::int64_t q) {
        if (p != p_ || q != q_) {
            for (std::size_t a = 0; a < graph_.arcs.size(); ++a)
                flow_.set_capacity(static_cast<int>(a), static_cast<Amount>(graph_.arcs[a].capacity) * p);
            for (std::size_t i = 0; i < sources_.size(); ++i)
                flow_.set_capacity(static_cast<int>(graph_.arcs.size() + i), q);
            p_ = p;
            q_ = q;
            holder_ = -1;
        }
        const Amount wanted = static_cast<Amount>(q) * static_cast<std::int64_t>(sources_.size());
        // Neighboring sinks share most of their flow: what the last one holds is moved on.
        const Amount reached =
            holder_ < 0 ? flow_.run(graph_.vertices, sink, wanted) : flow_.move(holder_, sink, wanted);
        holder_ = reached >= wanted ? sink : -1;
        if (reached >= wanted) return {};
        std::vector<char> inside(at(graph_.vertices));
        for (int v = 0; v < graph_.vertices; ++v) inside[at(v)] = flow_.source_side(v);
        return inside;
    }
    std::int64_t sources_in(const std::vector<char>& inside) const {
        return std::count_if(sources_.begin(), sources_.end(), [&](int v) { return inside[at(v)]; });
    }

private:
    const CapacityGraph& graph_;
    const std::vector<int>& sources_;
    MaxFlow<Amount> flow_;
    std::int64_t p_ = -1, q_ = -1;
    int holder_ = -1;  // sink at which all of the present flow ends
};

// Sinks in breadth-first order, so that each is near the one before.
std::vector<int> by_nearness(const CapacityGraph& graph, const std::vector<int>& sinks) {
    std::vector<char> seen(at(graph.vertices), 0), wanted(at(graph.vertices), 0);
    for (const int sink : sinks) wanted[at(sink)] = 1;
    std::vector<int> order, queue;
    for (const int start : sinks) {
        if (!seen[at(start)]) seen[at(start)] = 1, queue.push_back(start);
        for (std::size_t i = queue.size() - 1; i < queue.size(); ++i) {
            if (wanted[at(queue[i])]) order.push_back(queue[i]), wanted[at(queue[i])] = 0;
            for (const int a : graph.out[at(queue[i])]) {
                const int next = graph.arcs[at(a)].to;
                if (!seen[at(next)]) seen[at(next)] = 1, queue.push_back(next);
            }
        }
    }
    return order;
}

template <class Amount>
bool raise(const CapacityGraph& graph, const std::vector<int>& sources, const std::vector<int>& sinks,
           DemandCount* recount, std::int64_t& work, BestArgument& best) {
    RatioSearch<Amount> search(graph, sources);
    // The ratio of this search alone; with several groups `best` may hold a better joint one.
    std::int64_t p = best.demand, q = best.capacity;
    for (const int sink : by_nearness(graph, sinks)) {
        while (true) {
            if (work <= 0) return false;
            work -= static_cast<std::int64_t>(graph.arcs.size() + sources.size());
            const std::int64_t divisor = std::gcd(p, q);
            std::vector<char> inside = search.violated(sink, p / divisor, q / divisor);
            if (inside.empty()) break;
            p = search.sources_in(inside);
            q = graph.cut_of(inside).capacity;
            if (p == 0 || q == 0) return false;  // a sink out of reach; callers exclude it
            std::int64_t demand = p;
            if (graph.reversed) inside = turned(std::move(inside));
            if (recount != nullptr) {
                recount->clear();
                for (int v = 0; v < graph.node_count; ++v) {
                    if (inside[at(v)]) recount->add(v);
                }
                demand = recount->leaving();
            }
            if (best.beaten_by(demand, q)) keep_cut(best, demand, q, std::move(inside));
            if (static_cast<Wide>(best.demand) * q > static_cast<Wide>(p) * best.capacity) {
                p = best.demand;
                q = best.capacity;
            }
        }
    }
    return true;
}

}  // namespace

bool raise_to_worst_cut(const CapacityGraph& graph, const std::vector<int>& sources,
                        const std::vector<int>& sinks, DemandCount* recount, std::int64_t& work,
                        BestArgument& best) {
    if (sources.empty() || sinks.empty()) return true;
    // Largest sum of capacities: p times all arcs, and q per source, for any ratio p/q of this graph.
    const Wide demand = std::max<std::int64_t>(best.demand, static_cast<std::int64_t>(sources.size()));
    const Wide capacity = std::max<std::int64_t>(best.capacity, graph.total);
    const Wide most = demand * graph.total + static_cast<Wide>(sources.size()) * capacity;
    if (most < Wide{1} << 62) return raise<std::int64_t>(graph, sources, sinks, recount, work, best);
    return raise<Wide>(graph, sources, sinks, recount, work, best);
}

}  // namespace baton::synth
