#include <baton/topologies/topology.hpp>

#include <baton/base/error.hpp>
#include <baton/topologies/read.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace baton::topologies {
namespace {

constexpr std::array<std::string_view, 5> kNodeTypes = {"gpu", "cpu", "nic", "switch", "pcie"};
constexpr std::array<std::string_view, 10> kLinkKinds = {
    "nvlink", "xgmi", "c2c", "pcie", "infiniband", "roce_v1", "roce_v2", "ethernet", "upi", "custom"};
// Sums of a million hops stay below 2^63 picoseconds.
constexpr Time kMaxLatency{1'000'000'000'000};
constexpr std::int64_t kMaxRate = 1'000'000'000'000'000'000;
constexpr std::size_t kMaxIdBytes = 256;

template <class Enum, std::size_t N>
std::optional<Enum> from_name(const std::array<std::string_view, N>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

template <class Item>
int index_of(const std::vector<Item>& items, const std::vector<int>& sorted, std::string_view id) {
    if (sorted.size() != items.size()) {
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (items[i].id == id) return static_cast<int>(i);
        }
        return -1;
    }
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), id, [&](int i, std::string_view key) {
        return items[static_cast<std::size_t>(i)].id < key;
    });
    return found != sorted.end() && items[static_cast<std::size_t>(*found)].id == id ? *found : -1;
}

// Indices sorted by id; an error names the first id that comes twice. `sorted` may hold an order of earlier.
template <class Item>
void sort_by_id(const std::vector<Item>& items, std::vector<int>& sorted, const char* what,
                const std::string& where) {
    const auto id = [&](int i) -> const std::string& { return items[static_cast<std::size_t>(i)].id; };
    const auto known = [&](int i) { return i >= 0 && static_cast<std::size_t>(i) < items.size(); };
    const auto ascending = [&] {
        for (std::size_t i = 1; i < sorted.size(); ++i) {
            if (!known(sorted[i]) || !known(sorted[i - 1]) || id(sorted[i - 1]).compare(id(sorted[i])) >= 0)
                return false;
        }
        return sorted.empty() || known(sorted.front());
    };
    // Strictly ascending ids of the right number are a permutation.
    if (sorted.size() == items.size() && ascending()) return;
    sorted.resize(items.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::sort(sorted.begin(), sorted.end(), [&](int a, int b) {
        const int order = id(a).compare(id(b));
        return order != 0 ? order < 0 : a < b;
    });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
        if (id(sorted[i]) != id(sorted[i - 1])) continue;
        const std::string twice = id(sorted[i]);
        sorted.clear();
        throw input_error(fmt::format("two {}s have the id '{}'", what, twice), where, "ids are unique");
    }
}

void check_id(const std::string& id, const char* what, std::string_view forbidden, const std::string& where) {
    if (id.empty()) throw input_error(fmt::format("a {} has no id", what), where);
    if (id.size() > kMaxIdBytes) {
        throw input_error(fmt::format("the id of a {} is longer than {} bytes: '{}...'", what, kMaxIdBytes,
                                      id.substr(0, 40)),
                          where);
    }
    for (const char c : id) {
        if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f ||
            forbidden.find(c) != std::string_view::npos) {
            throw input_error(fmt::format("the id '{}' of a {} holds a character that it must not", id, what),
                              where, fmt::format("leave out blanks and {}", forbidden));
        }
    }
}

class Fnv {
public:
    void add(std::string_view text) {
        for (const char c : text) step(static_cast<unsigned char>(c));
        step(0);
    }
    void add(std::int64_t value) {
        const fmt::format_int digits(value);
        add(std::string_view(digits.data(), digits.size()));
    }
    std::uint64_t value() const { return value_; }

private:
    void step(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
    std::uint64_t value_ = 14695981039346656037ULL;
};

// Gives GPUs without a stated rank the lowest free ones; returns the node of each rank.
std::vector<int> assign_ranks(std::vector<Node>& nodes, const std::string& where) {
    std::size_t ranks = 0;
    for (Node& node : nodes) {
        if (node.rank == kDefaultRank && node.type != NodeType::gpu) node.rank = -1;
        if (node.rank != -1) ++ranks;
    }
    std::vector<int> rank_nodes(ranks, -1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const int rank = nodes[i].rank;
        if (rank < 0) continue;
        if (static_cast<std::size_t>(rank) >= ranks) {
            throw input_error(
                fmt::format("node '{}' has rank {}, but the number of ranks is {}", nodes[i].id, rank, ranks),
                where, "ranks are 0 to the number of ranks minus 1, each once");
        }
        int& place = rank_nodes[static_cast<std::size_t>(rank)];
        if (place >= 0) {
            throw input_error(fmt::format("nodes '{}' and '{}' both have rank {}",
                                          nodes[static_cast<std::size_t>(place)].id, nodes[i].id, rank),
                              where);
        }
        place = static_cast<int>(i);
    }
    std::size_t next = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].rank != kDefaultRank) continue;
        while (rank_nodes[next] >= 0) ++next;
        rank_nodes[next] = static_cast<int>(i);
        nodes[i].rank = static_cast<int>(next);
    }
    return rank_nodes;
}

