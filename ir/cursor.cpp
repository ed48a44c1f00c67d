// Walking concrete steps: an interpreter of loop programs.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/ir/loop_program.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::ir {
namespace {

constexpr std::int64_t kMaxIndex = std::int64_t{1} << 31;

}  // namespace

struct StepCursor::State {
    const Algorithm& algorithm;
    LoopProgram program;
    int only_rank;  // -1: all steps

    std::vector<std::int64_t> slots;
    int group = -1, group_end = 0;
    int pc = 0;
    int only_position = -1;  // of `only_rank` in this group; -1 when it is not in it
    bool in_par = false, par_first = false;
    std::int64_t idle = 0;  // loop iterations since the last step
    std::int64_t emitted = 0;
    std::int64_t last_position = -1;

    // The template in progress.
    const LoopProgram::Template* current = nullptr;
    std::int64_t r = 0, r_end = 0;
    bool by_candidates = false;
    std::vector<std::int64_t> candidates;
    std::int64_t template_base = 0;

    // The explicit run in progress.
    const std::vector<Step>* run = nullptr;
    std::size_t run_at = 0;
    bool block_delivered = false;  // a step of the run's current par block

    State(const Algorithm& source, int rank) : algorithm(source), program(compile(source)), only_rank(rank) {
        slots = program.slots;
        group_end = source.over_positions ? source.collective.group_count() : 1;
        start_group();
    }

    std::int64_t positions() const {
        const auto& c = algorithm.collective;
        return algorithm.over_positions ? c.group_size(group) : c.ranks;
    }
    bool maps_positions() const { return algorithm.over_positions && !algorithm.collective.groups.empty(); }

    bool start_group() {
        if (++group >= group_end) return false;
        pc = 0;
        slots[kSlotN] = positions();
        only_position = only_rank;
        if (maps_positions() && only_rank >= 0) {
            const auto [g, p] = algorithm.collective.position_of(only_rank);
            only_position = g == group ? p : -1;
        }
        return true;
    }

    std::int64_t value(int expression) const { return program.value(expression, slots.data()); }

    Error at_template(const Error& error) const {
        std::string place = algorithm.name.empty() ? current->place : algorithm.name + "#" + current->place;
        if (current->per_position) place += fmt::format(" at r = {}", slots[kSlotR]);
        return input_error(error.message(), place, error.remedy());
    }

    int rank_of(std::int64_t position, const char* end) const {
        if (position < 0 || position >= positions())
            throw input_error(fmt::format("{} is rank {}, but there are {}{}", end, position, positions(),
                                          maps_positions() ? " positions" : " ranks"));
        return maps_positions() ? algorithm.collective.rank_at(group, static_cast<int>(position))
                                : static_cast<int>(position);
    }

    static std::int32_t index_of(std::int64_t index, std::int64_t chunks, const char* end) {
        if (index < 0 || index + chunks > kMaxIndex)
            throw input_error(
                fmt::format("{} index {} with {} chunks is outside 0..2^31-1", end, index, chunks));
        return static_cast<std::int32_t>(index);
    }

    /// Builds the step at position `r`; false when a condition excludes it or it moves nothing.
    bool instantiate(Step& step) {
        const auto& t = *current;
        for (const auto& part : t.prelude) {
            const std::int64_t result = value(part.expression);
            if (part.slot >= 0)
                slots[static_cast<std::size_t>(part.slot)] = result;
            else if (result == 0)
                return false;
        }
        const std::int64_t chunks = t.operands[4] < 0 ? 1 : value(t.operands[4]);
        if (chunks == 0) return false;
        if (chunks < 0 || chunks >= kMaxIndex)
            throw input_error(fmt::format("{} chunks", chunks), {}, "chunks are 0 to 2^31-1");
        const auto& source = *t.step;
        step = Step{};
        step.op = source.op;
        step.src_buffer = source.src_buffer;
        step.dst_buffer = source.dst_buffer;
        step.protocol = source.protocol;
        step.via = source.via;
        step.chunks = static_cast<std::int32_t>(chunks);
        step.src_rank = rank_of(value(t.operands[0]), "the source");
        step.src_index = index_of(value(t.operands[1]), chunks, "source");
        const std::int64_t destination = value(t.operands[2]);
        if (step.op == StepOp::multicast || step.op == StepOp::switch_reduce) {
            if (destination < 0 || destination >= static_cast<std::int64_t>(algorithm.switch_groups.size()))
                throw input_error(fmt::format("switch group {} is not declared", destination));
            step.dst_rank = static_cast<std::int32_t>(destination);
        } else {
            step.dst_rank = rank_of(destination, "the destination");
        }
        step.dst_index = index_of(value(t.operands[3]), chunks, "destination");
        if (t.operands[5] >= 0) {
            const std::int64_t channel = value(t.operands[5]);
            if (channel < -1 || channel > INT16_MAX)
                throw input_error(fmt::format("channel {} is outside 0..{}", channel, INT16_MAX));
            step.channel = static_cast<std::int16_t>(channel);
        }
        const bool same = step.src_rank == step.dst_rank;
        if (!step.crosses() && !same)
            throw input_error(
                fmt::format("{} between ranks {} and {}", to_string(step.op), step.src_rank, step.dst_rank),
                {}, "copy and reduce stay on one rank; use send or send_reduce");
        if (same && step.op == StepOp::send) step.op = StepOp::copy;
        if (same && step.op == StepOp::send_reduce) step.op = StepOp::reduce;
        return true;
    }

