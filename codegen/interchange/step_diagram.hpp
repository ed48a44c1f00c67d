// What happens in which step of a schedule, as a picture.
#pragma once

#include <baton/ir/program.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// One arrow: places that travel from one rank to another.
struct StepArrow {
    std::int64_t step = 0;  ///< from 0
    int from = 0, to = 0;
    /// What travels: the number of an input value. shard * C + class; all_to_all: (source * N + shard) * C +
    /// class; kinds without shards: the class. Ascending, each once.
    std::vector<std::int64_t> values;
    bool reduces = false;  ///< combined with what stands at the receiver
};

/// One pass of a program in steps: a message leaves in the first step in which all that its threadblock did
/// before it, and what it waits for, is there, and arrives at the end of that step. Local work takes no step.
struct StepDiagram {
    std::int64_t steps = 0;
    std::int64_t values = 0;        ///< how many numbers of values there may be
    std::vector<StepArrow> arrows;  ///< by (step, from, to, reduces, values)
};

/// The steps of a program that verifies. Messages of one step between the same two ranks that are alike in
/// `reduces` are one arrow. Throws an input error above 2 million instructions.
StepDiagram step_diagram(const ir::Program& program);

/// Limits of a picture of steps.
inline constexpr int kMostDrawnRanks = 128;
inline constexpr std::size_t kMostDrawnArrows = 3000;

/// A space-time diagram: one line a rank, one column a step, one arrow a message, colored by what it carries,
/// with a legend. Arrows that end in a ring reduce. At most `kMostDrawnArrows`: whole steps from the first
/// one on; the picture says what it leaves out. Throws an input error for more ranks than `kMostDrawnRanks`.
/// Deterministic.
std::string write_step_svg(const ir::Program& program);

/// The same as Graphviz text of any size: one node a rank and step where it takes part, ranked by steps.
std::string write_step_dot(const ir::Program& program);

}  // namespace baton::codegen
