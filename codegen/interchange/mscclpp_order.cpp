#include <baton/base/index.hpp>
#include <baton/codegen/interchange/mscclpp_order.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>

namespace baton::codegen::mscclpp {
namespace {

enum CounterKind : int { memory_channel = 0, port_channel = 1, semaphore = 2, barrier_of_rank = 3 };

}  // namespace

PlanOrder::PlanOrder(const File& file, const std::string& name, Remarks& remarks)
    : file_(file), name_(name), remarks_(remarks) {
    // The k-th channel to a peer pairs with the peer's k-th channel of that type back.
    for (const ChannelType type : {ChannelType::memory, ChannelType::port})
        for (const Gpu& gpu : file.gpus) {
            std::map<int, std::int64_t> next;
            auto& numbers = numbers_[type == ChannelType::port ? 1 : 0].emplace_back();
            for (const int peer : gpu.peers(type)) numbers.push_back(next[peer]++);
        }
    needs_.resize(file.gpus.size());
    for (std::size_t r = 0; r < file.gpus.size(); ++r) needs_[r].resize(file.gpus[r].threadblocks.size());
}

void PlanOrder::enter(int rank, int threadblock, ir::Threadblock& code) {
    rank_ = rank, threadblock_ = threadblock, code_ = &code;
    pending_ = false;
}

void PlanOrder::leave() {
    if (pending_) code_->add({}, {});
    pending_ = false;
}

void PlanOrder::carry() { pending_ = false; }

/// The key of the counter that a signal on the channel adds to, or that a wait on it follows.
PlanOrder::Key PlanOrder::channel_key(const Op& op, std::int64_t channel, bool from_here) const {
    const int type = op.channel_type == ChannelType::port ? port_channel : memory_channel;
    const int peer = file_.gpus[at(rank_)].peers(op.channel_type)[at(channel)];
    const std::int64_t number = numbers_[type][at(rank_)][at(channel)];
    return from_here ? Key{type, rank_, peer, number} : Key{type, peer, rank_, number};
}

PlanOrder::Site PlanOrder::here(const Op& op) const {
    return {rank_, threadblock_, static_cast<int>(code_->instructions.size()), op.position, op.inner};
}

/// The next instruction waits.
void PlanOrder::wait_here(Counter& counter, const Op& op) {
    counter.waits.push_back(here(op));
    pending_ = true;
}

/// What stands in front of the operation has happened, waits included.
void PlanOrder::add_here(Counter& counter, const Op& op) {
    if (pending_ || code_->instructions.empty()) code_->add({}, {});
    pending_ = false;
    Site site = here(op);
    --site.instruction;
    counter.adds.push_back(site);
}

void PlanOrder::signal(const Op& op) {
    for (const std::int64_t channel : op.channels) add_here(counters_[channel_key(op, channel, true)], op);
}

void PlanOrder::wait(const Op& op) {
    for (const std::int64_t channel : op.channels) wait_here(counters_[channel_key(op, channel, false)], op);
}

void PlanOrder::barrier(const Op& op) {
    const Key key{barrier_of_rank, rank_, 0, op.barrier};
    Counter& counter = counters_[key];
    add_here(counter, op);
    const auto [size, added] = barrier_sizes_.try_emplace(key, op.threadblocks);
    if (size->second != op.threadblocks)
        throw error_at(counter.adds.back(),
                       fmt::format("barrier {} is for {} threadblocks here and for {} elsewhere", op.barrier,
                                   op.threadblocks, size->second));
    if (op.threadblocks > 1) wait_here(counter, op);
}

void PlanOrder::acquire(const Op& op) {
    for (const std::int64_t number : op.semaphores) {
        Counter& counter = counters_[{semaphore, rank_, 0, number}];
        counter.initial = file_.gpus[at(rank_)].semaphores[at(number)];
        wait_here(counter, op);
    }
}

void PlanOrder::release(const Op& op) {
    for (const std::int64_t number : op.semaphores) {
        Counter& counter = counters_[{semaphore, rank_, 0, number}];
        counter.initial = file_.gpus[at(rank_)].semaphores[at(number)];
        add_here(counter, op);
    }
}

void PlanOrder::wait_for_packets(const Op& op, const ir::Operand& source) {
    packet_reads_.push_back({here(op), source.index, source.chunks});
    if (source.buffer != ir::Buffer::scratch)
        throw error_at(packet_reads_.back().site, "reads packets outside of scratch");
    pending_ = true;
}

void PlanOrder::write_packets(int rank, const Op& op, const ir::Operand& destination) {
    Site site = here(op);
    // Pairs of one operation are instructions of their own; the last one stands for all.
    --site.instruction;
    if (destination.buffer != ir::Buffer::scratch) throw error_at(site, "writes packets outside of scratch");
    packet_writes_.push_back({site, destination.kind == ir::OperandKind::remote ? destination.target : rank,
                              destination.index, destination.chunks});
}

std::string PlanOrder::place(const Site& site) const {
    Op op;
    op.position = site.position, op.inner = site.inner;
    return pointer(at(site.rank), at(site.threadblock), op);
}

Error PlanOrder::error_at(const Site& site, std::string what, std::string remedy) const {
    return input_error(std::move(what), name_ + "#" + place(site), std::move(remedy));
}

void PlanOrder::need(const Site& waiter, const Site& other) {
    if (waiter.rank == other.rank && waiter.threadblock == other.threadblock &&
        other.instruction < waiter.instruction)
        return;  // its own order
    needs_[at(waiter.rank)][at(waiter.threadblock)].emplace_back(
        waiter.instruction, ir::Need{other.rank, other.threadblock, other.instruction, ir::Event::completed});
}

/// The k-th wait of a threadblock goes on when the counter has grown k times. That is the k-th addition where
/// one threadblock adds, and all of them when there are no more than k; else it is not determined.
void PlanOrder::pair(const Counter& counter, const char* what) {
    const auto adds = static_cast<std::int64_t>(counter.adds.size()) + counter.initial;
    if (static_cast<std::int64_t>(counter.waits.size()) > adds)
        throw error_at(
            counter.waits.back(),
            fmt::format("waits for ever: {} waits on this {}, and {} {} ever come", counter.waits.size(),
                        what, counter.adds.size(), counter.initial > 0 ? "more additions" : "signals"));
    std::set<int> blocks;
    for (const Site& site : counter.adds) blocks.insert(site.threadblock);
    std::map<std::pair<int, int>, std::int64_t> waited;
    for (const Site& waiter : counter.waits) {
        const std::int64_t number = ++waited[{waiter.rank, waiter.threadblock}] - counter.initial;
        if (number < 1) continue;
        if (blocks.size() == 1) {
            need(waiter, counter.adds[at(number - 1)]);
        } else if (number == static_cast<std::int64_t>(counter.adds.size())) {
            for (const Site& site : counter.adds) need(waiter, site);
        } else {
            throw error_at(waiter,
                           fmt::format("{} threadblocks signal this {}: whose signal ends the wait is "
                                       "not determined",
                                       blocks.size(), what));
        }
    }
    if (counter.waits.size() < counter.adds.size() && !counter.adds.empty())
        remarks_.warnings.push_back(fmt::format(
            "{}: {} signals on this {} and {} waits: the next call begins with signals of this one",
            place(counter.adds.back()), counter.adds.size(), what, counter.waits.size()));
}

void PlanOrder::pair_barrier(const Counter& counter, std::int64_t threadblocks) {
    std::map<int, std::vector<Site>> arrivals;
    for (const Site& site : counter.adds) arrivals[site.threadblock].push_back(site);
    if (static_cast<std::int64_t>(arrivals.size()) != threadblocks)
        throw error_at(counter.adds.back(), fmt::format("the barrier is for {} threadblocks, and {} reach it",
                                                        threadblocks, arrivals.size()));
    for (const auto& [block, sites] : arrivals)
        if (sites.size() != arrivals.begin()->second.size())
            throw error_at(
                sites.back(),
                fmt::format("threadblock {} reaches the barrier {} times, threadblock {} {} times", block,
                            sites.size(), arrivals.begin()->first, arrivals.begin()->second.size()));
    std::map<int, std::size_t> waited;
    for (const Site& waiter : counter.waits) {
        const std::size_t round = waited[waiter.threadblock]++;
        for (const auto& [block, sites] : arrivals)
            if (block != waiter.threadblock) need(waiter, sites[round]);
    }
}

void PlanOrder::pair_packets(const ir::Program& program) {
    std::vector<std::vector<std::int32_t>> writers;  // [rank][scratch place]; -1: none
    for (const ir::RankProgram& rank : program.ranks) writers.emplace_back(rank.scratch_classes.size(), -1);
    for (std::size_t w = 0; w < packet_writes_.size(); ++w) {
        const auto& write = packet_writes_[w];
        auto& own = writers[at(write.rank)];
        if (write.first + write.count > static_cast<std::int64_t>(own.size()))
            throw error_at(write.site,
                           fmt::format("writes packets to scratch places up to {} of rank {}, which has {}",
                                       write.first + write.count - 1, write.rank, own.size()));
        for (std::int64_t i = write.first; i < write.first + write.count; ++i) {
            if (own[at(i)] >= 0) {
                const Site& other = packet_writes_[at(own[at(i)])].site;
                if (other.rank != write.site.rank || other.threadblock != write.site.threadblock)
                    throw error_at(
                        write.site,
                        fmt::format("packets at scratch place {} of rank {} are also written at {}: "
                                    "which of them a reader gets is not determined",
                                    i, write.rank, place(other)));
                continue;  // whoever reads goes on with the first
            }
            own[at(i)] = static_cast<std::int32_t>(w);
        }
    }
    for (const PacketRead& read : packet_reads_) {
        const auto& own = writers[at(read.site.rank)];
        std::int32_t last = -1;
        for (std::int64_t i = read.first; i < read.first + read.count; ++i) {
            if (i >= static_cast<std::int64_t>(own.size()) || own[at(i)] < 0)
                throw error_at(read.site,
                               fmt::format("waits for ever: nobody writes packets to scratch place "
                                           "{} of rank {}",
                                           i, read.site.rank));
            if (own[at(i)] != last) need(read.site, packet_writes_[at(own[at(i)])].site);
            last = own[at(i)];
        }
    }
}

void PlanOrder::set_needs(ir::Program& program) {
    for (const auto& [key, counter] : counters_) {
        if (std::get<0>(key) == barrier_of_rank)
            pair_barrier(counter, barrier_sizes_.at(key));
        else
            pair(counter, std::get<0>(key) == semaphore ? "semaphore" : "channel");
    }
    pair_packets(program);
    for (std::size_t r = 0; r < needs_.size(); ++r)
        for (std::size_t b = 0; b < needs_[r].size(); ++b) {
            auto& needs = needs_[r][b];
            // By instruction and threadblock; of one threadblock the last, which implies the others.
            std::stable_sort(needs.begin(), needs.end(), [](const auto& x, const auto& y) {
                return std::tuple(x.first, x.second.rank, x.second.threadblock, -x.second.instruction) <
                       std::tuple(y.first, y.second.rank, y.second.threadblock, -y.second.instruction);
            });
            needs.erase(std::unique(needs.begin(), needs.end(),
                                    [](const auto& x, const auto& y) {
                                        return x.first == y.first && x.second.rank == y.second.rank &&
                                               x.second.threadblock == y.second.threadblock;
                                    }),
                        needs.end());
            ir::Threadblock& code = program.ranks[r].threadblocks[b];
            std::size_t next = 0;
            for (std::size_t i = 0; i < code.instructions.size(); ++i) {
                ir::Instruction& instruction = code.instructions[i];
                instruction.first_need = static_cast<std::uint32_t>(code.needs.size());
                for (; next < needs.size() && at(needs[next].first) == i; ++next)
                    code.needs.push_back(needs[next].second);
                const std::size_t count = code.needs.size() - instruction.first_need;
                if (count > UINT16_MAX)
                    throw input_error(fmt::format("one operation waits for {} threadblocks", count),
                                      fmt::format("{}#/gpus/{}/threadblocks/{}", name_, r, b));
                instruction.needs = static_cast<std::uint16_t>(count);
            }
        }
}

}  // namespace baton::codegen::mscclpp
