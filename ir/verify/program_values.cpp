#include <baton/ir/verify/program_values.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/verify/output_check.hpp>
#include <baton/ir/verify/run_map.hpp>
#include <baton/ir/verify/value_trees.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <deque>

namespace baton::ir::checks {
namespace {

// A run of consecutive classes, counted modulo the number of classes.
struct ClassRun {
    std::int64_t first = 0, length = 0;
    bool operator==(const ClassRun&) const = default;
};
using ClassRuns = std::vector<ClassRun>;

struct Message {
    Pieces pieces;
    ClassRuns classes;
};

void append_class(ClassRuns& runs, std::int64_t first, std::int64_t length, std::int64_t classes) {
    if (!runs.empty() && (runs.back().first + runs.back().length) % classes == first) {
        runs.back().length += length;
    } else {
        runs.push_back({first, length});
    }
}

}  // namespace

struct ValueExecution::State {
    State(const ProgramGraph& graph_in, const MemoryMap& memory_in)
        : graph(graph_in),
          program(*graph_in.program),
          memory(memory_in),
          queues(graph_in.ends.size()),
          sent(graph_in.ends.size()),
          received(graph_in.ends.size()),
          reducing(reduces(program.collective.kind)) {
        for (const Placement placement : kPlacements) {
            auto& cells = buffers[static_cast<std::size_t>(placement)];
            for (std::size_t r = 0; r < program.ranks.size(); ++r) {
                for (int b = 0; b < 3; ++b) cells.emplace_back(graph.places[r][b], Cell{});
                const auto n = graph.places[r][0];
                if (n == 0) continue;
                const Memory input = memory.at(static_cast<int>(r), Buffer::input, 0, n, placement);
                at(input, placement).assign(input.begin, input.end, {trees.leaf(static_cast<int>(r), 0), {}});
            }
        }
    }

    RunMap<Cell>& at(const Memory& run, Placement placement) {
        return buffers[static_cast<std::size_t>(placement)]
                      [static_cast<std::size_t>(run.rank) * 3 + static_cast<std::size_t>(run.buffer)];
    }

    ClassRuns classes_of(int rank, const Operand& operand) const {
        const std::int64_t classes = program.collective.chunks;
        if (operand.buffer != Buffer::scratch && program.collective.kind != CollectiveKind::custom) {
            return {{operand.index % classes, operand.chunks}};
        }
        ClassRuns runs;
        for (std::int64_t i = operand.index; i < operand.index + std::int64_t{operand.chunks}; ++i) {
            append_class(runs,
                         operand.buffer == Buffer::scratch
                             ? program.ranks[rank].scratch_classes[i]
                             : program.collective.class_of(rank, operand.buffer, i),
                         1, classes);
        }
        return runs;
    }

    Pieces load(int rank, const Operand& operand, Placement placement, Site site) {
        const Memory run = memory.at(rank, operand.buffer, operand.index, operand.chunks, placement);
        Pieces pieces;
        at(run, placement)
            .visit(run.begin, run.end, [&](std::int64_t begin, std::int64_t end, const Cell& cell) {
                if (cell.value.node < 0) {
                    const std::int64_t index = operand.index + (begin - run.begin);
                    throw check_error(fmt::format("reads {} of rank {}, which holds nothing ({})",
                                                  place_name(operand.buffer, index, end - begin), rank,
                                                  memory.words(placement)),
                                      graph.name(site));
                }
                append_piece(pieces, end - begin, cell.value);
            });
        return pieces;
    }

    void demand_equal(const Pieces& out_of_place, const Pieces& in_place, Site site,
                      const std::string& what) const {
        if (out_of_place == in_place) return;
        throw check_error(fmt::format("{} carries other values in place than out of place", what),
                          graph.name(site),
                          "a value was overwritten through the memory that input and output share");
    }

