#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/codegen/interchange/execution_order.hpp>
#include <baton/codegen/interchange/lift.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <deque>
#include <optional>

namespace baton::codegen {
namespace {

using ir::Operand;
using ir::OperandKind;
using ir::StepOp;

constexpr std::size_t kMostSteps = 10'000'000;

/// A run of places.
struct Spot {
    int rank = 0;
    ir::Buffer buffer = ir::Buffer::output;
    std::int64_t index = 0, chunks = 1;
    bool operator==(const Spot&) const = default;
    bool meets(const Spot& other) const {
        return rank == other.rank && buffer == other.buffer && index < other.index + other.chunks &&
               other.index < index + chunks;
    }
};

/// A value under way on a connection.
struct Letter {
    Spot source;
    std::int64_t sent = 0;  ///< when
};

class Lifter {
public:
    /// `shelters`: inputs are read from copies of them in scratch.
    Lifter(const ir::Program& program, bool shelters) : in_(program), order_(program), shelters_(shelters) {
        overtaken_.resize(in_.connections.size());
    }

    ir::Algorithm run() {
        if (in_.clobbers_input) throw refused("the program writes its input, which no algorithm does");
        pass(false);
        pass(true);
        ir::Algorithm algorithm;
        algorithm.name = in_.name;
        algorithm.collective = in_.collective;
        algorithm.switch_groups = in_.switch_groups;
        algorithm.body.push_back(
            {ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(std::move(steps_))}, 0});
        return algorithm;
    }

private:
    Error refused(std::string what) const { return input_error(std::move(what), in_.name); }

    /// Runs the program once. The first pass finds the messages whose source is overwritten before they are
    /// received, the second writes the steps; both take the same order.
    void pass(bool writes) {
        writes_ = writes;
        clock_ = 0;
        stamps_.clear();
        temporaries_.clear();
        for (std::size_t r = 0; r < in_.ranks.size(); ++r) {
            const int rank = static_cast<int>(r);
            auto& own = stamps_.emplace_back();
            own[0].assign(at(in_.collective.places(rank, ir::Buffer::input)), 0);
            own[1].assign(at(in_.collective.places(rank, ir::Buffer::output)), 0);
            own[2].assign(in_.ranks[r].scratch_classes.size(), 0);
            temporaries_.push_back(static_cast<std::int64_t>(own[2].size()));
            channel_ = -1, protocol_ = ir::Protocol::automatic;
            if (in_.in_place.value_or(false)) open(rank);
            if (shelters_ && !own[0].empty()) {
                const auto inputs = static_cast<std::int64_t>(own[0].size());
                move({rank, ir::Buffer::input, 0, inputs}, temporary(rank, inputs), false);
            }
        }
        letters_.assign(in_.connections.size(), {});
        received_.assign(in_.connections.size(), 0);
        sent_ = received_;
        const bool ended = order_.run([&](int connection) { return !letters_[at(connection)].empty(); },
                                      [&](int rank, int threadblock, std::int32_t number) {
                                          const ir::Threadblock& list =
                                              in_.ranks[at(rank)].threadblocks[at(threadblock)];
                                          ++clock_;
                                          execute(rank, list, list.instructions[at(number)]);
                                          return true;
                                      });
        if (!ended) throw refused("the program does not run to its end");
    }

    /// In place, the output begins with what the input holds.
    void open(int rank) {
        const std::int64_t inputs = in_.collective.places(rank, ir::Buffer::input);
        for (std::int64_t i = 0; i < inputs;) {
            const std::int64_t first = in_.collective.output_alias(rank, i);
            std::int64_t n = 1;
            while (i + n < inputs && first >= 0 && in_.collective.output_alias(rank, i + n) == first + n) ++n;
            if (first >= 0)
                move({rank, ir::Buffer::input, i, n}, {rank, ir::Buffer::output, first, n}, false);
            i += n;
        }
    }

    // ---- one instruction

    Spot spot(int own, const Operand& operand) const {
        const int rank = operand.kind == OperandKind::remote ? operand.target : own;
        if (operand.buffer != ir::Buffer::input) return {rank, operand.buffer, operand.index, operand.chunks};
        if (shelters_)
            return {rank, ir::Buffer::scratch,
                    static_cast<std::int64_t>(in_.ranks[at(rank)].scratch_classes.size()) + operand.index,
                    operand.chunks};
        const Operand place = own_places(in_, rank, 'i', operand.index, operand.chunks);
        return {rank, place.buffer, place.index, place.chunks};
    }