// "a>b", then "a>b#2", ... for links without an id, in file order. Needs out_links.
void assign_link_ids(Topology& topology) {
    std::unordered_set<std::string> taken;
    bool missing = false;
    for (const Link& link : topology.links) missing = missing || link.id.empty();
    if (!missing) return;
    for (const Link& link : topology.links) {
        if (!link.id.empty()) taken.insert(link.id);
    }
    // Per head: how many links of the current tail lead there, and which tail was last.
    std::vector<int> number(topology.nodes.size(), 0), tail(topology.nodes.size(), -1);
    for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
        for (const int index : topology.out_links[node]) {
            Link& link = topology.links[static_cast<std::size_t>(index)];
            if (!link.id.empty()) continue;
            const auto to = static_cast<std::size_t>(link.to);
            if (tail[to] != static_cast<int>(node)) number[to] = 0;
            tail[to] = static_cast<int>(node);
            const std::string base = topology.nodes[node].id + ">" + topology.nodes[to].id;
            do {
                link.id = ++number[to] == 1 ? base : fmt::format("{}#{}", base, number[to]);
            } while (!taken.empty() && taken.count(link.id) != 0);
        }
    }
}

}  // namespace

void check_node(const Node& node, const std::string& where) {
    check_id(node.id, "node", "*<>,", where);
    const auto bad = [&](const char* why) {
        return input_error(fmt::format("node '{}': {}", node.id, why), where);
    };
    if (node.latency < Time{} || node.latency > kMaxLatency) throw bad("latency must be within 0 and 1 s");
    if (node.message_overhead < Time{} || node.message_overhead > kMaxLatency) {
        throw bad("message_overhead must be within 0 and 1 s");
    }
    if (node.buffer.count < 0) throw bad("buffer must not be negative");
    if (node.reduce_rate.bytes_per_second < 0 || node.reduce_rate.bytes_per_second > kMaxRate) {
        throw bad("the rate of reduce must be within 0 and 1e18 B/s");
    }
    if (node.rank < kDefaultRank) throw bad("rank must not be negative");
}

void check_link(const Link& link, const std::string& where) {
    const auto bad = [&](const std::string& why) {
        return input_error(link.id.empty() ? why : fmt::format("link '{}': {}", link.id, why), where);
    };
    if (link.from == link.to) throw bad("it leads from a node to itself");
    if (link.count < 1) throw bad("count must be 1 or more");
    const std::int64_t most = kMaxRate / link.count;
    if (link.bandwidth.bytes_per_second < 1) throw bad("bandwidth must be positive");
    if (link.bandwidth.bytes_per_second > most) throw bad("all units together are above 1e18 B/s");
    if (link.goodput.bytes_per_second < 1) throw bad("goodput must be positive");
    if (link.goodput > link.bandwidth) {
        throw bad(fmt::format("goodput {} is above bandwidth {}", to_string(link.goodput),
                              to_string(link.bandwidth)));
    }
    if (link.latency < Time{} || link.latency > kMaxLatency) throw bad("latency must be within 0 and 1 s");
    if (link.mtu < 0 || link.mtu > (std::int64_t{1} << 30)) throw bad("mtu must be within 1 and 2^30 bytes");
    if (!(link.loss >= 0 && link.loss < 1)) throw bad("loss must be within [0, 1)");
}

std::string_view to_string(NodeType type) { return kNodeTypes[static_cast<std::size_t>(type)]; }
std::string_view to_string(LinkKind kind) { return kLinkKinds[static_cast<std::size_t>(kind)]; }
std::optional<NodeType> node_type_from(std::string_view name) {
    return from_name<NodeType>(kNodeTypes, name);
}
std::optional<LinkKind> link_kind_from(std::string_view name) {
    return from_name<LinkKind>(kLinkKinds, name);
}

bool stripes(LinkKind kind) {
    return kind == LinkKind::nvlink || kind == LinkKind::xgmi || kind == LinkKind::c2c ||
           kind == LinkKind::pcie;
}

std::int64_t default_mtu(LinkKind kind) {
    switch (kind) {
        case LinkKind::infiniband:
        case LinkKind::roce_v1:
        case LinkKind::roce_v2: return 4096;
        case LinkKind::ethernet: return 1460;
        default: return 0;
    }
}

std::pair<std::int64_t, std::int64_t> payload_share(LinkKind kind, std::int64_t mtu) {
    if (mtu <= 0) return {1, 1};
    switch (kind) {
        case LinkKind::infiniband: return {mtu, mtu + 26};
        case LinkKind::roce_v1: return {mtu, mtu + 94};
        case LinkKind::roce_v2: return {mtu, mtu + 82};
        case LinkKind::ethernet: return {mtu, mtu + 78};
        default: return {1, 1};
    }
}

int Topology::node_index(std::string_view id) const { return index_of(nodes, nodes_by_id, id); }
int Topology::link_index(std::string_view id) const { return index_of(links, links_by_id, id); }

int Topology::add_node(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
}

void Topology::add_link(Link link, bool oneway) {
    links.push_back(std::move(link));
    if (oneway) return;
    Link back = links.back();
    std::swap(back.from, back.to);
    if (!back.id.empty()) back.id += "~";
    links.push_back(std::move(back));
}

