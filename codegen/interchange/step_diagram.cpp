#include <baton/codegen/interchange/step_diagram.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

namespace baton::codegen {
namespace {

constexpr std::int64_t kMostDiagramInstructions = 2'000'000, kMostMoves = 20'000'000;

using Cargo = std::vector<std::int64_t>;

// Follows the values through one pass of the program: threadblocks run as far as they can, in turn.
class StepWalk {
public:
    explicit StepWalk(const ir::Program& program) : program_(program), wires_(program.connections.size()) {
        if (program.instruction_count() > kMostDiagramInstructions)
            throw input_error(fmt::format("{} instructions are too many for a diagram of steps",
                                          program.instruction_count()),
                              program.name,
                              "draw a smaller case of the schedule, with fewer ranks or chunks");
        for (std::size_t r = 0; r < program.ranks.size(); ++r) {
            held_.emplace_back();
            cursors_.emplace_back(program.ranks[r].threadblocks.size());
        }
    }

    StepDiagram run() {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < program_.ranks.size(); ++r)
                for (std::size_t b = 0; b < cursors_[r].size(); ++b)
                    while (ready(r, b)) {
                        step(r, b);
                        moved = true;
                    }
        }
        return finish();
    }

private:
    // How far a threadblock is, and the step that its last instruction and those before belong to.
    struct Cursor {
        std::size_t next = 0;
        std::vector<std::int64_t> levels;
    };
    struct Message {
        std::int64_t step = 0;
        Cargo values;
    };

    const ir::Threadblock& block(std::size_t r, std::size_t b) const {
        return program_.ranks[r].threadblocks[b];
    }

    bool ready(std::size_t r, std::size_t b) const {
        const ir::Threadblock& all = block(r, b);
        const std::size_t next = cursors_[r][b].next;
        if (next >= all.instructions.size()) return false;
        const ir::Instruction& each = all.instructions[next];
        for (const ir::Need& need : all.needs_of(each))
            if (cursors_[at(need.rank)][at(need.threadblock)].next <= at(need.instruction)) return false;
        for (const ir::Operand& source : all.sources(each))
            if (source.kind == ir::OperandKind::message && wires_[at(source.target)].empty()) return false;
        return true;
    }

    static std::int64_t key(const ir::Operand& operand, std::int64_t i) {
        return (operand.index + i) * 4 + static_cast<std::int64_t>(operand.buffer);
    }

    // The number of what stands in a place at the start, or belongs there at the end.
    std::int64_t number(int rank, const ir::Operand& operand, std::int64_t index) const {
        const ir::Collective& all = program_.collective;
        if (operand.buffer == ir::Buffer::scratch) return program_.ranks[at(rank)].scratch_classes[at(index)];
        // Custom collectives name shards as they like.
        std::int64_t shard = all.shard_of(rank, operand.buffer, index) % (std::int64_t{1} << 31);
        if (all.kind == ir::CollectiveKind::all_to_all) {
            const auto [group, position] = all.position_of(rank);
            const std::int64_t n = all.group_size(std::max(group, 0));
            shard = operand.buffer == ir::Buffer::input ? position * n + shard : shard * n + position;
        } else if (all.kind == ir::CollectiveKind::all_gather || all.kind == ir::CollectiveKind::gather) {
            if (operand.buffer == ir::Buffer::input) shard = std::max(all.position_of(rank).second, 0);
        } else if (all.kind == ir::CollectiveKind::reduce_scatter ||
                   all.kind == ir::CollectiveKind::scatter) {
            if (operand.buffer == ir::Buffer::output) shard = std::max(all.position_of(rank).second, 0);
        }
        return shard * all.chunks + all.class_of(rank, operand.buffer, index);
    }

    Cargo read(int rank, const ir::Operand& operand) {
        moves_ += operand.chunks;
        if (moves_ > kMostMoves)
            throw input_error(
                fmt::format("more than {} chunks move, too many for a diagram of steps", kMostMoves),
                program_.name, "draw a smaller case of the schedule, with fewer ranks or chunks");
        Cargo values;
        for (std::int64_t i = 0; i < operand.chunks; ++i) {
            const auto found = held_[at(rank)].find(key(operand, i));
            values.push_back(found != held_[at(rank)].end() ? found->second
                                                            : number(rank, operand, operand.index + i));
        }
        return values;
    }

    void write(int rank, const ir::Operand& operand, const Cargo& values) {
        for (std::int64_t i = 0; i < operand.chunks; ++i) held_[at(rank)][key(operand, i)] = values[at(i)];
    }