    void execute(int rank, const ir::Threadblock& list, const ir::Instruction& instruction) {
        if (instruction.sources == 0) return;
        const auto operands = list.destinations(instruction);
        std::vector<Spot> places;
        for (const Operand& each : operands)
            if (each.kind == OperandKind::local || each.kind == OperandKind::remote)
                places.push_back(spot(rank, each));
        Spot value;
        if (list.sources(instruction)[0].kind == OperandKind::switch_group) {
            value = switched(rank, list.sources(instruction)[0], operands, places);
        } else {
            std::vector<Spot> sources;
            for (const Operand& each : list.sources(instruction))
                sources.push_back(each.kind == OperandKind::message ? receive(each.target)
                                                                    : spot(rank, each));
            channel_of(list, instruction);
            const bool kept = std::any_of(operands.begin(), operands.end(), [](const Operand& each) {
                return each.kind == OperandKind::message || each.kind == OperandKind::switch_group;
            });
            value =
                sources.size() == 1 ? copy(rank, sources[0], places, kept) : reduce(rank, sources, places);
        }
        for (const Operand& each : operands) {
            if (each.kind == OperandKind::message) send(each.target, value);
            if (each.kind == OperandKind::switch_group) multicast(value, each);
        }
    }

    /// Hints of the message that the instruction receives, or else sends.
    void channel_of(const ir::Threadblock& list, const ir::Instruction& instruction) {
        channel_ = -1;
        protocol_ = ir::Protocol::automatic;
        for (const Operand& each : list.sources(instruction)) {
            if (each.kind != OperandKind::message) continue;
            hint(each.target);
            return;
        }
    }
    void hint(int connection) {
        const ir::Connection& c = in_.connections[at(connection)];
        channel_ = c.channel <= INT16_MAX ? c.channel : -1;
        protocol_ = c.protocol == ir::Protocol::simple ? ir::Protocol::automatic : c.protocol;
    }

    Spot copy(int own, const Spot& source, const std::vector<Spot>& places, bool kept) {
        std::optional<Spot> here;
        for (const Spot& place : places) {
            if (!(place == source)) move(source, place, false);
            if (place.rank == own && !here) here = place;
        }
        if (here) return *here;
        if (source.rank == own || !kept) return source;
        const Spot place = temporary(own, source.chunks);
        move(source, place, false);
        return place;
    }

    Spot reduce(int own, std::vector<Spot> sources, const std::vector<Spot>& places) {
        const auto at_home =
            std::find_if(places.begin(), places.end(), [&](const Spot& place) { return place.rank == own; });
        Spot result = at_home != places.end() ? *at_home : temporary(own, sources[0].chunks);
        // It begins with the source that is there already, in place at least.
        auto base = std::find(sources.begin(), sources.end(), result);
        if (base == sources.end())
            base = std::find_if(sources.begin(), sources.end(),
                                [&](const Spot& each) { return in_place(each) == result; });
        const auto rest = sources.begin() + (base != sources.end() ? 1 : 0);
        if (base != sources.end()) std::rotate(sources.begin(), base, base + 1);
        if (std::any_of(rest, sources.end(),
                        [&](const Spot& each) { return each.meets(result) || in_place(each).meets(result); }))
            result = temporary(own, sources[0].chunks);
        if (!(sources[0] == result)) move(sources[0], result, false);
        for (std::size_t s = 1; s < sources.size(); ++s) move(sources[s], result, true);
        for (const Spot& place : places)
            if (!(place == result)) move(result, place, false);
        return result;
    }

    /// Where a place is when input and output share memory. An input that lies there in part only counts as
    /// the output place of its first chunk.
    Spot in_place(const Spot& place) const {
        if (place.buffer != ir::Buffer::input) return place;
        const std::int64_t output = in_.collective.output_alias(place.rank, place.index);
        return output < 0 ? place : Spot{place.rank, ir::Buffer::output, output, place.chunks};
    }

    /// A switch reduces into a place of this rank.
    Spot switched(int own, const Operand& source, std::span<const Operand> destinations,
                  const std::vector<Spot>& places) {
        Spot result = temporary(own, source.chunks);
        for (const Operand& each : destinations)
            if (each.kind == OperandKind::switch_group) {
                result = {own, each.buffer, each.index, each.chunks};
                const auto& members = in_.switch_groups[at(each.target)];
                if (std::find(members.begin(), members.end(), own) == members.end())
                    result = temporary(own, source.chunks);
            }
        ir::Step step;
        step.op = StepOp::switch_reduce;
        step.src_buffer = source.buffer, step.src_index = source.index;
        step.src_rank = own, step.dst_rank = source.target;
        step.dst_buffer = result.buffer, step.dst_index = static_cast<std::int32_t>(result.index);
        step.chunks = source.chunks;
        add(step);
        written(result);
        for (const Spot& place : places)
            if (!(place == result)) move(result, place, false);
        return result;
    }

