// SimGrid's <cluster>: hosts by a range of numbers, joined as its zones join them.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/simgrid_platform.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

namespace baton::topologies {
namespace {

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
        std::string_view part = text.substr(begin, end - begin);
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        parts.push_back(part);
        begin = end + 1;
    }
    return parts;
}

// Numbers of a parameter list, each from 1 to 2^20.
std::vector<std::int64_t> parameters_of(std::string_view text, const XmlReader& element) {
    std::vector<std::int64_t> numbers;
    for (const std::string_view part : parts_of(text, ",")) {
        const auto number = integer_in(part);
        if (!number || *number < 1 || *number > kMaxNodes)
            throw element.error(fmt::format("topo_parameters: '{}' is no count", shown(part)));
        numbers.push_back(*number);
    }
    return numbers;
}

struct SimgridCluster {
    const XmlReader& element;
    SimgridMachine& machine;
    std::vector<int> hosts;
    Rate bandwidth;
    Time latency;
    SimgridSharing sharing;
    std::string name;

    void cable(int from, int to, int count = 1) const {
        machine.add_cable(from, to, bandwidth, latency, sharing, count);
    }
    /// SimGrid's dragonflies have one link of so many times the rate in place of several.
    void wide_cable(int from, int to, std::int64_t times) const {
        const auto rate = rate_of(bandwidth.value() * static_cast<double>(times));
        if (!rate)
            throw element.error(fmt::format("{} cables of {} are too many", times, to_string(bandwidth)));
        machine.add_cable(from, to, *rate, latency, sharing);
    }
    void expect(std::int64_t needed, std::string_view shape) const {
        if (needed != static_cast<std::int64_t>(hosts.size()))
            throw element.error(fmt::format("{} has {} hosts by its topo_parameters and {} by its radical",
                                            shape, needed, hosts.size()));
    }
};

// A product that stays within the limits of a topology, else the limit and one.
std::int64_t product_of(const std::vector<std::int64_t>& factors) {
    std::int64_t product = 1;
    for (const std::int64_t factor : factors) {
        if (product > kMaxNodes / factor) return kMaxNodes + 1;
        product *= factor;
    }
    return product;
}

void limit_hosts(const SimgridCluster& cluster, const std::vector<std::vector<int>>& links) {
    const auto limiter = cluster.element.find("limiter_link");
    if (!limiter || limiter->empty() || *limiter == "0") return;
    const Rate rate = simgrid_rate(cluster.element, "limiter_link");
    for (std::size_t host = 0; host < links.size(); ++host)
        cluster.machine.add_limit(fmt::format("{}/limiter{}", cluster.name, host), links[host], rate);
}

void build_flat(const SimgridCluster& cluster, const std::string& router) {
    std::optional<SimgridLink> backbone;
    if (cluster.element.find("bb_bw"))
        backbone =
            SimgridLink{simgrid_rate(cluster.element, "bb_bw"), simgrid_time(cluster.element, "bb_lat"),
                        simgrid_sharing(cluster.element, "bb_sharing_policy"), cluster.element.where()};
    const SimgridHub hub(cluster.name, router, backbone, cluster.hosts.size(), cluster.element,
                         cluster.machine);
    std::vector<std::vector<int>> links;
    for (const int host : cluster.hosts) {
        const int first = cluster.machine.link_count();
        links.push_back({first, first + 1});
        if (hub.into() == hub.out_of()) {
            cluster.cable(host, hub.into());
            continue;
        }
        cluster.machine.add_way(host, hub.into(), cluster.bandwidth, cluster.latency);
        cluster.machine.add_way(hub.out_of(), host, cluster.bandwidth, cluster.latency);
        if (cluster.sharing != SimgridSharing::shared) continue;
        cluster.machine.half_duplex = true;
        cluster.machine.add_limit(fmt::format("half-duplex.{}", first), links.back(), cluster.bandwidth);
    }
    limit_hosts(cluster, links);
}

