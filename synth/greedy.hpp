// Greedy synthesis at scale: every standard kind on any topology by matching on the time-expanded network.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/greedy_search.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <functional>

namespace baton::synth {

struct GreedyOptions {
    Bytes size{};             ///< that the schedule is made for; see baton::synth::Choice
    std::uint64_t seed = 0;   ///< of all choices among equals
    std::int64_t chunks = 0;  ///< per shard (of the buffer, for kinds without shards); 0 = chosen
    /// Chosen for a run in so many tiles: by the load of the busiest link plus this part of the planned time.
    std::int64_t tiles = 1;
    std::int64_t most_chunks = 32;  ///< largest number that is tried
    std::int64_t work = 4'000'000;  ///< messages planned, over all attempts (more where ranks have many
                                    ///< pairs); the first is made anyway
    std::int64_t wanted_steps = 4'000'000;  ///< no chunks more than one are tried above
    std::int64_t step_limit = 4'000'000;    ///< refused above
    topologies::RoutePolicy policy = topologies::RoutePolicy::spread;
    std::uint64_t policy_seed = 0;
    std::function<void(double fraction)> progress;  ///< may be empty
};

struct GreedyAlgorithm {
    ir::Algorithm algorithm;
    std::int64_t chunks = 1;  ///< per shard
    Time planned{};           ///< in the search's own model, both phases of an all_reduce together
    int attempts = 0;
};

/// The best of several greedy searches: numbers of chunks 1, 2, 4, ..., seeds, and rules for links between
/// hosts and for slow links; the least planned time wins, the fewest chunks within 1%. reduce, gather and
/// reduce_scatter are found on the machine turned round and run backwards; all_reduce is reduce_scatter then
/// all_gather or, where that is planned to end sooner, all buffers to everyone, who adds them up in order.
/// Same input, same result. Throws an input error with the reason when the case is not served: custom
/// collectives, ranks out of reach, more steps than `step_limit`.
GreedyAlgorithm greedy(const topologies::Topology& topology, const ir::Collective& collective,
                       const GreedyOptions& options);

/// The steps of a schedule for `collective` (a kind that greedy_demand serves). Messages that end at ranks
/// which neither keep nor pass on their chunk are left out.
ir::Algorithm greedy_algorithm(const GreedyNetwork& network, const ir::Collective& collective,
                               const GreedyDemand& demand, const GreedySchedule& schedule);

}  // namespace baton::synth
