#include <baton/ir/verify.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/verify/program_graph.hpp>
#include <baton/ir/verify/program_races.hpp>
#include <baton/ir/verify/program_schedule.hpp>
#include <baton/ir/verify/program_values.hpp>
#include <baton/ir/verify/vector_clocks.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::ir {
namespace {

using namespace checks;

std::vector<Site> demand_no_deadlock(const ProgramGraph& graph, const std::vector<int>& slots) {
    ScheduleResult run = run_schedule(graph, slots, true);
    if (run.complete) return std::move(run.order);
    const std::vector<int> unlimited(slots.size(), 0);
    if (!run_schedule(graph, unlimited, false).complete) throw check_error("deadlock: " + run.cycle);
    throw check_error(
        "deadlock at the configured slot counts: " + run.cycle, {},
        fmt::format("with {} slots on every staged connection it runs", smallest_uniform_slots(graph)));
}

// The smallest slot count of each staged connection while the others keep theirs. Fewer slots on one
// connection add waits of its send n for its receive n - k; that closes a cycle exactly when receive n - k
// already happens after send n (of several such waits in a cycle, one goes back in n and closes it alone). So
// k must exceed n - m for every send n that happens before receive m.
bool smallest_per_connection(const ProgramGraph& graph, const std::vector<int>& slots,
                             const std::vector<Site>& order, std::int64_t memory_budget,
                             std::vector<int>& smallest) {
    VectorClocks clocks(graph, slots);
    smallest.assign(graph.ends.size(), 0);
    for (std::size_t c = 0; c < graph.ends.size(); ++c) {
        if (graph.program->connections[c].mode == Mode::staged) smallest[c] = 1;
    }
    for (const Site site : order) {
        if (!clocks.advance(site, memory_budget)) {
            smallest.clear();
            return false;
        }
        for (const Operand& source : graph.code(site).sources(graph.at(site))) {
            if (source.kind != OperandKind::message || smallest[source.target] == 0) continue;
            const Ends& ends = graph.ends[source.target];
            const auto m = clocks.received(source.target) - 1;
            const auto n = std::upper_bound(ends.sends.begin(), ends.sends.end(),
                                            clocks.last_before(ends.sender, site.block)) -
                           ends.sends.begin() - 1;
            smallest[source.target] = std::max(smallest[source.target], static_cast<int>(n - m) + 1);
        }
    }
    return true;
}

}  // namespace

ProgramReport verify(const Program& program, const VerifyOptions& options) {
    ProgramReport report;
    const std::int64_t instructions = program.instruction_count();
    if (instructions > options.instruction_limit) {
        report.assurance = Assurance::not_proven;
        report.order = Order::any;
        report.warnings.push_back(fmt::format("not proven: {} instructions are more than the limit of {}",
                                              instructions, options.instruction_limit));
        return report;
    }
    const ProgramGraph graph = build_graph(program);
    const std::vector<int> slots = slot_counts(program, options.slots);
    const std::vector<Site> order = demand_no_deadlock(graph, slots);

    const MemoryMap memory(graph);
    const auto blocks = static_cast<std::int64_t>(graph.blocks.size());
    bool proven = VectorClocks::bytes(blocks) <= options.memory_budget;
    if (proven) {
        RaceCheck races(graph, memory);
        for (const Site site : order) {
            if (!(proven = races.visit(site, options.memory_budget))) break;
        }
    }
    if (!proven) {
        report.assurance = Assurance::not_proven;
        report.warnings.push_back(
            fmt::format("races not proven: the clocks of {} threadblocks need more than {} bytes", blocks,
                        options.memory_budget));
    }
    // After the races: with one, values would depend on the order that happened to be taken.
    ValueExecution values(graph, memory);
    for (const Site site : order) values.execute(site);
    report.order = values.finish();

    report.smallest_slots = smallest_uniform_slots(graph);
    if (report.smallest_slots > 0 &&
        (!proven || !smallest_per_connection(graph, slots, order, options.memory_budget,
                                             report.smallest_per_connection))) {
        report.warnings.push_back("smallest slot counts per connection not computed");
    }
    if (report.smallest_per_connection.empty() && report.smallest_slots == 0) {
        report.smallest_per_connection.assign(graph.ends.size(), 0);
    }
    return report;
}

}  // namespace baton::ir
