#include <baton/base/error.hpp>
#include <baton/ir/numerics.hpp>
#include <baton/ir/verify/program_graph.hpp>
#include <baton/runtime/interpreter.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <random>
#include <vector>

namespace baton::runtime {
namespace {

using ir::Buffer;
using ir::DataType;
using ir::Mode;
using ir::Operand;
using ir::OperandKind;
using ir::checks::ProgramGraph;
using ir::checks::Site;

constexpr std::int64_t kMostTiles = std::int64_t{1} << 20;
constexpr std::int64_t kPoisonedBytes = std::int64_t{64} << 20;
constexpr int kPoison = 0xa5;
constexpr int kPrinted = 16;  // instructions of a cycle

/// A staged message: its chunks one after the other.
struct Message {
    std::vector<char> bytes;
    std::vector<std::int64_t> sizes;  // elements of each chunk
};

/// What a threadblock waits for.
struct Wait {
    enum class Reason : std::uint8_t { token, acknowledgement, message, slot } reason = Reason::token;
    std::int32_t block = -1;  // that must go on
    std::int32_t instruction = 0;
    int connection = -1;
};

/// A run of places of one rank that an instruction reads or writes.
struct Run {
    int rank = 0;
    Buffer buffer = Buffer::output;
    std::int64_t index = 0;
};

/// A source or destination made ready: places, or the staged message of a connection.
struct Target {
    bool staged = false;
    int connection = -1;
    Run run;
};

/// One execution of all threadblocks over all tiles.
class Execution {
public:
    Execution(const ProgramGraph& graph, const CallArguments& arguments, std::span<const RankBuffers> buffers,
              const InterpretOptions& options)
        : graph_(graph),
          program_(*graph.program),
          collective_(program_.collective),
          arguments_(arguments),
          buffers_(buffers),
          options_(options),
          partition_(collective_, arguments.count, ir::elements_per_16_bytes(arguments.type)),
          reducing_(ir::reduces(collective_.kind)),
          wire_(reducing_ ? ir::wire_type(arguments.op, arguments.type, program_.wide) : arguments.type),
          width_(ir::size_of(arguments.type)),
          wire_width_(ir::size_of(wire_)),
          blocks_(graph.blocks.size()),
          connections_(graph.ends.size()),
          random_(options.seed) {
        allocate_scratch();
        for (std::size_t c = 0; c < connections_.size(); ++c) {
            const ir::Connection& connection = program_.connections[c];
            if (connection.mode != Mode::staged) continue;
            const auto sends = static_cast<std::int64_t>(graph_.ends[c].sends.size());
            connections_[c].slots = options.slots > 0 ? options.slots : connection.slots;
            // More slots than messages are never used.
            const std::int64_t used = std::min<std::int64_t>(
                connections_[c].slots, std::max<std::int64_t>(1, sends * options.tiles));
            connections_[c].queue.resize(static_cast<std::size_t>(used));
        }
    }

    InterpretReport run() {
        for (std::size_t b = blocks_.size(); b-- > 0;) {
            const auto size = graph_.blocks[b].size();
            blocks_[b].total = size * options_.tiles;
            if (size > 0) ready_.push_back(static_cast<std::int32_t>(b));
        }
        while (!ready_.empty()) {
            const std::size_t pick = options_.seed == 0 ? ready_.size() - 1 : random_() % ready_.size();
            const std::int32_t block = ready_[pick];
            if (options_.seed == 0) {
                ready_.pop_back();
                while (advance(block)) {
                }
            } else if (!advance(block)) {
                // `advance` may have woken others, which stand behind.
                ready_[pick] = ready_.back();
                ready_.pop_back();
            }
        }
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            if (blocks_[b].done < blocks_[b].total) {
                throw ir_deadlock(static_cast<std::int32_t>(b));
            }
        }
        return report_;
    }

private:
    struct BlockState {
        std::int64_t done = 0, total = 0;       // instructions, over all tiles
        std::vector<std::int32_t> waiters;      // threadblocks to wake when this one completes something
        std::vector<std::int32_t> chunks_left;  // random interleaving: of the instruction under way
        bool under_way = false;
    };
    struct ConnectionState {
        std::int64_t sent = 0, received = 0;  // messages
        int slots = 0;
        std::vector<Message> queue;  // staged: message k lies in k mod size
    };

    // ---- memory

