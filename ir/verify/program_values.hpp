// The result of a Program by abstract execution: which inputs stand where, and in which order they were
// reduced.
#pragma once

#include <baton/ir/verify/program_graph.hpp>
#include <baton/ir/verify/program_memory.hpp>

#include <memory>
#include <string>
#include <vector>

namespace baton::ir::checks {

/// Executes instructions on expression trees, out of place and in place at once.
class ValueExecution {
public:
    ValueExecution(const ProgramGraph& graph, const MemoryMap& memory);
    ~ValueExecution();

    /// Executes the next instruction of its threadblock; everything it waits for must have been executed.
    /// Throws a check error for a read of nothing, a class mismatch, a value combined after it was finalized,
    /// and a message that differs between placements. Messages being equal, ranks may mix placements.
    void execute(Site site);
    /// Checks the outputs of all ranks; returns the order of the reductions.
    Order finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace baton::ir::checks
