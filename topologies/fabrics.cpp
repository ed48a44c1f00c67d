#include <baton/topologies/fabrics.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace baton::topologies {
namespace {

// What all fabrics share: the properties of one cable and of one switch.
struct Cabling {
    Link link;
    Node switch_node;
    double oversubscription = 1;
};

Cabling read_cabling(const JsonReader& entry) {
    Cabling cabling;
    cabling.link.bandwidth = {50'000'000'000};
    cabling.link.latency = {500'000};
    cabling.link.kind = LinkKind::infiniband;
    cabling.link.provenance = {"default of the generator", true};
    cabling.link = read_link_properties(entry, cabling.link);
    cabling.switch_node.type = NodeType::switch_node;
    cabling.switch_node.latency = {130'000};
    if (const auto latency = entry.find("switch_latency")) cabling.switch_node.latency = latency->time();
    if (const auto buffer = entry.find("switch_buffer")) cabling.switch_node.buffer = buffer->bytes();
    if (const auto multicast = entry.find("multicast")) cabling.switch_node.multicast = multicast->boolean();
    if (const auto reduce = entry.find("reduce")) {
        cabling.switch_node.reduce = reduce->is_boolean() ? reduce->boolean() : true;
        if (!reduce->is_boolean()) cabling.switch_node.reduce_rate = reduce->rate();
    }
    if (const auto ratio = entry.find("oversubscription")) {
        cabling.oversubscription = ratio->number();
        if (!(cabling.oversubscription >= 1 && cabling.oversubscription <= 1000))
            throw ratio->error("oversubscription is 1 to 1000", "2 means half as much capacity up as down");
    }
    return cabling;
}

int add_switch(const Cabling& cabling, std::string id, Topology& topology) {
    Node node = cabling.switch_node;
    node.id = std::move(id);
    return topology.add_node(std::move(node));
}

void connect(const Cabling& cabling, int a, int b, std::int64_t units, Topology& topology) {
    Link link = cabling.link;
    link.from = a;
    link.to = b;
    const std::int64_t count = units * link.count;  // below 2^40
    if (count > 1 << 20)
        throw input_error(fmt::format("{} units between '{}' and '{}' are too many", count,
                                      topology.nodes[static_cast<std::size_t>(a)].id,
                                      topology.nodes[static_cast<std::size_t>(b)].id),
                          topology.name, "use more spines or a smaller count");
    link.count = static_cast<int>(count);
    topology.add_link(std::move(link));
}

// A port's cable is as fast as the slower of its two ends.
void connect_port(const Cabling& cabling, const Port& port, int switch_node, Topology& topology) {
    Cabling own = cabling;
    if (port.most > Rate{} && port.most < own.link.bandwidth) {
        own.link.bandwidth = port.most;
        own.link.goodput = {};
    }
    connect(own, port.node, switch_node, 1, topology);
}

// Units up from a switch with `down` units down, spread evenly over `spines` (at least one each).
std::int64_t units_per_spine(const Cabling& cabling, std::int64_t down, std::int64_t spines) {
    const double up = static_cast<double>(down) / cabling.oversubscription;
    return std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::ceil(up / static_cast<double>(spines) - 1e-9)));
}

std::int64_t read_count(const JsonReader& entry, const char* key, std::int64_t otherwise,
                        std::int64_t low = 1) {
    const auto value = entry.find(key);
    return value ? value->integer(low, kMaxNodes) : otherwise;
}

// Leaves and spines: ports fill the leaves in order.
void two_levels(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology) {
    const Cabling cabling = read_cabling(entry);
    const auto n = static_cast<std::int64_t>(ports.size());
    const std::int64_t per_leaf = read_count(entry, "leaf_ports", 32);
    const std::int64_t leaves = (n + per_leaf - 1) / per_leaf;
    const std::int64_t spines = leaves > 1 ? read_count(entry, "spines", 1) : 0;
    require_room(entry, topology, leaves + spines, 2 * n + 2 * leaves * spines);
    std::vector<int> leaf, spine;
    for (std::int64_t i = 0; i < leaves; ++i)
        leaf.push_back(add_switch(cabling, fmt::format("leaf{}", i), topology));
    for (std::int64_t i = 0; i < spines; ++i)
        spine.push_back(add_switch(cabling, fmt::format("spine{}", i), topology));
    for (std::int64_t i = 0; i < n; ++i)
        connect_port(cabling, ports[static_cast<std::size_t>(i)],
                     leaf[static_cast<std::size_t>(i / per_leaf)], topology);
    for (const int l : leaf) {
        for (const int s : spine)
            connect(cabling, l, s, units_per_spine(cabling, per_leaf, spines), topology);
    }
}

// The k-ary tree of edge, aggregation and core switches with k ports each (Al-Fares et al. 2008).
void three_levels(const JsonReader& entry, std::int64_t k, const std::vector<Port>& ports,
                  Topology& topology) {
    const Cabling cabling = read_cabling(entry);
    if (k % 2 != 0) throw entry.at("k").error("k must be even");
    const std::int64_t half = k / 2, room = k * half * half;
    const auto n = static_cast<std::int64_t>(ports.size());
    if (n > room)
        throw entry.at("k").error(fmt::format("a fat tree of k = {} has {} ports, {} are needed", k, room, n),
                                  "use a larger k");
    require_room(entry, topology, k * k + half * half, 2 * n + 4 * k * half * half);
    std::vector<int> edge, aggregation, core;
    for (std::int64_t i = 0; i < k * half; ++i)
        edge.push_back(add_switch(cabling, fmt::format("edge{}", i), topology));
    for (std::int64_t i = 0; i < k * half; ++i)
        aggregation.push_back(add_switch(cabling, fmt::format("agg{}", i), topology));
    for (std::int64_t i = 0; i < half * half; ++i)
        core.push_back(add_switch(cabling, fmt::format("core{}", i), topology));
    for (std::int64_t i = 0; i < n; ++i)
        connect_port(cabling, ports[static_cast<std::size_t>(i)], edge[static_cast<std::size_t>(i / half)],
                     topology);
    for (std::int64_t pod = 0; pod < k; ++pod) {
        for (std::int64_t a = 0; a < half; ++a) {
            const int agg = aggregation[static_cast<std::size_t>(pod * half + a)];
            for (std::int64_t e = 0; e < half; ++e)
                connect(cabling, edge[static_cast<std::size_t>(pod * half + e)], agg, 1, topology);
            for (std::int64_t c = 0; c < half; ++c)
                connect(cabling, agg, core[static_cast<std::size_t>(a * half + c)], 1, topology);
        }
    }
}

void fat_tree(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology) {
    const auto k = entry.find("k");
    if (!k) return two_levels(entry, ports, topology);
    for (const char* key : {"leaf_ports", "spines", "oversubscription"}) {
        if (const auto extra = entry.find(key))
            throw extra->error(fmt::format("'{}' goes with two levels, 'k' with three", key));
    }
    three_levels(entry, k->integer(2, 256), ports, topology);
}

// Port i of every host on rail i mod rails; a rail has one leaf per pod of hosts_per_leaf hosts; spines join
// leaves.
void rail_optimized(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology) {
    const Cabling cabling = read_cabling(entry);
    int most_ports = 0, hosts = 0;
    for (const Port& port : ports) {
        most_ports = std::max(most_ports, port.index + 1);
        hosts = std::max(hosts, port.host + 1);
    }
    const std::int64_t rails = read_count(entry, "rails", std::max(1, most_ports));
    const std::int64_t per_leaf = read_count(entry, "hosts_per_leaf", std::max(1, hosts));
    const std::int64_t pods = std::max<std::int64_t>(1, (hosts + per_leaf - 1) / per_leaf);
    const std::int64_t used_rails = std::min<std::int64_t>(rails, std::max(1, most_ports));
    const std::int64_t leaves = used_rails * pods;
    const std::int64_t spines = leaves > 1 ? read_count(entry, "spines", 1, 0) : 0;
    if (spines == 0 && pods > 1)
        throw entry.error("several leaves per rail need spines", "give spines, or a larger hosts_per_leaf");
    const auto n = static_cast<std::int64_t>(ports.size());
    require_room(entry, topology, leaves + spines, 2 * n + 2 * leaves * spines);
    std::vector<int> leaf;
    std::vector<std::int64_t> down(static_cast<std::size_t>(leaves), 0);
    for (std::int64_t r = 0; r < used_rails; ++r) {
        for (std::int64_t p = 0; p < pods; ++p)
            leaf.push_back(add_switch(
                cabling, pods > 1 ? fmt::format("rail{}.{}", r, p) : fmt::format("rail{}", r), topology));
    }
    for (const Port& port : ports) {
        const auto place = static_cast<std::size_t>(port.index % rails * pods + port.host / per_leaf);
        connect_port(cabling, port, leaf[place], topology);
        ++down[place];
    }
    for (std::int64_t s = 0; s < spines; ++s) {
        const int spine = add_switch(cabling, fmt::format("spine{}", s), topology);
        for (std::size_t l = 0; l < leaf.size(); ++l) {
            if (down[l] > 0)
                connect(cabling, leaf[l], spine, units_per_spine(cabling, down[l], spines), topology);
        }
    }
}

// Groups of fully connected routers, every two groups joined by `global` cables (Kim et al. 2008), spread in
// turn over the routers of a group.
void dragonfly(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology) {
    const Cabling cabling = read_cabling(entry);
    const auto n = static_cast<std::int64_t>(ports.size());
    const std::int64_t routers = read_count(entry, "routers", 4),
                       terminals = read_count(entry, "terminals", 2);
    const std::int64_t global = read_count(entry, "global", 1);
    if (routers > kMaxNodes / terminals) throw entry.error("too many ports in a group");
    const std::int64_t needed =
        std::max<std::int64_t>(1, (n + routers * terminals - 1) / (routers * terminals));
    const std::int64_t groups = read_count(entry, "groups", needed);
    if (groups < needed)
        throw entry.at("groups").error(
            fmt::format("{} groups of {} routers with {} terminals have {} ports, {} are needed", groups,
                        routers, terminals, groups * routers * terminals, n));
    if (groups > kMaxNodes / routers)
        throw entry.error(fmt::format("{} routers are too many", groups * routers));
    require_room(entry, topology, groups * routers, 2 * n);
    const __int128_t between = static_cast<__int128_t>(groups) * (groups - 1) * global +
                               static_cast<__int128_t>(groups) * routers * (routers - 1);
    if (between > kMaxLinks)
        throw entry.error("this dragonfly has too many links",
                          fmt::format("at most {} directed links are accepted", kMaxLinks));
    require_room(entry, topology, groups * routers, 2 * n + static_cast<std::int64_t>(between));
    std::vector<int> router;
    for (std::int64_t i = 0; i < groups * routers; ++i)
        router.push_back(add_switch(cabling, fmt::format("group{}.{}", i / routers, i % routers), topology));
    for (std::int64_t i = 0; i < n; ++i)
        connect_port(cabling, ports[static_cast<std::size_t>(i)],
                     router[static_cast<std::size_t>(i / terminals)], topology);
    for (std::int64_t g = 0; g < groups; ++g) {
        for (std::int64_t a = 0; a < routers; ++a) {
            for (std::int64_t b = a + 1; b < routers; ++b)
                connect(cabling, router[static_cast<std::size_t>(g * routers + a)],
                        router[static_cast<std::size_t>(g * routers + b)], 1, topology);
        }
    }
    std::vector<std::int64_t> next(static_cast<std::size_t>(groups), 0);
    const auto take = [&](std::int64_t g) {
        return router[static_cast<std::size_t>(g * routers + next[static_cast<std::size_t>(g)]++ % routers)];
    };
    for (std::int64_t distance = 1; distance < groups; ++distance) {
        for (std::int64_t g = 0; g + distance < groups; ++g) {
            for (std::int64_t c = 0; c < global; ++c) {
                const int a = take(g), b = take(g + distance);
                connect(cabling, a, b, 1, topology);
            }
        }
    }
}

struct Fabric {
    const char* name;
    void (*make)(const JsonReader&, const std::vector<Port>&, Topology&);
    std::initializer_list<std::string_view> keys;
};

const Fabric kFabrics[] = {
    {"fat_tree", fat_tree, {"k", "leaf_ports", "spines", "oversubscription"}},
    {"rail_optimized", rail_optimized, {"rails", "hosts_per_leaf", "spines", "oversubscription"}},
    {"dragonfly", dragonfly, {"groups", "routers", "terminals", "global"}},
};

void check_keys(const JsonReader& entry, const Fabric& fabric, std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> known = {"generate", "switch_latency", "switch_buffer", "multicast",
                                           "reduce"};
    known.insert(known.end(), fabric.keys.begin(), fabric.keys.end());
    known.insert(known.end(), std::begin(kLinkProperties), std::end(kLinkProperties));
    const std::size_t shown = known.size() + more.size();
    known.insert(known.end(), more.begin(), more.end());
    for (const std::string_view key :
         {"baton", "name", "preset", "description", "links", "limits", "machine", "overrides"})
        known.push_back(key);
    for (const auto& [key, value] : entry.members()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        throw value.error(
            "unknown key" +
            near_names(key, {known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shown)}));
    }
}

// Ranks of their own for a fabric without hosts.
std::vector<Port> add_port_ranks(const JsonReader& entry, std::int64_t n, Topology& topology) {
    require_room(entry, topology, n, 2 * n);
    std::vector<Port> ports;
    for (std::int64_t i = 0; i < n; ++i) {
        Node node;
        node.id = fmt::format("gpu{}", i);
        node.rank = static_cast<int>(i);
        ports.push_back({topology.add_node(std::move(node)), static_cast<int>(i), 0, {}});
    }
    return ports;
}

}  // namespace

