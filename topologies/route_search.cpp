#include <baton/topologies/route_search.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <queue>
#include <unordered_map>

namespace baton::topologies {
namespace {

using HeapEntry = std::pair<Distance, int>;
using Heap = std::priority_queue<HeapEntry, std::vector<HeapEntry>, std::greater<>>;

// Distances of states, in pages that exist only where something was reached: a search sees its own host and
// the fabric, not the thousands of other hosts.
class Distances {
public:
    static constexpr std::size_t kPage = 64;
    explicit Distances(std::size_t states) : pages_((states + kPage - 1) / kPage) {}
    Distance get(int state) const {
        const Page* page = pages_[at(state) / kPage].get();
        return page == nullptr ? Distance{} : page->distance[at(state) % kPage];
    }
    void set(int state, Distance distance) {
        std::unique_ptr<Page>& page = pages_[at(state) / kPage];
        if (page == nullptr) {
            page = std::make_unique<Page>();
            ++used_;
        }
        page->distance[at(state) % kPage] = distance;
    }
    bool settled(int state) const {
        const Page* page = pages_[at(state) / kPage].get();
        return page != nullptr && page->settled[at(state) % kPage] != 0;
    }
    /// Of a state that has a distance.
    void settle(int state) { pages_[at(state) / kPage]->settled[at(state) % kPage] = 1; }
    /// What it takes, in distances.
    std::size_t size() const { return used_ * kPage + pages_.size() / 2; }

private:
    struct Page {
        std::array<Distance, kPage> distance{};
        std::array<char, kPage> settled{};
    };
    std::vector<std::unique_ptr<Page>> pages_;
    std::size_t used_ = 0;
};

// Distances from one source up to some horizon; a state is node * kForwardPhases + phase.
struct SourceTable {
    explicit SourceTable(std::size_t states) : distances(states) {}
    int source = -1;
    std::vector<int> nics;
    Distances distances;
    Heap heap;

    Distance settled_distance(int state) const {
        return distances.settled(state) ? distances.get(state) : Distance{};
    }
};

// Distances to one destination from the nodes of its host (by place in the host) at which traffic may arrive.
struct HostTable {
    std::vector<Distance> distance;
};

int state_of(int node, Phase phase) { return node * kForwardPhases + static_cast<int>(phase); }
Phase phase_of(int state) { return static_cast<Phase>(state % kForwardPhases); }

// Kept tables hold about this many distances in all (16 bytes each).
constexpr std::size_t kKeptDistances = std::size_t{8} << 20;

}  // namespace

struct RouteSearch::Data {
    Data(const Topology& t, const Forwarding& r) : topology(t), rules(r) {
        asked.assign(topology.nodes.size(), 0);
    }

    SourceTable& source_table(int rank, const std::vector<int>& nics);
    const HostTable& host_table(int rank, const std::vector<int>& nics);
    HostTable search_host(int destination, const std::vector<int>& nics) const;
    void settle_next(SourceTable& table);
    // Least distance; `table` is grown until nothing shorter can come.
    Distance least(SourceTable& table, int destination, const HostTable* host);
    Distance through_entries(const SourceTable& table, int tail, int destination,
                             const HostTable& host) const;
    template <class Visit>
    void for_entry(const SourceTable& table, int link, Visit visit) const;
    // The host table of a destination, or nothing when no link leads into its host.
    const HostTable* entered_host(int rank, const std::vector<int>& nics) {
        const int host = rules.host(topology.rank_nodes[at(rank)]);
        return host < 0 || rules.entry_links(host).empty() ? nullptr : &host_table(rank, nics);
    }

