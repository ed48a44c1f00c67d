#include <baton/sim/step_graph.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/verify/memory.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace baton::sim {
namespace {

/// What stands in a run of places: who wrote it, who has read it since, and from which class on.
struct Piece {
    std::int64_t end = 0;
    std::int32_t writer = -1;
    std::int32_t readers = -1;  // head of a list in the pool; pieces cut from one another share its tail
    std::int64_t first_class = -1;
};

struct Reader {
    std::int32_t step = -1, next = -1;
};

/// Places of one buffer of one rank as pieces; places that nothing was said about are in none.
class Pieces {
public:
    /// Calls visit(begin, piece&) for all of [begin, end), cut at both ends, with new pieces for what is in
    /// none.
    template <class Visit>
    void visit(std::int64_t begin, std::int64_t end, const Visit& visit) {
        auto piece = split(begin);
        for (std::int64_t at = begin; at < end; ++piece) {
            if (piece == pieces_.end() || piece->first > at) {
                Piece fresh;
                fresh.end = piece == pieces_.end() ? end : std::min(end, piece->first);
                piece = pieces_.emplace_hint(piece, at, fresh);
            } else if (piece->second.end > end) {
                split(end);
            }
            visit(at, piece->second);
            at = piece->second.end;
        }
    }
    /// Replaces [begin, end) by one piece.
    void assign(std::int64_t begin, const Piece& value) {
        const auto first = split(begin);
        const auto last = split(value.end);
        pieces_.emplace_hint(pieces_.erase(first, last), begin, value);
    }

private:
    using Map = std::map<std::int64_t, Piece>;
    // Makes `at` a border; the first piece that begins there or later.
    Map::iterator split(std::int64_t at) {
        const auto next = pieces_.lower_bound(at);
        if (next == pieces_.begin() || (next != pieces_.end() && next->first == at)) return next;
        Piece& before = std::prev(next)->second;
        if (before.end <= at) return next;
        Piece tail = before;
        if (tail.first_class >= 0) tail.first_class += at - std::prev(next)->first;
        before.end = at;
        return pieces_.emplace_hint(next, at, tail);
    }
    Map pieces_;
};

constexpr std::size_t kStepsBetweenStops = 1024;

struct TooLarge {
    std::string why;
};

struct Edge {
    std::int32_t from = 0, to = 0;
    Wait wait = Wait::start_after_commit;
};

class Builder {
public:
    Builder(const ir::Algorithm& algorithm, const StepGraphLimits& limits)
        : algorithm_(algorithm),
          collective_(algorithm.collective),
          limits_(limits),
          places_(algorithm.collective),
          outputs_(at(collective_.ranks)),
          scratch_(at(collective_.ranks)) {}

    void run() {
        auto cursor = algorithm_.steps();
        for (ir::Step step; cursor.next(step);) {
            if (steps.size() % kStepsBetweenStops == 0) stop_point();
            if (!step.par) write_block();
            if (static_cast<std::int64_t>(steps.size()) >= limits_.steps)
                throw TooLarge{fmt::format("more than {} steps", limits_.steps)};
            block_.push_back(step);
            read(step, static_cast<std::int32_t>(steps.size()));
            if (!step.in_par) write_block();
        }
        write_block();
    }

    std::vector<StepNode> steps;
    std::vector<ClassRun> runs;
    std::vector<std::int64_t> run_offsets{0};
    std::vector<Edge> edges;

private:
    Error fault(const ir::Step& step, std::int64_t position, const std::string& what) const {
        return check_error(
            fmt::format("{}: {}", ir::describe(step), what),
            fmt::format("{}{}step {}", algorithm_.name, algorithm_.name.empty() ? "" : ": ", position),
            "run `baton verify` on the schedule");
    }
    void check(const ir::Step& step, std::int32_t s, int rank, ir::Buffer buffer, std::int64_t index) const {
        if (rank < 0 || rank >= collective_.ranks)
            throw fault(step, s, fmt::format("rank {} of {}", rank, collective_.ranks));
        if (buffer != ir::Buffer::scratch && (index < 0 || index + step.chunks > places_.count(rank, buffer)))
            throw fault(step, s,
                        fmt::format("{} has {} places at rank {}", to_string(buffer),
                                    places_.count(rank, buffer), rank));
        if (index < 0) throw fault(step, s, "a negative index");
    }
    const std::vector<int>& group(const ir::Step& step, std::int32_t s) const {
        const auto g = static_cast<std::size_t>(step.dst_rank);
        if (step.dst_rank < 0 || g >= algorithm_.switch_groups.size() || algorithm_.switch_groups[g].empty())
            throw fault(step, s, fmt::format("switch group {} is not declared", step.dst_rank));
        return algorithm_.switch_groups[g];
    }