void generate_fabric(const JsonReader& entry, const std::vector<Port>& ports, Topology& topology) {
    const std::string name = entry.at("generate").string();
    std::vector<std::string> names;
    for (const Fabric& fabric : kFabrics) {
        names.push_back(fabric.name);
        if (fabric.name != name) continue;
        check_keys(entry, fabric, {});
        return fabric.make(entry, ports, topology);
    }
    throw entry.at("generate")
        .error(fmt::format("'{}' is not a fabric{}", name.substr(0, 40), near_names(name, names)));
}

void make_fat_tree_of_ranks(const JsonReader& entry, Topology& topology) {
    check_keys(entry, kFabrics[0], {"ranks"});
    std::int64_t n = 0;
    if (const auto k = entry.find("k")) {
        const std::int64_t value = k->integer(2, 256);
        n = read_count(entry, "ranks", value * value * value / 4);
    } else {
        n = entry.at("ranks").integer(1, kMaxNodes);
    }
    fat_tree(entry, add_port_ranks(entry, n, topology), topology);
}

void make_dragonfly_of_ranks(const JsonReader& entry, Topology& topology) {
    check_keys(entry, kFabrics[2], {"ranks"});
    const std::int64_t groups =
        entry.find("ranks") ? read_count(entry, "groups", 1) : entry.at("groups").integer(1, kMaxNodes);
    const std::int64_t routers = read_count(entry, "routers", 4),
                       terminals = read_count(entry, "terminals", 2);
    std::int64_t n = read_count(entry, "ranks", 0);
    if (n == 0) {
        if (routers > kMaxNodes / terminals || groups > kMaxNodes / (routers * terminals))
            throw entry.error("this dragonfly has too many ports");
        n = groups * routers * terminals;
    }
    dragonfly(entry, add_port_ranks(entry, n, topology), topology);
}

