#include <baton/codegen/interchange/complete.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/execution_order.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>

namespace baton::codegen {
namespace {

using ir::Operand;
using ir::OperandKind;

/// What a place holds: a class and the number of contributions reduced into it; -1: nothing.
struct Content {
    std::int32_t chunk_class = -1, contributions = 0;
};
using Contents = std::vector<Content>;

/// Scratch of a rank. A place that holds several classes one after the other has one version for each.
struct ScratchVersions {
    std::vector<std::vector<std::int32_t>> classes;  ///< [version][place]; -1: not used yet
    std::vector<std::int32_t> current;               ///< version that was written last
};

class Completion {
public:
    explicit Completion(ir::Program& program) : program_(program), order_(program) {
        const ir::Collective& collective = program.collective;
        buffers_.resize(program.ranks.size());
        scratch_.resize(program.ranks.size());
        for (std::size_t r = 0; r < program.ranks.size(); ++r) {
            const int rank = static_cast<int>(r);
            auto& [input, output, scratch] = buffers_[r];
            input.resize(at(collective.places(rank, ir::Buffer::input)));
            output.resize(at(collective.places(rank, ir::Buffer::output)));
            scratch.resize(program.ranks[r].scratch_classes.size());
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(input.size()); ++i) {
                const auto [contents, index] = find(rank, ir::Buffer::input, i);
                (*contents)[at(index)] = {
                    static_cast<std::int32_t>(collective.class_of(rank, ir::Buffer::input, i)), 1};
            }
            scratch_[r].classes.emplace_back(scratch.size(), -1);
            scratch_[r].current.assign(scratch.size(), 0);
        }
        messages_.resize(program.connections.size());
        if (ir::reduces(collective.kind) && collective.kind != ir::CollectiveKind::custom)
            complete_ = collective.group_size();
    }

    std::vector<std::string> run() {
        order_.run([&](int connection) { return !messages_[at(connection)].empty(); },
                   [&](int rank, int threadblock, std::int32_t number) {
                       return execute(rank, threadblock, number);
                   });
        for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
            auto& classes = program_.ranks[r].scratch_classes;
            classes.clear();
            for (const auto& version : scratch_[r].classes)
                for (const std::int32_t each : version) classes.push_back(std::max(each, 0));
        }
        if (overfull_) finalize_nothing();
        return std::move(warnings_);
    }

private:
    /// Something is added twice: no instruction completes a value, and verification says what is wrong.
    void finalize_nothing() {
        for (ir::RankProgram& rank : program_.ranks)
            for (ir::Threadblock& block : rank.threadblocks)
                for (ir::Instruction& instruction : block.instructions) instruction.finalize = false;
    }

    Contents* buffer(int rank, ir::Buffer name) {
        auto& own = buffers_[at(rank)];
        return name == ir::Buffer::input    ? &own.input
               : name == ir::Buffer::output ? &own.output
                                            : &own.scratch;
    }
    bool in_range(int rank, const Operand& o) {
        return o.index >= 0 && o.chunks >= 1 &&
               std::int64_t{o.index} + o.chunks <= static_cast<std::int64_t>(buffer(rank, o.buffer)->size());
    }
    /// Where a place is when input and output share memory.
    std::pair<Contents*, std::int64_t> find(int rank, ir::Buffer name, std::int64_t index) {
        if (name == ir::Buffer::input && program_.in_place.value_or(false)) {
            const std::int64_t output = program_.collective.output_alias(rank, index);
            if (output >= 0) return {&buffers_[at(rank)].output, output};
        }
        return {buffer(rank, name), index};
    }

