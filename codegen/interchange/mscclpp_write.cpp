// Program to MSCCL++'s execution plan.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>
#include <baton/ir/collective_json.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace baton::codegen {
namespace mscclpp {
namespace {

using ir::Operand;
using ir::OperandKind;

/// What a threadblock, or one of its operations, can have on the executor.
constexpr std::size_t kMostOperations = 64, kMostChannels = 16, kMostBuffers = 16, kMostSemaphores = 16,
                      kMostChannelsOfOperation = 8;

using Site = std::pair<int, int>;  ///< rank, threadblock

/// What operations of one threadblock use of what the executor has few of.
struct Uses {
    std::size_t operations = 0;
    std::set<std::int64_t> channels, groups;
    std::set<std::pair<std::int64_t, char>> buffers;

    void add(const Op& op) {
        ++operations;
        channels.insert(op.channels.begin(), op.channels.end());
        for (const auto* runs : {&op.src, &op.dst})
            for (const Chunks& run : *runs) {
                if (run.space == Space::remote) buffers.insert({run.target, run.buffer});
                if (run.space == Space::switches) groups.insert(run.target);
            }
    }
    /// `room`: operations that are still to come.
    bool fit(std::size_t room) const {
        return operations + room <= kMostOperations && channels.size() <= kMostChannels &&
               groups.size() <= kMostChannels && buffers.size() <= kMostBuffers;
    }
};

/// Writes operations of one threadblock, with the barriers that its threads need among themselves.
class BlockWriter {
public:
    explicit BlockWriter(Threadblock& out) : out_(out) {}

    void wait(OpType type, const std::vector<std::int64_t>& ids) {
        if (ids.empty()) return;
        add_sync(type, ids);
        waited_ = true;
    }
    void signal(OpType type, const std::vector<std::int64_t>& ids) {
        if (ids.empty()) return;
        if (waited_ || !reads_.empty() || !writes_.empty()) barrier();
        add_sync(type, ids);
    }
    void data(Op op) {
        if (waited_ || conflicts(op)) barrier();
        for (const Chunks& run : op.src) reads_.push_back(run);
        for (const Chunks& run : op.dst) writes_.push_back(run);
        out_.ops.push_back(std::move(op));
    }

private:
    void barrier() {
        out_.ops.emplace_back();  // nop
        reads_.clear(), writes_.clear();
        waited_ = false;
    }
    void add_sync(OpType type, const std::vector<std::int64_t>& ids) {
        const bool semaphores = type == OpType::sem_acquire || type == OpType::sem_release;
        const std::size_t most = semaphores ? kMostSemaphores : kMostChannelsOfOperation;
        for (std::size_t first = 0; first < ids.size(); first += most) {
            Op op;
            op.type = type;
            op.channel_type = semaphores ? ChannelType::none : ChannelType::memory;
            auto& list = semaphores ? op.semaphores : op.channels;
            for (std::size_t i = first; i < std::min(ids.size(), first + most); ++i) list.push_back(ids[i]);
            out_.ops.push_back(std::move(op));
        }
    }
    /// Threads divide the elements of operations differently, so what one wrote another may read.
    static bool meet(const Chunks& a, const Chunks& b) {
        const bool same_space = a.space == b.space && a.target == b.target;
        if (!same_space) return a.space == Space::switches || b.space == Space::switches;
        // Input and output may share memory.
        if ((a.buffer == 's') != (b.buffer == 's')) return false;
        return a.buffer != b.buffer || (a.index < b.index + b.size && b.index < a.index + a.size);
    }
    bool conflicts(const Op& op) const {
        const auto any = [](const std::vector<Chunks>& x, const std::vector<Chunks>& y) {
            return std::any_of(x.begin(), x.end(), [&](const Chunks& a) {
                return std::any_of(y.begin(), y.end(), [&](const Chunks& b) { return meet(a, b); });
            });
        };
        return any(writes_, op.src) || any(writes_, op.dst) || any(reads_, op.dst);
    }

