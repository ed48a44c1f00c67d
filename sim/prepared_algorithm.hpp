// Inside of PreparedAlgorithm: what its maker and its execution share.
#pragma once

#include <baton/sim/execute_algorithm.hpp>
#include <baton/sim/step_graph.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::sim {

struct PreparedAlgorithm::Data {
    const topologies::Topology* topology = nullptr;
    ir::Collective collective;
    StepGraph graph;
    std::vector<std::int32_t> lane_of, path_of;  ///< per step; -1 for steps on one rank
    std::vector<Path> paths;
    int lanes = 0;
    std::string unreachable;  ///< why no run can finish; empty when all routes exist
    std::vector<std::string> warnings;
    std::string policy_in_words;
    bool even = false;  ///< chunks of equal weight count as equally long (see sim/fold.hpp)
};

/// One run with a given number of tiles.
SimulationResult execute(const PreparedAlgorithm::Data& prepared, const SimulationOptions& options,
                         int tiles);

}  // namespace baton::sim