    bool concerns(const Step& step) const {
        if (only_rank < 0 || step.src_rank == only_rank) return true;
        if (step.op != StepOp::multicast && step.op != StepOp::switch_reduce)
            return step.dst_rank == only_rank;
        const auto& members = algorithm.switch_groups[static_cast<std::size_t>(step.dst_rank)];
        return std::find(members.begin(), members.end(), only_rank) != members.end();
    }

    bool deliver(Step& step, std::int64_t position) {
        step.in_par = in_par;
        step.par = in_par && !par_first;
        par_first = false;
        last_position = position;
        idle = 0;
        return true;
    }

    /// Positions whose step may have `only_position` at an end, when the expressions can be inverted.
    bool invert() {
        const auto& t = *current;
        candidates.clear();
        if (!t.always_emits || t.step->op == StepOp::multicast || t.step->op == StepOp::switch_reduce)
            return false;
        if (only_position < 0) return true;
        const std::int64_t n = positions();
        for (const auto& [form, operand] :
             {std::pair{t.source, t.operands[0]}, std::pair{t.destination, t.operands[2]}}) {
            std::int64_t found = -1;
            slots[kSlotR] = 0;
            switch (form.kind) {
                case PositionForm::Kind::other: return false;
                case PositionForm::Kind::constant:
                    if (value(operand) == only_position) return false;  // at every position
                    continue;
                case PositionForm::Kind::affine_mod: {
                    const std::int64_t offset = value(operand) % n;
                    found = (only_position - offset) * form.sign % n;
                    if (found < 0) found += n;
                    break;
                }
                case PositionForm::Kind::xor_mask: found = only_position ^ value(operand); break;
            }
            if (found < 0 || found >= n) continue;
            slots[kSlotR] = found;
            if (value(operand) == only_position) candidates.push_back(found);
        }
        if (candidates.size() == 2) {
            if (candidates[0] == candidates[1])
                candidates.pop_back();
            else if (candidates[0] > candidates[1])
                std::swap(candidates[0], candidates[1]);
        }
        return true;
    }

    void begin_template(int index) {
        current = &program.templates[static_cast<std::size_t>(index)];
        r = 0;
        r_end = current->per_position ? positions() : 1;
        slots[kSlotR] = 0;
        template_base = emitted;
        by_candidates = false;
        if (only_rank < 0 || !current->per_position) return;
        by_candidates = invert();
        if (by_candidates) {
            emitted += r_end;
            r_end = static_cast<std::int64_t>(candidates.size());
        }
    }

    bool next_of_template(Step& step) {
        try {
            while (r < r_end) {
                const std::int64_t at = by_candidates ? candidates[static_cast<std::size_t>(r)] : r;
                ++r;
                slots[kSlotR] = at;
                if (!instantiate(step)) continue;
                const std::int64_t position = by_candidates ? template_base + at : emitted++;
                if (concerns(step)) return deliver(step, position);
            }
        } catch (const Error& error) {
            throw at_template(error);
        }
        current = nullptr;
        return false;
    }

