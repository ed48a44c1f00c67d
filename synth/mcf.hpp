// All-to-all by multicommodity flow: the optimum of a linear program, scheduled in chunks through relays.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/topologies/routes.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace baton::synth {

/// A schedule made from a flow.
struct FlowAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t chunks = 1;  ///< per shard
    int hops = 0;             ///< sends on the longest way
    double loss =
        0;  ///< how much longer the busiest link takes than in the best flow that was found, relative
};

/// Most pairs of ranks that are served.
inline constexpr std::int64_t kMostFlowPairs = 1'100'000;

struct FlowOptions {
    topologies::RoutePolicy policy = topologies::RoutePolicy::spread;
    std::uint64_t seed = 0;  ///< for RoutePolicy::ecmp
    /// Called with every schedule as soon as it is made; must be set.
    std::function<void(FlowAlgorithm&&)> take;
    /// Called now and then with what is done and the share that is done (-1: unknown); may be empty.
    std::function<void(const std::string& stage, double fraction)> progress;
};

/// Schedules for all_to_all, scatter, gather and send_recv, from few chunks to close to the optimum: the
/// first with one chunk a shard, the second (when it is better) with as many as it takes. Concurrent flow
/// (`concurrent_flow`) on the network under the forwarding rules, rounded to whole chunks per path
/// (`route_chunks`), ranks on the way keep chunks in scratch. Steps come in order of what is left of their
/// way, the longest first. Any groups; members of the communicator relay. Proves nothing itself: the bound
/// does (`bandwidth_bound`). Same input, same result. Throws an input error with the reason when the case is
/// not served.
void mcf(const topologies::Topology& topology, const ir::Collective& collective, const FlowOptions& options);

/// The same, all schedules together.
std::vector<FlowAlgorithm> mcf(const topologies::Topology& topology, const ir::Collective& collective,
                               topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                               std::uint64_t seed = 0);

}  // namespace baton::synth