    const Topology& topology;
    const Forwarding& rules;
    std::size_t source_distances = 0, host_distances = 0;
    std::list<SourceTable> tables;  // most recently used first
    std::unordered_map<std::int64_t, std::list<SourceTable>::iterator> table_of;
    std::unordered_map<std::int64_t, HostTable> host_tables;
    std::vector<int> asked;  // question number for which a node is the tail of an entry link
    int question = 0;
};

RouteSearch::RouteSearch(const Topology& topology, const Forwarding& rules)
    : data_(std::make_unique<Data>(topology, rules)) {}
RouteSearch::~RouteSearch() = default;

SourceTable& RouteSearch::Data::source_table(int rank, const std::vector<int>& nics) {
    const std::int64_t key = std::int64_t{rank} * 2 + (nics.empty() ? 0 : 1);
    if (const auto found = table_of.find(key); found != table_of.end()) {
        tables.splice(tables.begin(), tables, found->second);
        return tables.front();
    }
    while (tables.size() > 1 && source_distances > kKeptDistances) {
        const SourceTable& last = tables.back();
        const int last_rank = topology.nodes[at(last.source)].rank;
        source_distances -= last.distances.size();
        table_of.erase(std::int64_t{last_rank} * 2 + (last.nics.empty() ? 0 : 1));
        tables.pop_back();
    }
    SourceTable& table = tables.emplace_front(topology.nodes.size() * kForwardPhases);
    table_of[key] = tables.begin();
    table.source = topology.rank_nodes[at(rank)];
    table.nics = nics;
    const int start = state_of(table.source, rules.start(table.source));
    table.distances.set(start, {0, 0});
    source_distances += table.distances.size();
    table.heap.push({{0, 0}, start});
    return table;
}

void RouteSearch::Data::settle_next(SourceTable& table) {
    const auto [reached, state] = table.heap.top();
    table.heap.pop();
    if (table.distances.settled(state)) return;
    table.distances.settle(state);
    source_distances -= table.distances.size();
    const int node = state / kForwardPhases;
    for (const int link : topology.out_links[at(node)]) {
        Phase next;
        if (!rules.step(table.source, table.nics, phase_of(state), link, next)) continue;
        if (next == Phase::away) continue;
        const int head = state_of(topology.links[at(link)].to, next);
        const Distance candidate = reached.plus(rules.cost(link, node == table.source));
        if (candidate < table.distances.get(head)) {
            table.distances.set(head, candidate);
            table.heap.push({candidate, head});
        }
    }
    source_distances += table.distances.size();
}

const HostTable& RouteSearch::Data::host_table(int rank, const std::vector<int>& nics) {
    const std::int64_t key = std::int64_t{rank} * 2 + (nics.empty() ? 0 : 1);
    if (const auto found = host_tables.find(key); found != host_tables.end()) return found->second;
    if (host_distances > kKeptDistances) {
        host_tables.clear();
        host_distances = 0;
    }
    HostTable table = search_host(topology.rank_nodes[at(rank)], nics);
    host_distances += table.distance.size();
    return host_tables.emplace(key, std::move(table)).first->second;
}

HostTable RouteSearch::Data::search_host(int destination, const std::vector<int>& nics) const {
    HostTable table;
    const int host = rules.host(destination);
    table.distance.resize(rules.host_nodes(host).size());
    Heap heap;
    table.distance[at(rules.place_in_host(destination))] = {0, 0};
    heap.push({{0, 0}, destination});
    while (!heap.empty()) {
        const auto [reached, v] = heap.top();
        heap.pop();
        if (table.distance[at(rules.place_in_host(v))] < reached) continue;
        // A NIC on the way is where traffic enters; nothing inside the host may lead to it.
        if (v != destination && topology.nodes[at(v)].type == NodeType::nic) continue;
        for (const int link : topology.in_links[at(v)]) {
            const int u = topology.links[at(link)].from;
            if (!rules.step_away(link, true)) continue;
            if (topology.nodes[at(u)].type == NodeType::nic && !nics.empty() &&
                std::find(nics.begin(), nics.end(), u) == nics.end())
                continue;
            const Distance candidate = reached.plus(rules.cost(link, false));
            Distance& best = table.distance[at(rules.place_in_host(u))];
            if (candidate < best) {
                best = candidate;
                heap.push({candidate, u});
            }
        }
    }
    return table;
}

// Visits the settled states from which `link` leads into the destination's host: visit(state, distance at its
// head).
template <class Visit>
void RouteSearch::Data::for_entry(const SourceTable& table, int link, Visit visit) const {
    const int tail = topology.links[at(link)].from;
    for (int phase = 0; phase < kForwardPhases; ++phase) {
        const int state = state_of(tail, static_cast<Phase>(phase));
        const Distance reached = table.settled_distance(state);
        Phase next;
        if (!reached.known() || !rules.step(table.source, table.nics, static_cast<Phase>(phase), link, next))
            continue;
        if (next == Phase::away) visit(state, reached.plus(rules.cost(link, tail == table.source)));
    }
}

Distance RouteSearch::Data::through_entries(const SourceTable& table, int tail, int destination,
                                            const HostTable& host) const {
    Distance best;
    for (const int link : rules.entry_links(rules.host(destination))) {
        if (tail >= 0 && topology.links[at(link)].from != tail) continue;
        const Distance rest = host.distance[at(rules.place_in_host(topology.links[at(link)].to))];
        if (!rest.known()) continue;
        for_entry(table, link, [&](int, Distance entered) {
            best = std::min(best, Distance{entered.picoseconds + rest.picoseconds, entered.hops + rest.hops});
        });
    }
    return best;
}

Distance RouteSearch::Data::least(SourceTable& table, int destination, const HostTable* host) {
    const auto reached_directly = [&] {
        Distance best;
        for (int phase = 0; phase < kForwardPhases; ++phase) {
            best = std::min(best, table.settled_distance(state_of(destination, static_cast<Phase>(phase))));
        }
        return best;
    };
    Distance best = reached_directly();
    if (host != nullptr) {
        ++question;
        for (const int link : rules.entry_links(rules.host(destination)))
            asked[at(topology.links[at(link)].from)] = question;
        best = std::min(best, through_entries(table, -1, destination, *host));
    }
    while (!table.heap.empty() && table.heap.top().first <= best) {
        const int node = table.heap.top().second / kForwardPhases;
        settle_next(table);
        if (node == destination) best = std::min(best, reached_directly());
        if (host != nullptr && asked[at(node)] == question)
            best = std::min(best, through_entries(table, node, destination, *host));
    }
    return best;
}

bool RouteSearch::reachable(int source_rank, int destination_rank, const std::vector<int>& source_nics,
                            const std::vector<int>& destination_nics) {
    SourceTable& table = data_->source_table(source_rank, source_nics);
    const HostTable* host = data_->entered_host(destination_rank, destination_nics);
    return data_->least(table, data_->topology.rank_nodes[at(destination_rank)], host).known();
}

namespace {

// Collects the states of all least paths. Keys below `away_offset` are states of the source table, above are
// nodes of the destination's host.
class Collector {
public:
    struct Edge {
        int from, to, link;
    };
    int state(std::int64_t key, int node, int hops) {
        const auto [place, fresh] = index_.emplace(key, static_cast<int>(nodes_.size()));
        if (fresh) {
            nodes_.push_back({node, hops, {}});
            keys_.push_back(key);
        }
        return place->second;
    }
    void edge(int from, int to, int link) { edges_.push_back({from, to, link}); }
    std::size_t size() const { return nodes_.size(); }
    std::int64_t key(std::size_t i) const { return keys_[i]; }