    Threadblock& out_;
    std::vector<Chunks> reads_, writes_;  ///< since the last barrier
    bool waited_ = false;
};

class PlanMaker {
public:
    explicit PlanMaker(const ir::Program& program) : program_(program) {}

    File make() {
        File file;
        file.name = program_.name;
        file.collective = collective_name(program_.collective.kind);
        file.in_place = program_.in_place.value_or(false);
        file.foreign = program_.foreign;
        find_links();
        std::int64_t inputs = 0, outputs = 0;  // a rank without a buffer passes the same sizes
        for (int r = 0; r < program_.collective.ranks; ++r) {
            inputs = std::max(inputs, program_.collective.places(r, ir::Buffer::input));
            outputs = std::max(outputs, program_.collective.places(r, ir::Buffer::output));
        }
        for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
            Gpu& gpu = file.gpus.emplace_back();
            gpu.input_chunks = inputs, gpu.output_chunks = outputs;
            gpu.scratch_chunks = static_cast<std::int64_t>(program_.ranks[r].scratch_classes.size());
            gpu.memory_peers = peers_[static_cast<int>(r)];
            gpu.semaphores.assign(at(semaphores_[static_cast<int>(r)]), 0);
            for (std::size_t b = 0; b < program_.ranks[r].threadblocks.size(); ++b)
                threadblock({static_cast<int>(r), static_cast<int>(b)}, gpu);
        }
        return file;
    }

    /// What a threadblock uses up to the end of each of its instructions.
    std::vector<Uses> uses(Site here) {
        if (signals_.empty()) find_links();
        Gpu gpu;
        std::vector<Uses> all;
        Uses sum;
        std::size_t done = 0;
        for (const std::size_t count : write(here, gpu)) {
            for (; done < count; ++done) sum.add(gpu.threadblocks.back().ops[done]);
            all.push_back(sum);
        }
        return all;
    }

private:
    static std::string collective_name(ir::CollectiveKind kind) {
        switch (kind) {
            case ir::CollectiveKind::all_reduce: return "allreduce";
            case ir::CollectiveKind::all_gather: return "allgather";
            case ir::CollectiveKind::reduce_scatter: return "reducescatter";
            case ir::CollectiveKind::all_to_all: return "alltoall";
            case ir::CollectiveKind::broadcast: return "broadcast";
            default: return "custom";
        }
    }

    /// One channel for two threadblocks of different ranks that wait for each other, one semaphore for two of
    /// a rank and a direction.
    void find_links() {
        std::set<std::pair<Site, Site>> links;
        for (std::size_t r = 0; r < program_.ranks.size(); ++r)
            for (std::size_t b = 0; b < program_.ranks[r].threadblocks.size(); ++b) {
                const Site here{static_cast<int>(r), static_cast<int>(b)};
                for (const ir::Need& need : program_.ranks[r].threadblocks[b].needs) {
                    const Site other{need.rank, need.threadblock};
                    signals_[{other, need.instruction}].insert(here);
                    if (other.first != here.first)
                        links.insert(std::minmax(here, other));
                    else if (semaphore_of_.try_emplace({other, here}, semaphores_[other.first]).second)
                        ++semaphores_[other.first];
                }
            }
        for (const auto& [a, b] : links) {
            channel_of_[{a, b}] = static_cast<std::int64_t>(peers_[a.first].size());
            peers_[a.first].push_back(b.first);
            channel_of_[{b, a}] = static_cast<std::int64_t>(peers_[b.first].size());
            peers_[b.first].push_back(a.first);
        }
    }

    void threadblock(Site here, Gpu& gpu) {
        write(here, gpu);
        check_limits(here, gpu);
    }

