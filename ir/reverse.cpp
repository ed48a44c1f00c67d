// The reverse of an algorithm. Read as a linear map from inputs to outputs, an algorithm has a transpose:
// walking its steps backwards, `d := s` becomes "s' += d', d' := nothing" and `d += s` becomes "s' += d'",
// where x' stands for the outputs that x goes into. The first value added to nothing is a copy.
#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/transform.hpp>
#include <baton/ir/verify/run_map.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <span>

namespace baton::ir {
namespace {

/// The reverse value of a place of the algorithm that is reversed.
struct State {
    bool present = false;
    bool moved = false;  ///< an output's value, out of the reverse's input into its scratch
    State advanced(std::int64_t) const { return *this; }
};

struct Location {
    Buffer buffer = Buffer::scratch;
    std::int64_t index = 0;
};

class Reverser {
public:
    explicit Reverser(const Algorithm& algorithm) : scratch_(algorithm.scratch_places()) {
        const Collective& forward = algorithm.collective;
        for (int rank = 0; rank < forward.ranks; ++rank) {
            const std::int64_t inputs = forward.places(rank, Buffer::input);
            Shared shared{0, inputs, 0};
            if (forward.kind == CollectiveKind::reduce_scatter || forward.kind == CollectiveKind::scatter) {
                shared.begin = std::max(0, forward.position_of(rank).second) * forward.chunks;
                shared.end = std::min(inputs, shared.begin + forward.chunks);
            }
            const std::int64_t first =
                shared.begin < shared.end ? forward.output_alias(rank, shared.begin) : -1;
            if (first < 0) shared.end = shared.begin;
            shared.shift = first - shared.begin;
            shared_.push_back(shared);
            states_.push_back({checks::RunMap<State>(inputs, {}),
                               checks::RunMap<State>(forward.places(rank, Buffer::output), {true, false}),
                               checks::RunMap<State>(scratch_[static_cast<std::size_t>(rank)], {})});
        }
    }

    /// Reverses one step, or the steps of one par block.
    void block(std::span<const Step> steps) {
        make_room(steps);
        pieces_.clear();
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            states(step->dst_rank, step->dst_buffer)
                .visit(step->dst_index, std::int64_t{step->dst_index} + step->chunks,
                       [&](std::int64_t begin, std::int64_t end, const State& state) {
                           if (state.present)
                               pieces_.push_back({&*step, begin, end,
                                                  location(step->dst_rank, step->dst_buffer, begin, state)});
                       });
        }
        for (const Step& step : steps) {
            if (!step.reducing()) clear(step);
        }
        const std::size_t first = out.size();
        for (const Piece& piece : pieces_) move(piece);
        if (out.size() - first < 2) return;
        for (std::size_t i = first; i < out.size(); ++i) {
            out[i].in_par = 1;
            out[i].par = i > first ? 1 : 0;
        }
    }

    std::vector<Step> out;

private:
    /// Input places [begin, end) of a rank are, in place, the memory of the output places `shift` further.
    struct Shared {
        std::int64_t begin = 0, end = 0, shift = 0;
    };
    /// Output places of a rank.
    struct Keep {
        int rank;
        std::int64_t begin, end;
    };
    /// Places [begin, end) of a step's destination that hold a value, and where that value stands.
    struct Piece {
        const Step* step;
        std::int64_t begin, end;
        Location from;
    };

    checks::RunMap<State>& states(int rank, Buffer buffer) {
        return states_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
    }

    Location location(int rank, Buffer buffer, std::int64_t index, const State& state) const {
        switch (buffer) {
            case Buffer::input: return {Buffer::output, index};
            case Buffer::output:
                if (!state.moved) return {Buffer::input, index};
                return {Buffer::scratch, scratch_[static_cast<std::size_t>(rank)] + index};
            case Buffer::scratch: break;
        }
        return {Buffer::scratch, index};
    }

    void clear(const Step& step) {
        states(step.dst_rank, step.dst_buffer)
            .update(step.dst_index, std::int64_t{step.dst_index} + step.chunks,
                    [](State& state) { state.present = false; });
    }