    // ---- reading

    void read(const ir::Step& step, std::int32_t s) {
        StepNode node;
        node.source = step.src_rank;
        node.destination = step.dst_rank;
        node.via = step.via;
        node.channel = std::max<std::int16_t>(0, step.channel);
        node.op = step.op;
        steps.push_back(node);
        edges_begin_ = edges.size();
        if (step.op == ir::StepOp::switch_reduce) {
            bool first = true;
            for (const int member : group(step, s)) {
                read_run(step, s, member, first);
                first = false;
            }
        } else {
            read_run(step, s, step.src_rank, true);
        }
        run_offsets.push_back(static_cast<std::int64_t>(runs.size()));
    }

    void read_run(const ir::Step& step, std::int32_t s, int rank, bool describe_classes) {
        check(step, s, rank, step.src_buffer, step.src_index);
        const std::int64_t begin = step.src_index, end = begin + step.chunks;
        if (step.src_buffer == ir::Buffer::scratch) {
            scratch_[at(rank)].visit(begin, end, [&](std::int64_t place, Piece& piece) {
                if (piece.first_class < 0)
                    throw fault(step, s, fmt::format("scratch {} of rank {} holds nothing", place, rank));
                if (describe_classes) add_run(piece.first_class, piece.end - place);
                read_piece(piece, s);
            });
            return;
        }
        if (describe_classes) add_classes(rank, step.src_buffer, begin, step.chunks);
        if (step.src_buffer == ir::Buffer::output) {
            outputs_[at(rank)].visit(begin, end, [&](std::int64_t, Piece& piece) { read_piece(piece, s); });
            return;
        }
        // Input is never written but for what shares memory with the output.
        const auto alias = places_.alias(rank);
        const std::int64_t from = std::max(begin, alias.input), to = std::min(end, alias.input + alias.count);
        if (alias.count > 0 && from < to)
            outputs_[at(rank)].visit(from - alias.input + alias.output, to - alias.input + alias.output,
                                     [&](std::int64_t, Piece& piece) { read_piece(piece, s); });
    }

    void read_piece(Piece& piece, std::int32_t s) {
        if (piece.writer >= 0) edge(piece.writer, s, Wait::start_after_commit);
        if (pool_.size() >= at(limits_.waits))
            throw TooLarge{fmt::format("more than {} reads", limits_.waits)};
        pool_.push_back({s, piece.readers});
        piece.readers = static_cast<std::int32_t>(pool_.size() - 1);
    }

    void add_run(std::int64_t first, std::int64_t count) {
        first %= collective_.chunks;
        if (static_cast<std::int64_t>(runs.size()) > run_offsets.back()) {
            ClassRun& last = runs.back();
            if ((last.first + last.count) % collective_.chunks == first) {
                last.count += count;
                return;
            }
        }
        runs.push_back({first, count});
    }
    void add_classes(int rank, ir::Buffer buffer, std::int64_t index, std::int64_t count) {
        if (collective_.kind != ir::CollectiveKind::custom) {
            add_run(index, count);  // place s*C+k is class k
            return;
        }
        for (std::int64_t i = 0; i < count; ++i) add_run(collective_.class_of(rank, buffer, index + i), 1);
    }

    // ---- writing

    void write_block() {
        std::int32_t s = static_cast<std::int32_t>(steps.size() - block_.size());
        for (const ir::Step& step : block_) {
            if (at(s) % kStepsBetweenStops == 0) stop_point();
            edges_begin_ = edges.size();
            if (step.op == ir::StepOp::multicast) {
                for (const int member : group(step, s)) write(step, s, member);
            } else {
                write(step, s, step.op == ir::StepOp::switch_reduce ? step.src_rank : step.dst_rank);
            }
            ++s;
        }
        block_.clear();
    }

