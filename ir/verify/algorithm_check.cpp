// Verification of an Algorithm by abstract execution: every place holds a set of contributions.
#include <baton/base/error.hpp>
#include <baton/base/quantities.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/verify.hpp>
#include <baton/ir/verify/coverage.hpp>
#include <baton/ir/verify/memory.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::ir {
namespace {

constexpr std::int64_t kPendingBytes = 256;  // of a step of a par block that waits to write

/// A run of places of one rank.
struct Run {
    int rank = 0;
    Buffer buffer = Buffer::output;
    std::int64_t begin = 0, count = 0;
};

class Checker {
public:
    Checker(const Algorithm& algorithm, const VerifyOptions& options)
        : algorithm_(algorithm),
          options_(options),
          places_(algorithm.collective),
          table_(places_.stride(), algorithm.collective.ranks),
          written_(static_cast<std::size_t>(algorithm.collective.ranks)),
          read_(written_.size()) {
        memories_.emplace_back(places_, false);
        if (places_.any_alias()) memories_.emplace_back(places_, true);
        collect_above_ = std::min<std::int64_t>(options.memory_budget / 2, std::int64_t{64} << 20);
    }

    AlgorithmReport run() {
        AlgorithmReport report;
        auto cursor = algorithm_.steps();
        for (Step step; cursor.next(step); ++report.steps) {
            if (report.steps % 1024 == 0) stop_point();
            if (!block_.empty() && !step.par) finish_block();
            position_ = cursor.position();
            step_ = step;
            if (step.in_par) {
                if (static_cast<std::int64_t>(block_.size()) > options_.memory_budget / kPendingBytes)
                    throw fault(fmt::format("the par block has more than {} steps", block_.size() - 1));
                block_.emplace_back();
                gather(step, block_.back());
            } else {
                gather(step, direct_);
                apply(direct_);
                tidy();
            }
            if ((report.steps & 0xffff) == 0xffff && over_budget()) return too_large(report);
        }
        finish_block();
        for (const auto& memory : memories_) check_outputs(memory);
        report.assurance = table_.hashed() ? Assurance::hashed : Assurance::proved;
        warn_unread(report);
        return report;
    }

private:
    /// A step that has read its sources: what it will write, in each memory.
    struct Pending {
        Step step;
        std::int64_t position = 0;
        std::vector<std::vector<Piece>> values;  // per memory
    };

    Error fault(const std::string& what, const Memory* memory = nullptr) const {
        const bool in_place = memory && memory->in_place();
        return check_error(
            fmt::format("{}: {}{}", describe(step_), in_place ? "in place, " : "", what),
            fmt::format("{}{}step {}", algorithm_.name, algorithm_.name.empty() ? "" : ": ", position_));
    }

    // ---- operands

    template <class Visit>
    void each_source(const Step& step, const Visit& visit) const {
        if (step.op == StepOp::switch_reduce)
            for (const int member : group(step))
                visit(Run{member, step.src_buffer, step.src_index, step.chunks});
        else
            visit(Run{step.src_rank, step.src_buffer, step.src_index, step.chunks});
    }
    template <class Visit>
    void each_destination(const Step& step, const Visit& visit) const {
        if (step.op == StepOp::multicast)
            for (const int member : group(step))
                visit(Run{member, step.dst_buffer, step.dst_index, step.chunks});
        else
            visit(Run{step.op == StepOp::switch_reduce ? step.src_rank : step.dst_rank, step.dst_buffer,
                      step.dst_index, step.chunks});
    }
    const std::vector<int>& group(const Step& step) const {
        const auto g = static_cast<std::size_t>(step.dst_rank);
        if (step.dst_rank < 0 || g >= algorithm_.switch_groups.size() || algorithm_.switch_groups[g].empty())
            throw fault(fmt::format("switch group {} is not declared", step.dst_rank));
        return algorithm_.switch_groups[g];
    }

    void check_range(const Run& run) const {
        if (run.rank < 0 || run.rank >= algorithm_.collective.ranks)
            throw fault(
                fmt::format("rank {}, but there are {} ranks", run.rank, algorithm_.collective.ranks));
        if (run.buffer == Buffer::scratch) return;
        const std::int64_t count = places_.count(run.rank, run.buffer);
        if (run.begin >= 0 && run.begin + run.count <= count) return;
        if (count == 0) throw fault(fmt::format("rank {} has no {}", run.rank, to_string(run.buffer)));
        throw fault(fmt::format("{} {} of rank {} is out of range: it has {} places", to_string(run.buffer),
                                run.begin < 0 ? run.begin : std::max(run.begin, count), run.rank, count));
    }