    /// Moves to scratch what still stands in the reverse's input and either is about to be added to, or, in
    /// place, shares memory with an output place that is about to be written. What this block reads for the
    /// last time may stay.
    void make_room(std::span<const Step> steps) {
        std::vector<Keep> last_reads;
        for (const Step& step : steps) {
            if (!step.reducing() && step.dst_buffer == Buffer::output)
                last_reads.push_back(
                    {step.dst_rank, step.dst_index, std::int64_t{step.dst_index} + step.chunks});
        }
        std::sort(last_reads.begin(), last_reads.end(), [](const Keep& a, const Keep& b) {
            return a.rank != b.rank ? a.rank < b.rank : a.begin < b.begin;
        });
        for (const Step& step : steps) {
            std::int64_t begin = step.src_index, end = begin + step.chunks;
            if (step.src_buffer == Buffer::scratch) continue;
            if (step.src_buffer == Buffer::input && !alias(step.src_rank, begin, end)) continue;
            relocate(step.src_rank, begin, end, last_reads);
        }
    }

    /// Turns a run of input places into the output places that share their memory in place; false when none
    /// does.
    bool alias(int rank, std::int64_t& begin, std::int64_t& end) const {
        const Shared& shared = shared_[static_cast<std::size_t>(rank)];
        begin = std::max(begin, shared.begin) + shared.shift;
        end = std::min(end, shared.end) + shared.shift;
        return begin < end;
    }

    void relocate(int rank, std::int64_t begin, std::int64_t end, const std::vector<Keep>& last_reads) {
        auto keep = std::partition_point(last_reads.begin(), last_reads.end(), [&](const Keep& k) {
            return k.rank < rank || (k.rank == rank && k.end <= begin);
        });
        while (begin < end) {
            const bool kept_ahead = keep != last_reads.end() && keep->rank == rank && keep->begin < end;
            move_out(rank, begin, kept_ahead ? std::max(begin, keep->begin) : end);
            if (!kept_ahead) return;
            begin = keep->end;
            ++keep;
        }
    }

    void move_out(int rank, std::int64_t begin, std::int64_t end) {
        std::vector<std::pair<std::int64_t, std::int64_t>> runs;
        auto& outputs = states(rank, Buffer::output);
        outputs.visit(begin, end, [&](std::int64_t from, std::int64_t to, const State& state) {
            if (state.present && !state.moved) runs.emplace_back(from, to);
        });
        for (const auto& [from, to] : runs) {
            emit(StepOp::copy, nullptr, rank, {Buffer::input, from}, rank,
                 location(rank, Buffer::output, from, {true, true}), to - from);
            outputs.update(from, to, [](State& state) { state.moved = true; });
        }
    }

    /// Adds a piece of a step's destination to the step's source.
    void move(const Piece& piece) {
        const Step& step = *piece.step;
        const std::int64_t shift = std::int64_t{step.src_index} - step.dst_index;
        auto& sources = states(step.src_rank, step.src_buffer);
        sources.visit(
            piece.begin + shift, piece.end + shift,
            [&](std::int64_t begin, std::int64_t end, const State& state) {
                State after = state;
                after.moved = true;  // adding to a value in the input was prevented, so only scratch is left
                const bool crosses = step.src_rank != step.dst_rank;
                const StepOp op = state.present ? (crosses ? StepOp::send_reduce : StepOp::reduce)
                                                : (crosses ? StepOp::send : StepOp::copy);
                const Location from{piece.from.buffer, piece.from.index + (begin - shift - piece.begin)};
                emit(op, &step, step.dst_rank, from, step.src_rank,
                     location(step.src_rank, step.src_buffer, begin, after), end - begin);
            });
        sources.update(piece.begin + shift, piece.end + shift, [](State& state) { state = {true, true}; });
    }