    const std::vector<int>& members(const ir::Operand& operand) const {
        return program_.switch_groups[at(operand.target)];
    }

    void arrow(std::int64_t step, int from, int to, const Cargo& values, bool reduces) {
        Cargo& all = arrows_[{step, from, to, reduces}];
        all.insert(all.end(), values.begin(), values.end());
    }

    void step(std::size_t r, std::size_t b) {
        const ir::Threadblock& all = block(r, b);
        Cursor& cursor = cursors_[r][b];
        const ir::Instruction& each = all.instructions[cursor.next];
        const int rank = static_cast<int>(r);
        std::int64_t level = cursor.levels.empty() ? 0 : cursor.levels.back();
        for (const ir::Need& need : all.needs_of(each))
            level =
                std::max(level, cursors_[at(need.rank)][at(need.threadblock)].levels[at(need.instruction)]);
        // Local sources say best what it is: what arrives is combined with them.
        Cargo values;
        std::vector<std::pair<int, std::int64_t>> arrived;  // message: (sender, step)
        std::vector<int> read_from;
        for (const ir::Operand& source : all.sources(each)) {
            if (source.kind == ir::OperandKind::message) {
                std::deque<Message>& wire = wires_[at(source.target)];
                level = std::max(level, wire.front().step + 1);
                arrived.emplace_back(program_.connections[at(source.target)].src, wire.front().step);
                incoming_.push_back(wire.front().values);
                if (values.empty()) values = wire.front().values;
                wire.pop_front();
            } else if (source.kind == ir::OperandKind::local) {
                values = read(rank, source);
            } else if (source.kind == ir::OperandKind::remote) {
                if (values.empty()) values = read(source.target, source);
                read_from.push_back(source.target);
            } else {
                if (values.empty()) values = read(rank, source);
                for (const int member : members(source)) read_from.push_back(member);
            }
        }
        for (std::size_t i = 0; i < arrived.size(); ++i)
            arrow(arrived[i].second, arrived[i].first, rank, incoming_[i], each.sources > 1);
        incoming_.clear();
        bool far = !read_from.empty();
        for (const int from : read_from)
            if (from != rank) arrow(level, from, rank, values, each.sources > 1 || read_from.size() > 1);
        for (const ir::Operand& to : all.destinations(each)) {
            switch (to.kind) {
                case ir::OperandKind::local: write(rank, to, values); break;
                case ir::OperandKind::message: wires_[at(to.target)].push_back({level, values}); break;
                case ir::OperandKind::remote:
                    write(to.target, to, values);
                    arrow(level, rank, to.target, values, false);
                    far = true;
                    break;
                case ir::OperandKind::switch_group:
                    for (const int member : members(to)) {
                        write(member, to, values);
                        if (member != rank) arrow(level, rank, member, values, false);
                    }
                    far = true;
            }
        }
        // Who waits for remote reads and writes goes on in the next step.
        cursor.levels.push_back(far ? level + 1 : level);
        ++cursor.next;
    }

    StepDiagram finish() {
        StepDiagram diagram;
        const ir::Collective& all = program_.collective;
        for (auto& [place, values] : arrows_) {
            const auto& [step, from, to, reduces] = place;
            std::sort(values.begin(), values.end());
            values.erase(std::unique(values.begin(), values.end()), values.end());
            diagram.steps = std::max(diagram.steps, step + 1);
            if (!values.empty()) diagram.values = std::max(diagram.values, values.back() + 1);
            diagram.arrows.push_back({step, from, to, std::move(values), reduces});
        }
        if (all.kind != ir::CollectiveKind::custom) {
            const std::int64_t n = all.group_size();
            const std::int64_t shards = !ir::has_shards(all.kind)                    ? 1
                                        : all.kind == ir::CollectiveKind::all_to_all ? n * n
                                                                                     : n;
            if (shards <= INT64_MAX / std::max<std::int64_t>(all.chunks, 1))
                diagram.values = std::max(diagram.values, shards * all.chunks);
        }
        return diagram;
    }

    const ir::Program& program_;
    std::vector<std::deque<Message>> wires_;
    std::vector<std::unordered_map<std::int64_t, std::int64_t>> held_;  // by rank: what stands in a place
    std::vector<std::vector<Cursor>> cursors_;
    std::vector<Cargo> incoming_;
    std::int64_t moves_ = 0;
    std::map<std::tuple<std::int64_t, int, int, bool>, Cargo> arrows_;
};

}  // namespace

StepDiagram step_diagram(const ir::Program& program) { return StepWalk(program).run(); }

}  // namespace baton::codegen
