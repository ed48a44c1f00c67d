// What the links did: as CSV for spreadsheets, and the busiest ones for people.
#pragma once

#include <baton/sim/execute_algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <string>
#include <vector>

namespace baton::sim {

/// A link or limit during a run.
struct LinkReport {
    int resource = -1;  ///< index of the link, or links + index of the limit
    std::string id;
    double bytes = 0;        ///< that crossed it
    double busy = 0;         ///< share of the time with at least one message on it, 0..1
    double utilization = 0;  ///< bytes / (capacity * time), 0..1
};

/// The `count` links and limits of the highest utilization, highest first, ties in file order. Empty unless
/// the run finished.
std::vector<LinkReport> busiest_links(const topologies::Topology& topology, const SimulationResult& result,
                                      std::size_t count);

/// One line per finished run and link or limit, with a header: size_bytes, tiles, time_ps, id, type (link or
/// limit), from, to, kind, capacity_bytes_per_second, bytes, busy_ps, busy, utilization. Ids with commas or
/// quotes are quoted.
std::string link_report_csv(const topologies::Topology& topology,
                            const std::vector<SimulationResult>& results);

}  // namespace baton::sim
