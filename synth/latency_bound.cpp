#include <baton/synth/latency_bound.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/participants.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;

using topologies::NodeType;
using topologies::Topology;

// Dijkstra over nodes; GPUs outside of the communicator neither send nor forward.
class Search {
public:
    Search(const Topology& topology, const std::vector<char>& member)
        : topology_(topology), member_(member) {}

    // Least latencies from `end` to every node; with `backward`, from every node to `end`.
    void run(int end, bool backward) {
        distance_.assign(topology_.nodes.size(), kUnknown);
        by_.assign(topology_.nodes.size(), -1);
        distance_[at(end)] = 0;
        using Reached = std::pair<std::int64_t, int>;
        std::priority_queue<Reached, std::vector<Reached>, std::greater<>> heap;
        heap.push({0, end});
        while (!heap.empty()) {
            const auto [reached, node] = heap.top();
            heap.pop();
            if (reached > distance_[at(node)]) continue;
            const bool member = member_[at(node)] != 0;
            if (!member && topology_.nodes[at(node)].type == NodeType::gpu) continue;
            const std::int64_t turn = member ? 0 : topology_.nodes[at(node)].latency.picoseconds;
            for (const int link : backward ? topology_.in_links[at(node)] : topology_.out_links[at(node)]) {
                const topologies::Link& crossed = topology_.links[at(link)];
                const int next = backward ? crossed.from : crossed.to;
                const std::int64_t arrival = reached + turn + crossed.latency.picoseconds;
                if (arrival >= distance_[at(next)]) continue;
                distance_[at(next)] = arrival;
                by_[at(next)] = link;
                heap.push({arrival, next});
            }
        }
    }
    bool known(int node) const { return distance_[at(node)] != kUnknown; }
    std::int64_t distance(int node) const { return distance_[at(node)]; }
    // Links between `node` and the end of the last run, in the order a message takes them.
    std::vector<int> way(int end, int node, bool backward) const {
        std::vector<int> links;
        while (node != end) {
            const int link = by_[at(node)];
            links.push_back(link);
            node = backward ? topology_.links[at(link)].to : topology_.links[at(link)].from;
        }
        if (!backward) std::reverse(links.begin(), links.end());
        return links;
    }

private:
    static constexpr std::int64_t kUnknown = INT64_MAX;
    const Topology& topology_;
    const std::vector<char>& member_;
    std::vector<std::int64_t> distance_;
    std::vector<int> by_;
};

Error unreachable(const Topology& topology, int rank, const std::vector<int>& lost, bool backward) {
    const auto name = [&](int r) {
        return fmt::format("{} ({})", r, topology.nodes[at(topology.rank_nodes[at(r)])].id);
    };
    std::string names;
    for (std::size_t i = 0; i < lost.size() && i < 8; ++i) names += (i == 0 ? "" : ", ") + name(lost[i]);
    if (lost.size() > 8) names += fmt::format(" and {} more", lost.size() - 8);
    return input_error(fmt::format("rank {} cannot {} rank{} {}", name(rank),
                                   backward ? "be reached by" : "reach", lost.size() == 1 ? "" : "s", names),
                       topology.name, "add links between them, or leave these ranks out");
}

// Position p of a group talks to all others, or hears from all others (`backward`), or neither (no partners).
struct Partners {
    std::vector<int> ranks;
    bool backward = false;
};

Partners partners(const ir::Collective& collective, int group, int position) {
    Partners found;
    const Kind kind = collective.kind;
    if (ir::has_root(kind) && position != collective.root) return found;
    if (kind == Kind::send_recv) {
        found.ranks = {collective.rank_at(group, collective.receiver(group))};
    } else {
        for (int p = 0; p < collective.group_size(group); ++p)
            found.ranks.push_back(collective.rank_at(group, p));
    }
    std::erase(found.ranks, collective.rank_at(group, position));
    found.backward = kind == Kind::gather || kind == Kind::reduce;
    return found;
}

int source_stride(const Topology& topology, const ir::Collective& collective) {
    const auto size = static_cast<std::int64_t>(topology.links.size() + topology.nodes.size());
    const std::int64_t sources =
        std::clamp<std::int64_t>(kMaxLatencyWork / std::max<std::int64_t>(1, size), 1, kMaxLatencySources);
    return static_cast<int>(1 + (collective.ranks - 1) / sources);
}

}  // namespace

LatencyBound latency_bound(const Topology& topology, const ir::Collective& collective) {
    const std::vector<char> member = member_nodes(topology, collective);
    Search search(topology, member);
    LatencyBound bound;
    int searched = 0;
    const auto look = [&](int rank, const Partners& others) {
        const int node = topology.rank_nodes[at(rank)];
        search.run(node, others.backward);
        std::vector<int> lost;
        int farthest = -1;
        for (const int other : others.ranks) {
            const int other_node = topology.rank_nodes[at(other)];
            if (!search.known(other_node))
                lost.push_back(other);
            else if (bound.source < 0 || search.distance(other_node) > bound.time.picoseconds) {
                bound.time = {search.distance(other_node)};
                bound.source = others.backward ? other : rank;
                bound.destination = others.backward ? rank : other;
                farthest = other_node;
            }
        }
        if (!lost.empty()) throw unreachable(topology, rank, lost, others.backward);
        if (farthest >= 0) bound.links = search.way(node, farthest, others.backward);
    };
    const int stride = ir::has_root(collective.kind) ? 1 : source_stride(topology, collective);
    for (int g = 0; g < collective.group_count(); ++g) {
        for (int p = 0; p < collective.group_size(g); p += stride) {
            Partners others = partners(collective, g, p);
            if (others.ranks.empty()) continue;
            look(collective.rank_at(g, p), others);
            ++searched;
            if (p > 0 || stride == 1) continue;
            // Whom the first member reaches, and who reaches it, can all reach each other.
            others.backward = true;
            look(collective.rank_at(g, p), others);
        }
    }
    if (stride > 1) bound.sampled = searched;
    return bound;
}

}  // namespace baton::synth
