#include <baton/ir/loop_program.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::ir {
namespace {

constexpr int kMaxBodyDepth = 64;

/// What a name stands for while compiling.
struct Name {
    std::string name;
    int slot = -1;
    bool uses_position = false;  ///< a let that depends on r
    std::vector<int> loops;      ///< variables of the loops it depends on
};

class Compiler {
public:
    explicit Compiler(const Algorithm& algorithm) : algorithm_(algorithm) {}

    LoopProgram run() {
        const auto& c = algorithm_.collective;
        program_.slots = {0, 0, c.chunks, c.root};
        scope_ = {{"r", kSlotR, true, {}},
                  {"N", kSlotN, false, {}},
                  {"C", kSlotC, false, {}},
                  {"root", kSlotRoot, false, {}}};
        for (const auto& [name, value] : algorithm_.params) {
            check_new_name(name, "/params/" + name);
            scope_.push_back({name, new_slot(), false, {}});
            program_.slots.back() = value;
        }
        body(algorithm_.body, "/steps", 0);
        emit({});
        return std::move(program_);
    }

private:
    using Code = LoopProgram::Code;
    using Instruction = LoopProgram::Instruction;

    /// What compiling an expression finds out beside its code.
    struct Use {
        bool position = false, position_by_let = false;
        std::set<int> slots;
        std::vector<int> loops;
    };

    int new_slot() {
        program_.slots.push_back(0);
        return static_cast<int>(program_.slots.size()) - 1;
    }
    int here() const { return static_cast<int>(program_.code.size()); }
    int emit(Instruction instruction) {
        program_.code.push_back(std::move(instruction));
        return here() - 1;
    }
    Instruction& at(int i) { return program_.code[static_cast<std::size_t>(i)]; }

    void check_new_name(const std::string& name, const std::string& place) const {
        const auto named = Expression::parse(name, place);
        if (named.names().size() != 1 || named.names()[0] != name)
            throw input_error(fmt::format("\"{}\" is not a name", name), place,
                              "letters, digits and _, not first a digit");
        for (const char* reserved : {"r", "N", "C", "root"})
            if (name == reserved)
                throw input_error(fmt::format("the name \"{}\" is taken by the format", name), place);
    }

    int expression(const Expression& source, const std::string& place, Use& use) {
        if (!source.present()) throw input_error("a value is missing", place);
        CompiledExpression compiled;
        compile_node(*source.node(), place, use, compiled);
        program_.expressions.push_back(std::move(compiled));
        return static_cast<int>(program_.expressions.size()) - 1;
    }

    int compile_node(const Expression::Node& node, const std::string& place, Use& use,
                     CompiledExpression& out) {
        CompiledExpression::Node compiled;
        compiled.op = node.op;
        compiled.value = node.value;
        if (node.op == ExpressionOp::name) {
            const auto found = std::find_if(scope_.rbegin(), scope_.rend(),
                                            [&](const Name& n) { return n.name == node.name; });
            if (found == scope_.rend()) throw unknown_name(node.name, place);
            compiled.arguments[0] = found->slot;
            use.slots.insert(found->slot);
            use.position |= found->uses_position;
            use.position_by_let |= found->uses_position && found->slot != kSlotR;
            use.loops.insert(use.loops.end(), found->loops.begin(), found->loops.end());
        } else {
            for (int i = 0; i < argument_count(node.op); ++i) {
                const auto k = static_cast<std::size_t>(i);
                compiled.arguments[k] = compile_node(*node.arguments[k], place, use, out);
            }
        }
        out.nodes.push_back(compiled);
        return static_cast<int>(out.nodes.size()) - 1;
    }

    Error unknown_name(const std::string& name, const std::string& place) const {
        std::string known;
        for (const auto& entry : scope_) known += (known.empty() ? "" : ", ") + entry.name;
        return input_error(fmt::format("unknown name \"{}\"", name), place, "known here: " + known);
    }

    /// The number of steps depends on these loops' variables: their iterations are not alike.
    void counts_by(const Use& use) {
        for (const int slot : use.loops)
            for (const int loop : open_loops_)
                if (at(loop).slot == slot) at(loop).uniform = false;
    }

    void body(const Body& items, const std::string& place, int depth) {
        if (depth > kMaxBodyDepth)
            throw input_error(fmt::format("more than {} levels of loops", kMaxBodyDepth), place);
        const std::size_t names = scope_.size(), preludes = prelude_.size();
        for (const auto& entry : items) {
            const std::string at_item = fmt::format("{}/{}", place, entry.line);
            std::visit([&](const auto& value) { item(value, at_item, depth); }, entry.value);
        }
        scope_.resize(names);
        prelude_.resize(preludes);
    }