    // ---- reading

    void gather(const Step& step, Pending& pending) {
        pending.step = step;
        pending.position = position_;
        pending.values.resize(memories_.size());
        each_destination(step, [&](const Run& run) {
            check_range(run);
            if (run.buffer == Buffer::input)
                throw fault(fmt::format("writes the input of rank {}, which is never written", run.rank));
        });
        bool first = true;
        each_source(step, [&](const Run& run) {
            check_range(run);
            if (run.buffer == Buffer::scratch)
                read_[static_cast<std::size_t>(run.rank)].add(run.begin, run.begin + run.count);
            for (std::size_t m = 0; m < memories_.size(); ++m) {
                auto& values = pending.values[m];
                if (first) {
                    read_full(memories_[m], run, values);
                } else {
                    read_full(memories_[m], run, other_);
                    values = combine(memories_[m], values, other_, step.src_index);
                }
            }
            first = false;
        });
        if (step.crosses() && memories_.size() == 2 && pending.values[0] != pending.values[1]) {
            const auto where = difference(pending.values[0], pending.values[1]);
            throw fault(
                fmt::format("the message differs in place: chunk {} of it {} out of place, but {} in place",
                            where.length, holds(value_at(pending.values[0], where.length)),
                            holds(value_at(pending.values[1], where.length))));
        }
    }

    void read_full(const Memory& memory, const Run& run, std::vector<Piece>& pieces) const {
        pieces.clear();
        memory.read(run.rank, run.buffer, run.begin, run.count, pieces);
        std::int64_t at = run.begin;
        for (const auto& piece : pieces) {
            if (piece.value.set == kEmptyPlace)
                throw fault(fmt::format("reads nothing: {} {} of rank {} holds no value yet",
                                        to_string(run.buffer), at, run.rank),
                            &memory);
            at += piece.length;
        }
    }

    // ---- writing

    void apply(const Pending& pending) {
        each_destination(pending.step, [&](const Run& run) {
            if (run.buffer == Buffer::scratch)
                written_[static_cast<std::size_t>(run.rank)].add(run.begin, run.begin + run.count);
            for (std::size_t m = 0; m < memories_.size(); ++m)
                write(memories_[m], pending.step, run, pending.values[m]);
        });
    }

    void write(Memory& memory, const Step& step, const Run& run, const std::vector<Piece>& values) {
        if (step.src_rank == run.rank && step.op != StepOp::switch_reduce &&
            memory.partial_overlap(run.rank, step.src_buffer, step.src_index, run.buffer, run.begin,
                                   run.count))
            throw fault("source and destination overlap in part", &memory);
        check_classes(memory, run, values);
        if (step.op != StepOp::reduce && step.op != StepOp::send_reduce) {
            memory.write(run.rank, run.buffer, run.begin, values);
            return;
        }
        other_.clear();
        memory.read(run.rank, run.buffer, run.begin, run.count, other_);
        std::int64_t at = run.begin;
        for (const auto& piece : other_) {
            if (piece.value.set == kEmptyPlace)
                throw fault(fmt::format("reduces into nothing: {} {} of rank {} holds no value yet",
                                        to_string(run.buffer), at, run.rank),
                            &memory);
            at += piece.length;
        }
        memory.write(run.rank, run.buffer, run.begin, combine(memory, other_, values, run.begin));
    }

    /// An output place only takes values of its own class.
    void check_classes(const Memory& memory, const Run& run, const std::vector<Piece>& values) const {
        const auto& c = algorithm_.collective;
        if (run.buffer == Buffer::scratch || c.chunks == 1) return;
        std::int64_t at = run.begin;
        for (const auto& piece : values) {
            // Classes of a standard kind grow with the place, as those of the values do.
            const std::int64_t step = c.kind == CollectiveKind::custom ? 1 : piece.length;
            for (std::int64_t i = 0; i < piece.length; i += step) {
                const std::int64_t place = c.class_of(run.rank, run.buffer, at + i);
                const std::int64_t value = places_.chunk_class(piece.value.base + i);
                if (place != value)
                    throw fault(
                        fmt::format("a chunk of class {} does not fit {} {} of rank {}, which is of class {}",
                                    value, to_string(run.buffer), at + i, run.rank, place),
                        &memory);
            }
            at += piece.length;
        }
    }

