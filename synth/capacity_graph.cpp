#include <baton/synth/capacity_graph.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <map>
#include <numeric>

namespace baton::synth {
namespace {

using topologies::NodeType;
using topologies::Topology;

// Part of a limit that lies on one node's links of one direction.
struct NodeLimit {
    int limit = -1;
    std::vector<int> links;
};

std::int64_t capacity_of(const Topology& topology, const std::vector<int>& links) {
    Wide sum = 0;
    for (const int link : links) sum += topology.links[at(link)].capacity().bytes_per_second;
    return sum > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(sum);
}

// Limits by (node, direction), smallest sets first so that nested ones can be stacked.
std::map<std::pair<int, bool>, std::vector<NodeLimit>> limits_by_node(const Topology& topology) {
    std::map<std::pair<int, bool>, std::vector<NodeLimit>> found;
    for (std::size_t l = 0; l < topology.limits.size(); ++l) {
        std::map<std::pair<int, bool>, std::vector<int>> parts;
        std::vector<int> links = topology.limits[l].links;
        std::sort(links.begin(), links.end());
        links.erase(std::unique(links.begin(), links.end()), links.end());
        for (const int link : links) {
            parts[{topology.links[at(link)].from, true}].push_back(link);
            parts[{topology.links[at(link)].to, false}].push_back(link);
        }
        for (auto& [place, subset] : parts) {
            if (capacity_of(topology, subset) <= topology.limits[l].bandwidth.bytes_per_second) continue;
            found[place].push_back({static_cast<int>(l), std::move(subset)});
        }
    }
    for (auto& [place, limits] : found) {
        std::stable_sort(limits.begin(), limits.end(), [](const NodeLimit& a, const NodeLimit& b) {
            return a.links.size() < b.links.size();
        });
    }
    return found;
}

// Adds the extra vertices of limits and tells for each link where it now begins or ends.
class LimitSplitter {
public:
    LimitSplitter(const Topology& topology, CapacityGraph& graph) : topology_(topology), graph_(graph) {
        tail.resize(topology.links.size());
        head.resize(topology.links.size());
        for (std::size_t l = 0; l < topology.links.size(); ++l) {
            tail[l] = topology.links[l].from;
            head[l] = topology.links[l].to;
        }
        for (const auto& [place, limits] : limits_by_node(topology)) split(place.first, place.second, limits);
    }
    std::vector<int> tail, head;

private:
    void split(int node, bool leaving, const std::vector<NodeLimit>& limits) {
        std::vector<int>& end = leaving ? tail : head;
        std::map<int, std::size_t> held;  // outermost vertex -> number of links behind it
        std::map<int, int> arc_of;        // outermost vertex -> its arc towards the node
        std::map<int, int> outermost;     // link -> outermost vertex around it
        for (const NodeLimit& limit : limits) {
            std::map<int, std::size_t> covered;
            for (const int link : limit.links) {
                if (const auto found = outermost.find(link); found != outermost.end())
                    ++covered[found->second];
            }
            // Overlapping without one holding the other cannot be drawn as a split.
            if (std::any_of(covered.begin(), covered.end(),
                            [&](const auto& c) { return held[c.first] != c.second; }))
                continue;
            const int vertex = graph_.vertices++;
            const std::int64_t capacity = topology_.limits[at(limit.limit)].bandwidth.bytes_per_second;
            for (const auto& [inner, count] : covered) {
                CapacityArc& arc = graph_.arcs[at(arc_of[inner])];
                (leaving ? arc.from : arc.to) = vertex;
            }
            for (const int link : limit.links) {
                if (outermost.find(link) == outermost.end()) end[at(link)] = vertex;
                outermost[link] = vertex;
            }
            held[vertex] = limit.links.size();
            arc_of[vertex] = static_cast<int>(graph_.arcs.size());
            graph_.arcs.push_back(
                {leaving ? node : vertex, leaving ? vertex : node, capacity, -1, limit.limit});
        }
    }

    const Topology& topology_;
    CapacityGraph& graph_;
};

void index_arcs(CapacityGraph& graph) {
    graph.out.assign(at(graph.vertices), {});
    graph.in.assign(at(graph.vertices), {});
    for (std::size_t a = 0; a < graph.arcs.size(); ++a) {
        graph.out[at(graph.arcs[a].from)].push_back(static_cast<int>(a));
        graph.in[at(graph.arcs[a].to)].push_back(static_cast<int>(a));
    }
}

void scale_down(CapacityGraph& graph) {
    std::int64_t divisor = 0;
    Wide total = 0;
    for (const CapacityArc& arc : graph.arcs) {
        divisor = std::gcd(divisor, arc.capacity);
        total += arc.capacity;
    }
    if (total >= Wide{1} << 62) {
        throw input_error(
            "the capacities of all links sum to more than 4.6e18 bytes per second, too much for exact bounds",
            {}, "use smaller bandwidths or counts");
    }
    graph.scale = std::max<std::int64_t>(1, divisor);
    for (CapacityArc& arc : graph.arcs) arc.capacity /= graph.scale;
    graph.total = static_cast<std::int64_t>(total) / graph.scale;
}

}  // namespace

CapacityGraph capacity_graph(const Topology& topology, const std::vector<char>& member) {
    CapacityGraph graph;
    graph.node_count = graph.vertices = static_cast<int>(topology.nodes.size());
    const LimitSplitter ends(topology, graph);
    const auto idle = [&](int node) {
        return topology.nodes[at(node)].type == NodeType::gpu && !member[at(node)];
    };
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        const topologies::Link& link = topology.links[l];
        if (idle(link.from) || idle(link.to) || link.from == link.to) continue;
        graph.arcs.push_back(
            {ends.tail[l], ends.head[l], link.capacity().bytes_per_second, static_cast<int>(l), -1});
    }
    scale_down(graph);
    index_arcs(graph);
    return graph;
}

CapacityGraph CapacityGraph::reverse() const {
    CapacityGraph turned = *this;
    turned.reversed = !reversed;
    for (CapacityArc& arc : turned.arcs) std::swap(arc.from, arc.to);
    std::swap(turned.out, turned.in);
    return turned;
}

CapacityCut CapacityGraph::cut_of(std::vector<char> inside) const {
    CapacityCut cut;
    cut.inside = std::move(inside);
    for (std::size_t a = 0; a < arcs.size(); ++a) {
        if (!cut.inside[at(arcs[a].from)] || cut.inside[at(arcs[a].to)]) continue;
        cut.arcs.push_back(static_cast<int>(a));
        cut.capacity += arcs[a].capacity;
    }
    return cut;
}

CapacityCut CapacityGraph::leaving(const std::vector<char>& inside_nodes) const {
    std::vector<char> inside = inside_nodes;
    inside.resize(at(vertices), 0);
    if (vertices == node_count) return cut_of(std::move(inside));
    MaxFlow<std::int64_t> flow(vertices + 2);
    for (const CapacityArc& arc : arcs) flow.add(arc.from, arc.to, arc.capacity);
    for (int v = 0; v < node_count; ++v) {
        if (inside[at(v)])
            flow.add(vertices, v, total + 1);
        else
            flow.add(v, vertices + 1, total + 1);
    }
    flow.run(vertices, vertices + 1, total + 1);
    for (int v = node_count; v < vertices; ++v) inside[at(v)] = flow.source_side(v);
    return cut_of(std::move(inside));
}

}  // namespace baton::synth