    /// False when it cannot be followed.
    bool execute(int rank, int threadblock, std::int32_t number) {
        ir::Threadblock& code = program_.ranks[at(rank)].threadblocks[at(threadblock)];
        ir::Instruction& instruction = code.instructions[at(number)];
        if (instruction.sources == 0) return true;
        Operand* const operands = code.operands.data() + instruction.first_operand;
        Contents value;
        for (std::uint16_t s = 0; s < instruction.sources; ++s) {
            Operand& source = operands[s];
            Contents more;
            if (source.kind == OperandKind::switch_group) {
                if (!load_switched(source, more)) return false;
            } else if (source.kind == OperandKind::message) {
                more = std::move(messages_[at(source.target)].front());
                messages_[at(source.target)].pop_front();
            } else if (!load(rank, source, more)) {
                return false;
            }
            if (s == 0) {
                value = std::move(more);
                continue;
            }
            if (more.size() != value.size()) return false;
            for (std::size_t i = 0; i < value.size(); ++i) value[i].contributions += more[i].contributions;
        }
        const bool reduces = instruction.sources > 1 || operands[0].kind == OperandKind::switch_group;
        if (complete_ > 1 && reduces) {
            overfull_ = overfull_ || std::any_of(value.begin(), value.end(), [&](const Content& c) {
                            return c.contributions > complete_;
                        });
            const auto done = std::count_if(value.begin(), value.end(),
                                            [&](const Content& c) { return c.contributions == complete_; });
            instruction.finalize = done > 0 && done == static_cast<std::ptrdiff_t>(value.size());
            if (done > 0 && !instruction.finalize)
                warn(fmt::format(
                    "rank {}, threadblock {}, instruction {} completes only {} of its {} chunks: avg "
                    "has no place to divide",
                    rank, threadblock, number, done, value.size()));
        }
        for (std::uint16_t d = 0; d < instruction.destinations; ++d) {
            Operand& destination = operands[instruction.sources + d];
            if (destination.kind == OperandKind::switch_group) {
                if (!store_switched(destination, value)) return false;
            } else if (destination.kind == OperandKind::message) {
                messages_[at(destination.target)].push_back(value);
                order_.sent(destination.target);
            } else if (!store(rank, destination, value)) {
                return false;
            }
        }
        return true;
    }

    /// What the members of a switch group hold there, reduced. All must keep the place under one number.
    bool load_switched(Operand& operand, Contents& value) {
        if (operand.target < 0 || at(operand.target) >= program_.switch_groups.size()) return false;
        const Operand as_written = operand;
        for (const int member : program_.switch_groups[at(operand.target)]) {
            Operand own = as_written;
            own.kind = OperandKind::local;
            Contents more;
            if (!load(member, own, more)) return false;
            if (value.empty())
                value = std::move(more), operand.index = own.index;
            else if (own.index != operand.index)
                return false;
            else
                for (std::size_t i = 0; i < value.size(); ++i)
                    value[i].contributions += more[i].contributions;
        }
        return true;
    }
    bool store_switched(Operand& operand, const Contents& value) {
        if (operand.target < 0 || at(operand.target) >= program_.switch_groups.size()) return false;
        const Operand as_written = operand;
        for (const int member : program_.switch_groups[at(operand.target)]) {
            Operand own = as_written;
            own.kind = OperandKind::local;
            if (!store(member, own, value)) return false;
            if (member != program_.switch_groups[at(operand.target)].front() && own.index != operand.index)
                return false;
            operand.index = own.index;
        }
        return true;
    }

    bool load(int own, Operand& operand, Contents& value) {
        const int rank = operand.kind == OperandKind::remote ? operand.target : own;
        if (!in_range(rank, operand)) return false;
        for (std::int64_t i = operand.index; i < std::int64_t{operand.index} + operand.chunks; ++i) {
            const auto [contents, index] = find(rank, operand.buffer, i);
            value.push_back((*contents)[at(index)]);
        }
        if (operand.buffer != ir::Buffer::scratch) return true;
        const ScratchVersions& versions = scratch_[at(rank)];
        const std::int32_t version = versions.current[at(operand.index)];
        for (std::int64_t i = operand.index; i < std::int64_t{operand.index} + operand.chunks; ++i)
            if (versions.current[at(i)] != version)
                warn(fmt::format(
                    "scratch of rank {} is reused for other classes of chunks in a way that cannot be "
                    "taken apart",
                    rank));
        operand.index +=
            static_cast<std::int32_t>(version * static_cast<std::int64_t>(versions.current.size()));
        return true;
    }

