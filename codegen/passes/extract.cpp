// Dependency extraction: steps become nodes; what reads and writes of a place imply becomes the order of
// their keys.
#include <baton/base/error.hpp>
#include <baton/codegen/passes/transfer.hpp>
#include <baton/codegen/passes/values.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace baton::codegen {
namespace {

ir::Operand local_operand(const Run& run) {
    return {ir::OperandKind::local, run.buffer, -1, static_cast<std::int32_t>(run.index),
            static_cast<std::int32_t>(run.chunks)};
}

class Extractor {
public:
    Extractor(const ir::Algorithm& algorithm, const LowerOptions& options, bool forward, bool modes)
        : algorithm_(algorithm),
          options_(options),
          forward_(forward),
          modes_(modes),
          aliases_(algorithm.collective),
          hazards_(algorithm.collective, aliases_),
          values_(algorithm, options.wide),
          scratch_(algorithm.scratch_places()) {
        graph_.name = algorithm.name;
        graph_.collective = algorithm.collective;
        graph_.wide = options.wide;
        graph_.topology_hash = algorithm.topology_hash;
        slots_ = options.slots > 0 ? options.slots : kDefaultSlots;
    }

    Graph run() {
        ir::StepCursor cursor = algorithm_.steps();
        ir::Step step;
        std::vector<std::pair<ir::Step, std::int64_t>> block;
        while (cursor.next(step)) {
            check(step, cursor.position());
            if (!(step.in_par && step.par)) flush(block);
            block.emplace_back(step, cursor.position());
            if (!step.in_par) flush(block);
        }
        flush(block);
        graph_.scratch_classes = values_.scratch_classes();
        return std::move(graph_);
    }

private:
    void check(const ir::Step& step, std::int64_t position) const {
        const auto where = [&] { return fmt::format("step {}: {}", position, ir::describe(step)); };
        if (step.op == ir::StepOp::multicast || step.op == ir::StepOp::switch_reduce) {
            throw input_error("lowering of switch steps is not supported", where(), "use sends");
        }
        const auto place = [&](std::int32_t rank, ir::Buffer buffer, std::int32_t index) {
            if (rank < 0 || rank >= algorithm_.collective.ranks)
                throw check_error("the rank is out of range", where());
            const std::int64_t places =
                buffer == ir::Buffer::scratch
                    ? (static_cast<std::size_t>(rank) < scratch_.size() ? scratch_[rank] : 0)
                    : algorithm_.collective.places(rank, buffer);
            if (index < 0 || step.chunks < 1 || index + std::int64_t{step.chunks} > places) {
                throw check_error("a place is out of range", where());
            }
        };
        place(step.src_rank, step.src_buffer, step.src_index);
        place(step.dst_rank, step.dst_buffer, step.dst_index);
        if (step.dst_buffer == ir::Buffer::input) throw check_error("input is never written", where());
    }

    /// Lowers the steps of a par block, or a single step: all reads first, then all updates in program order.
    void flush(std::vector<std::pair<ir::Step, std::int64_t>>& block) {
        if (block.empty()) return;
        std::vector<Move> moves;
        for (const auto& [step, position] : block) {
            for (Move& move : values_.cut(step, position)) {
                if (!move.crosses && !move.reducing && move.source == move.destination) continue;
                moves.push_back(std::move(move));
            }
        }
        std::optional<BlockAccesses> accesses;
        if (block.size() > 1) {
            accesses.emplace(aliases_, algorithm_.collective.ranks);
            for (const Move& move : moves) accesses->add(move);
        }
        block.clear();

        struct Pending {
            Run source;
            std::int32_t contributions = 0, send = -1, temporary = -1;
            int lane = -1;
        };
        std::vector<Pending> pending(moves.size());
        for (std::size_t i = 0; i < moves.size(); ++i) {
            pending[i].source = place(moves[i].source, moves[i], accesses);
            pending[i].contributions = values_.contributions(moves[i].source);
        }
        const auto first = static_cast<std::int32_t>(graph_.nodes.size());
        for (std::size_t i = 0; i < moves.size(); ++i) {
            const Move& move = moves[i];
            if (move.crosses) {
                const ir::Mode mode = modes_
                                          ? choose_mode(options_.mode, move, accesses ? &*accesses : nullptr)
                                          : ir::Mode::staged;
                pending[i].lane = lane(move, mode);
                pending[i].send = add_send(move, pending[i].source, pending[i].lane);
            } else if (accesses && accesses->source_is_written(move)) {
                const Run copy = values_.temporary(pending[i].source);
                pending[i].temporary =
                    add(move, 1, move.source.rank, {local_operand(pending[i].source)}, {local_operand(copy)});
                pending[i].source = copy;
            }
        }
        for (std::size_t i = 0; i < moves.size(); ++i) {
            const auto node = static_cast<std::int32_t>(graph_.nodes.size());
            const Run before = moves[i].reducing ? place(moves[i].destination, moves[i], accesses) : Run{};
            Values::Update update =
                values_.update(moves[i], pending[i].source, pending[i].contributions, node);
            if (moves[i].reducing) update.before = before;
            add_update(moves[i], update, pending[i].source, pending[i].lane);
        }
        for (auto node = first; node < static_cast<std::int32_t>(graph_.nodes.size()); ++node) set_key(node);
    }