    std::vector<std::size_t> write(Site here, Gpu& gpu) {
        std::vector<std::size_t> counts;
        const ir::Threadblock& block = program_.ranks[at(here.first)].threadblocks[at(here.second)];
        Threadblock& out = gpu.threadblocks.emplace_back();
        BlockWriter writer(out);
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            const ir::Instruction& instruction = block.instructions[i];
            std::vector<std::int64_t> channels, semaphores;
            for (const ir::Need& need : block.needs_of(instruction)) {
                const Site other{need.rank, need.threadblock};
                if (other.first == here.first)
                    semaphores.push_back(semaphore_of_.at({other, here}));
                else
                    channels.push_back(channel_of_.at({here, other}));
            }
            writer.wait(OpType::wait, channels);
            writer.wait(OpType::sem_acquire, semaphores);
            if (instruction.sources > 0) writer.data(operation(here, block, instruction, gpu));
            channels.clear(), semaphores.clear();
            if (const auto signaled = signals_.find({here, static_cast<int>(i)}); signaled != signals_.end())
                for (const Site& other : signaled->second) {
                    if (other.first == here.first)
                        semaphores.push_back(semaphore_of_.at({here, other}));
                    else
                        channels.push_back(channel_of_.at({here, other}));
                }
            writer.signal(OpType::signal, channels);
            writer.signal(OpType::sem_release, semaphores);
            counts.push_back(out.ops.size());
        }
        return counts;
    }

    Chunks chunks(const Operand& operand, Gpu& gpu) const {
        Chunks out;
        out.buffer = operand.buffer == ir::Buffer::input    ? 'i'
                     : operand.buffer == ir::Buffer::output ? 'o'
                                                            : 's';
        out.index = operand.index, out.size = operand.chunks;
        if (operand.kind == OperandKind::remote) out.space = Space::remote, out.target = operand.target;
        if (operand.kind != OperandKind::switch_group) return out;
        out.space = Space::switches;
        const auto& ranks = program_.switch_groups[at(operand.target)];
        const auto known = std::find_if(
            gpu.switch_groups.begin(), gpu.switch_groups.end(),
            [&](const SwitchGroup& group) { return group.buffer == out.buffer && group.ranks == ranks; });
        out.target = known - gpu.switch_groups.begin();
        if (known == gpu.switch_groups.end()) gpu.switch_groups.push_back({out.buffer, ranks});
        return out;
    }

    Op operation(Site here, const ir::Threadblock& block, const ir::Instruction& instruction,
                 Gpu& gpu) const {
        Op op;
        for (const Operand& each : block.sources(instruction)) op.src.push_back(chunks(each, gpu));
        for (const Operand& each : block.destinations(instruction)) op.dst.push_back(chunks(each, gpu));
        const auto some = [](const std::vector<Chunks>& all, Space space) {
            return std::any_of(all.begin(), all.end(), [&](const Chunks& run) { return run.space == space; });
        };
        const bool reads = some(op.src, Space::remote), writes = some(op.dst, Space::remote);
        if (some(op.dst, Space::switches)) {
            op.type = some(op.src, Space::switches) ? OpType::glres : OpType::gstore;
            op.channel_type = ChannelType::switches;
            return op;
        }
        if (reads || writes) op.channel_type = ChannelType::memory;
        if (op.src.size() > 1)
            op.type = reads ? (writes ? OpType::rres : OpType::rre) : (writes ? OpType::res : OpType::re);
        else
            op.type = reads ? OpType::get : writes ? OpType::put : OpType::copy;
        if (op.type == OpType::get && op.src[0].index != op.dst[0].index)
            throw input_error(
                fmt::format(
                    "rank {}, threadblock {} gets from place {} into place {}; MSCCL++'s executor swaps "
                    "the two offsets of a get, so they must be equal",
                    here.first, here.second, op.src[0].index, op.dst[0].index),
                program_.name, "lower the algorithm with --mode staged or put");
        return op;
    }

    void check_limits(Site here, const Gpu& gpu) const {
        const auto refuse = [&](std::size_t count, std::size_t most, const char* what, const char* remedy) {
            if (count <= most) return;
            throw input_error(
                fmt::format("threadblock {} of rank {} has {} {}; MSCCL++'s executor takes {} at "
                            "most",
                            here.second, here.first, count, what, most),
                program_.name, remedy);
        };
        const Threadblock& block = gpu.threadblocks.back();
        refuse(block.ops.size(), kMostOperations, "operations",
               "use fewer chunks, or more channels and threadblocks");
        Uses uses;
        for (const Op& op : block.ops) uses.add(op);
        const char* const fewer = "use a schedule in which an instruction has fewer peers";
        refuse(uses.channels.size(), kMostChannels, "channels", fewer);
        refuse(uses.groups.size(), kMostChannels, "switch channels", fewer);
        refuse(uses.buffers.size(), kMostBuffers, "remote buffers", fewer);
    }