// Hosts of `gpus` GPUs on one switch each, GPU i of every host on rail i.
void make_rail_optimized_of_ranks(const JsonReader& entry, Topology& topology) {
    check_keys(entry, kFabrics[1], {"hosts", "gpus", "host_bandwidth", "host_latency"});
    const std::int64_t hosts = entry.at("hosts").integer(1, kMaxNodes), gpus = read_count(entry, "gpus", 8);
    if (hosts > kMaxNodes / (gpus + 1)) throw entry.error("too many hosts");
    require_room(entry, topology, hosts * (gpus + 1), 4 * hosts * gpus);
    Link inside;
    inside.kind = LinkKind::nvlink;
    inside.bandwidth =
        entry.find("host_bandwidth") ? entry.at("host_bandwidth").rate() : Rate{450'000'000'000};
    inside.latency = entry.find("host_latency") ? entry.at("host_latency").time() : Time{250'000};
    inside.provenance = {"default of the generator", true};
    std::vector<Port> ports;
    for (std::int64_t h = 0; h < hosts; ++h) {
        Node host_switch;
        host_switch.id = fmt::format("h{}/nvswitch", h);
        host_switch.host = fmt::format("h{}", h);
        host_switch.type = NodeType::switch_node;
        host_switch.latency = {100'000};
        const int middle = topology.add_node(host_switch);
        for (std::int64_t g = 0; g < gpus; ++g) {
            Node gpu;
            gpu.id = fmt::format("h{}/gpu{}", h, g);
            gpu.host = host_switch.host;
            gpu.rank = static_cast<int>(h * gpus + g);
            inside.from = topology.add_node(std::move(gpu));
            inside.to = middle;
            topology.add_link(inside);
            ports.push_back({inside.from, static_cast<int>(h), static_cast<int>(g), {}});
        }
    }
    rail_optimized(entry, ports, topology);
}

}  // namespace baton::topologies