    // States in order of distance with the capacity behind each branch.
    std::vector<Branches::State> finish(const Topology& topology, int destination) {
        std::vector<int> order(nodes_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
        std::sort(order.begin(), order.end(), [&](int a, int b) {
            return nodes_[at(a)].hops != nodes_[at(b)].hops ? nodes_[at(a)].hops < nodes_[at(b)].hops
                                                            : keys_[at(a)] < keys_[at(b)];
        });
        std::vector<int> position(order.size());
        for (std::size_t i = 0; i < order.size(); ++i) position[at(order[i])] = static_cast<int>(i);
        std::vector<Branches::State> states;
        for (const int i : order) states.push_back(std::move(nodes_[at(i)]));
        std::stable_sort(edges_.begin(), edges_.end(),
                         [](const Edge& a, const Edge& b) { return a.link < b.link; });
        for (const Edge& e : edges_)
            states[at(position[at(e.from)])].out.push_back({e.link, position[at(e.to)], 0});
        std::vector<double> behind(states.size(), 0);
        for (std::size_t i = states.size(); i-- > 0;) {
            if (states[i].node == destination) behind[i] = 1e300;
            for (Branch& branch : states[i].out) {
                branch.capacity =
                    std::min(topology.links[at(branch.link)].capacity().value(), behind[at(branch.to)]);
                behind[i] += branch.capacity;
            }
        }
        return states;
    }

private:
    std::unordered_map<std::int64_t, int> index_;
    std::vector<Branches::State> nodes_;
    std::vector<std::int64_t> keys_;
    std::vector<Edge> edges_;
};

}  // namespace

Branches RouteSearch::between(int source_rank, int destination_rank, const std::vector<int>& source_nics,
                              const std::vector<int>& destination_nics) {
    const Topology& topology = data_->topology;
    const Forwarding& rules = data_->rules;
    SourceTable& table = data_->source_table(source_rank, source_nics);
    const HostTable* host = data_->entered_host(destination_rank, destination_nics);
    const int destination = topology.rank_nodes[at(destination_rank)];
    Branches result;
    result.length = data_->least(table, destination, host);
    if (!result.reachable()) return result;
    const std::int64_t away = static_cast<std::int64_t>(topology.nodes.size()) * kForwardPhases;
    Collector collector;
    const auto outside = [&](int state) {
        return collector.state(state, state / kForwardPhases, table.distances.get(state).hops);
    };
    const auto rest = [&](int node) { return host->distance[at(rules.place_in_host(node))]; };
    const auto inside = [&](int node) {
        return collector.state(away + node, node, result.length.hops - rest(node).hops);
    };
    for (int phase = 0; phase < kForwardPhases; ++phase) {
        const int state = state_of(destination, static_cast<Phase>(phase));
        if (table.settled_distance(state) == result.length) outside(state);
    }
    if (host != nullptr) {
        for (const int link : rules.entry_links(rules.host(destination))) {
            const int head = topology.links[at(link)].to;
            if (!rest(head).known()) continue;
            data_->for_entry(table, link, [&](int state, Distance entered) {
                const Distance whole{entered.picoseconds + rest(head).picoseconds,
                                     entered.hops + rest(head).hops};
                if (whole == result.length) collector.edge(outside(state), inside(head), link);
            });
        }
    }
    // States found on the way are visited in turn: inside the host forward, outside backward to the source.
    for (std::size_t i = 0; i < collector.size(); ++i) {
        const std::int64_t key = collector.key(i);
        if (key >= away) {
            const int node = static_cast<int>(key - away);
            if (node == destination) continue;
            for (const int link : topology.out_links[at(node)]) {
                const int head = topology.links[at(link)].to;
                if (!rules.step_away(link, true) || !rest(head).known()) continue;
                if (head != destination && topology.nodes[at(head)].type == NodeType::nic) continue;
                if (rest(head).plus(rules.cost(link, false)) == rest(node))
                    collector.edge(static_cast<int>(i), inside(head), link);
            }
            continue;
        }
        const int state = static_cast<int>(key);
        for (const int link : topology.in_links[at(state / kForwardPhases)]) {
            const int tail = topology.links[at(link)].from;
            for (int phase = 0; phase < kForwardPhases; ++phase) {
                const int before = state_of(tail, static_cast<Phase>(phase));
                const Distance reached = table.settled_distance(before);
                Phase next;
                if (!reached.known() ||
                    !rules.step(table.source, table.nics, static_cast<Phase>(phase), link, next))
                    continue;
                if (next != phase_of(state)) continue;
                if (reached.plus(rules.cost(link, tail == table.source)) != table.distances.get(state))
                    continue;
                collector.edge(outside(before), static_cast<int>(i), link);
            }
        }
    }
    result.states = collector.finish(topology, destination);
    return result;
}

}  // namespace baton::topologies