    void item(const StepTemplate& step, const std::string& place, int) {
        LoopProgram::Template out;
        out.step = &step;
        out.place = place;
        std::array<Use, 6> uses;
        const std::array<const Expression*, 6> sources{&step.src_rank,  &step.src_index, &step.dst_rank,
                                                       &step.dst_index, &step.chunks,    &step.channel};
        Use all;
        for (std::size_t i = 0; i < 6; ++i) {
            out.operands[i] = -1;
            if (!sources[i]->present() && i >= 4) continue;
            out.operands[i] = expression(*sources[i], place, uses[i]);
            all.slots.insert(uses[i].slots.begin(), uses[i].slots.end());
            all.position |= uses[i].position;
        }
        const std::size_t preludes = prelude_.size();
        if (step.condition) guard(*step.condition, place);
        out.prelude = needed_prelude(all.slots);
        const bool guarded =
            std::any_of(prelude_.begin(), prelude_.end(), [](const auto& p) { return p.slot < 0; });
        prelude_.resize(preludes);
        out.per_position = all.position || guarded;
        const int chunks = out.operands[4];
        out.always_emits =
            !guarded && (chunks < 0 || (program_.expressions[static_cast<std::size_t>(chunks)].is_literal() &&
                                        program_.value(chunks, nullptr) > 0));
        counts_by(uses[4]);
        out.source = uses[0].position_by_let ? PositionForm{} : step.src_rank.position_form();
        out.destination = uses[2].position_by_let ? PositionForm{} : step.dst_rank.position_form();
        program_.templates.push_back(std::move(out));
        Instruction instruction;
        instruction.code = Code::step;
        instruction.index = static_cast<int>(program_.templates.size()) - 1;
        emit(std::move(instruction));
    }

    /// Conditions of the context, and those of its lets that the slots (or the conditions) need, in order.
    std::vector<LoopProgram::Prelude> needed_prelude(std::set<int> slots) const {
        std::vector<LoopProgram::Prelude> needed;
        for (auto it = prelude_.rbegin(); it != prelude_.rend(); ++it) {
            if (it->slot >= 0 && !slots.count(it->slot)) continue;
            needed.push_back({it->slot, it->expression});
            for (const auto& node : program_.expressions[static_cast<std::size_t>(it->expression)].nodes)
                if (node.op == ExpressionOp::name) slots.insert(node.arguments[0]);
        }
        std::reverse(needed.begin(), needed.end());
        return needed;
    }

    void guard(const Expression& condition, const std::string& place) {
        Use use;
        const int compiled = expression(condition, place, use);
        counts_by(use);
        prelude_.push_back({-1, compiled});
    }

    void item(const Loop& loop, const std::string& place, int depth) {
        if (!loop.body) throw input_error("a loop without a body", place);
        if (loop.multiply != 0 ? loop.multiply < 2 : loop.add == 0)
            throw input_error("a loop must move: \"add\" is not 0, \"mul\" is 2 or more", place);
        check_new_name(loop.variable, place);
        Use use;
        Instruction head;
        head.code = Code::loop;
        head.expression = expression(loop.from, place + "/for/1", use);
        expression(loop.to, place + "/for/2", use);
        if (use.position) throw input_error("a loop's bounds may not use r", place);
        counts_by(use);
        head.slot = new_slot();
        new_slot();  // its bound
        head.add = loop.add;
        head.multiply = loop.multiply;
        head.uniform = true;
        head.place = place;
        const int slot = head.slot;
        const int start = emit(head);
        open_loops_.push_back(start);
        // A value inside depends on this loop and on all that its bounds depend on.
        Name variable{loop.variable, slot, false, use.loops};
        variable.loops.push_back(slot);
        scope_.push_back(std::move(variable));
        body(*loop.body, place + "/do", depth + 1);
        scope_.pop_back();
        open_loops_.pop_back();
        Instruction tail = at(start);
        tail.code = Code::next;
        tail.target = start + 1;
        emit(std::move(tail));
        at(start).target = here();
    }

    void item(const Let& let, const std::string& place, int) {
        check_new_name(let.name, place);
        Use use;
        const int compiled = expression(let.value, place, use);
        const int slot = new_slot();
        if (use.position) {
            prelude_.push_back({slot, compiled});
        } else {
            Instruction instruction;
            instruction.code = Code::let;
            instruction.slot = slot;
            instruction.expression = compiled;
            instruction.place = place;
            emit(std::move(instruction));
        }
        scope_.push_back({let.name, slot, use.position, use.loops});
    }

