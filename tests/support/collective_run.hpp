// Running a Program on buffers made for it, and holding the result against the reference.
#pragma once

#include <baton/runtime/interpreter.hpp>
#include <baton/runtime/reference.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace baton::test {

enum class Fill { exact, random, bits };

/// Inputs and outputs of all ranks with guard bytes around each; the same seed gives the same inputs. In
/// place where the kind has such a form at a rank.
class Buffers {
public:
    /// `like`: take its inputs instead of filling anew.
    Buffers(const ir::Collective& collective, const runtime::CallArguments& arguments, bool in_place,
            std::uint64_t seed = 1, Fill fill = Fill::exact, const Buffers* like = nullptr)
        : collective_(collective), arguments_(arguments) {
        const std::int64_t width = ir::size_of(arguments.type);
        for (int r = 0; r < collective.ranks; ++r) {
            const std::int64_t in =
                runtime::buffer_bytes(collective, r, ir::Buffer::input, arguments.count, arguments.type);
            const std::int64_t out =
                runtime::buffer_bytes(collective, r, ir::Buffer::output, arguments.count, arguments.type);
            const auto offset =
                in_place ? runtime::in_place_offset(collective, r, arguments.count) : std::nullopt;
            const std::int64_t shift = offset ? *offset * width : 0;
            Rank rank;
            rank.in_bytes = in;
            rank.out_bytes = out;
            if (offset) {
                rank.shared = true;
                char* base = make(std::max(out, in));
                rank.output = base + std::max<std::int64_t>(0, -shift);
                rank.input = rank.output + shift;
            } else {
                rank.input = make(in);
                rank.output = make(out);
            }
            const auto elements = in / width;
            if (like != nullptr)
                std::copy_n(like->input(r), in, rank.input);
            else if (!ir::reduces(collective.kind) || fill == Fill::bits)
                runtime::fill_bits(r, seed, rank.input, in);
            else if (fill == Fill::exact)
                runtime::fill_exact(arguments, collective.ranks, r, seed, rank.input, elements);
            else
                runtime::fill_random(arguments, r, seed, rank.input, elements);
            if (!rank.shared) rank.before.assign(rank.input, rank.input + in);
            ranks_.push_back(std::move(rank));
            const bool has_input = collective.places(r, ir::Buffer::input) > 0,
                       has_output = collective.places(r, ir::Buffer::output) > 0;
            pointers_.push_back(
                {has_input ? ranks_.back().input : nullptr, has_output ? ranks_.back().output : nullptr});
        }
    }

    const std::vector<runtime::RankBuffers>& pointers() const { return pointers_; }
    char* input(int rank) const { return ranks_[static_cast<std::size_t>(rank)].input; }
    char* output(int rank) const { return ranks_[static_cast<std::size_t>(rank)].output; }
    std::int64_t output_elements(int rank) const {
        return ranks_[static_cast<std::size_t>(rank)].out_bytes / ir::size_of(arguments_.type);
    }
    std::string outputs_as_text() const {
        std::string all;
        for (const auto& rank : ranks_) all.append(rank.output, static_cast<std::size_t>(rank.out_bytes));
        return all;
    }

    /// What differs from `expected`, what was written out of bounds, or which input was changed; "" when
    /// nothing.
    std::string faults(const Buffers& expected) const {
        for (int r = 0; r < collective_.ranks; ++r) {
            const Rank& rank = ranks_[static_cast<std::size_t>(r)];
            const auto found =
                runtime::compare(arguments_.type, rank.output, expected.output(r), output_elements(r));
            if (found) return fmt::format("output of rank {}: {}", r, found->words);
            if (!rank.shared && std::memcmp(rank.input, rank.before.data(), rank.before.size()) != 0)
                return fmt::format("the input of rank {} was changed", r);
        }
        for (const auto& memory : memory_) {
            for (std::size_t i = 0; i < kGuard; ++i)
                if (memory[i] != kGuardByte || memory[memory.size() - 1 - i] != kGuardByte)
                    return "bytes outside of a buffer were written";
        }
        return "";
    }

private:
    static constexpr std::size_t kGuard = 64;
    static constexpr char kGuardByte = 0x5a;
    struct Rank {
        char *input = nullptr, *output = nullptr;
        std::int64_t in_bytes = 0, out_bytes = 0;
        bool shared = false;
        std::vector<char> before;
    };
    char* make(std::int64_t bytes) {
        memory_.emplace_back(static_cast<std::size_t>(bytes) + 2 * kGuard, kGuardByte);
        return memory_.back().data() + kGuard;
    }

    ir::Collective collective_;
    runtime::CallArguments arguments_;
    std::vector<std::vector<char>> memory_;
    std::vector<Rank> ranks_;
    std::vector<runtime::RankBuffers> pointers_;
};

/// Runs and compares with the reference, bit for bit; "" or the fault in words.
inline std::string faults_of(runtime::Interpreter& interpreter, const runtime::CallArguments& arguments,
                             bool in_place, const runtime::InterpretOptions& options = {},
                             std::uint64_t seed = 1, Fill fill = Fill::exact) {
    const ir::Collective& collective = interpreter.program().collective;
    const Buffers buffers(collective, arguments, in_place, seed, fill);
    const Buffers expected(collective, arguments, false, seed, fill, &buffers);
    interpreter.run(arguments, buffers.pointers(), options);
    runtime::reference(collective, arguments, expected.pointers());
    return buffers.faults(expected);
}

/// "all_reduce of 3 ranks, 3 chunks, f16 max, count 7, 2 tiles, in place": a case in words.
inline std::string words(const ir::Program& program, const runtime::CallArguments& a, bool in_place,
                         const runtime::InterpretOptions& options) {
    return fmt::format("{}: {}, {} {}, count {}, {} tiles, {}", program.name, describe(program.collective),
                       to_string(a.type), to_string(a.op), a.count, options.tiles,
                       in_place ? "in place" : "out of place");
}

/// All valid (type, operator) pairs of a reducing kind; one type per element size of the others.
inline std::vector<std::pair<ir::DataType, ir::ReduceOp>> pairs_for(ir::CollectiveKind kind) {
    std::vector<std::pair<ir::DataType, ir::ReduceOp>> pairs;
    if (!ir::reduces(kind)) {
        for (const auto type : {ir::DataType::i8, ir::DataType::f16, ir::DataType::f32, ir::DataType::i64,
                                ir::DataType::f64_i32})
            pairs.emplace_back(type, ir::ReduceOp::sum);
        return pairs;
    }
    for (const auto op : ir::all_reduce_ops())
        for (const auto type : ir::valid_types(op)) pairs.emplace_back(type, op);
    return pairs;
}

}  // namespace baton::test