// Each host is joined to the next one along each dimension; the first dimension counts first.
void build_torus(const SimgridCluster& cluster) {
    const auto sizes = parameters_of(cluster.element.at("topo_parameters"), cluster.element);
    cluster.expect(product_of(sizes), "the torus");
    std::int64_t stride = 1;
    for (const std::int64_t size : sizes) {
        for (std::int64_t host = 0; size > 1 && host < static_cast<std::int64_t>(cluster.hosts.size());
             ++host) {
            const std::int64_t place = host / stride % size;
            const std::int64_t next = place == size - 1 ? host - (size - 1) * stride : host + stride;
            cluster.cable(cluster.hosts[at(host)], cluster.hosts[at(next)]);
        }
        stride *= size;
    }
    cluster.machine.result().assumptions.push_back(
        fmt::format("{}: hosts of a torus pass what is meant for others in SimGrid; here they are joined "
                    "directly and schedules "
                    "relay",
                    shown(cluster.name)));
}

// "levels;children of a node by level;parents by level;cables by level". Nodes of a level have labels with
// one digit a level; parent and child agree in all digits but that of the parent's level.
void build_fat_tree(const SimgridCluster& cluster) {
    const std::string parameters = cluster.element.at("topo_parameters");
    const auto parts = parts_of(parameters, ";");
    const auto levels = parts.size() == 4 ? integer_in(parts[0]) : std::nullopt;
    if (!levels || *levels < 1 || *levels > 16)
        throw cluster.element.error("topo_parameters of a fat tree are 'levels;down;up;cables'");
    const auto list = [&](std::size_t part) {
        std::vector<std::int64_t> numbers = parameters_of(parts[part], cluster.element);
        if (static_cast<std::int64_t>(numbers.size()) != *levels)
            throw cluster.element.error(
                fmt::format("topo_parameters: {} for {} levels", counted(numbers.size(), "number"), *levels));
        return numbers;
    };
    const std::vector<std::int64_t> down = list(1), up = list(2), cables = list(3);
    cluster.expect(product_of(down), "the fat tree");
    // Digits below a level count parents, those above count children.
    std::vector<std::int64_t> digits = down;
    std::vector<int> lower = cluster.hosts;
    for (std::size_t level = 0; level < at(*levels); ++level) {
        const std::vector<std::int64_t> lower_digits = digits;
        digits[level] = up[level];
        const std::int64_t count = product_of(digits);
        check_size(static_cast<double>(count),
                   2.0 * static_cast<double>(count) * static_cast<double>(down[level]),
                   cluster.element.where());
        std::vector<int> upper;
        for (std::int64_t i = 0; i < count; ++i)
            upper.push_back(
                cluster.machine.add_center(fmt::format("{}/switch{}.{}", cluster.name, level + 1, i)));
        std::int64_t stride = 1;
        for (std::size_t i = 0; i < level; ++i) stride *= digits[i];
        for (std::size_t child = 0; child < lower.size(); ++child) {
            const std::int64_t number = static_cast<std::int64_t>(child);
            const std::int64_t low = number % stride, high = number / stride / lower_digits[level];
            for (std::int64_t parent = 0; parent < up[level]; ++parent)
                cluster.cable(lower[child], upper[at((high * up[level] + parent) * stride + low)],
                              static_cast<int>(cables[level]));
        }
        lower = std::move(upper);
    }
    cluster.machine.result().assumptions.push_back(fmt::format(
        "{}: SimGrid picks one way up by the number of the destination; here flows spread over all",
        shown(cluster.name)));
}