    // The pieces of one source for both placements.
    std::array<Pieces, 2> source_pieces(const Operand& operand, Site site, ClassRuns& classes) {
        const int own = graph.blocks[site.block].rank;
        const auto load_both = [&](int rank, const Operand& place) {
            classes = classes_of(rank, place);
            return std::array{load(rank, place, Placement::out_of_place, site),
                              load(rank, place, Placement::in_place, site)};
        };
        if (operand.kind == OperandKind::local) return load_both(own, operand);
        if (operand.kind == OperandKind::remote) {
            auto both = load_both(operand.target, operand);
            demand_equal(both[0], both[1], site, "a remote source");
            return both;
        }
        if (operand.kind == OperandKind::switch_group) return switch_pieces(operand, site, classes);
        const Connection& connection = program.connections[operand.target];
        const std::int64_t k = received[operand.target]++;
        if (connection.mode == Mode::get) {
            auto both = load_both(connection.src, graph.get_source(operand.target, k));
            demand_equal(both[0], both[1], site,
                         fmt::format("message {} of {}", k, graph.connection_name(operand.target)));
            return both;
        }
        Message message = std::move(queues[operand.target].front());
        queues[operand.target].pop_front();
        classes = std::move(message.classes);
        return {message.pieces, message.pieces};
    }

    std::array<Pieces, 2> switch_pieces(const Operand& operand, Site site, ClassRuns& classes) {
        any_order = true;
        std::array<Pieces, 2> sum;
        bool first = true;
        for (const int member : program.switch_groups[operand.target]) {
            const ClassRuns member_classes = classes_of(member, operand);
            if (first) classes = member_classes;
            demand_classes(classes, member_classes, site);
            for (const Placement placement : kPlacements) {
                const auto p = static_cast<std::size_t>(placement);
                Pieces pieces = load(member, operand, placement, site);
                sum[p] = first ? std::move(pieces) : combine(sum[p], pieces, site);
            }
            first = false;
        }
        demand_equal(sum[0], sum[1], site, "a switch source");
        return sum;
    }

    Pieces combine(const Pieces& a, const Pieces& b, Site site) {
        Pieces out;
        std::size_t i = 0, j = 0;
        std::int64_t i_used = 0, j_used = 0;
        while (i < a.size() && j < b.size()) {
            const std::int64_t length = std::min(a[i].length - i_used, b[j].length - j_used);
            const Value x = a[i].value.advanced(i_used), y = b[j].value.advanced(j_used);
            if (trees.has_finalized(x) || trees.has_finalized(y)) {
                throw check_error("reduces a value that was already finalized", graph.name(site),
                                  "finalize belongs to the one instruction that completes a value");
            }
            append_piece(out, length, trees.combine(x, y));
            if ((i_used += length) == a[i].length) ++i, i_used = 0;
            if ((j_used += length) == b[j].length) ++j, j_used = 0;
        }
        return out;
    }

    void demand_classes(const ClassRuns& a, const ClassRuns& b, Site site) const {
        if (a == b) return;
        std::int64_t at_chunk = 0;
        std::size_t i = 0;
        while (i < a.size() && i < b.size() && a[i] == b[i]) at_chunk += a[i++].length;
        const std::int64_t x = i < a.size() ? a[i].first : -1, y = i < b.size() ? b[i].first : -1;
        throw check_error(
            fmt::format("joins chunks of different classes at or after chunk {} of the run ({} and {})",
                        at_chunk, x, y),
            graph.name(site), "only chunks of one class have the same elements");
    }

    void execute(Site site) {
        const Threadblock& code = graph.code(site);
        const Instruction& instruction = graph.at(site);
        const auto sources = code.sources(instruction);
        const auto destinations = code.destinations(instruction);
        if (sources.empty()) return;
        if (sources[0].kind == OperandKind::message &&
            program.connections[sources[0].target].mode == Mode::put) {
            ++received[sources[0].target];  // the sender has written the destination
            return;
        }
        ClassRuns classes, other;
        std::array<Pieces, 2> result = source_pieces(sources[0], site, classes);
        for (std::size_t s = 1; s < sources.size(); ++s) {
            const std::array<Pieces, 2> more = source_pieces(sources[s], site, other);
            demand_classes(classes, other, site);
            for (int p = 0; p < 2; ++p) result[p] = combine(result[p], more[p], site);
        }
        if (instruction.finalize && reducing) {
            for (Pieces& pieces : result) finalize(pieces, site);
        }
        const std::array<Pieces, 2> rounded{round(result[0]), round(result[1])};
        for (const Operand& destination : destinations) store(destination, site, classes, result, rounded);
    }