    /// The reduction of two runs, place by place. `begin` is for messages.
    const std::vector<Piece>& combine(const Memory& memory, const std::vector<Piece>& a,
                                      const std::vector<Piece>& b, std::int64_t begin) {
        combined_.clear();
        std::size_t i = 0, j = 0;
        std::int64_t in_a = 0, in_b = 0, done = 0;
        while (i < a.size() && j < b.size()) {
            const std::int64_t length = std::min(a[i].length - in_a, b[j].length - in_b);
            const Value x{a[i].value.base + in_a, a[i].value.set}, y{b[j].value.base + in_b, b[j].value.set};
            append(combined_, {length, unite(memory, x, y, begin + done)});
            done += length;
            if ((in_a += length) == a[i].length) ++i, in_a = 0;
            if ((in_b += length) == b[j].length) ++j, in_b = 0;
        }
        return combined_;
    }

    Value unite(const Memory& memory, Value x, Value y, std::int64_t place) {
        const std::int64_t chunks = algorithm_.collective.chunks;
        if (chunks > 1 && (x.base - y.base) % chunks != 0)
            throw fault(fmt::format("reduces chunks of different classes, {} and {}, at index {}",
                                    places_.chunk_class(y.base), places_.chunk_class(x.base), place),
                        &memory);
        const auto sum = table_.unite(x, y);
        if (!sum)
            throw fault(
                fmt::format("{} is reduced twice, at index {}", places_.describe(table_.common(x, y)), place),
                &memory);
        return *sum;
    }

    // ---- par blocks

    void finish_block() {
        if (block_.empty()) return;
        check_block_writes();
        for (const auto& pending : block_) {
            step_ = pending.step;
            position_ = pending.position;
            apply(pending);
        }
        block_.clear();
        tidy();
    }

    void check_block_writes() {
        struct Write {
            Run run;
            std::size_t pending;
        };
        std::vector<Write> writes;
        for (std::size_t i = 0; i < block_.size(); ++i) {
            const auto& step = block_[i].step;
            if (step.op == StepOp::reduce || step.op == StepOp::send_reduce) continue;
            each_destination(step, [&](const Run& run) { writes.push_back({run, i}); });
        }
        const auto key = [](const Write& w) { return std::tuple(w.run.rank, w.run.buffer, w.run.begin); };
        std::stable_sort(writes.begin(), writes.end(),
                         [&](const Write& a, const Write& b) { return key(a) < key(b); });
        for (std::size_t i = 1; i < writes.size(); ++i) {
            const auto &a = writes[i - 1], &b = writes[i];
            if (a.run.rank != b.run.rank || a.run.buffer != b.run.buffer ||
                b.run.begin >= a.run.begin + a.run.count)
                continue;
            const auto [first, second] = std::minmax(a.pending, b.pending);
            step_ = block_[second].step;
            position_ = block_[second].position;
            throw fault(fmt::format("writes {} {} of rank {}, which step {} of the same par block writes too",
                                    to_string(b.run.buffer), b.run.begin, b.run.rank,
                                    block_[first].position));
        }
    }

    // ---- memory

    /// Between steps: frees sets, and goes over to fingerprints above the budget.
    void tidy() {
        if (table_.bytes() <= collect_above_) return;
        table_.collect([this](const std::function<void(SetId)>& mark) {
            for (const auto& memory : memories_) memory.each_set(mark);
        });
        if (table_.bytes() > options_.memory_budget / 2) table_.hash_all();
        collect_above_ = table_.hashed() ? std::max(options_.memory_budget, 4 * table_.bytes())
                                         : std::max(collect_above_, 2 * table_.bytes());
        if (!table_.hashed())
            collect_above_ =
                std::min(collect_above_, std::max(options_.memory_budget / 2, table_.bytes() * 5 / 4));
    }

    bool over_budget() const {
        std::int64_t bytes = table_.bytes();
        for (const auto& memory : memories_) bytes += memory.bytes();
        return bytes > 2 * options_.memory_budget;
    }

    AlgorithmReport too_large(AlgorithmReport report) const {
        report.assurance = Assurance::not_proven;
        report.warnings.push_back(
            fmt::format("the places of {} ranks take more than twice the memory budget of {}",
                        algorithm_.collective.ranks, to_string(Bytes{options_.memory_budget})));
        return report;
    }

    // ---- the end

    void check_outputs(const Memory& memory) {
        for (int rank = 0; rank < algorithm_.collective.ranks; ++rank)
            for (const auto& goal : places_.goals(rank, table_)) {
                other_.clear();
                memory.read(rank, Buffer::output, goal.begin, goal.count, other_);
                std::int64_t at = 0;
                for (const auto& piece : other_) {
                    const Value expected{goal.value.base + at, goal.value.set};
                    if (piece.value != expected)
                        throw wrong_output(memory, rank, goal.begin + at, expected, piece.value);
                    at += piece.length;
                }
            }
    }

