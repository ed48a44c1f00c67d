// Greedy matching on the time-expanded network: whenever a pair of ranks is free, it gets a chunk that the
// one has and the other lacks.
#pragma once

#include <baton/synth/greedy_demand.hpp>
#include <baton/synth/greedy_network.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

struct GreedySearchOptions {
    Bytes bytes{};           ///< of one chunk
    std::uint64_t seed = 0;  ///< of all choices among equals
    /// Between hosts only chunks that the other host lacks; afterwards, what has arrived spreads inside.
    bool once_per_host = true;
    /// Every chunk keeps to ways on which it arrives earliest if it is alone on the machine. Chunks with one
    /// destination keep to the ways of the demand in any case.
    bool only_shortest = false;
    /// Between hosts only from each host to the next, round from the first chunk's: every link between hosts
    /// then serves one pair, and nothing on it waits for what others send.
    bool hosts_in_line = false;
};

/// A chunk over a pair of ranks.
struct GreedyMessage {
    std::int32_t edge = 0;
    std::int32_t chunk = 0;
};

struct GreedySchedule {
    std::vector<GreedyMessage> messages;  ///< in order of their starts; one per delivery
    Time time{};                          ///< when the last chunk has arrived
    Time busiest{};                       ///< what the messages keep the busiest link or pair busy, in all
    std::size_t state_bytes = 0;          ///< memory of the search at its end, without `messages`
};

/// Runs in time order. A message needs its sender to hold the chunk (nothing is sent before it has arrived)
/// and all that its way uses to be free; it keeps each link for its bytes at that link's rate, the latency
/// does not count. A chunk on its way counts as owned by its receiver, so nothing is sent twice. Among the
/// chunks that serve, a few are looked at and the one that the fewest ranks own is taken.
///
/// The number of messages equals the demand, so the time is at least the discrete bound: see
/// `discrete_bound`. Same input, same result on every machine. Throws an input error when the times do not
/// fit 64 bits.
GreedySchedule greedy_search(const GreedyNetwork& network, const GreedyDemand& demand,
                             const GreedySearchOptions& options);

/// The least time in which every rank can get what it lacks if each pair of ranks carries one chunk after
/// another: the smallest T with sum over pairs into the rank of floor((T - latency) / (bytes / rate)) >=
/// chunks that it lacks, the largest over all ranks. With `latency_occupies` a pair is also busy for its
/// latency, floor(T / (latency + bytes / rate)), as published results of this family count.
Time discrete_bound(const GreedyNetwork& network, const GreedyDemand& demand, Bytes bytes,
                    bool latency_occupies = false);

}  // namespace baton::synth
