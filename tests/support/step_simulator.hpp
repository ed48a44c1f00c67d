// A second opinion on algorithms: executes steps one chunk at a time on multisets of contributions, for every
// way in which ranks may call in place or not. Slow, small and written apart from the verifier, to judge its
// judgment.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace baton::test {

/// Executes `steps` for one choice of in-place ranks (bit r of `in_place`). Returns what is wrong with the
/// outputs, or nothing. Reading a place without a value gives garbage that spreads; it is wrong only where it
/// reaches an output.
class StepSimulator {
public:
    StepSimulator(const ir::Collective& collective, const std::vector<ir::Step>& steps)
        : collective_(collective), steps_(steps) {}

    std::optional<std::string> run(std::uint32_t in_place) {
        in_place_ = in_place;
        memory_.clear();
        for (int rank = 0; rank < collective_.ranks; ++rank) {
            for (std::int64_t i = 0; i < collective_.places(rank, ir::Buffer::input); ++i) {
                const auto place = collective_.input(rank, i);
                memory_[cell(rank, ir::Buffer::input, i)] = {place.chunk_class, {{{rank, place.shard}, 1}}};
            }
        }
        for (std::size_t begin = 0; begin < steps_.size();) {
            std::size_t end = begin + 1;
            while (end < steps_.size() && steps_[end].par) ++end;
            if (auto fault = block(begin, end)) return fault;
            begin = end;
        }
        return outputs();
    }

    /// All choices; the first fault found.
    std::optional<std::string> run_all() {
        for (std::uint32_t in_place = 0; in_place < (1U << collective_.ranks); ++in_place) {
            if (auto fault = run(in_place)) return fault;
        }
        return std::nullopt;
    }

private:
    using Cell = std::tuple<int, ir::Buffer, std::int64_t>;
    /// class (-1: garbage) and how often each (rank, shard) is in the value.
    struct Value {
        std::int64_t chunk_class = -1;
        std::map<std::pair<int, std::int64_t>, int> counts;
    };

    Cell cell(int rank, ir::Buffer buffer, std::int64_t index) const {
        if (buffer == ir::Buffer::input && (in_place_ >> rank & 1U) != 0) {
            const std::int64_t shared = collective_.output_alias(rank, index);
            if (shared >= 0) return {rank, ir::Buffer::output, shared};
        }
        return {rank, buffer, index};
    }

    bool exists(int rank, ir::Buffer buffer, std::int64_t index) const {
        return rank >= 0 && rank < collective_.ranks && index >= 0 &&
               (buffer == ir::Buffer::scratch || index < collective_.places(rank, buffer));
    }

    std::optional<std::string> block(std::size_t begin, std::size_t end) {
        std::vector<std::vector<Value>> read;
        std::map<Cell, bool> plainly_written;
        for (std::size_t i = begin; i < end; ++i) {
            const ir::Step& step = steps_[i];
            auto& values = read.emplace_back();
            for (int k = 0; k < step.chunks; ++k) {
                if (!exists(step.src_rank, step.src_buffer, step.src_index + k) ||
                    !exists(step.dst_rank, step.dst_buffer, step.dst_index + k))
                    return "step " + std::to_string(i) + " leaves a buffer";
                if (step.dst_buffer == ir::Buffer::input)
                    return "step " + std::to_string(i) + " writes input";
                values.push_back(memory_[cell(step.src_rank, step.src_buffer, step.src_index + k)]);
                const Cell target = cell(step.dst_rank, step.dst_buffer, step.dst_index + k);
                if (!step.reducing() && !plainly_written.emplace(target, true).second)
                    return "two writes in one block";
                // A run that overlaps itself shifted has no one meaning.
                for (int j = 0; j < step.chunks; ++j) {
                    if (j != k && cell(step.src_rank, step.src_buffer, step.src_index + j) == target)
                        return "step " + std::to_string(i) + " overlaps itself";
                }
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            const ir::Step& step = steps_[i];
            for (int k = 0; k < step.chunks; ++k) {
                const Value& value = read[i - begin][static_cast<std::size_t>(k)];
                Value& target = memory_[cell(step.dst_rank, step.dst_buffer, step.dst_index + k)];
                if (!step.reducing()) {
                    target = value;
                    continue;
                }
                if (target.chunk_class != value.chunk_class) target.chunk_class = -1;
                for (const auto& [who, count] : value.counts) target.counts[who] += count;
            }
        }
        return std::nullopt;
    }

    std::optional<std::string> outputs() {
        for (int rank = 0; rank < collective_.ranks; ++rank) {
            for (std::int64_t i = 0; i < collective_.places(rank, ir::Buffer::output); ++i) {
                const auto expected = collective_.output(rank, i);
                Value want;
                want.chunk_class = expected.chunk_class;
                for (const auto& c : expected.contributions) want.counts[{c.rank, c.shard}] = 1;
                const Value& got = memory_[cell(rank, ir::Buffer::output, i)];
                if (got.chunk_class != want.chunk_class || got.counts != want.counts)
                    return "output " + std::to_string(i) + " of rank " + std::to_string(rank) + " is wrong";
            }
        }
        return std::nullopt;
    }

    const ir::Collective& collective_;
    const std::vector<ir::Step>& steps_;
    std::uint32_t in_place_ = 0;
    std::map<Cell, Value> memory_;
};

}  // namespace baton::test
