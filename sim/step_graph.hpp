// An Algorithm as a graph: its steps, and what reads and writes of the same places make them wait for.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace baton::sim {

/// Classes first, first+1, ... (modulo the collective's chunks), `count` of them.
struct ClassRun {
    std::int64_t first = 0, count = 0;
};

/// What one step waits for of another. A step starts (reads its source and begins to send), has left (its
/// last byte is out of the source) and is committed (the value stands in the destination).
enum class Wait : std::uint8_t {
    start_after_commit = 0,   ///< the source is what the other step wrote
    commit_after_commit = 1,  ///< both write a place, or this one reduces into what the other wrote
    commit_after_left = 2,    ///< this step overwrites what the other one reads
};

struct Successor {
    std::int32_t step = 0;
    Wait wait = Wait::start_after_commit;
};

struct StepNode {
    std::int32_t source = 0,
                 destination = 0;  ///< ranks; multicast and switch_reduce: destination is the switch group
    std::int32_t via = -1;
    std::int16_t channel = 0;  ///< 0 for steps without a channel
    ir::StepOp op = ir::StepOp::send;
    std::int32_t start_waits = 0, commit_waits = 0;  ///< how many steps it waits for
};

/// Limits that keep every input from exhausting memory.
struct StepGraphLimits {
    std::int64_t steps = 20'000'000;
    std::int64_t waits = 100'000'000;
};

/// The steps in program order with what they wait for. Independent of size, tiles and machine.
///
/// Waits follow from the order of the program, with input and output taken as aliased the way the collective
/// allows in place. Source: wait for the commit of the step that wrote it. Destination: wait to commit for
/// the steps that read the place before and for the one that wrote it before; so a message may leave early,
/// and what arrives early waits in a slot (the number of slots is not modeled here). A par block reads
/// everything before it writes anything.
class StepGraph {
public:
    /// Throws a check error that names the step for a place that does not exist or scratch that holds
    /// nothing, and whatever the cursor throws. Above a limit the graph stays empty and `refused` says why.
    explicit StepGraph(const ir::Algorithm& algorithm, const StepGraphLimits& limits = {});
    /// What a graph is made of: runs and successors of step s are those from offset s to offset s+1.
    struct Parts {
        std::vector<StepNode> steps;
        std::vector<ClassRun> runs;
        std::vector<std::int64_t> run_offsets{0}, offsets{0};
        std::vector<Successor> successors;
    };
    explicit StepGraph(Parts parts);
    StepGraph() = default;

    std::int64_t size() const { return static_cast<std::int64_t>(steps_.size()); }
    const StepNode& step(std::int64_t s) const { return steps_[static_cast<std::size_t>(s)]; }
    /// The classes of the chunks that a step carries.
    std::span<const ClassRun> runs(std::int64_t s) const {
        const auto at = static_cast<std::size_t>(s);
        return {runs_.data() + run_offsets_[at], runs_.data() + run_offsets_[at + 1]};
    }
    /// The steps that wait for step `s`, ascending.
    std::span<const Successor> successors(std::int64_t s) const {
        const auto at = static_cast<std::size_t>(s);
        return {successors_.data() + offsets_[at], successors_.data() + offsets_[at + 1]};
    }
    /// Empty, or why the algorithm is too large.
    const std::string& refused() const { return refused_; }

private:
    std::vector<StepNode> steps_;
    std::vector<ClassRun> runs_;
    std::vector<std::int64_t> run_offsets_{0}, offsets_{0};
    std::vector<Successor> successors_;
    std::string refused_;
};

}  // namespace baton::sim