    void allocate_scratch() {
        const std::int64_t stride = partition_.largest_class();
        std::int64_t total = 0;
        for (const auto& rank : program_.ranks) {
            std::int64_t bytes = 0;
            if (__builtin_mul_overflow(static_cast<std::int64_t>(rank.scratch_classes.size()), stride,
                                       &bytes) ||
                __builtin_mul_overflow(bytes, wire_width_, &bytes) ||
                __builtin_add_overflow(total, bytes, &total))
                total = INT64_MAX;
            if (total > options_.memory_limit)
                throw input_error(
                    fmt::format("the call needs more than {} bytes of scratch", options_.memory_limit),
                    program_.name);
        }
        report_.scratch_bytes = total;
        scratch_stride_ = stride * wire_width_;
        // Not initialized, so that huge scratch costs only the pages that are touched.
        scratch_.reset(new (std::nothrow) char[static_cast<std::size_t>(total) + 64]);
        if (!scratch_)
            throw input_error(fmt::format("no memory for {} bytes of scratch", total), program_.name);
        if (total <= kPoisonedBytes)
            std::memset(scratch_.get(), kPoison, static_cast<std::size_t>(total) + 64);
        std::int64_t at =
            (64 - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(scratch_.get()) % 64)) % 64;
        for (const auto& rank : program_.ranks) {
            scratch_begin_.push_back(scratch_.get() + at);
            at += static_cast<std::int64_t>(rank.scratch_classes.size()) * scratch_stride_;
        }
    }

    std::int64_t class_of(const Run& run, std::int64_t chunk) const {
        const std::int64_t index = run.index + chunk;
        if (run.buffer == Buffer::scratch)
            return program_.ranks[static_cast<std::size_t>(run.rank)]
                .scratch_classes[static_cast<std::size_t>(index)];
        return collective_.class_of(run.rank, run.buffer, index);
    }
    DataType type_of(Buffer buffer) const { return buffer == Buffer::scratch ? wire_ : arguments_.type; }

    struct Piece {
        char* data = nullptr;
        DataType type = DataType::u8;
        std::int64_t size = 0;
    };
    /// Tile `tile` of the chunk-th place of a run.
    Piece piece(const Run& run, std::int64_t chunk, std::int64_t tile) const {
        const std::int64_t cls = class_of(run, chunk);
        const ir::ElementRange range = partition_.tile_range(cls, tile, options_.tiles);
        const std::int64_t index = run.index + chunk;
        const auto rank = static_cast<std::size_t>(run.rank);
        if (run.buffer == Buffer::scratch) {
            const std::int64_t within = range.begin - partition_.class_range(cls).begin;
            return {scratch_begin_[rank] + index * scratch_stride_ + within * wire_width_, wire_,
                    range.size()};
        }
        auto* base = run.buffer == Buffer::output
                         ? static_cast<char*>(buffers_[rank].output)
                         : static_cast<char*>(const_cast<void*>(buffers_[rank].input));
        const std::int64_t shard = collective_.shard_of(run.rank, run.buffer, index);
        const std::int64_t element = shard * arguments_.count + range.begin;
        return {base == nullptr ? nullptr : base + element * width_, arguments_.type, range.size()};
    }

    // ---- waiting

    Site current(std::int32_t block) const {
        return {block, static_cast<std::int32_t>(blocks_[block].done % graph_.blocks[block].size())};
    }
    bool completed(std::int32_t block, std::int32_t instruction, std::int64_t tile) const {
        return blocks_[block].done > tile * graph_.blocks[block].size() + instruction;
    }

    /// The first unmet wait of the instruction that the threadblock is at.
    bool blocked(std::int32_t block, Wait& wait) const {
        const Site site = current(block);
        const std::int64_t tile = blocks_[block].done / graph_.blocks[block].size();
        const ir::Threadblock& code = graph_.code(site);
        const ir::Instruction& instruction = graph_.at(site);
        for (const ir::Need& need : code.needs_of(instruction)) {
            const std::int32_t other = graph_.block_of(need.rank, need.threadblock);
            wait = {Wait::Reason::token, other, need.instruction, -1};
            if (other != block || need.instruction >= site.instruction) {
                if (!completed(other, need.instruction, tile)) return true;
            }
            if (need.event == ir::Event::source_free && unread({other, need.instruction}, tile, wait))
                return true;
        }
        for (const Operand& source : code.sources(instruction)) {
            if (source.kind != OperandKind::message) continue;
            const auto c = static_cast<std::size_t>(source.target);
            if (connections_[c].sent > connections_[c].received) continue;
            wait = {Wait::Reason::message, graph_.ends[c].sender, send_number(c, connections_[c].received),
                    source.target};
            return true;
        }
        for (const Operand& destination : code.destinations(instruction)) {
            if (destination.kind != OperandKind::message) continue;
            const auto c = static_cast<std::size_t>(destination.target);
            const ConnectionState& state = connections_[c];
            if (program_.connections[c].mode != Mode::staged || state.sent - state.received < state.slots)
                continue;
            const auto& receives = graph_.ends[c].receives;
            wait = {Wait::Reason::slot, graph_.ends[c].receiver,
                    receives[static_cast<std::size_t>(state.received) % receives.size()], destination.target};
            return true;
        }
        return false;
    }