// "groups,cables;chassis,cables;routers,cables;hosts of a router". Router n of a group leads to group n.
void build_dragonfly(const SimgridCluster& cluster) {
    const std::string parameters = cluster.element.at("topo_parameters");
    const auto parts = parts_of(parameters, ";");
    std::vector<std::int64_t> sizes, cables;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto numbers = parameters_of(parts[i], cluster.element);
        if (parts.size() != 4 || numbers.size() != (i < 3 ? 2U : 1U)) break;
        sizes.push_back(numbers[0]);
        if (i < 3) cables.push_back(numbers[1]);
    }
    if (sizes.size() != 4)
        throw cluster.element.error(
            "topo_parameters of a dragonfly are 'groups,cables;chassis,cables;routers,cables;hosts'");
    cluster.expect(product_of(sizes), "the dragonfly");
    const std::int64_t groups = sizes[0], chassis = sizes[1], routers = sizes[2], group = chassis * routers;
    if (groups > group)
        throw cluster.element.error(
            fmt::format("{} groups need as many routers in a group, there are {}", groups, group));
    check_size(
        static_cast<double>(groups * group),
        static_cast<double>(groups) * static_cast<double>(group) * static_cast<double>(routers + chassis) +
            static_cast<double>(groups) * static_cast<double>(groups),
        cluster.element.where());
    std::vector<int> nodes;
    for (std::int64_t i = 0; i < groups * group; ++i)
        nodes.push_back(cluster.machine.add_center(fmt::format("{}/router{}", cluster.name, i)));
    std::vector<std::vector<int>> links;
    for (std::size_t i = 0; i < cluster.hosts.size(); ++i) {
        links.push_back({cluster.machine.link_count(), cluster.machine.link_count() + 1});
        cluster.cable(cluster.hosts[i], nodes[i / at(sizes[3])]);
    }
    for (std::int64_t i = 0; i < groups * group; ++i) {
        for (std::int64_t k = i % routers + 1; k < routers; ++k)
            cluster.wide_cable(nodes[at(i)], nodes[at(i - i % routers + k)], cables[2]);
        for (std::int64_t k = i % group / routers + 1; k < chassis; ++k)
            cluster.wide_cable(nodes[at(i)], nodes[at(i - i % group + k * routers + i % routers)], cables[1]);
    }
    for (std::int64_t i = 0; i < groups; ++i)
        for (std::int64_t j = i + 1; j < groups; ++j)
            cluster.wide_cable(nodes[at(i * group + j)], nodes[at(j * group + i)], cables[0]);
    limit_hosts(cluster, links);
}

}  // namespace

std::vector<int> add_simgrid_hosts(const XmlReader& element, SimgridMachine& machine) {
    const std::string prefix = element.find("prefix").value_or(""),
                      suffix = element.find("suffix").value_or(""), radical = element.at("radical");
    std::vector<int> hosts;
    for (const std::string_view part : parts_of(radical, ",;")) {
        const std::size_t dash = part.find('-');
        const auto low = integer_in(part.substr(0, dash)),
                   high = dash == std::string_view::npos ? low : integer_in(part.substr(dash + 1));
        if (!low || !high || *low < 0 || *high < *low)
            throw element.error(fmt::format("radical: '{}' is no range of numbers", shown(part)), "as 0-15");
        check_size(static_cast<double>(hosts.size()) + static_cast<double>(*high - *low), 0, element.where());
        for (std::int64_t number = *low; number <= *high; ++number)
            hosts.push_back(machine.add_host(prefix + std::to_string(number) + suffix, element));
    }
    return hosts;
}

void add_simgrid_cluster(const XmlReader& element, SimgridMachine& machine) {
    const std::string id = element.at("id");
    const SimgridCluster cluster{element,
                                 machine,
                                 add_simgrid_hosts(element, machine),
                                 simgrid_rate(element, "bw"),
                                 simgrid_time(element, "lat"),
                                 simgrid_sharing(element, "sharing_policy"),
                                 id};
    std::string shape = element.find("topology").value_or("FLAT");
    if (shape == "FLAT") {
        const std::string router = element.find("router_id")
                                       .value_or(element.find("prefix").value_or("") + id + "_router" +
                                                 element.find("suffix").value_or(""));
        build_flat(cluster, router);
    } else if (shape == "TORUS") {
        build_torus(cluster);
    } else if (shape == "FAT_TREE") {
        build_fat_tree(cluster);
    } else if (shape == "DRAGONFLY") {
        build_dragonfly(cluster);
    } else {
        throw element.error(fmt::format("topology=\"{}\" has no reading", shown(shape)),
                            "FLAT, TORUS, FAT_TREE and DRAGONFLY have");
    }
    if ((shape == "TORUS" || shape == "FAT_TREE") && element.find("limiter_link"))
        machine.leave_out(fmt::format("limiter_link of a {}", shape), element);
    constexpr std::string_view kRead[] = {"id",
                                          "prefix",
                                          "suffix",
                                          "radical",
                                          "speed",
                                          "power",
                                          "core",
                                          "bw",
                                          "lat",
                                          "bb_bw",
                                          "bb_lat",
                                          "sharing_policy",
                                          "topology",
                                          "topo_parameters",
                                          "bb_sharing_policy",
                                          "limiter_link",
                                          "router_id"};
    for (const auto& [name, value] : element.attributes())
        if (std::find(std::begin(kRead), std::end(kRead), name) == std::end(kRead))
            machine.leave_out(fmt::format("cluster {}", shown(name)), element);
}

}  // namespace baton::topologies