    Error wrong_output(const Memory& memory, int rank, std::int64_t place, Value expected,
                       Value actual) const {
        std::string text =
            fmt::format("{}output {} of rank {} ", memory.in_place() ? "in place, " : "", place, rank);
        if (actual.set == kEmptyPlace)
            text += "is never written";
        else if (table_.hashed())
            text += fmt::format("holds {} contributions that are not the {} it must hold",
                                table_.size(actual), table_.size(expected));
        else
            text += compare(expected, actual);
        return check_error(
            text, fmt::format("{}{}at the end", algorithm_.name, algorithm_.name.empty() ? "" : ": "));
    }

    std::string compare(Value expected, Value actual) const {
        const auto want = table_.members(expected), have = table_.members(actual);
        std::vector<ContributionNumber> missing, extra;
        std::set_difference(want.begin(), want.end(), have.begin(), have.end(), std::back_inserter(missing));
        std::set_difference(have.begin(), have.end(), want.begin(), want.end(), std::back_inserter(extra));
        const auto more = [](std::size_t count) {
            return count > 1 ? fmt::format(" and {} more", count - 1) : std::string();
        };
        std::string text;
        if (!missing.empty())
            text = fmt::format("lacks {}{}", places_.describe(missing[0]), more(missing.size()));
        if (!extra.empty())
            text += fmt::format("{}holds {}{}, which it must not", missing.empty() ? "" : " and ",
                                places_.describe(extra[0]), more(extra.size()));
        return text;
    }

    std::string holds(Value value) const {
        if (table_.hashed()) return fmt::format("holds {} contributions", table_.size(value));
        const auto members = table_.members(value);
        return fmt::format(
            "holds {}{}", places_.describe(members[0]),
            members.size() > 1 ? fmt::format(" and {} more", members.size() - 1) : std::string());
    }

    /// The first place (as `length`) at which two runs differ.
    static Piece difference(const std::vector<Piece>& a, const std::vector<Piece>& b) {
        std::int64_t at = 0;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            if (a[i].value != b[i].value) return {at, a[i].value};
            if (a[i].length != b[i].length) return {at + std::min(a[i].length, b[i].length), a[i].value};
            at += a[i].length;
        }
        return {at, Value{}};
    }
    static Value value_at(const std::vector<Piece>& pieces, std::int64_t place) {
        for (const auto& piece : pieces) {
            if (place < piece.length) return {piece.value.base + place, piece.value.set};
            place -= piece.length;
        }
        return {};
    }

    void warn_unread(AlgorithmReport& report) const {
        std::int64_t ranks = 0, first_rank = -1, first_place = -1;
        for (std::size_t rank = 0; rank < written_.size(); ++rank) {
            const std::int64_t place = written_[rank].first_outside(read_[rank]);
            if (place < 0) continue;
            if (ranks++ == 0) first_rank = static_cast<std::int64_t>(rank), first_place = place;
        }
        if (ranks > 0)
            report.warnings.push_back(fmt::format(
                "scratch {} of rank {} is written and never read{}", first_place, first_rank,
                ranks > 1 ? fmt::format("; so are places of {} more ranks", ranks - 1) : std::string()));
    }

    const Algorithm& algorithm_;
    const VerifyOptions& options_;
    Places places_;
    ContributionTable table_;
    std::vector<Memory> memories_;          // out of place, in place
    std::vector<Coverage> written_, read_;  // scratch, per rank
    std::vector<Pending> block_;
    Pending direct_;
    std::vector<Piece> other_, combined_;
    Step step_;
    std::int64_t position_ = 0;
    std::int64_t collect_above_ = 0;
};

}  // namespace

std::string_view to_string(Assurance assurance) {
    constexpr std::array<std::string_view, 4> names{"proved", "hashed", "sampled", "not proven"};
    return names[static_cast<std::size_t>(assurance)];
}

std::string_view to_string(Order order) {
    constexpr std::array<std::string_view, 4> names{"any", "fixed", "replicas_equal", "rank_order"};
    return names[static_cast<std::size_t>(order)];
}

AlgorithmReport verify(const Algorithm& algorithm, const VerifyOptions& options) {
    algorithm.collective.check(algorithm.name);
    const std::int64_t steps = algorithm.step_count();
    if (steps > options.step_limit) {
        AlgorithmReport report;
        report.assurance = Assurance::not_proven;
        report.steps = steps;
        report.warnings.push_back(fmt::format("{}{} steps are too many to follow (limit {})",
                                              steps == INT64_MAX ? "more than " : "", steps,
                                              options.step_limit));
        return report;
    }
    return Checker(algorithm, options).run();
}

}  // namespace baton::ir
