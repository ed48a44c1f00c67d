// A run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <baton/sim/execute_algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::sim {

/// The trace of a result that was asked for one, as Chrome trace JSON. Every rank is a process with one track
/// per lane (messages from first to last byte out; tile, bytes, arrival and commit as arguments) and one for
/// steps on the rank itself; the network is a process with one track per link and limit that carried anything
/// (its busy periods). Time stamps are microseconds with picosecond digits. The same run gives the same text.
std::string chrome_trace(const topologies::Topology& topology, const std::string& name,
                         const SimulationResult& result);

}  // namespace baton::sim