    void item(const Branch& branch, const std::string& place, int depth) {
        const auto inner = [&](const std::shared_ptr<const Body>& part, const char* name) {
            if (part) body(*part, place + name, depth + 1);
        };
        Use use;
        const int condition = expression(branch.condition, place + "/if", use);
        counts_by(use);
        if (use.position) {
            // Decided at each position: a condition of every template inside.
            prelude_.push_back({-1, condition});
            ++guards_;
            inner(branch.then_body, "/then");
            prelude_.pop_back();
            if (branch.else_body) {
                auto negated = program_.expressions[static_cast<std::size_t>(condition)];
                CompiledExpression::Node inverse;
                inverse.op = ExpressionOp::logical_not;
                inverse.arguments[0] = static_cast<int>(negated.nodes.size()) - 1;
                negated.nodes.push_back(inverse);
                program_.expressions.push_back(std::move(negated));
                prelude_.push_back({-1, static_cast<int>(program_.expressions.size()) - 1});
                inner(branch.else_body, "/else");
                prelude_.pop_back();
            }
            --guards_;
            return;
        }
        Instruction test;
        test.code = Code::branch;
        test.expression = condition;
        test.place = place;
        const int start = emit(std::move(test));
        inner(branch.then_body, "/then");
        if (branch.else_body) {
            Instruction skip;
            skip.code = Code::jump;
            const int jump = emit(std::move(skip));
            at(start).target = here();
            inner(branch.else_body, "/else");
            at(jump).target = here();
        } else {
            at(start).target = here();
        }
    }

    void item(const Parallel& parallel, const std::string& place, int depth) {
        if (in_par_) throw input_error("a par block inside a par block", place);
        if (!parallel.body) throw input_error("a par block without a body", place);
        Instruction mark;
        mark.code = Code::par_begin;
        emit(mark);
        in_par_ = true;
        body(*parallel.body, place + "/par", depth + 1);
        in_par_ = false;
        mark.code = Code::par_end;
        emit(mark);
    }

    void item(const ExplicitSteps& run, const std::string& place, int) {
        if (guards_ > 0) throw input_error("a run of explicit steps inside an if that uses r", place);
        if (!run.steps) return;
        program_.runs.push_back(run.steps.get());
        Instruction instruction;
        instruction.code = Code::explicit_steps;
        instruction.index = static_cast<int>(program_.runs.size()) - 1;
        instruction.place = place;
        emit(std::move(instruction));
    }

    const Algorithm& algorithm_;
    LoopProgram program_;
    std::vector<Name> scope_;
    std::vector<LoopProgram::Prelude> prelude_;  // of the scope: lets that use r, and conditions that use r
    std::vector<int> open_loops_;
    int guards_ = 0;
    bool in_par_ = false;
};

/// Counts steps without walking iterations that are alike.
class Counter {
public:
    Counter(const LoopProgram& program, std::int64_t size, bool first_group)
        : program_(program), slots_(program.slots), size_(size), first_group_(first_group) {
        slots_[kSlotN] = size;
    }

    std::int64_t range(int begin, int end) {
        std::int64_t total = 0;
        for (int pc = begin; pc < end;) {
            const auto& instruction = program_.code[static_cast<std::size_t>(pc)];
            spend(1, instruction.place);
            ++pc;
            switch (instruction.code) {
                case LoopProgram::Code::let:
                    slots_[static_cast<std::size_t>(instruction.slot)] = value(instruction);
                    break;
                case LoopProgram::Code::branch:
                    if (value(instruction) == 0) pc = instruction.target;
                    break;
                case LoopProgram::Code::jump: pc = instruction.target; break;
                case LoopProgram::Code::loop:
                    add(total, loop(instruction, pc));
                    pc = instruction.target;
                    break;
                case LoopProgram::Code::step:
                    add(total, step(program_.templates[static_cast<std::size_t>(instruction.index)]));
                    break;
                case LoopProgram::Code::explicit_steps:
                    if (first_group_)
                        add(total, static_cast<std::int64_t>(
                                       program_.runs[static_cast<std::size_t>(instruction.index)]->size()));
                    break;
                default: break;
            }
        }
        return total;
    }

private:
    static void add(std::int64_t& total, std::int64_t more) {
        if (__builtin_add_overflow(total, more, &total)) total = INT64_MAX;
    }
    std::int64_t value(const LoopProgram::Instruction& instruction) const {
        try {
            return program_.value(instruction.expression, slots_.data());
        } catch (const Error& error) {
            throw input_error(error.message(), instruction.place, error.remedy());
        }
    }
    void spend(std::int64_t amount, const std::string& place) {
        budget_ -= amount;
        if (budget_ < 0)
            throw input_error(
                fmt::format("more than {} loop iterations to count the steps", kIterationBudget), place,
                "bring the bounds of the loops down");
    }