    void finalize(Pieces& pieces, Site site) {
        for (Piece& piece : pieces) {
            if (trees.has_finalized(piece.value)) {
                throw check_error("finalizes a value twice", graph.name(site),
                                  "finalize belongs to the one instruction that completes a value");
            }
            piece.value = trees.finalized(piece.value);
        }
    }

    Pieces round(const Pieces& pieces) {
        Pieces out;
        for (const Piece& piece : pieces) append_piece(out, piece.length, trees.rounded(piece.value));
        return out;
    }

    void store(const Operand& destination, Site site, const ClassRuns& classes,
               const std::array<Pieces, 2>& exact, const std::array<Pieces, 2>& rounded) {
        const int own = graph.blocks[site.block].rank;
        switch (destination.kind) {
            case OperandKind::local: write(own, destination, site, classes, exact, rounded); return;
            case OperandKind::remote:
                demand_equal(rounded[0], rounded[1], site, "a remote destination");
                write(destination.target, destination, site, classes, exact, rounded);
                return;
            case OperandKind::switch_group:
                demand_equal(rounded[0], rounded[1], site, "a switch destination");
                for (const int member : program.switch_groups[destination.target]) {
                    write(member, destination, site, classes, exact, rounded);
                }
                return;
            case OperandKind::message: break;
        }
        const Connection& connection = program.connections[destination.target];
        const std::int64_t k = sent[destination.target]++;
        if (connection.mode == Mode::get) return;  // compared where it is read
        const auto& values = program.wide ? exact : rounded;
        demand_equal(values[0], values[1], site,
                     fmt::format("message {} of {}", k, graph.connection_name(destination.target)));
        if (connection.mode == Mode::put) {
            write(connection.dst, graph.put_target(destination.target, k), site, classes, exact, rounded);
        } else {
            queues[destination.target].push_back({values[0], classes});
        }
    }

    void write(int rank, const Operand& operand, Site site, const ClassRuns& classes,
               const std::array<Pieces, 2>& exact, const std::array<Pieces, 2>& rounded) {
        demand_classes(classes, classes_of(rank, operand), site);
        const bool keeps_exact = program.wide && operand.buffer == Buffer::scratch;
        for (const Placement placement : kPlacements) {
            const auto p = static_cast<std::size_t>(placement);
            const Memory run = memory.at(rank, operand.buffer, operand.index, operand.chunks, placement);
            std::int64_t begin = run.begin;
            for (const Piece& piece : keeps_exact ? exact[p] : rounded[p]) {
                at(run, placement).assign(begin, begin + piece.length, {piece.value, site});
                begin += piece.length;
            }
        }
    }

    Order finish() {
        std::array<std::vector<OutputPieces>, 2> outputs;
        for (const Placement placement : kPlacements) {
            for (std::size_t r = 0; r < program.ranks.size(); ++r) {
                OutputPieces out;
                const auto n = graph.places[r][1];
                const Memory run = memory.at(static_cast<int>(r), Buffer::output, 0, n, placement);
                at(run, placement)
                    .visit(run.begin, run.end, [&](std::int64_t begin, std::int64_t end, const Cell& cell) {
                        out.add(end - begin, cell);
                    });
                outputs[static_cast<std::size_t>(placement)].push_back(std::move(out));
            }
        }
        const Order order = check_outputs(graph, memory, trees, outputs);
        return any_order ? Order::any : order;
    }

    const ProgramGraph& graph;
    const Program& program;
    const MemoryMap& memory;
    ValueTrees trees;
    std::array<std::vector<RunMap<Cell>>, 2> buffers;  // [placement][rank * 3 + buffer]
    std::vector<std::deque<Message>> queues;           // staged messages under way, per connection
    std::vector<std::int64_t> sent, received;
    bool reducing = false, any_order = false;
};

ValueExecution::ValueExecution(const ProgramGraph& graph, const MemoryMap& memory)
    : state_(std::make_unique<State>(graph, memory)) {}
ValueExecution::~ValueExecution() = default;
void ValueExecution::execute(Site site) { state_->execute(site); }
Order ValueExecution::finish() { return state_->finish(); }

}  // namespace baton::ir::checks
