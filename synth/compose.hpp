// Hierarchical composition: a schedule for one host and a schedule for the hosts of one rail make a schedule
// for the whole machine.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/synth/host_symmetry.hpp>
#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace baton::synth {

/// One way to compose, with how it is made up in words: "forest of 6 trees inside, bruck between".
struct Composition {
    ir::Algorithm algorithm;
    std::string words;
};

/// What `compose` may do.
struct ComposeOptions {
    std::int64_t step_limit = 4'000'000;  ///< compositions of more steps are not made
    /// Called with every composition as it is made; the next one is made afterwards. Must be set.
    std::function<void(Composition&&)> take;
};

/// Composes the collective's one group of all ranks of `topology`, or of some.
///
/// Inside a host: spanning trees of an all_gather packed on the host alone (`forest`), once per class of
/// equal hosts (`host_rails`), and their reverse. Between hosts, rail by rail (the ranks of equal place on
/// their hosts): Bruck's all-gather and its reverse, which take ceil(log2 hosts) steps and the least volume
/// for every number of hosts; recursive doubling, all pairs, trees and rings where these may be faster. Tiles
/// make a pipeline of the phases.
///
///   all_reduce      reduce_scatter inside, all_reduce on each rail, all_gather inside
///   all_gather      all_gather on each rail, all_gather inside. Shards of a rail stand apart in the output,
///                   so every step is torn into one per shard; with many hosts each rail instead takes the
///                   shards of a run of hosts: they are gathered inside and dealt out along the rail first
///   reduce_scatter  the reverse of all_gather
///   broadcast       scatter inside the root's host, broadcast on each rail, all_gather inside
///   reduce          the reverse of broadcast
///   all_to_all      all_to_all inside, then on each rail
///
/// Schedules have explicit steps; their number grows with ranks times (ranks of a host + log2 hosts). Throws
/// an input error with the reason when the case is not served.
void compose(const topologies::Topology& topology, const ir::Collective& collective,
             const ComposeOptions& options);

/// Whether `compose` is made for a kind.
bool compose_serves(ir::CollectiveKind kind);

}  // namespace baton::synth