    std::int64_t loop(const LoopProgram::Instruction& head, int body) {
        std::int64_t from = 0, to = 0;
        try {
            from = program_.value(head.expression, slots_.data());
            to = program_.value(head.expression + 1, slots_.data());
        } catch (const Error& error) {
            throw input_error(error.message(), head.place, error.remedy());
        }
        const std::int64_t times = LoopProgram::iterations(head, from, to);
        if (times == 0) return 0;
        auto& variable = slots_[static_cast<std::size_t>(head.slot)];
        const int end = head.target - 1;
        variable = from;
        if (head.uniform) {
            std::int64_t total = 0;
            return __builtin_mul_overflow(range(body, end), times, &total) ? INT64_MAX : total;
        }
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < times; ++i) {
            add(total, range(body, end));
            if (i + 1 < times) variable = head.multiply ? variable * head.multiply : variable + head.add;
        }
        return total;
    }

    std::int64_t step(const LoopProgram::Template& step) {
        const std::int64_t positions = step.per_position ? size_ : 1;
        if (step.always_emits) return positions;
        spend(positions, step.place);
        std::int64_t total = 0;
        try {
            for (slots_[kSlotR] = 0; slots_[kSlotR] < positions; ++slots_[kSlotR]) {
                bool holds = true;
                for (const auto& part : step.prelude) {
                    const std::int64_t result = program_.value(part.expression, slots_.data());
                    if (part.slot >= 0)
                        slots_[static_cast<std::size_t>(part.slot)] = result;
                    else if (result == 0) {
                        holds = false;
                        break;
                    }
                }
                if (holds && (step.operands[4] < 0 || program_.value(step.operands[4], slots_.data()) != 0))
                    ++total;
            }
        } catch (const Error& error) {
            throw input_error(error.message(), step.place, error.remedy());
        }
        return total;
    }

    const LoopProgram& program_;
    std::vector<std::int64_t> slots_;
    std::int64_t size_;
    bool first_group_;
    std::int64_t budget_ = kIterationBudget;
};

}  // namespace

std::int64_t CompiledExpression::evaluate(const Node& node, const std::int64_t* slots) const {
    const auto child = [&](std::size_t i) {
        return evaluate(nodes[static_cast<std::size_t>(node.arguments[i])], slots);
    };
    switch (node.op) {
        case ExpressionOp::literal: return node.value;
        case ExpressionOp::name: return slots[node.arguments[0]];
        case ExpressionOp::select: return child(0) != 0 ? child(1) : child(2);
        default: break;
    }
    const std::int64_t a = child(0);
    if (node.op == ExpressionOp::bit_and && a == 0) return 0;
    return apply(node.op, a, node.arguments[1] >= 0 ? child(1) : 0);
}

std::int64_t LoopProgram::iterations(const Instruction& loop, std::int64_t from, std::int64_t to) {
    if (loop.multiply != 0) {
        if (from >= to) return 0;
        if (from < 1)
            throw input_error(fmt::format("a loop that multiplies from {} never ends", from), loop.place,
                              "start at 1 or more");
        std::int64_t times = 0;
        for (std::int64_t value = from; value < to; ++times)
            if (__builtin_mul_overflow(value, loop.multiply, &value)) return times + 1;
        return times;
    }
    if (loop.add > 0 ? from >= to : from <= to) return 0;
    const auto low = static_cast<std::uint64_t>(loop.add > 0 ? from : to),
               high = static_cast<std::uint64_t>(loop.add > 0 ? to : from);
    const auto stride =
        loop.add > 0 ? static_cast<std::uint64_t>(loop.add) : 0 - static_cast<std::uint64_t>(loop.add);
    const std::uint64_t distance = high - low;
    const std::uint64_t times = distance / stride + (distance % stride != 0);
    return times > static_cast<std::uint64_t>(INT64_MAX) ? INT64_MAX : static_cast<std::int64_t>(times);
}

std::int64_t LoopProgram::count(std::int64_t size, bool first_group) const {
    return Counter(*this, size, first_group).range(0, static_cast<int>(code.size()) - 1);
}

LoopProgram compile(const Algorithm& algorithm) { return Compiler(algorithm).run(); }

}  // namespace baton::ir
