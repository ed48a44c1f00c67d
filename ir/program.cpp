#include <baton/ir/program.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <limits>

namespace baton::ir {

std::string_view to_string(Mode mode) {
    constexpr std::array<std::string_view, 3> names{"staged", "put", "get"};
    return names[static_cast<std::size_t>(mode)];
}

int Threadblock::add(std::span<const Operand> sources, std::span<const Operand> destinations,
                     std::span<const Need> wanted, std::int64_t step, bool finalize) {
    constexpr std::size_t kMost = std::numeric_limits<std::uint16_t>::max();
    constexpr std::size_t kPool = std::numeric_limits<std::uint32_t>::max();
    if (sources.size() > kMost || destinations.size() > kMost || wanted.size() > kMost) {
        throw input_error(fmt::format(
            "an instruction with {} sources, {} destinations and {} needs; at most {} of each are "
            "possible",
            sources.size(), destinations.size(), wanted.size(), kMost));
    }
    if (operands.size() + sources.size() + destinations.size() > kPool ||
        needs.size() + wanted.size() > kPool ||
        instructions.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
        throw input_error("a threadblock with more than 2^32 operands or 2^31 instructions");
    }
    Instruction instruction;
    instruction.first_operand = static_cast<std::uint32_t>(operands.size());
    instruction.sources = static_cast<std::uint16_t>(sources.size());
    instruction.destinations = static_cast<std::uint16_t>(destinations.size());
    instruction.first_need = static_cast<std::uint32_t>(needs.size());
    instruction.needs = static_cast<std::uint16_t>(wanted.size());
    instruction.step = step;
    instruction.finalize = finalize;
    operands.insert(operands.end(), sources.begin(), sources.end());
    operands.insert(operands.end(), destinations.begin(), destinations.end());
    needs.insert(needs.end(), wanted.begin(), wanted.end());
    instructions.push_back(instruction);
    return static_cast<int>(instructions.size()) - 1;
}

std::int64_t Program::instruction_count() const {
    std::int64_t count = 0;
    for (const RankProgram& rank : ranks) {
        for (const Threadblock& block : rank.threadblocks)
            count += static_cast<std::int64_t>(block.instructions.size());
    }
    return count;
}

void mark_posts(Program& program) {
    for (RankProgram& rank : program.ranks) {
        for (Threadblock& block : rank.threadblocks) {
            for (Instruction& instruction : block.instructions) instruction.post = false;
        }
    }
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        for (std::size_t b = 0; b < program.ranks[r].threadblocks.size(); ++b) {
            for (const Need& need : program.ranks[r].threadblocks[b].needs) {
                if (need.rank < 0 || static_cast<std::size_t>(need.rank) >= program.ranks.size()) continue;
                auto& blocks = program.ranks[need.rank].threadblocks;
                if (need.threadblock < 0 || static_cast<std::size_t>(need.threadblock) >= blocks.size())
                    continue;
                auto& instructions = blocks[need.threadblock].instructions;
                if (need.instruction < 0 || static_cast<std::size_t>(need.instruction) >= instructions.size())
                    continue;
                if (need.rank == static_cast<int>(r) && need.threadblock == static_cast<int>(b)) continue;
                instructions[need.instruction].post = true;
            }
        }
    }
}

namespace {

constexpr std::size_t kKinds = 4;

std::array<int, kKinds> count_kinds(std::span<const Operand> operands) {
    std::array<int, kKinds> counts{};
    for (const Operand& operand : operands) ++counts[static_cast<std::size_t>(operand.kind) % kKinds];
    return counts;
}

constexpr std::size_t kLocal = static_cast<std::size_t>(OperandKind::local);
constexpr std::size_t kMessage = static_cast<std::size_t>(OperandKind::message);
constexpr std::size_t kRemote = static_cast<std::size_t>(OperandKind::remote);
constexpr std::size_t kSwitch = static_cast<std::size_t>(OperandKind::switch_group);

}  // namespace

