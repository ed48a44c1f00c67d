#include <baton/topologies/import/simgrid_platform.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/written_units.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::topologies {

Rate simgrid_rate(const XmlReader& element, std::string_view attribute) {
    const std::string text = element.at(attribute);
    const auto value = written_rate(text, 1);
    const auto rate = value ? rate_of(*value) : std::nullopt;
    if (!rate)
        throw element.error(fmt::format("{}=\"{}\" is no bandwidth", attribute, shown(text)), "as 125MBps");
    return *rate;
}

Time simgrid_time(const XmlReader& element, std::string_view attribute) {
    const std::string text = element.find(attribute).value_or("0");
    const auto value = written_time(text, 1);
    const auto time = value ? latency_of(*value) : std::nullopt;
    if (!time)
        throw element.error(fmt::format("{}=\"{}\" is no latency up to 1 s", attribute, shown(text)),
                            "as 50us");
    return *time;
}

SimgridSharing simgrid_sharing(const XmlReader& element, std::string_view attribute) {
    const std::string text = element.find(attribute).value_or("SPLITDUPLEX");
    if (text == "SPLITDUPLEX" || text == "FULLDUPLEX") return SimgridSharing::split;
    if (text == "SHARED") return SimgridSharing::shared;
    if (text == "FATPIPE") return SimgridSharing::fatpipe;
    throw element.error(fmt::format("{}=\"{}\" has no reading", attribute, shown(text)),
                        "SPLITDUPLEX, SHARED and FATPIPE have");
}

int SimgridMachine::add_host(const std::string& name, const XmlReader& element) {
    if (find(name) >= 0 || later_.count(name) > 0)
        throw element.error(fmt::format("'{}' comes twice", shown(name)));
    check_size(static_cast<double>(result_.topology.nodes.size()) + 1, 0, element.where());
    Node node;
    node.id = node.host = id_text(name);
    for (const char* kept : {"speed", "power", "core"})
        if (const auto value = element.find(kept)) node.attributes[kept] = shown(*value);
    return nodes_[name] = result_.topology.add_node(std::move(node));
}

int SimgridMachine::add_router(const std::string& name, const XmlReader& element) {
    if (find(name) >= 0) throw element.error(fmt::format("'{}' comes twice", shown(name)));
    return nodes_[name] = add_center(name);
}

int SimgridMachine::add_center(const std::string& name) {
    check_size(static_cast<double>(result_.topology.nodes.size()) + 1, 0, name);
    Node node;
    node.id = id_text(name);
    node.type = NodeType::switch_node;
    return result_.topology.add_node(std::move(node));
}

int SimgridMachine::find(const std::string& name) const {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? -1 : found->second;
}

void SimgridMachine::add_later(const std::string& name, std::function<int()> make, const XmlReader& element) {
    if (find(name) >= 0 || !later_.try_emplace(name, std::move(make)).second)
        throw element.error(fmt::format("'{}' comes twice", shown(name)));
}

int SimgridMachine::resolve(const std::string& name, const XmlReader& element) {
    if (const int node = find(name); node >= 0) return node;
    const auto later = later_.find(name);
    if (later == later_.end())
        throw element.error(fmt::format("there is no host and no router '{}'", shown(name)));
    return nodes_[name] = later->second();
}

void SimgridMachine::let_pass(int host) {
    if (result_.topology.nodes[at(host)].type != NodeType::gpu || ports_.count(host) > 0) return;
    ports_[host] = add_center(result_.topology.nodes[at(host)].id + "/port");
}

int SimgridMachine::end_of(int node) const {
    const auto port = ports_.find(node);
    return port == ports_.end() ? node : port->second;
}

void SimgridMachine::add_way(int from, int to, Rate bandwidth, Time latency, int count) {
    check_size(0, static_cast<double>(link_count()) + 1, "links");
    Link link;
    link.from = from;
    link.to = to;
    link.bandwidth = bandwidth;
    link.latency = latency;
    link.count = count;
    result_.topology.add_link(std::move(link), true);
}

void SimgridMachine::add_cable(int from, int to, Rate bandwidth, Time latency, SimgridSharing sharing,
                               int count) {
    const int first = link_count();
    add_way(from, to, bandwidth, latency, count);
    add_way(to, from, bandwidth, latency, count);
    fatpipe = fatpipe || sharing == SimgridSharing::fatpipe;
    if (sharing != SimgridSharing::shared) return;
    half_duplex = true;
    add_limit(fmt::format("half-duplex.{}", first), {first, first + 1}, {bandwidth.bytes_per_second * count});
}