    std::int32_t send_number(std::size_t connection, std::int64_t message) const {
        const auto& sends = graph_.ends[connection].sends;
        return sends[static_cast<std::size_t>(message) % sends.size()];
    }

    /// Whether a reader has not yet acknowledged what `site` published on get connections.
    bool unread(Site site, std::int64_t tile, Wait& wait) const {
        for (const Operand& sent : graph_.code(site).destinations(graph_.at(site))) {
            if (sent.kind != OperandKind::message ||
                program_.connections[static_cast<std::size_t>(sent.target)].mode != Mode::get)
                continue;
            const auto c = static_cast<std::size_t>(sent.target);
            const auto& ends = graph_.ends[c];
            const auto k =
                std::lower_bound(ends.sends.begin(), ends.sends.end(), site.instruction) - ends.sends.begin();
            if (connections_[c].received > tile * static_cast<std::int64_t>(ends.sends.size()) + k) continue;
            wait = {Wait::Reason::acknowledgement, ends.receiver, ends.receives[static_cast<std::size_t>(k)],
                    sent.target};
            return true;
        }
        return false;
    }

    void wake(std::int32_t block) {
        for (const std::int32_t waiter : blocks_[block].waiters) ready_.push_back(waiter);
        blocks_[block].waiters.clear();
    }

    // ---- executing

    /// Does an instruction, or with a random interleaving one chunk of it; false when the threadblock waits
    /// or ends.
    bool advance(std::int32_t number) {
        BlockState& block = blocks_[number];
        if (block.done >= block.total) return false;
        const Site site = current(number);
        const std::int64_t tile = block.done / graph_.blocks[number].size();
        if (!block.under_way) {
            if (Wait wait; blocked(number, wait)) {
                blocks_[wait.block].waiters.push_back(number);
                return false;
            }
            prepare(site, sources_, destinations_);
            const std::int32_t chunks =
                sources_.empty() ? 0 : graph_.code(site).sources(graph_.at(site))[0].chunks;
            for (const Target& target : destinations_) {
                if (target.staged)
                    slot(target.connection, connections_[static_cast<std::size_t>(target.connection)].sent)
                        .sizes.clear();
            }
            if (options_.seed == 0 || chunks <= 1 ||
                std::any_of(destinations_.begin(), destinations_.end(),
                            [](const Target& t) { return t.staged; })) {
                for (std::int32_t chunk = 0; chunk < chunks; ++chunk) move(site, chunk, tile);
                complete(site);
                return true;
            }
            for (std::int32_t chunk = 0; chunk < chunks; ++chunk) block.chunks_left.push_back(chunk);
            std::shuffle(block.chunks_left.begin(), block.chunks_left.end(), random_);
            block.under_way = true;
            return true;
        }
        prepare(site, sources_, destinations_);
        move(site, block.chunks_left.back(), tile);
        block.chunks_left.pop_back();
        if (block.chunks_left.empty()) {
            block.under_way = false;
            complete(site);
        }
        return true;
    }

    Message& slot(int connection, std::int64_t message) {
        auto& queue = connections_[static_cast<std::size_t>(connection)].queue;
        return queue[static_cast<std::size_t>(message) % queue.size()];
    }