std::string shape(const Threadblock& threadblock, const Instruction& instruction) {
    if (instruction.sources == 0) return instruction.needs > 0 ? "wait" : "nop";
    const auto sources = count_kinds(threadblock.sources(instruction));
    const auto destinations = count_kinds(threadblock.destinations(instruction));
    std::string name;
    const auto word = [&](std::string_view text) {
        if (!name.empty()) name += '_';
        name += text;
    };
    if (sources[kMessage] > 0) word("recv");
    if (sources[kRemote] > 0) word("read");
    if (sources[kSwitch] > 0) word("switch_reduce");
    const bool reduces = instruction.sources > 1;
    if (reduces) word("reduce");
    const bool only_local = destinations[kMessage] + destinations[kRemote] + destinations[kSwitch] == 0;
    // "recv", "read" and "reduce" alone already say that the result stays here.
    if (destinations[kLocal] > 0 && (name.empty() || !only_local || (reduces && sources[kMessage] > 0)))
        word("copy");
    if (destinations[kMessage] > 0) word("send");
    if (destinations[kRemote] > 0) word("write");
    if (destinations[kSwitch] > 0) word("multicast");
    if (instruction.sources > 2) name += fmt::format(" {}", instruction.sources);
    if (*std::max_element(destinations.begin(), destinations.end()) > 1)
        name += fmt::format(" x{}", instruction.destinations);
    return name;
}

namespace {

std::string range(const Operand& operand, const std::string& index) {
    std::string text = fmt::format("{}[{}", to_string(operand.buffer), index);
    if (operand.chunks != 1) text += fmt::format(" x{}", operand.chunks);
    return text + "]";
}

std::string operand_text(const Operand& operand, const std::string& index) {
    switch (operand.kind) {
        case OperandKind::local: return range(operand, index);
        case OperandKind::message: return fmt::format("c{}", operand.target);
        case OperandKind::remote: return fmt::format("rank {} {}", operand.target, range(operand, index));
        case OperandKind::switch_group:
            return fmt::format("switch {} {}", operand.target, range(operand, index));
    }
    return "?";
}

std::string numbers(const std::vector<int>& list) {
    std::string text;
    for (const int number : list) text += fmt::format("{}c{}", text.empty() ? "" : " ", number);
    return text;
}

// Index text of an operand: the index, or, in a repeat, how it runs over the rounds ("3+1r", else all
// values).
std::string index_text(const Threadblock& block, std::size_t operand, const Repeat* repeat,
                       std::size_t stride) {
    const std::int64_t first = block.operands[operand].index;
    if (repeat == nullptr || repeat->times < 2) return fmt::format("{}", first);
    const std::int64_t step = block.operands[operand + stride].index - first;
    bool affine = true;
    std::string all = "{" + fmt::format("{}", first);
    for (std::int32_t round = 1; round < repeat->times; ++round) {
        const std::int64_t index = block.operands[operand + stride * static_cast<std::size_t>(round)].index;
        affine = affine && index == first + round * step;
        all += fmt::format(",{}", index);
    }
    if (affine) return step == 0 ? fmt::format("{}", first) : fmt::format("{}{:+}r", first, step);
    return all + "}";
}

void append_instruction(std::string& text, const Threadblock& block, int number, const Repeat* repeat) {
    const Instruction& instruction = block.instructions[number];
    // Operands of the rounds of a repeat lie one body apart when the list was built in order.
    std::size_t stride = 0;
    if (repeat != nullptr && repeat->times > 1) {
        stride = block.instructions[number + repeat->body].first_operand - instruction.first_operand;
        for (std::int32_t round = 1; round < repeat->times; ++round) {
            const Instruction& other = block.instructions[number + round * repeat->body];
            if (other.first_operand != instruction.first_operand + stride * static_cast<std::size_t>(round))
                repeat = nullptr;
            if (repeat == nullptr) break;
        }
    }
    const auto operands = [&](std::size_t from, std::size_t count, std::string_view joint) {
        std::string list;
        for (std::size_t i = from; i < from + count; ++i) {
            if (!list.empty()) list += joint;
            list += operand_text(block.operands[i], index_text(block, i, repeat, stride));
        }
        return list;
    };
    text += fmt::format("    {:>5}  {}", number, shape(block, instruction));
    if (instruction.sources > 0) {
        text += fmt::format(
            "  {} := {}",
            operands(instruction.first_operand + instruction.sources, instruction.destinations, ", "),
            operands(instruction.first_operand, instruction.sources, " op "));
    }
    for (const Need& need : block.needs_of(instruction)) {
        text += fmt::format("  need {}.{}.{}{}", need.rank, need.threadblock, need.instruction,
                            need.event == Event::source_free ? " source_free" : "");
    }
    if (instruction.post) text += "  post";
    if (instruction.finalize) text += "  finalize";
    if (instruction.step >= 0) text += fmt::format("  step {}", instruction.step);
    text += '\n';
}

// Dumping serves broken programs too, so slices outside the pools are named, not followed.
bool sound(const Threadblock& block) {
    for (const Instruction& i : block.instructions) {
        if (std::uint64_t{i.first_operand} + i.sources + i.destinations > block.operands.size() ||
            std::uint64_t{i.first_need} + i.needs > block.needs.size()) {
            return false;
        }
    }
    std::int64_t end = 0;
    for (const Repeat& repeat : block.repeats) {
        const std::int64_t last = repeat.first + std::int64_t{repeat.body} * repeat.times;
        if (repeat.body < 1 || repeat.times < 1 || repeat.first < end ||
            last > static_cast<std::int64_t>(block.instructions.size())) {
            return false;
        }
        end = last;
    }
    return true;
}

void append_threadblock(std::string& text, const Threadblock& block, std::size_t number) {
    text += fmt::format("  threadblock {}", number);
    if (!block.sends.empty()) text += ": sends " + numbers(block.sends);
    if (!block.receives.empty())
        text += (block.sends.empty() ? ": receives " : "; receives ") + numbers(block.receives);
    text += '\n';
    if (!sound(block)) {
        text += "    (operands, needs or repeats outside the lists)\n";
        return;
    }
    std::size_t next_repeat = 0;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(block.instructions.size());) {
        if (next_repeat < block.repeats.size() && block.repeats[next_repeat].first == i) {
            const Repeat& repeat = block.repeats[next_repeat++];
            text += fmt::format("    repeat {} times, r from 0:\n", repeat.times);
            for (std::int32_t k = 0; k < repeat.body; ++k) append_instruction(text, block, i + k, &repeat);
            text += "    end\n";
            i += repeat.body * repeat.times;
        } else {
            append_instruction(text, block, i++, nullptr);
        }
    }
}

}  // namespace