void SimgridMachine::add_limit(const std::string& id, std::vector<int> links, Rate bandwidth) {
    Limit limit;
    limit.id = id_text(id);
    limit.links = std::move(links);
    limit.bandwidth = bandwidth;
    result_.topology.limits.push_back(std::move(limit));
}

void SimgridMachine::add_route(int from, int to, const std::vector<SimgridUse>& uses,
                               const XmlReader& element) {
    std::map<std::string, int> times;
    std::int64_t latency = 0, bandwidth = 0;
    for (const SimgridUse& use : uses) {
        latency += use.link->latency.picoseconds;
        const bool split = use.link->sharing == SimgridSharing::split;
        const std::string key = use.id + (split ? use.down ? ".down" : ".up" : "");
        const int so_often = ++times[key];
        // What passes a link twice has half of it.
        const std::int64_t rate = use.link->bandwidth.bytes_per_second / so_often;
        if (bandwidth == 0 || rate < bandwidth) bandwidth = rate;
        if (use.link->sharing == SimgridSharing::fatpipe) {
            fatpipe = true;
            continue;
        }
        half_duplex = half_duplex || use.link->sharing == SimgridSharing::shared;
        Shared& shared = shared_[key];
        shared.bandwidth = use.link->bandwidth;
        if (so_often == 1) shared.links.push_back(link_count());
    }
    const auto total = latency_of(static_cast<double>(latency) * 1e-12);
    if (!total) throw element.error("the links of this route have more than 1 s of latency");
    if (bandwidth < 1) throw element.error("the links of this route leave no bandwidth");
    direct_hosts = direct_hosts || uses.size() > 1;
    add_way(end_of(from), end_of(to), {bandwidth}, *total);
}

void SimgridMachine::finish() {
    std::map<int, std::int64_t> rates;
    for (const auto& [host, port] : ports_) rates[port] = 0;
    constexpr std::int64_t kMost = 1'000'000'000'000'000;
    for (const Link& link : result_.topology.links) {
        for (const int end : {link.from, link.to}) {
            const auto rate = rates.find(end);
            if (rate != rates.end())
                rate->second = std::min(rate->second + link.bandwidth.bytes_per_second, kMost);
        }
    }
    for (const auto& [host, port] : ports_) {
        if (rates[port] == 0) continue;
        add_way(host, port, {rates[port]}, {});
        add_way(port, host, {rates[port]}, {});
    }
    std::set<std::string> ids;
    for (auto& [key, shared] : shared_) {
        if (shared.links.size() < 2) continue;
        std::string id = id_text("link." + key);
        while (!ids.insert(id).second) id += "_";
        add_limit(id, std::move(shared.links), shared.bandwidth);
    }
}

void SimgridMachine::leave_out(const std::string& what, const XmlReader& element) {
    left_out_.try_emplace(what, element.line());
}

SimgridHub::SimgridHub(const std::string& name, const std::string& router,
                       const std::optional<SimgridLink>& backbone, std::size_t hosts,
                       const XmlReader& element, SimgridMachine& machine) {
    if (!backbone) {
        into_ = out_of_ = router.empty() ? machine.add_center(name) : machine.add_router(router, element);
        return;
    }
    // All that is sent passes the backbone once, in whatever direction: one link from one switch to another.
    into_ = machine.add_center(name + "/in");
    out_of_ = machine.add_center(name + "/out");
    const bool fat = backbone->sharing == SimgridSharing::fatpipe;
    machine.fatpipe = machine.fatpipe || fat;
    const int count = fat ? static_cast<int>(std::max<std::size_t>(hosts, 1)) : 1;
    machine.add_way(into_, out_of_, backbone->bandwidth, backbone->latency, count);
    if (router.empty()) return;
    machine.add_later(
        router,
        [this_into = into_, this_out = out_of_, router, count, rate = backbone->bandwidth, &machine] {
            const int node = machine.add_center(router);
            machine.add_way(this_out, node, rate, {}, count);
            machine.add_way(node, this_into, rate, {}, count);
            return node;
        },
        element);
}

}  // namespace baton::topologies
