// The search for least-latency branches between two ranks. Internal to the layer; Routes is the public face.
#pragma once

#include <baton/topologies/forwarding.hpp>
#include <baton/topologies/routes.hpp>

#include <memory>
#include <string>
#include <vector>

namespace baton::topologies {

/// A link to a later state and what can flow through it to the destination (bytes per second).
struct Branch {
    int link = -1, to = -1;
    double capacity = 0;
};

/// All least-latency paths between two ranks as a graph of states (node, phase) in order of distance: state 0
/// is the source, the last the destination.
struct Branches {
    struct State {
        int node = -1;
        int hops = 0;
        std::vector<Branch> out;
    };
    Distance length;
    std::vector<State> states;
    bool reachable() const { return length.known(); }
};

/// Dijkstra per source, grown only as far as asked and kept for the next questions (a bounded number of
/// sources), plus a search backward inside the destination's host.
class RouteSearch {
public:
    RouteSearch(const Topology& topology, const Forwarding& rules);
    ~RouteSearch();

    /// Paths that leave by `source_nics` and enter by `destination_nics` where these are not empty.
    Branches between(int source_rank, int destination_rank, const std::vector<int>& source_nics,
                     const std::vector<int>& destination_nics);
    bool reachable(int source_rank, int destination_rank, const std::vector<int>& source_nics,
                   const std::vector<int>& destination_nics);

private:
    struct Data;
    std::unique_ptr<Data> data_;
};

/// See Routes::via.
Route route_via(const Topology& topology, const Forwarding& rules, int source_rank, int destination_rank,
                const std::string& path);

}  // namespace baton::topologies