    /// What the instruction reads and writes; both empty when it only signals.
    void prepare(Site site, std::vector<Target>& sources, std::vector<Target>& destinations) const {
        sources.clear();
        destinations.clear();
        const ir::Threadblock& code = graph_.code(site);
        const ir::Instruction& instruction = graph_.at(site);
        const int rank = graph_.blocks[site.block].rank;
        const auto places = [&](const Operand& operand, std::vector<Target>& list) {
            if (operand.kind == OperandKind::switch_group) {
                for (const int member : program_.switch_groups[static_cast<std::size_t>(operand.target)])
                    list.push_back({false, -1, {member, operand.buffer, operand.index}});
            } else {
                list.push_back({false,
                                -1,
                                {operand.kind == OperandKind::remote ? operand.target : rank, operand.buffer,
                                 operand.index}});
            }
        };
        for (const Operand& operand : code.destinations(instruction)) {
            if (operand.kind != OperandKind::message) {
                places(operand, destinations);
                continue;
            }
            const ir::Connection& connection = program_.connections[static_cast<std::size_t>(operand.target)];
            if (connection.mode == Mode::staged) {
                destinations.push_back({true, operand.target, {}});
            } else if (connection.mode == Mode::put) {
                const Operand& target =
                    graph_.put_target(operand.target, number_in_tile(operand.target, true));
                destinations.push_back({false, -1, {connection.dst, target.buffer, target.index}});
            }
        }
        for (const Operand& operand : code.sources(instruction)) {
            if (operand.kind != OperandKind::message) {
                places(operand, sources);
                continue;
            }
            const ir::Connection& connection = program_.connections[static_cast<std::size_t>(operand.target)];
            if (connection.mode == Mode::put) destinations.clear();  // the sender has written them
            if (connection.mode == Mode::staged) {
                sources.push_back({true, operand.target, {}});
            } else if (connection.mode == Mode::get) {
                const Operand& source =
                    graph_.get_source(operand.target, number_in_tile(operand.target, false));
                sources.push_back({false, -1, {connection.src, source.buffer, source.index}});
            }
        }
        if (destinations.empty()) sources.clear();
    }

    std::int64_t number_in_tile(int connection, bool send) const {
        const auto c = static_cast<std::size_t>(connection);
        const auto messages = static_cast<std::int64_t>(graph_.ends[c].sends.size());
        return (send ? connections_[c].sent : connections_[c].received) % messages;
    }

    /// Where chunk `chunk` of the next message to be received lies.
    Piece received_piece(int connection, std::int32_t chunk) {
        Message& message = slot(connection, connections_[static_cast<std::size_t>(connection)].received);
        std::int64_t begin = 0;
        for (std::int32_t i = 0; i < chunk; ++i) begin += message.sizes[static_cast<std::size_t>(i)];
        return {message.bytes.data() + begin * wire_width_, wire_,
                message.sizes[static_cast<std::size_t>(chunk)]};
    }
    /// Room for the next chunk of the message to be sent.
    Piece sent_piece(int connection, std::int64_t size) {
        Message& message = slot(connection, connections_[static_cast<std::size_t>(connection)].sent);
        std::int64_t begin = 0;
        for (const auto each : message.sizes) begin += each;
        message.sizes.push_back(size);
        message.bytes.resize(static_cast<std::size_t>((begin + size) * wire_width_));
        return {message.bytes.data() + begin * wire_width_, wire_, size};
    }

    void move(Site site, std::int32_t chunk, std::int64_t tile) {
        reads_.clear();
        writes_.clear();
        std::int64_t size = -1;
        const auto same_size = [&](std::int64_t other) {
            if (size >= 0 && other != size)
                throw check_error(fmt::format("joins chunks of {} and {} elements", size, other),
                                  graph_.name(site), "only chunks of one class have the same elements");
            size = other;
        };
        for (const Target& source : sources_) {
            const Piece from =
                source.staged ? received_piece(source.connection, chunk) : piece(source.run, chunk, tile);
            same_size(from.size);
            reads_.push_back({from.data, from.type});
            report_.bytes_moved += from.size * ir::size_of(from.type);
        }
        for (const Target& destination : destinations_) {
            const Piece to = destination.staged ? sent_piece(destination.connection, size)
                                                : piece(destination.run, chunk, tile);
            same_size(to.size);
            writes_.push_back({to.data, to.type});
        }
        ir::ReduceRule rule{arguments_.op, arguments_.type, arguments_.nan,
                            graph_.at(site).finalize && reducing_, 1};
        if (rule.finalize) rule.contributions = divisor(site, chunk);
        ir::reduce_operands(rule, reads_, writes_, size);
    }

    /// Contributions of the value that the instruction completes.
    std::int64_t divisor(Site site, std::int32_t chunk) const {
        const int rank = graph_.blocks[site.block].rank;
        if (collective_.kind != ir::CollectiveKind::custom) return contributions_of(collective_, rank, 0);
        for (const Target& target : destinations_) {
            if (!target.staged && target.run.buffer == Buffer::output)
                return contributions_of(collective_, target.run.rank, target.run.index + chunk);
        }
        if (arguments_.op != ir::ReduceOp::avg) return 1;
        throw check_error(
            "completes a value that it does not store in output, so avg does not know its divisor",
            graph_.name(site));
    }