    /// Where `run` of a move lies; read through opening copies unless the move's own block overwrites them in
    /// place.
    Run place(const Run& run, const Move& move, const std::optional<BlockAccesses>& accesses) const {
        const Run real = values_.place(run, nullptr);
        if (!forward_) return real;
        Move through = move;
        through.source = values_.place(run, &hazards_);
        return through.source == real || (accesses && accesses->source_is_written(through)) ? real
                                                                                            : through.source;
    }

    std::int32_t add(const Move& move, int phase, int rank, std::vector<ir::Operand> sources,
                     std::vector<ir::Operand> destinations) {
        if (static_cast<std::int64_t>(graph_.nodes.size()) >= options_.instruction_limit) {
            throw input_error(
                fmt::format("the program would have more than {} instructions", options_.instruction_limit),
                algorithm_.name, "use fewer ranks or chunks, or longer runs");
        }
        Node node;
        node.rank = rank;
        node.key = {0, phase, static_cast<std::int64_t>(graph_.nodes.size())};
        node.sources = std::move(sources);
        node.destinations = std::move(destinations);
        node.step = move.position;
        graph_.nodes.push_back(std::move(node));
        return static_cast<std::int32_t>(graph_.nodes.size()) - 1;
    }

    std::int32_t add_send(const Move& move, const Run& source, int lane_number) {
        Lane& lane = graph_.lanes[lane_number];
        const ir::Operand message = {ir::OperandKind::message, ir::Buffer::output, lane_number,
                                     static_cast<std::int32_t>(lane.sends.size()),
                                     static_cast<std::int32_t>(source.chunks)};
        const std::int32_t node = add(move, 0, move.source.rank, {local_operand(source)}, {message});
        lane.sends.push_back(node);
        return node;
    }

    void add_update(const Move& move, const Values::Update& update, const Run& source, int lane_number) {
        std::vector<ir::Operand> sources;
        if (move.reducing) sources.push_back(local_operand(update.before));
        if (lane_number >= 0) {
            Lane& lane = graph_.lanes[lane_number];
            sources.push_back({ir::OperandKind::message, ir::Buffer::output, lane_number,
                               static_cast<std::int32_t>(lane.receives.size()),
                               static_cast<std::int32_t>(source.chunks)});
        } else {
            sources.push_back(local_operand(source));
        }
        const std::int32_t node =
            add(move, 1, move.destination.rank, std::move(sources), {local_operand(update.after)});
        graph_.nodes[node].finalize = update.finalize;
        if (lane_number >= 0) graph_.lanes[lane_number].receives.push_back(node);
    }

    int lane(const Move& move, ir::Mode mode) {
        const int channel = move.step.channel >= 0
                                ? move.step.channel
                                : static_cast<int>(move.destination.index % std::max(1, options_.channels));
        const auto key = std::make_tuple(move.source.rank, move.destination.rank, channel, mode);
        const auto [it, fresh] = lanes_.try_emplace(key, static_cast<int>(graph_.lanes.size()));
        if (fresh) {
            Lane lane;
            lane.connection = {
                move.source.rank, move.destination.rank, channel, mode, ir::Protocol::simple, slots_};
            graph_.lanes.push_back(std::move(lane));
        }
        return it->second;
    }

    /// The least level that puts a node after everything it must come after.
    void set_key(std::int32_t number) {
        Node& node = graph_.nodes[number];
        std::int32_t level = 0;
        const auto after = [&](std::int32_t other) {
            const Key& key = graph_.nodes[other].key;
            const bool same_level =
                std::tie(key.phase, key.number) < std::tie(node.key.phase, node.key.number);
            level = std::max(level, same_level ? key.level : key.level + 1);
        };
        announce(graph_, hazards_, number, [&](std::int32_t other, bool) {
            if (other < number) after(other);
        });
        for (const ir::Operand& source : node.sources) {
            if (source.kind != ir::OperandKind::message) continue;
            const Lane& lane = graph_.lanes[source.target];
            after(lane.sends[source.index]);
            if (source.index > 0) after(lane.receives[source.index - 1]);
        }
        for (const ir::Operand& destination : node.destinations) {
            if (destination.kind != ir::OperandKind::message) continue;
            const Lane& lane = graph_.lanes[destination.target];
            const std::int64_t k = destination.index;
            // One message of a connection per level keeps few in flight.
            if (k > 0) level = std::max(level, graph_.nodes[lane.sends[k - 1]].key.level + 1);
            // Within a par block the receive that frees the slot may come later: then the slot count grows
            // instead.
            if (lane.connection.mode == ir::Mode::staged && k >= slots_ &&
                lane.receives[k - slots_] < number) {
                after(lane.receives[k - slots_]);
            }
        }
        node.key.level = level;
    }

    const ir::Algorithm& algorithm_;
    const LowerOptions& options_;
    bool forward_, modes_;
    int slots_ = 0;
    Graph graph_;
    Aliases aliases_;
    Hazards hazards_;
    Values values_;
    std::vector<std::int64_t> scratch_;
    std::map<std::tuple<int, int, int, ir::Mode>, int> lanes_;
};

}  // namespace

Graph extract(const ir::Algorithm& algorithm, const LowerOptions& options, bool forward, bool modes) {
    return Extractor(algorithm, options, forward, modes).run();
}

}  // namespace baton::codegen