std::string dump(const Program& program) {
    std::string text = fmt::format("program \"{}\"\n{}\n", program.name, describe(program.collective));
    if (program.wide) text += "wide\n";
    if (program.clobbers_input) text += "clobbers input\n";
    if (program.in_place) text += *program.in_place ? "in place only\n" : "out of place only\n";
    if (!program.topology_hash.empty()) text += fmt::format("topology {}\n", program.topology_hash);
    for (std::size_t i = 0; i < program.connections.size(); ++i) {
        const Connection& c = program.connections[i];
        text += fmt::format("c{}: {} -> {} channel {} {} {}", i, c.src, c.dst, c.channel, to_string(c.mode),
                            to_string(c.protocol));
        if (c.mode == Mode::staged) text += fmt::format(" slots {}", c.slots);
        text += '\n';
    }
    for (std::size_t i = 0; i < program.switch_groups.size(); ++i) {
        text += fmt::format("switch {}: {}\n", i, fmt::join(program.switch_groups[i], " "));
    }
    for (std::size_t r = 0; r < program.ranks.size(); ++r) {
        const RankProgram& rank = program.ranks[r];
        text += fmt::format("rank {}", r);
        if (!rank.scratch_classes.empty())
            text += fmt::format(": scratch classes {}", fmt::join(rank.scratch_classes, " "));
        text += '\n';
        for (std::size_t b = 0; b < rank.threadblocks.size(); ++b)
            append_threadblock(text, rank.threadblocks[b], b);
    }
    return text;
}

}  // namespace baton::ir