    bool next_of_run(Step& step) {
        while (run_at < run->size()) {
            step = (*run)[run_at++];
            const std::int64_t position = emitted++;
            if (step.in_par && !step.par) block_delivered = false;  // a block opens
            if (!concerns(step)) continue;
            if (in_par) return deliver(step, position);
            step.par = step.in_par && block_delivered;
            block_delivered = true;
            last_position = position;
            idle = 0;
            return true;
        }
        run = nullptr;
        return false;
    }

    void iterate(const LoopProgram::Instruction& instruction, bool entering) {
        auto& variable = slots[static_cast<std::size_t>(instruction.slot)];
        auto& left = slots[static_cast<std::size_t>(instruction.slot) + 1];  // iterations after this one
        if (entering) {
            const std::int64_t from = value(instruction.expression), to = value(instruction.expression + 1);
            left = LoopProgram::iterations(instruction, from, to);
            variable = from;
            if (left-- == 0) pc = instruction.target;
            return;
        }
        if (left == 0) return;
        --left;
        variable = instruction.multiply ? variable * instruction.multiply : variable + instruction.add;
        pc = instruction.target;
        if (++idle > kIterationBudget)
            throw input_error(fmt::format("more than {} loop iterations without a step", kIterationBudget),
                              instruction.place, "bring the bounds of the loops down");
    }

    bool next(Step& step) {
        using Code = LoopProgram::Code;
        for (;;) {
            if (current && next_of_template(step)) return true;
            if (run && next_of_run(step)) return true;
            const auto& instruction = program.code[static_cast<std::size_t>(pc)];
            ++pc;
            switch (instruction.code) {
                case Code::step: begin(instruction); break;
                case Code::explicit_steps:
                    if (group > 0) break;  // they name communicator ranks
                    run = program.runs[static_cast<std::size_t>(instruction.index)];
                    run_at = 0;
                    break;
                case Code::jump: pc = instruction.target; break;
                case Code::par_begin: in_par = par_first = true; break;
                case Code::par_end: in_par = false; break;
                case Code::stop:
                    --pc;
                    if (!start_group()) return false;
                    break;
                default: control(instruction); break;
            }
        }
    }

    void begin(const LoopProgram::Instruction& instruction) {
        try {
            begin_template(instruction.index);
        } catch (const Error& error) {
            throw at_template(error);
        }
    }

    void control(const LoopProgram::Instruction& instruction) {
        using Code = LoopProgram::Code;
        try {
            if (instruction.code == Code::let)
                slots[static_cast<std::size_t>(instruction.slot)] = value(instruction.expression);
            else if (instruction.code == Code::branch)
                pc = value(instruction.expression) != 0 ? pc : instruction.target;
            else
                iterate(instruction, instruction.code == Code::loop);
        } catch (const Error& error) {
            throw input_error(error.message(), algorithm.name + "#" + instruction.place, error.remedy());
        }
    }
};

StepCursor::StepCursor(std::unique_ptr<State> state) : state_(std::move(state)) {}
StepCursor::~StepCursor() = default;
StepCursor::StepCursor(StepCursor&&) noexcept = default;

bool StepCursor::next(Step& step) { return state_->next(step); }
std::int64_t StepCursor::position() const { return state_->last_position; }

StepCursor Algorithm::steps() const { return StepCursor(std::make_unique<StepCursor::State>(*this, -1)); }

StepCursor Algorithm::steps_of(int rank) const {
    if (rank < 0 || rank >= collective.ranks)
        throw input_error(fmt::format("rank {} of {}", rank, collective.ranks), name);
    return StepCursor(std::make_unique<StepCursor::State>(*this, rank));
}

std::int64_t Algorithm::step_count() const {
    const LoopProgram program = compile(*this);
    if (!over_positions) return program.count(collective.ranks, true);
    // Groups of one size have the same count, but for the explicit steps of the first pass.
    std::map<int, std::int64_t> counts;
    std::int64_t total = 0;
    for (int g = 0; g < collective.group_count(); ++g) {
        const int size = collective.group_size(g);
        std::int64_t steps = 0;
        if (g == 0) {
            steps = program.count(size, true);
        } else {
            auto found = counts.find(size);
            if (found == counts.end()) found = counts.emplace(size, program.count(size, false)).first;
            steps = found->second;
        }
        if (__builtin_add_overflow(total, steps, &total)) return INT64_MAX;
    }
    return total;
}

}  // namespace baton::ir
