// Which schedule a command uses when none was given: a named pattern, or the best in simulation.
#pragma once

#include <baton/ir/algorithm.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <memory>
#include <string>
#include <vector>

namespace baton::cli {

/// Chooses schedules for one collective on one machine; "auto" simulates every pattern that serves and takes
/// the fastest for each size. The topology must outlive it.
class ScheduleChoice {
public:
    /// `algorithm`: a pattern's name or "auto". Throws an input error when it does not serve, or none does.
    ScheduleChoice(const topologies::Topology& topology, const ir::Collective& collective,
                   const std::string& algorithm);
    ~ScheduleChoice();
    ScheduleChoice(ScheduleChoice&&) noexcept;

    struct Chosen {
        std::string name;
        std::shared_ptr<const ir::Algorithm> algorithm;
        sim::SimulationResult result;  ///< without trace
    };
    /// The fastest for `options.size`; the first of equals. Policy and seed must be the same in all calls.
    /// When no candidate finishes, the first one with its reason.
    Chosen best(const sim::SimulationOptions& options);
    const std::vector<std::string>& warnings() const { return warnings_; }

private:
    struct Candidate;
    const topologies::Topology& topology_;
    std::vector<Candidate> candidates_;
    std::vector<std::string> warnings_;
};

}  // namespace baton::cli
