// Parts of SimGrid's platforms: links as its routes share them, and clusters. Internal to the layer.
#pragma once

#include <baton/base/xml_reader.hpp>
#include <baton/topologies/import/importer.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baton::topologies {

/// How the two directions of a link share it. FULLDUPLEX is an older word for SPLITDUPLEX.
enum class SimgridSharing : std::uint8_t { split, shared, fatpipe };

/// A `<link>`, or a backbone.
struct SimgridLink {
    Rate bandwidth{};
    Time latency{};
    SimgridSharing sharing = SimgridSharing::split;
    std::string where;
};

/// One link on the way of a route.
struct SimgridUse {
    const SimgridLink* link = nullptr;
    std::string id;
    bool down = false;  ///< the other half of a split link
};

/// `bandwidth` or `latency` of an attribute with SimGrid's units; numbers without one are bytes per second
/// and seconds. Throws an input error at the element.
Rate simgrid_rate(const XmlReader& element, std::string_view attribute);
Time simgrid_time(const XmlReader& element, std::string_view attribute);
/// The attribute `sharing_policy` (of a cluster also `bb_sharing_policy`); split when it is absent.
SimgridSharing simgrid_sharing(const XmlReader& element, std::string_view attribute);

/// The machine under construction: nodes by SimGrid's names, and links that share what SimGrid's links share.
class SimgridMachine {
public:
    explicit SimgridMachine(Imported& result) : result_(result) {}

    /// A host, which is a rank, or a router, which is a switch. Throws an input error for a name that is
    /// taken.
    int add_host(const std::string& name, const XmlReader& element);
    int add_router(const std::string& name, const XmlReader& element);
    /// A switch that SimGrid has no name for.
    int add_center(const std::string& name);
    /// Node by name; -1 when there is none.
    int find(const std::string& name) const;
    /// A name that stands for a node which is made when a route asks for it.
    void add_later(const std::string& name, std::function<int()> make, const XmlReader& element);
    /// Node by the name that a route gives; makes those that were added for later. Throws an input error.
    int resolve(const std::string& name, const XmlReader& element);
    /// Lets others pass a host: it gets a switch of its own, which routes then lead to.
    void let_pass(int host);

    /// One direction of a route: a link with the least rate and the sum of the latencies of what it uses.
    /// Uses of one link by several routes are held to its rate together when the machine is finished.
    void add_route(int from, int to, const std::vector<SimgridUse>& uses, const XmlReader& element);
    /// A cable of a cluster, two-way, or half-duplex when it is shared.
    void add_cable(int from, int to, Rate bandwidth, Time latency, SimgridSharing sharing, int count = 1);
    /// One direction alone.
    void add_way(int from, int to, Rate bandwidth, Time latency, int count = 1);
    /// Holds links to one rate together.
    void add_limit(const std::string& id, std::vector<int> links, Rate bandwidth);

    /// Directed links so far.
    int link_count() const { return static_cast<int>(result_.topology.links.size()); }
    /// Makes the switches of hosts that are passed, and the limits of links that routes share.
    void finish();

    Imported& result() { return result_; }
    /// Attributes and elements without a counterpart, with the first line of each.
    void leave_out(const std::string& what, const XmlReader& element);
    const std::map<std::string, int>& left_out() const { return left_out_; }
    bool fatpipe = false, half_duplex = false, direct_hosts = false;  ///< what was met, for the report

private:
    int end_of(int node) const;

    Imported& result_;
    std::map<std::string, int> nodes_;
    std::map<std::string, std::function<int()>> later_;
    std::map<int, int> ports_;  // host, the switch in front of it
    struct Shared {
        Rate bandwidth;
        std::vector<int> links;
    };
    std::map<std::string, Shared> shared_;  // by link and direction
    std::map<std::string, int> left_out_;
};

/// A `<cluster>`: FLAT with or without backbone, TORUS, FAT_TREE or DRAGONFLY, wired as SimGrid does. Throws
/// an input error for other shapes and for parameters that do not fit the number of hosts.
void add_simgrid_cluster(const XmlReader& element, SimgridMachine& machine);

/// Hosts of a cluster or cabinet by `prefix`, `radical` and `suffix`.
std::vector<int> add_simgrid_hosts(const XmlReader& element, SimgridMachine& machine);

/// What the hosts of a flat cluster are joined by: a router, or a backbone with a router behind it.
class SimgridHub {
public:
    /// `router` names it for routes from outside; empty: none.
    SimgridHub(const std::string& name, const std::string& router, const std::optional<SimgridLink>& backbone,
               std::size_t hosts, const XmlReader& element, SimgridMachine& machine);
    /// Where the links of hosts lead to, and come from.
    int into() const { return into_; }
    int out_of() const { return out_of_; }

private:
    int into_ = -1, out_of_ = -1;
};

}  // namespace baton::topologies