    const ir::Program& program_;
    std::map<std::pair<Site, int>, std::set<Site>> signals_;  ///< after an instruction: to whom
    std::map<std::pair<Site, Site>, std::int64_t> channel_of_, semaphore_of_;
    std::map<int, std::vector<int>> peers_;
    std::map<int, std::int64_t> semaphores_;
};

/// Moves the instructions from `first` on into a threadblock of their own at the end of the rank's.
void cut(ir::Program& program, Site here, std::size_t first) {
    ir::RankProgram& rank = program.ranks[at(here.first)];
    const auto added = static_cast<std::int32_t>(rank.threadblocks.size());
    const ir::Threadblock whole = std::move(rank.threadblocks[at(here.second)]);
    ir::Threadblock parts[2];
    for (std::size_t i = 0; i < whole.instructions.size(); ++i) {
        const ir::Instruction& instruction = whole.instructions[i];
        std::vector<ir::Need> needs(whole.needs_of(instruction).begin(), whole.needs_of(instruction).end());
        if (i == first)
            needs.push_back(
                {here.first, here.second, static_cast<std::int32_t>(first) - 1, ir::Event::completed});
        parts[i >= first].add(whole.sources(instruction), whole.destinations(instruction), needs);
    }
    rank.threadblocks[at(here.second)] = std::move(parts[0]);
    rank.threadblocks.push_back(std::move(parts[1]));
    for (ir::RankProgram& each : program.ranks)
        for (ir::Threadblock& block : each.threadblocks)
            for (ir::Need& need : block.needs)
                if (need.rank == here.first && need.threadblock == here.second &&
                    at(need.instruction) >= first) {
                    need.threadblock = added;
                    need.instruction -= static_cast<std::int32_t>(first);
                }
}

/// An instruction and the threadblocks of other ranks that it waits for, or that wait for it.
struct Meeting {
    Site here;
    std::int32_t instruction = 0;
    std::set<Site> awaited, signaled;
};

std::vector<Meeting> crowded_meetings(const ir::Program& program) {
    std::map<std::pair<Site, std::int32_t>, Meeting> all;
    for (std::size_t r = 0; r < program.ranks.size(); ++r)
        for (std::size_t b = 0; b < program.ranks[r].threadblocks.size(); ++b) {
            const Site here{static_cast<int>(r), static_cast<int>(b)};
            const ir::Threadblock& block = program.ranks[r].threadblocks[b];
            for (std::size_t i = 0; i < block.instructions.size(); ++i)
                for (const ir::Need& need : block.needs_of(block.instructions[i])) {
                    if (at(need.rank) == r) continue;
                    const Site other{need.rank, need.threadblock};
                    all[{here, static_cast<std::int32_t>(i)}].awaited.insert(other);
                    all[{other, need.instruction}].signaled.insert(here);
                }
        }
    std::vector<Meeting> crowded;
    for (auto& [place, meeting] : all) {
        std::set<Site> peers = meeting.awaited;
        peers.insert(meeting.signaled.begin(), meeting.signaled.end());
        if (peers.size() <= kMostChannels) continue;
        std::tie(meeting.here, meeting.instruction) = place;
        crowded.push_back(std::move(meeting));
    }
    return crowded;
}

/// Adds a threadblock whose only instruction waits.
std::int32_t add_relay(ir::Program& program, int rank, const std::vector<ir::Need>& needs) {
    ir::Threadblock& relay = program.ranks[at(rank)].threadblocks.emplace_back();
    relay.add({}, {}, needs);
    return static_cast<std::int32_t>(program.ranks[at(rank)].threadblocks.size()) - 1;
}