    void complete(Site site) {
        const ir::Threadblock& code = graph_.code(site);
        const ir::Instruction& instruction = graph_.at(site);
        for (const Operand& source : code.sources(instruction)) {
            if (source.kind == OperandKind::message)
                ++connections_[static_cast<std::size_t>(source.target)].received;
        }
        for (const Operand& destination : code.destinations(instruction)) {
            if (destination.kind != OperandKind::message) continue;
            ++connections_[static_cast<std::size_t>(destination.target)].sent;
            ++report_.messages;
        }
        ++report_.instructions;
        ++blocks_[site.block].done;
        wake(site.block);
    }

    // ---- deadlock

    Error ir_deadlock(std::int32_t start) const {
        std::vector<char> seen(blocks_.size());
        std::int32_t block = start;
        Wait wait;
        while (!seen[static_cast<std::size_t>(block)]) {
            seen[static_cast<std::size_t>(block)] = 1;
            blocked(block, wait);
            block = wait.block;
        }
        std::string text;
        const std::int32_t first = block;
        int printed = 0;
        do {
            blocked(block, wait);
            if (++printed <= kPrinted)
                text += fmt::format("{}{} waits for {}", text.empty() ? "" : "; ",
                                    graph_.name(current(block)), words(wait));
            block = wait.block;
        } while (block != first);
        if (printed > kPrinted) text += fmt::format("; and {} more in the cycle", printed - kPrinted);
        const std::int64_t tile = blocks_[first].done / graph_.blocks[first].size();
        return check_error(fmt::format("deadlock in tile {}: {}", tile, text), program_.name);
    }

    std::string words(const Wait& wait) const {
        const std::string who = graph_.name({wait.block, wait.instruction});
        switch (wait.reason) {
            case Wait::Reason::token: return "the token of " + who;
            case Wait::Reason::acknowledgement:
                return fmt::format("the reader of {}, {}", graph_.connection_name(wait.connection), who);
            case Wait::Reason::message:
                return fmt::format("the message on {} from {}", graph_.connection_name(wait.connection), who);
            case Wait::Reason::slot:
                return fmt::format("a free slot of {}, freed by {}", graph_.connection_name(wait.connection),
                                   who);
        }
        return who;
    }

    const ProgramGraph& graph_;
    const ir::Program& program_;
    const ir::Collective& collective_;
    const CallArguments& arguments_;
    std::span<const RankBuffers> buffers_;
    const InterpretOptions& options_;
    ir::Partition partition_;
    bool reducing_;
    DataType wire_;
    std::int64_t width_, wire_width_, scratch_stride_ = 0;
    std::unique_ptr<char[]> scratch_;
    std::vector<char*> scratch_begin_;
    std::vector<BlockState> blocks_;
    std::vector<ConnectionState> connections_;
    std::vector<std::int32_t> ready_;
    std::mt19937_64 random_;
    std::vector<Target> sources_, destinations_;
    std::vector<ir::ConstOperand> reads_;
    std::vector<ir::MutableOperand> writes_;
    InterpretReport report_;
};

}  // namespace

struct Interpreter::State {
    explicit State(ir::Program given) : program(std::move(given)), graph(ir::checks::build_graph(program)) {}
    ir::Program program;
    ProgramGraph graph;
};

Interpreter::Interpreter(ir::Program program) : state_(std::make_unique<State>(std::move(program))) {}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;

const ir::Program& Interpreter::program() const { return state_->program; }

InterpretReport Interpreter::run(const CallArguments& arguments, std::span<const RankBuffers> buffers,
                                 const InterpretOptions& options) {
    const ir::Program& program = state_->program;
    if (options.tiles < 1 || options.tiles > kMostTiles)
        throw input_error(fmt::format("tiles must be 1 to {}; got {}", kMostTiles, options.tiles));
    if (options.slots < 0)
        throw input_error(fmt::format("slots must not be negative; got {}", options.slots));
    if (program.clobbers_input && !options.may_clobber_input)
        throw input_error("the program overwrites its input, which this call does not allow", program.name);
    check_buffers(program.collective, arguments, buffers, program.in_place);
    if (ir::reduces(program.collective.kind)) {
        ir::check_valid(arguments.op, arguments.type);
        if (ir::always_wide(arguments.op, arguments.type) && !program.wide)
            throw input_error(
                fmt::format("{} of {} needs partial results in f32, but the program is not wide",
                            to_string(arguments.op), to_string(arguments.type)),
                program.name, "lower it with --wide");
    }
    return Execution(state_->graph, arguments, buffers, options).run();
}

}  // namespace baton::runtime
