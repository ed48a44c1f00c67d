// Which schedules a command uses when none was given: what synthesis chooses for each size.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/collective.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/sim/whatif.hpp>
#include <baton/topologies/topology.hpp>

#include <functional>
#include <string>
#include <vector>

namespace baton::cli {

struct ScheduleChoice {
    std::vector<sim::ChosenSchedule> schedules;  ///< one per size, in the order of the sizes
    std::vector<std::string> warnings;
};

/// Synthesizes for all sizes at once. `algorithm`: "auto" or a synthesizer's name; policy, seed and tiles (0
/// = chosen) are those of `options`. Sizes in any order. A size that no time was left for gets the schedule
/// of the nearest size, with a warning. Throws what synth::synthesize throws.
ScheduleChoice choose_schedules(const topologies::Topology& topology, const ir::Collective& collective,
                                const std::string& algorithm, const std::vector<Bytes>& sizes,
                                const sim::SimulationOptions& options,
                                const std::function<void(const std::string&, double)>& progress = {});

}  // namespace baton::cli