    void multicast(const Spot& source, const Operand& to) {
        ir::Step step;
        step.op = StepOp::multicast;
        step.src_buffer = source.buffer, step.src_index = static_cast<std::int32_t>(source.index);
        step.src_rank = source.rank, step.dst_rank = to.target;
        step.dst_buffer = to.buffer, step.dst_index = to.index;
        step.chunks = to.chunks;
        add(step);
        for (const int member : in_.switch_groups[at(to.target)])
            written({member, to.buffer, to.index, to.chunks});
    }

    // ---- messages

    void send(int connection, const Spot& source) {
        const std::size_t number = sent_[at(connection)]++;
        auto& overtaken = overtaken_[at(connection)];
        if (number >= overtaken.size()) overtaken.resize(number + 1, false);
        Letter letter{source, clock_};
        if (overtaken[number]) {
            letter.source = temporary(in_.connections[at(connection)].dst, source.chunks);
            hint(connection);
            move(source, letter.source, false);
        }
        letters_[at(connection)].push_back(letter);
        order_.sent(connection);
    }

    Spot receive(int connection) {
        const Letter letter = letters_[at(connection)].front();
        letters_[at(connection)].pop_front();
        const std::size_t number = received_[at(connection)]++;
        if (overtaken_[at(connection)][number]) return letter.source;
        const Spot& source = letter.source;
        const auto& stamps = stamps_[at(source.rank)][at(static_cast<int>(source.buffer))];
        for (std::int64_t i = source.index; i < source.index + source.chunks; ++i)
            if (at(i) < stamps.size() && stamps[at(i)] > letter.sent)
                overtaken_[at(connection)][number] = true;
        return source;
    }

    // ---- steps

    Spot temporary(int rank, std::int64_t chunks) {
        Spot place{rank, ir::Buffer::scratch, temporaries_[at(rank)], chunks};
        temporaries_[at(rank)] += chunks;
        if (temporaries_[at(rank)] > kMostImportedPlaces)
            throw refused("values under way need too much scratch");
        return place;
    }

    void move(const Spot& from, const Spot& to, bool combine) {
        ir::Step step;
        step.op = from.rank == to.rank ? (combine ? StepOp::reduce : StepOp::copy)
                                       : (combine ? StepOp::send_reduce : StepOp::send);
        step.src_buffer = from.buffer, step.dst_buffer = to.buffer;
        step.src_rank = from.rank, step.dst_rank = to.rank;
        step.src_index = static_cast<std::int32_t>(from.index);
        step.dst_index = static_cast<std::int32_t>(to.index);
        step.chunks = static_cast<std::int32_t>(to.chunks);
        if (from.rank != to.rank) {
            step.channel = static_cast<std::int16_t>(channel_);
            step.protocol = protocol_;
        }
        add(step);
        written(to);
    }

    void add(const ir::Step& step) {
        if (!writes_) return;
        if (steps_.size() >= kMostSteps)
            throw refused(fmt::format("the algorithm would have more than {} steps", kMostSteps));
        steps_.push_back(step);
    }

    /// An algorithm serves calls in place too, where a write to the output is one to the input.
    void written(const Spot& place) {
        auto& own = stamps_[at(place.rank)];
        auto& stamps = own[at(static_cast<int>(place.buffer))];
        for (std::int64_t i = place.index; i < place.index + place.chunks; ++i) {
            if (at(i) < stamps.size()) stamps[at(i)] = clock_;
            if (place.buffer != ir::Buffer::output) continue;
            const std::int64_t input = in_.collective.input_alias(place.rank, i);
            if (input >= 0 && at(input) < own[0].size()) own[0][at(input)] = clock_;
        }
    }

    const ir::Program& in_;
    ExecutionOrder order_;
    std::vector<std::deque<Letter>> letters_;
    std::vector<std::size_t> sent_, received_;
    std::vector<std::vector<bool>>
        overtaken_;  ///< [connection][message]: its source is written before it arrives
    std::vector<std::array<std::vector<std::int64_t>, 3>> stamps_;  ///< [rank][buffer][place]: last write
    std::vector<std::int64_t> temporaries_;                         ///< [rank]: next free scratch place
    std::vector<ir::Step> steps_;
    std::int64_t clock_ = 0;
    int channel_ = -1;
    ir::Protocol protocol_ = ir::Protocol::automatic;
    bool writes_ = false, shelters_ = false;
};

}  // namespace

ir::Algorithm lift(const ir::Program& program) {
    // What a program for calls out of place reads late is overwritten in place: then inputs are copied first.
    for (const bool shelters : {false, true}) {
        ir::Algorithm algorithm = Lifter(program, shelters).run();
        try {
            ir::verify(algorithm);
            return algorithm;
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::check_failed) throw;
            if (!shelters && program.in_place == false) continue;
            throw input_error(fmt::format("its steps alone do not give the result: {}", error.message()),
                              program.name);
        }
    }
    throw internal_error("no attempt at lifting ended", program.name);
}

}  // namespace baton::codegen
