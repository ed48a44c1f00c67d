#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/topologies/route_search.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::topologies {
namespace {

// A place named in a path: a node or a link.
struct Named {
    int node = -1, link = -1;
    std::string id;
};

// Splits at '/', the longest id first, since ids hold '/' themselves.
std::vector<Named> split(const Topology& topology, const std::string& path) {
    if (path.size() > (std::size_t{1} << 20)) throw input_error("a route is longer than 1 MiB", "via");
    std::vector<Named> named;
    std::size_t begin = 0;
    while (begin <= path.size()) {
        // An id is at most 256 bytes, so only that much can match.
        std::size_t end = std::min(path.size(), begin + 256);
        if (end < path.size()) end = path.rfind('/', end);
        Named found;
        while (end != std::string::npos && end > begin) {
            found.id = path.substr(begin, end - begin);
            found.node = topology.node_index(found.id);
            if (found.node < 0) found.link = topology.link_index(found.id);
            if (found.node >= 0 || found.link >= 0) break;
            end = path.rfind('/', end - 1);
        }
        if (found.node < 0 && found.link < 0) {
            const std::string rest = path.substr(begin, 60);
            throw input_error(fmt::format("'{}' is neither a node nor a link of {}",
                                          rest.substr(0, rest.find('/')), topology.name),
                              "via " + path.substr(0, 120), "write node ids or link ids joined by '/'");
        }
        named.push_back(found);
        begin = end + 1;
    }
    return named;
}

// Follows the hops one by one under the forwarding rules.
class Walk {
public:
    Walk(const Topology& topology, const Forwarding& rules, int source, const std::string& path)
        : topology_(topology),
          rules_(rules),
          source_(source),
          node_(source),
          phase_(rules.start(source)),
          path_(path) {
        route_.reachable = true;
    }

    int node() const { return node_; }

    // Over the links of least latency to a neighbor.
    void to(int next, const std::string& name) {
        std::vector<int> links;
        for (const int link : topology_.out_links[at(node_)]) {
            if (topology_.links[at(link)].to != next) continue;
            if (!links.empty() && topology_.links[at(link)].latency > topology_.links[at(links[0])].latency)
                continue;
            if (!links.empty() && topology_.links[at(link)].latency < topology_.links[at(links[0])].latency)
                links.clear();
            links.push_back(link);
        }
        if (links.empty())
            throw bad(fmt::format("no link leads from '{}' to '{}'", topology_.nodes[at(node_)].id, name));
        cross(links);
    }
    void over(int link, const std::string& name) {
        if (topology_.links[at(link)].from != node_) {
            throw bad(fmt::format("link '{}' does not begin at '{}'", name, topology_.nodes[at(node_)].id));
        }
        cross({link});
    }
    Route take() { return std::move(route_); }

    Error bad(const std::string& what) const { return input_error(what, "via " + path_.substr(0, 120)); }

private:
    void cross(const std::vector<int>& links) {
        Phase next = Phase::away;
        const bool allowed = phase_ == Phase::away ? rules_.step_away(links[0], just_entered_)
                                                   : rules_.step(source_, {}, phase_, links[0], next);
        if (!allowed) {
            const Node& here = topology_.nodes[at(node_)];
            throw bad(fmt::format("'{}' ({}) may not forward to '{}'", here.id, to_string(here.type),
                                  topology_.nodes[at(topology_.links[at(links[0])].to)].id));
        }
        just_entered_ = next == Phase::away && phase_ != Phase::away;
        phase_ = next;
        double total = 0;
        for (const int link : links) total += topology_.links[at(link)].capacity().value();
        for (const int link : links)
            route_.links.push_back({link, topology_.links[at(link)].capacity().value() / total});
        route_.latency = route_.latency + rules_.cost(links[0], node_ == source_);
        ++route_.hops;
        node_ = topology_.links[at(links[0])].to;
        if (std::find(visited_.begin(), visited_.end(), node_) != visited_.end() || node_ == source_) {
            throw bad(fmt::format("the route comes to '{}' twice", topology_.nodes[at(node_)].id));
        }
        visited_.push_back(node_);
    }

    const Topology& topology_;
    const Forwarding& rules_;
    int source_, node_;
    Phase phase_;
    bool just_entered_ = false;
    std::string path_;
    std::vector<int> visited_;
    Route route_;
};

}  // namespace

Route route_via(const Topology& topology, const Forwarding& rules, int source_rank, int destination_rank,
                const std::string& path) {
    const int source = topology.rank_nodes[at(source_rank)],
              destination = topology.rank_nodes[at(destination_rank)];
    Walk walk(topology, rules, source, path);
    const std::vector<Named> named = split(topology, path);
    for (std::size_t i = 0; i < named.size(); ++i) {
        if (named[i].link >= 0)
            walk.over(named[i].link, named[i].id);
        else if (named[i].node != walk.node())
            walk.to(named[i].node, named[i].id);
        else if (i != 0 && named[i - 1].link < 0)
            throw walk.bad(fmt::format("'{}' comes twice in a row", named[i].id));
    }
    if (walk.node() != destination) walk.to(destination, topology.nodes[at(destination)].id);
    return walk.take();
}

}  // namespace baton::topologies