    void write(const ir::Step& step, std::int32_t s, int rank) {
        check(step, s, rank, step.dst_buffer, step.dst_index);
        if (step.dst_buffer == ir::Buffer::input) throw fault(step, s, "input is never written");
        Pieces& pieces = (step.dst_buffer == ir::Buffer::scratch ? scratch_ : outputs_)[at(rank)];
        const std::int64_t begin = step.dst_index;
        pieces.visit(begin, begin + step.chunks, [&](std::int64_t, Piece& piece) {
            if (piece.writer >= 0) edge(piece.writer, s, Wait::commit_after_commit);
            for (std::int32_t r = piece.readers; r >= 0; r = pool_[at(r)].next)
                edge(pool_[at(r)].step, s, Wait::commit_after_left);
        });
        std::int64_t place = begin;
        for (std::int64_t r = run_offsets[at(s)]; r < run_offsets[at(s) + 1]; ++r) {
            const ClassRun& run = runs[at(r)];
            pieces.assign(place, {place + run.count, s, -1, run.first});
            place += run.count;
        }
    }

    void edge(std::int32_t from, std::int32_t to, Wait wait) {
        if (from == to) return;
        // Runs of pieces with one writer are usual.
        if (edges.size() > edges_begin_ && edges.back().from == from && edges.back().to == to &&
            edges.back().wait == wait)
            return;
        if (edges.size() >= at(limits_.waits))
            throw TooLarge{fmt::format("more than {} dependencies", limits_.waits)};
        edges.push_back({from, to, wait});
    }

    const ir::Algorithm& algorithm_;
    const ir::Collective& collective_;
    const StepGraphLimits& limits_;
    ir::Places places_;
    std::vector<Pieces> outputs_, scratch_;
    std::vector<Reader> pool_;
    std::vector<ir::Step> block_;
    std::size_t edges_begin_ = 0;
};

}  // namespace

StepGraph::StepGraph(Parts parts)
    : steps_(std::move(parts.steps)),
      runs_(std::move(parts.runs)),
      run_offsets_(std::move(parts.run_offsets)),
      offsets_(std::move(parts.offsets)),
      successors_(std::move(parts.successors)) {}

StepGraph::StepGraph(const ir::Algorithm& algorithm, const StepGraphLimits& limits) {
    algorithm.collective.check(algorithm.name);
    Builder builder(algorithm, limits);
    try {
        builder.run();
    } catch (const TooLarge& large) {
        refused_ = fmt::format("the algorithm has {}", large.why);
        return;
    }
    steps_ = std::move(builder.steps);
    runs_ = std::move(builder.runs);
    run_offsets_ = std::move(builder.run_offsets);
    // By step waited for; the strongest wait of a pair first.
    offsets_.assign(steps_.size() + 1, 0);
    for (const Edge& edge : builder.edges) ++offsets_[at(edge.from) + 1];
    for (std::size_t s = 0; s < steps_.size(); ++s) offsets_[s + 1] += offsets_[s];
    successors_.resize(builder.edges.size());
    std::vector<std::int64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const Edge& edge : builder.edges) successors_[at(next[at(edge.from)]++)] = {edge.to, edge.wait};
    builder.edges = {};
    std::int64_t kept = 0;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
        if (s % kStepsBetweenStops == 0) stop_point();
        const auto begin = successors_.begin() + offsets_[s], end = successors_.begin() + offsets_[s + 1];
        std::sort(begin, end, [](const Successor& a, const Successor& b) {
            return a.step != b.step ? a.step < b.step : a.wait < b.wait;
        });
        const std::int64_t first = kept;
        for (auto it = begin; it != end; ++it) {
            if (kept > first && successors_[at(kept - 1)].step == it->step) continue;
            successors_[at(kept++)] = *it;
            StepNode& waiting = steps_[at(it->step)];
            ++(it->wait == Wait::start_after_commit ? waiting.start_waits : waiting.commit_waits);
        }
        offsets_[s] = first;
    }
    offsets_.back() = kept;
    successors_.resize(at(kept));
    successors_.shrink_to_fit();
}

}  // namespace baton::sim