/// Leaves an instruction half of its channels to wait on and half to signal on; what is above goes through
/// threadblocks that only pass it on, each with as many channels as it can have.
void thin_out(ir::Program& program, const Meeting& meeting) {
    constexpr std::size_t kHalf = kMostChannels / 2;
    const auto [rank, own] = meeting.here;
    ir::Threadblock& before = program.ranks[at(rank)].threadblocks[at(own)];
    std::vector<ir::Need> kept, moved;
    std::set<Site> waited;
    for (const ir::Need& need : before.needs_of(before.instructions[at(meeting.instruction)])) {
        if (need.rank != rank) waited.insert({need.rank, need.threadblock});
        (need.rank != rank && waited.size() > kHalf ? moved : kept).push_back(need);
    }
    for (std::size_t first = 0; first < moved.size(); first += kMostChannels) {
        const auto begin = moved.begin() + static_cast<std::ptrdiff_t>(first);
        const auto count = std::min(kMostChannels, moved.size() - first);
        const std::vector<ir::Need> some(begin, begin + static_cast<std::ptrdiff_t>(count));
        kept.push_back({rank, add_relay(program, rank, some), 0, ir::Event::completed});
    }
    const ir::Threadblock whole = std::move(program.ranks[at(rank)].threadblocks[at(own)]);
    ir::Threadblock rebuilt;
    for (std::size_t i = 0; i < whole.instructions.size(); ++i) {
        const ir::Instruction& each = whole.instructions[i];
        const auto needs = whole.needs_of(each);
        rebuilt.add(whole.sources(each), whole.destinations(each),
                    i == at(meeting.instruction) ? kept : std::vector<ir::Need>(needs.begin(), needs.end()));
    }
    program.ranks[at(rank)].threadblocks[at(own)] = std::move(rebuilt);
    std::size_t seen = 0;
    std::int32_t relay = -1;
    for (const auto& [other, block] : meeting.signaled) {
        if (seen++ < kHalf) continue;
        if ((seen - kHalf - 1) % kMostChannels == 0)
            relay = add_relay(program, rank, {{rank, own, meeting.instruction, ir::Event::completed}});
        for (ir::Need& need : program.ranks[at(other)].threadblocks[at(block)].needs)
            if (need.rank == rank && need.threadblock == own && need.instruction == meeting.instruction)
                need.threadblock = relay, need.instruction = 0;
    }
}

}  // namespace

void cut_threadblocks(ir::Program& program) {
    constexpr std::size_t kRoom = 2;  // to tell the second part: a barrier and a semaphore
    for (bool changed = true; changed;) {
        const std::vector<Meeting> crowded = crowded_meetings(program);
        for (const Meeting& meeting : crowded) thin_out(program, meeting);
        if (!crowded.empty()) tidy(program);
        std::vector<std::pair<Site, std::size_t>> cuts;
        PlanMaker maker(program);
        for (std::size_t r = 0; r < program.ranks.size(); ++r)
            for (std::size_t b = 0; b < program.ranks[r].threadblocks.size(); ++b) {
                const Site here{static_cast<int>(r), static_cast<int>(b)};
                const std::vector<Uses> uses = maker.uses(here);
                if (uses.empty() || uses.back().fit(0)) continue;
                std::size_t first = 1;
                while (first < uses.size() && uses[first].fit(kRoom)) ++first;
                if (first < uses.size()) cuts.emplace_back(here, first);
            }
        for (const auto& [here, first] : cuts) cut(program, here, first);
        changed = !cuts.empty();
        if (changed) tidy(program);
    }
}

File from_program(const ir::Program& program) { return PlanMaker(program).make(); }

}  // namespace mscclpp

std::string write_mscclpp_json(const ir::Program& program, const MscclppOptions& options) {
    ir::Program formed = mscclpp_form(program);
    if (options.min_bytes > 0) formed.foreign["@min_message_size"] = std::to_string(options.min_bytes);
    if (options.max_bytes > 0) formed.foreign["@max_message_size"] = std::to_string(options.max_bytes);
    return mscclpp::print(mscclpp::from_program(formed), formed);
}

}  // namespace baton::codegen
