// Platform XML of SimGrid: zones with hosts, routers, links and routes, and clusters. A route is a list of
// links that other routes share, not a path in a graph; here it is one direct link, and links that several
// routes use are limits over these.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/import/formats.hpp>
#include <baton/topologies/import/machine_tree.hpp>
#include <baton/topologies/import/network_report.hpp>
#include <baton/topologies/import/pci_slots.hpp>
#include <baton/topologies/import/simgrid_platform.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::topologies {
namespace {

// A <route> or <zoneRoute>, kept until all names are known.
struct SimgridRoute {
    XmlReader element;
    std::string from, to;
    bool between_zones = false, one_hop = false;
};

constexpr std::string_view kPassedOver[] = {"prop",         "config",  "trace", "trace_connect", "mount",
                                            "storage_type", "storage", "disk",  "include"};

bool is_any(std::string_view name, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

class SimgridReader {
public:
    explicit SimgridReader(SimgridMachine& machine) : machine_(machine) {}

    void read(const XmlReader& root) {
        check_version(root);
        for (const XmlReader& child : root.children()) {
            const std::string name = child.name();
            if (is_any(name, {"zone", "AS"}))
                read_zone(child);
            else if (is_any(name, {"actor", "process"}))
                throw child.error("this is a deployment of SimGrid (which actor runs where)",
                                  "give the platform file");
            else if (name == "cluster")
                add_simgrid_cluster(child, machine_);
            else
                pass_over(child);
        }
        for (const SimgridRoute& route : routes_) let_hosts_pass(route);
        for (const SimgridRoute& route : routes_) add_route(route);
        machine_.finish();
    }

private:
    // Versions 1 to 3 have other tags and units.
    void check_version(const XmlReader& root) {
        const std::string version = root.find("version").value_or("1");
        if (version.empty() || version[0] < '4')
            throw root.error(fmt::format("version {} of the platform format", shown(version)),
                             "bring it to version 4 with simgrid_update_xml");
    }

    void pass_over(const XmlReader& element) {
        const std::string name = element.name();
        if (std::find(std::begin(kPassedOver), std::end(kPassedOver), name) == std::end(kPassedOver))
            throw element.error(fmt::format("<{}> has no reading", shown(name)));
        machine_.leave_out(name, element);
    }

    void leave_out_attributes(const XmlReader& element, std::initializer_list<std::string_view> known) {
        for (const auto& [name, value] : element.attributes())
            if (!is_any(name, known))
                machine_.leave_out(fmt::format("{} {}", element.name(), shown(name)), element);
        for (const XmlReader& child : element.children()) pass_over(child);
    }

    void read_zone(const XmlReader& zone) {
        const std::string routing = zone.at("routing");
        const bool shortest = is_any(routing, {"Floyd", "Dijkstra", "DijkstraCache"});
        const bool cluster = routing == "Cluster";
        if (!shortest && !cluster && !is_any(routing, {"Full", "None"}))
            throw zone.error(fmt::format("routing=\"{}\" has no reading", shown(routing)),
                             "Full, Floyd, Dijkstra, DijkstraCache, Cluster and None have");
        if (shortest) shortest_ = true;
        std::vector<XmlReader> host_links;
        std::vector<std::pair<int, XmlReader>> cabinets;
        std::optional<SimgridLink> backbone;
        std::string router;
        for (const XmlReader& child : zone.children()) {
            const std::string name = child.name();
            if (is_any(name, {"zone", "AS"})) {
                read_zone(child);
            } else if (name == "cluster") {
                add_simgrid_cluster(child, machine_);
            } else if (name == "host") {
                machine_.add_host(child.at("id"), child);
                leave_out_attributes(child, {"id", "speed", "power", "core"});
            } else if (name == "router") {
                leave_out_attributes(child, {"id"});
                if (cluster)
                    router = child.at("id");
                else
                    machine_.add_router(child.at("id"), child);
            } else if (name == "link") {
                add_link(child);
            } else if (is_any(name, {"route", "zoneRoute", "ASroute"})) {
                keep_route(child, name != "route", shortest);
            } else if (cluster && name == "host_link") {
                host_links.push_back(child);
            } else if (cluster && name == "backbone") {
                backbone = read_link(child);
            } else if (cluster && name == "cabinet") {
                for (const int host : add_simgrid_hosts(child, machine_)) cabinets.emplace_back(host, child);
            } else {
                pass_over(child);
            }
        }
        if (cluster) join_cluster(zone, host_links, cabinets, backbone, router);
    }

    SimgridLink read_link(const XmlReader& element) {
        leave_out_attributes(element, {"id", "bandwidth", "latency", "sharing_policy"});
        return {simgrid_rate(element, "bandwidth"), simgrid_time(element, "latency"),
                simgrid_sharing(element, "sharing_policy"), element.where()};
    }

    void add_link(const XmlReader& element) {
        const std::string id = element.at("id");
        if (!links_.try_emplace(id, read_link(element)).second)
            throw element.error(fmt::format("the link '{}' comes twice", shown(id)));
    }

    // "l" with a direction, or the half "l_UP" of a split link.
    SimgridUse find_use(const std::string& id, bool down, const XmlReader& element) const {
        if (const auto found = links_.find(id); found != links_.end()) return {&found->second, id, down};
        for (const std::string_view half : {"_UP", "_DOWN"}) {
            if (id.size() <= half.size() || id.substr(id.size() - half.size()) != half) continue;
            const std::string whole = id.substr(0, id.size() - half.size());
            const auto found = links_.find(whole);
            if (found != links_.end()) return {&found->second, whole, half == "_DOWN"};
        }
        throw element.error(fmt::format("there is no link '{}'", shown(id)));
    }

    // Zones of kind Cluster: each host has its own links to what joins them.
    void join_cluster(const XmlReader& zone, const std::vector<XmlReader>& host_links,
                      const std::vector<std::pair<int, XmlReader>>& cabinets,
                      const std::optional<SimgridLink>& backbone, const std::string& router) {
        const SimgridHub hub(zone.find("id").value_or("cluster"), router, backbone,
                             host_links.size() + cabinets.size(), zone, machine_);
        for (const auto& [host, element] : cabinets) {
            const Rate rate = simgrid_rate(element, "bw");
            const Time latency = simgrid_time(element, "lat");
            machine_.add_way(host, hub.into(), rate, latency);
            machine_.add_way(hub.out_of(), host, rate, latency);
        }
        for (const XmlReader& element : host_links) {
            const int host = machine_.resolve(element.at("id"), element);
            machine_.add_route(host, hub.into(), {find_use(element.at("up"), false, element)}, element);
            machine_.add_route(hub.out_of(), host, {find_use(element.at("down"), true, element)}, element);
        }
    }

    void keep_route(const XmlReader& element, bool between_zones, bool one_hop) {
        SimgridRoute route{element, element.at(between_zones ? "gw_src" : "src"),
                           element.at(between_zones ? "gw_dst" : "dst"), between_zones, one_hop};
        if (route.from == route.to) {
            machine_.leave_out(between_zones ? "routes from a zone to itself" : "loopback routes", element);
            return;
        }
        routes_.push_back(std::move(route));
    }

    // Hosts that others' traffic passes: gateways, and nodes of zones that look for the shortest path.
    void let_hosts_pass(const SimgridRoute& route) {
        for (const std::string* name : {&route.from, &route.to}) {
            const int node = machine_.resolve(*name, route.element);
            const bool passed = route.between_zones || (route.one_hop && ++hops_[node] > 1);
            if (passed) machine_.let_pass(node);
        }
    }

    void add_route(const SimgridRoute& route) {
        std::vector<SimgridUse> uses;
        for (const XmlReader& part : route.element.children()) {
            if (part.name() != "link_ctn") {
                pass_over(part);
                continue;
            }
            const std::string direction = part.find("direction").value_or("NONE");
            if (!is_any(direction, {"NONE", "UP", "DOWN"}))
                throw part.error(fmt::format("direction=\"{}\" is neither UP nor DOWN", shown(direction)));
            uses.push_back(find_use(part.at("id"), direction == "DOWN", part));
        }
        if (uses.empty()) throw route.element.error("the route has no link");
        const int from = machine_.resolve(route.from, route.element),
                  to = machine_.resolve(route.to, route.element);
        machine_.add_route(from, to, uses, route.element);
        const std::string both = route.element.find("symmetrical").value_or("YES");
        if (is_any(both, {"NO", "no"})) return;
        if (!is_any(both, {"YES", "yes"}))
            throw route.element.error(fmt::format("symmetrical=\"{}\" is neither YES nor NO", shown(both)));
        for (SimgridUse& use : uses) use.down = !use.down;
        std::reverse(uses.begin(), uses.end());
        machine_.add_route(to, from, uses, route.element);
    }

public:
    bool shortest() const { return shortest_; }
    bool routes() const { return !routes_.empty(); }

private:
    SimgridMachine& machine_;
    std::map<std::string, SimgridLink> links_;
    std::vector<SimgridRoute> routes_;
    std::map<int, int> hops_;
    bool shortest_ = false;
};

void report_simgrid(const SimgridReader& reader, const SimgridMachine& machine, Imported& result) {
    auto& assumed = result.assumptions;
    assumed.push_back("each host is one rank");
    assumed.push_back(
        "rates and latencies as written; SimGrid's default model of TCP multiplies them (bandwidth 0.97, "
        "latency "
        "13.01 in LV08), which is not done here");
    if (machine.direct_hosts)
        assumed.push_back(
            "a route over several links is one direct link of their least rate and the sum of their "
            "latencies; what "
            "several routes share is a limit over them");
    if (reader.shortest())
        assumed.push_back(
            "Floyd and Dijkstra zones route by least latency here, over all paths of it (SimGrid: one path; "
            "Floyd's "
            "has the fewest hops)");
    if (reader.routes())
        assumed.push_back(
            "a split link without a direction is used UP on the way of a route and DOWN on the way back");
    if (machine.half_duplex) assumed.push_back("links that are SHARED carry both directions together");
    if (machine.fatpipe) assumed.push_back("links that are FATPIPE limit each flow, not flows together");
    if (!result.topology.limits.empty())
        result.found.push_back(
            counted(result.topology.limits.size(), "joint limit of links", "joint limits of links"));
    std::vector<std::string> left_out;
    for (const auto& [what, line] : machine.left_out())
        left_out.push_back(fmt::format("{} (first in line {})", what, line));
    warn_left_out(left_out, "elements and attributes without a counterpart", result);
}

}  // namespace

bool recognizes_simgrid(std::string_view text) { return xml_root_name(text) == "platform"; }

Imported read_simgrid(const ImportSource& source, const ImportOptions& /*options*/) {
    const XmlDocument document = XmlDocument::parse(source.text, source.name);
    const XmlReader root = document.root();
    if (root.name() != "platform") throw root.error("the outermost element is not <platform>");
    Imported result;
    SimgridMachine machine(result);
    SimgridReader reader(machine);
    reader.read(root);
    if (result.topology.nodes.empty()) throw root.error("there is no host in it");
    finish_network(source, result);
    report_simgrid(reader, machine, result);
    return result;
}

}  // namespace baton::topologies
