// The best division of shared links among pairs of ranks, by linear programming over cuts.
#pragma once

#include <baton/synth/rank_graph.hpp>

#include <cstdint>
#include <vector>

namespace baton::synth {

/// Rates for edges between ranks and what trees can then do.
struct RateDivision {
    std::vector<double> rates;    ///< bytes per second, one per edge
    double seconds_per_byte = 0;  ///< of the best forest at these rates, per byte of each root
    bool solved = false;          ///< false: the limit of work ended it or there is nothing to divide
};

/// Chooses rates so that the best forest from `roots` is as fast as the routes of the edges allow: the rate X
/// of every root is maximized subject to the capacity of every resource and, for every set of ranks that
/// cannot hear of a root otherwise, enough rate out of it. Rows for sets are added as maximum flow finds them
/// violated. What capacity is left over is shared out evenly, for shallower trees. `uses` and `capacities` as
/// in RankGraph; `most_work` as in LinearProgram::solve. The numbers are floating point: whoever packs rounds
/// down and proves again.
RateDivision divide_rates(int ranks, const std::vector<RankEdge>& edges,
                          const std::vector<std::vector<topologies::LinkShare>>& uses,
                          const std::vector<double>& capacities, const std::vector<int>& roots,
                          std::int64_t most_work = 1'000'000'000);

}  // namespace baton::synth