    bool store(int own, Operand& operand, const Contents& value) {
        const int rank = operand.kind == OperandKind::remote ? operand.target : own;
        if (!in_range(rank, operand) || value.size() != at(operand.chunks)) return false;
        for (std::size_t i = 0; i < value.size(); ++i) {
            const auto [contents, index] =
                find(rank, operand.buffer, operand.index + static_cast<std::int64_t>(i));
            (*contents)[at(index)] = value[i];
        }
        if (operand.buffer != ir::Buffer::scratch) return true;
        ScratchVersions& versions = scratch_[at(rank)];
        const auto begin = at(operand.index);
        const auto fits = [&](const std::vector<std::int32_t>& classes) {
            for (std::size_t i = 0; i < value.size(); ++i)
                if (classes[begin + i] >= 0 && value[i].chunk_class >= 0 &&
                    classes[begin + i] != value[i].chunk_class)
                    return false;
            return true;
        };
        std::size_t version = 0;
        while (version < versions.classes.size() && !fits(versions.classes[version])) ++version;
        if (version == versions.classes.size()) {
            if ((version + 1) * versions.current.size() > at(kMostImportedPlaces / 16)) return false;
            versions.classes.emplace_back(versions.current.size(), -1);
        }
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (value[i].chunk_class >= 0) versions.classes[version][begin + i] = value[i].chunk_class;
            versions.current[begin + i] = static_cast<std::int32_t>(version);
        }
        operand.index += static_cast<std::int32_t>(version * versions.current.size());
        return true;
    }

    void warn(std::string text) {
        if (warnings_.size() < 4) warnings_.push_back(std::move(text));
    }

    struct RankBuffers {
        Contents input, output, scratch;
    };
    ir::Program& program_;
    std::vector<RankBuffers> buffers_;
    std::vector<ScratchVersions> scratch_;
    ExecutionOrder order_;
    std::vector<std::deque<Contents>> messages_;
    std::int64_t complete_ = 0;
    bool overfull_ = false;
    std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> complete_values(ir::Program& program) { return Completion(program).run(); }

ir::Operand own_places(const ir::Program& program, int rank, char buffer, std::int64_t offset,
                       std::int64_t count) {
    Operand operand;
    operand.buffer = buffer == 'i'   ? ir::Buffer::input
                     : buffer == 'o' ? ir::Buffer::output
                                     : ir::Buffer::scratch;
    operand.index = static_cast<std::int32_t>(offset);
    operand.chunks = static_cast<std::int32_t>(count);
    if (operand.buffer != ir::Buffer::input || !program.in_place.value_or(false)) return operand;
    const ir::Collective& collective = program.collective;
    if (collective.places(rank, ir::Buffer::input) == 0) {  // broadcast and scatter beside the root
        operand.buffer = ir::Buffer::output;
    } else if (offset + count <= collective.places(rank, ir::Buffer::input)) {
        const std::int64_t first = collective.output_alias(rank, offset);
        if (first >= 0 && collective.output_alias(rank, offset + count - 1) == first + count - 1) {
            operand.buffer = ir::Buffer::output;
            operand.index = static_cast<std::int32_t>(first);
        }
    }
    return operand;
}

void note_clobbers(ir::Program& program) {
    for (const ir::RankProgram& rank : program.ranks)
        for (const ir::Threadblock& block : rank.threadblocks)
            for (const ir::Instruction& instruction : block.instructions)
                for (const Operand& operand : block.destinations(instruction))
                    if (operand.kind != OperandKind::message && operand.buffer == ir::Buffer::input)
                        program.clobbers_input = true;
}

ir::Program without_threadblocks(const ir::Program& program) {
    ir::Program out;
    out.name = program.name;
    out.collective = program.collective;
    out.clobbers_input = program.clobbers_input;
    out.in_place = program.in_place;
    out.foreign = program.foreign;
    out.ranks.resize(program.ranks.size());
    for (std::size_t r = 0; r < program.ranks.size(); ++r)
        out.ranks[r].scratch_classes = program.ranks[r].scratch_classes;
    return out;
}

void require_equal_chunks(const ir::Program& program, const std::string& executor) {
    const auto& weights = program.collective.weights;
    if (std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) != weights.end())
        throw input_error(
            executor + " has chunks of one size only, and this schedule has chunks of unequal weights",
            program.name, "export the algorithm that it was lowered from: its chunks are cut to one size");
}

void sort_connections(ir::Program& program) {
    std::vector<int> order(program.connections.size()), number(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        const ir::Connection &x = program.connections[at(a)], &y = program.connections[at(b)];
        return std::tuple(x.src, x.dst, x.channel) < std::tuple(y.src, y.dst, y.channel);
    });
    std::vector<ir::Connection> sorted;
    for (const int old : order) {
        number[at(old)] = static_cast<int>(sorted.size());
        sorted.push_back(program.connections[at(old)]);
    }
    program.connections = std::move(sorted);
    for (ir::RankProgram& rank : program.ranks)
        for (ir::Threadblock& block : rank.threadblocks) {
            for (std::vector<int>* owned : {&block.sends, &block.receives}) {
                for (int& c : *owned) c = number[at(c)];
                std::sort(owned->begin(), owned->end());
            }
            for (Operand& operand : block.operands)
                if (operand.kind == OperandKind::message) operand.target = number[at(operand.target)];
        }
}

}  // namespace baton::codegen
