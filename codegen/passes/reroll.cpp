#include <baton/codegen/passes/reroll.hpp>

#include <baton/codegen/passes/graph.hpp>

#include <algorithm>

namespace baton::codegen {

std::optional<Affine> affine(const std::vector<std::int64_t>& sequence, std::int64_t modulus) {
    Affine result;
    if (sequence.empty()) return result;
    result.base = sequence[0];
    if (sequence.size() == 1) return result;
    result.step = sequence[1] - sequence[0];
    bool plain = true, wrapped = modulus > 0 && sequence[0] >= 0 && sequence[0] < modulus;
    const std::int64_t step = modulus > 0 ? ((result.step % modulus) + modulus) % modulus : 0;
    for (std::size_t i = 1; i < sequence.size() && (plain || wrapped); ++i) {
        plain = plain && sequence[i] - sequence[i - 1] == result.step;
        wrapped = wrapped && sequence[i] == (sequence[i - 1] + step) % modulus;
    }
    if (plain) return result;
    if (!wrapped) return std::nullopt;
    result.step = step;
    result.modulus = modulus;
    return result;
}

std::int64_t wrap_of(const ir::Program& program, int rank, ir::Buffer buffer) {
    if (buffer == ir::Buffer::scratch)
        return static_cast<std::int64_t>(program.ranks[rank].scratch_classes.size());
    return program.collective.places(rank, buffer);
}

namespace {

constexpr int kLongestBody = 32;
constexpr int kLeastCopies = 3;

bool same_shape(const ir::Threadblock& tb, int a, int b) {
    const ir::Instruction& x = tb.instructions[a];
    const ir::Instruction& y = tb.instructions[b];
    if (x.sources != y.sources || x.destinations != y.destinations || x.needs != y.needs ||
        x.finalize != y.finalize || x.post != y.post) {
        return false;
    }
    for (int i = 0; i < x.sources + x.destinations; ++i) {
        const ir::Operand& p = tb.operands[x.first_operand + i];
        const ir::Operand& q = tb.operands[y.first_operand + i];
        if (p.kind != q.kind || p.target != q.target || p.chunks != q.chunks) return false;
        if (p.kind != ir::OperandKind::message && p.buffer != q.buffer) return false;
    }
    for (int i = 0; i < x.needs; ++i) {
        const ir::Need& p = tb.needs[x.first_need + i];
        const ir::Need& q = tb.needs[y.first_need + i];
        if (p.rank != q.rank || p.threadblock != q.threadblock || p.event != q.event) return false;
    }
    return true;
}

/// Whether instructions a, b, c (one body apart each) continue one affine progression.
bool continues(const ir::Program& program, int rank, const ir::Threadblock& tb, int a, int b, int c) {
    const auto steps = [&](std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t modulus) {
        if (j - i == k - j) return true;
        return modulus > 0 && ((j - i) - (k - j)) % modulus == 0;
    };
    const ir::Instruction& x = tb.instructions[a];
    const ir::Instruction& y = tb.instructions[b];
    const ir::Instruction& z = tb.instructions[c];
    for (int i = 0; i < x.sources + x.destinations; ++i) {
        const ir::Operand& p = tb.operands[x.first_operand + i];
        if (p.kind == ir::OperandKind::message) continue;
        if (!steps(p.index, tb.operands[y.first_operand + i].index, tb.operands[z.first_operand + i].index,
                   p.kind == ir::OperandKind::local ? wrap_of(program, rank, p.buffer) : 0)) {
            return false;
        }
    }
    for (int i = 0; i < x.needs; ++i) {
        if (!steps(tb.needs[x.first_need + i].instruction, tb.needs[y.first_need + i].instruction,
                   tb.needs[z.first_need + i].instruction, 0)) {
            return false;
        }
    }
    return true;
}

/// Copies of the body of `length` instructions that starts at `first`.
int copies(const ir::Program& program, int rank, const ir::Threadblock& tb, int first, int length) {
    const int count = static_cast<int>(tb.instructions.size());
    int times = 1;
    for (int next = first + length; next + length <= count; next += length, ++times) {
        for (int i = 0; i < length; ++i) {
            if (!same_shape(tb, first + i, next + i)) return times;
            if (times >= 2 &&
                !continues(program, rank, tb, next + i - 2 * length, next + i - length, next + i))
                return times;
        }
    }
    return times;
}

}  // namespace

void reroll(ir::Program& program) {
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
        for (ir::Threadblock& tb : program.ranks[rank].threadblocks) {
            tb.repeats.clear();
            const int count = static_cast<int>(tb.instructions.size());
            for (int first = 0; first < count;) {
                ir::Repeat best;
                for (int length = 1; length <= std::min(kLongestBody, (count - first) / kLeastCopies);
                     ++length) {
                    const int times = copies(program, static_cast<int>(rank), tb, first, length);
                    if (times >= kLeastCopies && times * length > best.body * best.times)
                        best = {first, length, times};
                }
                if (best.times >= kLeastCopies) {
                    tb.repeats.push_back(best);
                    first += best.body * best.times;
                } else {
                    ++first;
                }
            }
        }
    }
}

}  // namespace baton::codegen