std::vector<int> Topology::rank_hosts() const {
    std::vector<int> hosts;
    hosts.reserve(rank_nodes.size());
    std::unordered_map<std::string_view, int> numbers;
    int next = 0;
    for (const int index : rank_nodes) {
        const std::string& host = nodes[static_cast<std::size_t>(index)].host;
        if (host.empty()) {
            hosts.push_back(next++);
            continue;
        }
        const auto [place, fresh] = numbers.emplace(host, next);
        if (fresh) ++next;
        hosts.push_back(place->second);
    }
    return hosts;
}

void Topology::finish(const std::string& where) {
    if (static_cast<std::int64_t>(nodes.size()) > kMaxNodes ||
        static_cast<std::int64_t>(links.size()) > kMaxLinks) {
        throw input_error(fmt::format("{} nodes and {} links are too many", nodes.size(), links.size()),
                          where, fmt::format("at most {} nodes and {} links", kMaxNodes, kMaxLinks));
    }
    for (const Node& node : nodes) check_node(node, where);
    sort_by_id(nodes, nodes_by_id, "node", where);
    rank_nodes = assign_ranks(nodes, where);
    for (Link& link : links) {
        if (link.mtu == 0) link.mtu = default_mtu(link.kind);
        if (link.goodput == Rate{} && link.bandwidth > Rate{}) {
            const auto [payload, wire] = payload_share(link.kind, link.mtu);
            // Quotient and remainder apart: exact in 64 bits (the mtu is below 2^30 and the rate checked
            // below).
            const std::int64_t rate = link.bandwidth.bytes_per_second;
            link.goodput = {rate / wire * payload + rate % wire * payload / wire};
        }
        const auto outside = [&](int end) {
            return end < 0 || static_cast<std::size_t>(end) >= nodes.size();
        };
        if (outside(link.from) || outside(link.to)) {
            throw input_error(fmt::format("link '{}': an end is not a node of this topology", link.id),
                              where);
        }
        check_link(link, where);
    }
    out_links.assign(nodes.size(), {});
    in_links.assign(nodes.size(), {});
    for (std::size_t i = 0; i < links.size(); ++i) {
        out_links[static_cast<std::size_t>(links[i].from)].push_back(static_cast<int>(i));
        in_links[static_cast<std::size_t>(links[i].to)].push_back(static_cast<int>(i));
    }
    assign_link_ids(*this);
    for (const Link& link : links) check_id(link.id, "link", "*,", where);
    sort_by_id(links, links_by_id, "link", where);
    for (std::size_t i = 0; i < limits.size(); ++i) {
        Limit& limit = limits[i];
        if (limit.id.empty()) limit.id = fmt::format("limit{}", i);
        const auto bad = [&](const char* why) {
            return input_error(fmt::format("limit '{}': {}", limit.id, why), where);
        };
        if (limit.links.empty()) throw bad("it names no link");
        if (limit.bandwidth.bytes_per_second < 1 || limit.bandwidth.bytes_per_second > kMaxRate) {
            throw bad("bandwidth must be positive and at most 1e18 B/s");
        }
        std::sort(limit.links.begin(), limit.links.end());
        limit.links.erase(std::unique(limit.links.begin(), limit.links.end()), limit.links.end());
        if (limit.links.front() < 0 || static_cast<std::size_t>(limit.links.back()) >= links.size()) {
            throw bad("it names a link that does not exist");
        }
    }
}

std::string Topology::hash() const {
    Fnv fnv;
    fnv.add("topology/1");
    for (const Node& node : nodes) {
        fnv.add(node.id);
        fnv.add(to_string(node.type));
        fnv.add(node.host);
        for (const std::int64_t value :
             {static_cast<std::int64_t>(node.rank), node.latency.picoseconds, node.buffer.count,
              std::int64_t{node.multicast}, std::int64_t{node.reduce}, node.reduce_rate.bytes_per_second,
              node.message_overhead.picoseconds}) {
            fnv.add(value);
        }
    }
    for (const Link& link : links) {
        fnv.add(link.id);
        fnv.add(to_string(link.kind));
        fnv.add(link.loss == 0 ? "0" : fmt::format("{}", link.loss));
        for (const std::int64_t value : {std::int64_t{link.from}, std::int64_t{link.to},
                                         std::int64_t{link.count}, link.bandwidth.bytes_per_second,
                                         link.goodput.bytes_per_second, link.latency.picoseconds, link.mtu}) {
            fnv.add(value);
        }
    }
    for (const Limit& limit : limits) {
        fnv.add(limit.bandwidth.bytes_per_second);
        for (const int link : limit.links) fnv.add(std::int64_t{link});
        fnv.add("|");
    }
    fnv.add(machine.launch.picoseconds);
    fnv.add(machine.reduction.bytes_per_second);
    for (const auto& [key, latency] : machine.step_latency) {
        fnv.add(key);
        fnv.add(latency.picoseconds);
    }
    return fmt::format("{:016x}", fnv.value());
}

}  // namespace baton::topologies
