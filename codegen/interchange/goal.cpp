#include <baton/codegen/interchange/goal.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <vector>

namespace baton::codegen {
namespace {

constexpr std::int64_t kMostOperations = 10'000'000;

class GoalWriter {
public:
    GoalWriter(const ir::Program& program, std::int64_t bytes)
        : program_(program),
          partition_(
              program.collective,
              ir::has_shards(program.collective.kind) ? bytes / program.collective.group_size() : bytes, 16) {
    }

    std::string write() {
        text_ = fmt::format("num_ranks {}\n", program_.ranks.size());
        if (program_.instruction_count() > kMostOperations)
            throw input_error(fmt::format("more than {} instructions", kMostOperations), program_.name);
        pair_lengths();
        for (std::size_t r = 0; r < program_.ranks.size(); ++r) rank(r);
        return std::move(text_);
    }

private:
    std::int64_t class_of(int rank, const ir::Operand& operand, std::int64_t index) const {
        return operand.buffer == ir::Buffer::scratch
                   ? program_.ranks[at(rank)].scratch_classes[at(index)]
                   : program_.collective.class_of(rank, operand.buffer, index);
    }
    std::int64_t length(int rank, const ir::Operand& operand) const {
        std::int64_t bytes = 0;
        for (std::int64_t i = operand.index; i < std::int64_t{operand.index} + operand.chunks; ++i)
            bytes += partition_.class_range(class_of(rank, operand, i)).size();
        return bytes;
    }
    static const ir::Operand* local(std::span<const ir::Operand> all) {
        for (const ir::Operand& each : all)
            if (each.kind == ir::OperandKind::local) return &each;
        return nullptr;
    }

    /// The bytes of each message: its chunks are named by a local operand at its sender, or at its receiver,
    /// or are equally many of any.
    void pair_lengths() {
        lengths_.resize(program_.connections.size());
        std::vector<std::vector<std::int64_t>> received(program_.connections.size());
        for (std::size_t r = 0; r < program_.ranks.size(); ++r)
            for (const ir::Threadblock& block : program_.ranks[r].threadblocks)
                for (const ir::Instruction& i : block.instructions) {
                    const auto sources = block.sources(i), destinations = block.destinations(i);
                    for (const auto& all : {sources, destinations})
                        for (const ir::Operand& each : all)
                            if (each.kind == ir::OperandKind::remote ||
                                each.kind == ir::OperandKind::switch_group)
                                throw input_error("GOAL has messages only, no remote memory and no switches",
                                                  program_.name);
                    const ir::Operand* named = local(sources);
                    if (named == nullptr) named = local(destinations);
                    const std::int64_t known = named != nullptr ? length(static_cast<int>(r), *named) : -1;
                    for (const ir::Operand& each : sources)
                        if (each.kind == ir::OperandKind::message) received[at(each.target)].push_back(known);
                    for (const ir::Operand& each : destinations)
                        if (each.kind == ir::OperandKind::message)
                            lengths_[at(each.target)].push_back(known >= 0 ? known : -each.chunks);
                }
        for (std::size_t c = 0; c < lengths_.size(); ++c)
            for (std::size_t k = 0; k < lengths_[c].size(); ++k) {
                if (lengths_[c][k] >= 0) continue;
                lengths_[c][k] = k < received[c].size() && received[c][k] >= 0
                                     ? received[c][k]
                                     : -lengths_[c][k] * partition_.class_range(0).size();
            }
        sent_.assign(lengths_.size(), 0);
        received_.assign(lengths_.size(), 0);
    }

    void rank(std::size_t r) {
        const auto& blocks = program_.ranks[r].threadblocks;
        text_ += fmt::format("\nrank {} {{\n", r);
        // Labels first: an instruction is done when its last operation is.
        std::vector<std::vector<std::int64_t>> last(blocks.size());
        std::int64_t label = 0;
        for (std::size_t b = 0; b < blocks.size(); ++b)
            for (const ir::Instruction& i : blocks[b].instructions) {
                label += operations(blocks[b], i);
                last[b].push_back(label);
            }
        label = 0;
        for (std::size_t b = 0; b < blocks.size(); ++b)
            for (std::size_t n = 0; n < blocks[b].instructions.size(); ++n)
                instruction(r, blocks[b], n, last, b, label);
        text_ += "}\n";
    }

    static std::int64_t operations(const ir::Threadblock& block, const ir::Instruction& i) {
        std::int64_t count = 0;
        for (const auto& all : {block.sources(i), block.destinations(i)})
            for (const ir::Operand& each : all) count += each.kind == ir::OperandKind::message ? 1 : 0;
        return std::max<std::int64_t>(1, count);
    }

    void instruction(std::size_t r, const ir::Threadblock& block, std::size_t n,
                     const std::vector<std::vector<std::int64_t>>& last, std::size_t b, std::int64_t& label) {
        const ir::Instruction& i = block.instructions[n];
        std::set<std::int64_t> after;
        if (n > 0) after.insert(last[b][n - 1]);
        for (const ir::Need& need : block.needs_of(i)) {
            if (at(need.rank) != r)
                throw input_error("GOAL has no waits among ranks", program_.name,
                                  "lower the algorithm with --mode staged");
            after.insert(last[at(need.threadblock)][at(need.instruction)]);
        }
        const auto operation = [&](const std::string& what) {
            text_ += fmt::format("l{}: {}\n", ++label, what);
            for (const std::int64_t each : after) text_ += fmt::format("l{} requires l{}\n", label, each);
            after = {label};
        };
        for (const ir::Operand& each : block.sources(i)) {
            if (each.kind != ir::OperandKind::message) continue;
            const std::int64_t k = received_[at(each.target)]++;
            operation(fmt::format("recv {}b from {} tag {}", lengths_[at(each.target)][at(k)],
                                  program_.connections[at(each.target)].src, each.target));
        }
        bool sends = false;
        for (const ir::Operand& each : block.destinations(i)) {
            if (each.kind != ir::OperandKind::message) continue;
            const std::int64_t k = sent_[at(each.target)]++;
            operation(fmt::format("send {}b to {} tag {}", lengths_[at(each.target)][at(k)],
                                  program_.connections[at(each.target)].dst, each.target));
            sends = true;
        }
        if (label < last[b][n] && !sends) operation("calc 0");
    }

    const ir::Program& program_;
    const ir::Partition partition_;
    std::vector<std::vector<std::int64_t>> lengths_;  // bytes of each message of a connection
    std::vector<std::int64_t> sent_, received_;
    std::string text_;
};

}  // namespace

std::string write_goal(const ir::Program& program, std::int64_t bytes) {
    return GoalWriter(program, bytes).write();
}

}  // namespace baton::codegen
