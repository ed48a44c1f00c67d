// Lower bounds on the time of a collective on a topology: what no method can beat.
#pragma once

#include <baton/synth/bandwidth_bound.hpp>
#include <baton/synth/latency_bound.hpp>

#include <string>

namespace baton::synth {

/// Latency and bandwidth bound of one collective, with their witnesses.
struct Bound {
    ir::Collective collective;
    LatencyBound latency;
    BandwidthBound bandwidth;

    /// The greater of the two for a size (bytes of the larger buffer of a rank), never their sum; 0 when no
    /// byte has to move. Rounded down to picoseconds.
    Time at(Bytes size) const;
    /// The bandwidth bound alone.
    Time bandwidth_time(Bytes size) const;
    /// Highest algorithm bandwidth at any size (size / time) in bytes per second; 0 when no data has to move.
    double algbw() const;
};

/// Both bounds. Throws input errors of `latency_bound` and `bandwidth_bound`, and of `Collective::check`.
Bound bound(const topologies::Topology& topology, const ir::Collective& collective);

/// The witness of the latency bound in words: the ranks, the way, the sum.
std::string latency_in_words(const topologies::Topology& topology, const Bound& bound);
/// The witness of the bandwidth bound in words: what must cross where, and the division.
std::string bandwidth_in_words(const topologies::Topology& topology, const Bound& bound);

/// Both bounds and their witnesses as a JSON object: latency in picoseconds, the way as link ids, the
/// fraction in seconds per byte of `unit`, and the ids of all nodes and links of the witness.
std::string to_json(const topologies::Topology& topology, const Bound& bound);

}  // namespace baton::synth
