// What-if studies: the same collective on variations of a machine, with the schedule kept and made anew.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/topologies/topology.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::sim {

/// A machine to compare with the baseline: links failed or slowed, other parameters.
struct Variation {
    std::string name;                              ///< "fail gpu0>nvswitch0", "hosts=4"
    std::optional<topologies::Topology> topology;  ///< nothing: the machine cannot be made
    std::string refusal;                           ///< then why
};

/// A schedule that someone chose for a machine and a size.
struct ChosenSchedule {
    std::string name;
    std::shared_ptr<const ir::Algorithm> algorithm;
    int tiles = 0;  ///< 0: the simulator chooses
};

/// Makes a schedule for a machine and a size. May throw an input error: the cell then says so.
using Synthesize = std::function<ChosenSchedule(const topologies::Topology&, Bytes)>;
/// The time that no method can beat on a machine for a size. May throw an input error.
using BoundOf = std::function<Time(const topologies::Topology&, Bytes)>;

/// One simulated time, or why there is none.
struct WhatIfCell {
    std::optional<Time> time;
    std::string reason;    ///< without a time
    std::string schedule;  ///< name of the schedule
    int tiles = 0;
    Rate busbw{};
    std::string model_in_words;
};

/// One machine and size. `kept`: the baseline's schedule and tiles, with messages routed on this machine;
/// `anew`: what is made for this machine.
struct WhatIfRow {
    std::string variation;  ///< "baseline" for the first
    Bytes size{};
    WhatIfCell kept, anew;
    std::optional<Time> bound;
};

/// Runs the study: for the baseline and each variation, in order, one row a size. `options.size` and
/// `options.tiles` are not used. A kept schedule that cannot run (a rank that is no longer reached, another
/// number of ranks, a route that is gone) is a cell with a reason, never an error. Errors of the baseline are
/// thrown. `progress`, unless empty, is told what is being done and which share of the rows is done.
std::vector<WhatIfRow> what_if(const topologies::Topology& baseline, const std::vector<Variation>& variations,
                               const std::vector<Bytes>& sizes, const SimulationOptions& options,
                               const Synthesize& synthesize, const BoundOf& bound,
                               const std::function<void(const std::string&, double)>& progress = {});

}  // namespace baton::sim