    void emit(StepOp op, const Step* hints, int src_rank, Location from, int dst_rank, Location to,
              std::int64_t chunks) {
        if (std::max(from.index, to.index) + chunks > INT32_MAX)
            throw input_error(fmt::format("place {} of rank {} leaves the range of indices",
                                          std::max(from.index, to.index), dst_rank),
                              "reverse");
        Step step;
        step.op = op;
        step.src_rank = src_rank;
        step.dst_rank = dst_rank;
        step.src_buffer = from.buffer;
        step.dst_buffer = to.buffer;
        step.src_index = static_cast<std::int32_t>(from.index);
        step.dst_index = static_cast<std::int32_t>(to.index);
        step.chunks = static_cast<std::int32_t>(chunks);
        if (hints != nullptr) {
            step.channel = hints->channel;
            step.protocol = hints->protocol;
        }
        out.push_back(step);
    }

    std::vector<std::int64_t> scratch_;
    std::vector<Shared> shared_;
    std::vector<std::array<checks::RunMap<State>, 3>> states_;
    std::vector<Piece> pieces_;
};

}  // namespace

Collective reverse(const Collective& collective) {
    Collective reversed = collective;
    switch (collective.kind) {
        case CollectiveKind::broadcast: reversed.kind = CollectiveKind::reduce; break;
        case CollectiveKind::reduce: reversed.kind = CollectiveKind::broadcast; break;
        case CollectiveKind::scatter: reversed.kind = CollectiveKind::gather; break;
        case CollectiveKind::gather: reversed.kind = CollectiveKind::scatter; break;
        case CollectiveKind::all_gather: reversed.kind = CollectiveKind::reduce_scatter; break;
        case CollectiveKind::reduce_scatter: reversed.kind = CollectiveKind::all_gather; break;
        case CollectiveKind::all_reduce:
        case CollectiveKind::all_to_all: break;
        case CollectiveKind::send_recv:
            for (int g = 1; g < collective.group_count(); ++g) {
                if (collective.receiver(g) != collective.receiver(0))
                    throw input_error(
                        "send_recv without a peer, in groups of different sizes, has no reverse",
                        describe(collective));
            }
            reversed.root = collective.receiver();
            reversed.peer = collective.root;
            break;
        case CollectiveKind::custom:
            throw input_error("a custom collective has no reverse", describe(collective));
    }
    return reversed;
}

Algorithm reverse(const Algorithm& algorithm) {
    algorithm.collective.check(algorithm.name);
    Algorithm reversed;
    reversed.name = "reverse of " + algorithm.name;
    reversed.collective = reverse(algorithm.collective);
    reversed.over_positions = false;
    const std::vector<Step> steps = expand(algorithm);
    std::vector<std::array<std::int64_t, 2>> sizes;
    for (int rank = 0; rank < algorithm.collective.ranks; ++rank)
        sizes.push_back({algorithm.collective.places(rank, Buffer::input),
                         algorithm.collective.places(rank, Buffer::output)});
    const auto check_places = [&](const Step& step, int rank, Buffer buffer, std::int64_t index) {
        if (buffer == Buffer::scratch) return;
        const std::int64_t places = sizes[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
        if (index + step.chunks > places)
            throw input_error(fmt::format("{} of rank {} has {} places", to_string(buffer), rank, places),
                              describe(step));
    };
    for (const Step& step : steps) {
        if (step.op == StepOp::multicast || step.op == StepOp::switch_reduce)
            throw input_error("a switch step has no reverse", describe(step));
        if (step.dst_buffer == Buffer::input)
            throw input_error("an input is written", describe(step), "verify the algorithm first");
        check_places(step, step.src_rank, step.src_buffer, step.src_index);
        check_places(step, step.dst_rank, step.dst_buffer, step.dst_index);
    }
    Reverser reverser(algorithm);
    for (std::size_t end = steps.size(); end > 0;) {
        std::size_t begin = end - 1;
        while (begin > 0 && steps[begin].par) --begin;
        stop_point();
        reverser.block(std::span(steps).subspan(begin, end - begin));
        end = begin;
    }
    reversed.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(reverser.out))}, 0}};
    return reversed;
}

}  // namespace baton::ir
