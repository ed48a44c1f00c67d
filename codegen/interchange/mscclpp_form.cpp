// A Program as MSCCL++'s executor runs it: messages become puts into places of the receiver.
#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/codegen/interchange/mscclpp_file.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::codegen {
namespace mscclpp {
namespace {

using ir::Operand;
using ir::OperandKind;

constexpr std::size_t kMostOperands = 10;  // of one operation, on either side

/// What the executor takes for attributes that a plan does not have.
constexpr std::pair<const char*, const char*> kDefaults[] = {{"@num_threads_per_block", "1024"},
                                                             {"@use_double_scratch_buffer", "false"},
                                                             {"@buffer_alignment", "16"},
                                                             {"@min_message_size", "0"},
                                                             {"@max_message_size", "18446744073709551615"}};

struct Message {
    int rank = 0, threadblock = 0, instruction = 0;  ///< who sends (receives)
};

class PlanFormer {
public:
    explicit PlanFormer(const ir::Program& program) : in_(program) {}

    ir::Program run() {
        require_equal_chunks(in_, "MSCCL++'s executor");
        out_ = without_threadblocks(in_);
        out_.switch_groups = in_.switch_groups;
        for (const auto& [key, value] : kDefaults) out_.foreign.try_emplace(key, value);
        out_.foreign["@reuse_resources"] = "false";  // its scratch is too small for a plan without pipelines
        for (std::size_t r = 0; r < in_.ranks.size(); ++r)
            out_.ranks[r].threadblocks.resize(in_.ranks[r].threadblocks.size());
        pair_messages();
        for (std::size_t r = 0; r < in_.ranks.size(); ++r) rank(static_cast<int>(r));
        set_needs();
        tidy(out_);
        cut_threadblocks(out_);
        complete_values(out_);
        ir::mark_posts(out_);
        return std::move(out_);
    }

private:
    Error refused(std::string what, std::string remedy = {}) const {
        return input_error("MSCCL++'s executor " + std::move(what), in_.name, std::move(remedy));
    }

    void pair_messages() {
        sent_.resize(in_.connections.size());
        received_.resize(in_.connections.size());
        slots_.resize(in_.connections.size());
        for (std::size_t r = 0; r < in_.ranks.size(); ++r)
            for (std::size_t b = 0; b < in_.ranks[r].threadblocks.size(); ++b) {
                const ir::Threadblock& block = in_.ranks[r].threadblocks[b];
                for (std::size_t i = 0; i < block.instructions.size(); ++i) {
                    const Message site{static_cast<int>(r), static_cast<int>(b), static_cast<int>(i)};
                    for (const Operand& each : block.sources(block.instructions[i]))
                        if (each.kind == OperandKind::message) received_[at(each.target)].push_back(site);
                    for (const Operand& each : block.destinations(block.instructions[i]))
                        if (each.kind == OperandKind::message) {
                            sent_[at(each.target)].push_back(site);
                            slots_[at(each.target)].push_back(slot(at(each.target), each.chunks));
                        }
                }
            }
        for (std::size_t c = 0; c < sent_.size(); ++c)
            if (sent_[c].size() != received_[c].size())
                throw check_error(
                    fmt::format("{} messages are sent and {} received", sent_[c].size(), received_[c].size()),
                    fmt::format("connection {}", c));
        next_sent_.assign(in_.connections.size(), 0);
        next_received_ = next_sent_;
    }

    /// Scratch of its own for a message; a put has its place.
    std::int32_t slot(std::size_t connection, std::int32_t chunks) {
        const ir::Connection& c = in_.connections[connection];
        return c.mode == ir::Mode::put ? -1 : temporary(c.dst, chunks).index;
    }

    Operand temporary(int rank, std::int32_t chunks) {
        auto& classes = out_.ranks[at(rank)].scratch_classes;
        if (static_cast<std::int64_t>(classes.size()) + chunks > kMostImportedPlaces)
            throw refused("would need too much scratch for the messages");
        Operand place;
        place.buffer = ir::Buffer::scratch;
        place.index = static_cast<std::int32_t>(classes.size());
        place.chunks = chunks;
        classes.resize(classes.size() + at(chunks), 0);
        return place;
    }

    // ---- one rank

    void rank(int r) {
        rank_ = r;
        last_.emplace_back();
        for (std::size_t b = 0; b < in_.ranks[at(r)].threadblocks.size(); ++b) {
            const ir::Threadblock& block = in_.ranks[at(r)].threadblocks[b];
            block_ = static_cast<int>(b);
            code_ = &out_.ranks[at(r)].threadblocks[b];
            entered_.clear();
            last_.back().emplace_back();
            // Those that send to it may begin when it is there.
            if (!block.receives.empty()) code_->add({}, {});
            for (const ir::Instruction& instruction : block.instructions) {
                for (const ir::Need& need : block.needs_of(instruction)) needs_.push_back(need);
                operation(block, instruction);
                last_.back().back().push_back(static_cast<int>(code_->instructions.size()) - 1);
            }
            needs_of_.push_back(std::move(found_needs_));
            found_needs_.clear();
        }
    }

    void operation(const ir::Threadblock& block, const ir::Instruction& instruction) {
        std::vector<Operand> sources, destinations;
        std::optional<Operand> arrived;  // where a put of another rank is already
        for (Operand each : block.sources(instruction)) {
            if (each.kind == OperandKind::message) {
                const int c = each.target;
                const std::size_t k = next_received_[at(c)]++;
                const Message& sender = sent_[at(c)][k];
                needs_.push_back({sender.rank, sender.threadblock, sender.instruction});
                if (in_.connections[at(c)].mode == ir::Mode::put) {
                    each = place_of_receive(block, instruction);
                    arrived = each;
                } else {
                    each.kind = OperandKind::local;
                    each.buffer = ir::Buffer::scratch;
                    each.index = slots_[at(c)][k];
                }
                each.target = -1;
            }
            sources.push_back(each);
        }
        for (Operand each : block.destinations(instruction)) {
            if (each.kind == OperandKind::message) {
                const int c = each.target;
                const std::size_t k = next_sent_[at(c)]++;
                const Message& receiver = received_[at(c)][k];
                if (entered_.insert(c).second)
                    needs_.push_back({receiver.rank, receiver.threadblock, kEntry});
                if (in_.connections[at(c)].mode == ir::Mode::put) {
                    const ir::Threadblock& other =
                        in_.ranks[at(receiver.rank)].threadblocks[at(receiver.threadblock)];
                    each = place_of_receive(other, other.instructions[at(receiver.instruction)]);
                } else {
                    each.buffer = ir::Buffer::scratch;
                    each.index = slots_[at(c)][k];
                }
                each.kind = OperandKind::remote;
                each.target = receiver.rank;
            }
            if (arrived && each == *arrived) continue;
            destinations.push_back(each);
        }
        take_apart(sources, destinations);
        // Nothing to move: it only waits, or others wait for it.
        if (instruction.sources == 0 || !needs_.empty()) emit({}, {});
    }

    Operand place_of_receive(const ir::Threadblock& block, const ir::Instruction& instruction) const {
        for (const Operand& each : block.destinations(instruction))
            if (each.kind == OperandKind::local) return each;
        throw check_error("a put has no place at its other end", in_.name);
    }

    static std::vector<Operand> of_kind(const std::vector<Operand>& all, OperandKind kind) {
        std::vector<Operand> some;
        std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                     [&](const Operand& each) { return each.kind == kind; });
        return some;
    }

    void take_apart(const std::vector<Operand>& sources, const std::vector<Operand>& destinations) {
        if (sources.empty() || destinations.empty()) return;
        auto local = of_kind(sources, OperandKind::local);
        auto remote = of_kind(sources, OperandKind::remote);
        auto to_local = of_kind(destinations, OperandKind::local);
        const auto to_remote = of_kind(destinations, OperandKind::remote);
        const auto to_switch = of_kind(destinations, OperandKind::switch_group);
        if (local.size() + remote.size() != sources.size()) {  // a switch reduces
            if (sources.size() != 1 || to_switch.size() != 1 || destinations.size() != 1)
                throw refused("stores what a switch reduces through the switch only");
            emit(sources, destinations);
            return;
        }
        if (sources.size() == 1) {
            Operand source = sources[0];
            if (!remote.empty()) {
                const bool own_place = !to_local.empty();
                const Operand place = own_place ? to_local[0] : temporary(rank_, source.chunks);
                emit({source}, {place});
                if (own_place) to_local.erase(to_local.begin());
                source = place;
            }
            copy_out(source, to_local, to_remote, to_switch);
            return;
        }
        // A reduction is made in an own place, unless that overwrites a source before its turn.
        const bool own_place = !to_local.empty() && local.size() <= kMostOperands;
        const Operand place = own_place ? to_local[0] : temporary(rank_, sources[0].chunks);
        if (own_place) to_local.erase(to_local.begin());
        if (local.empty()) {
            emit({remote[0]}, {place});
            local.push_back(place);
            remote.erase(remote.begin());
        }
        reduce(local, remote, place, to_remote);
        copy_out(place, to_local, {}, to_switch);
    }

    /// Reduces own places, then those of other ranks; the last operation writes to other ranks as well.
    void reduce(std::vector<Operand> local, const std::vector<Operand>& remote, const Operand& place,
                std::vector<Operand> to_remote) {
        const auto last = [&](const std::vector<Operand>& from) {
            std::vector<Operand> to{place};
            while (!to_remote.empty() && to.size() < kMostOperands) {
                to.push_back(to_remote.front());
                to_remote.erase(to_remote.begin());
            }
            emit(from, to);
        };
        while (local.size() > 1) {
            const std::size_t count = std::min(local.size(), kMostOperands);
            const std::vector<Operand> now(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(count));
            local.erase(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(count));
            if (local.empty() && remote.empty())
                last(now);
            else
                emit(now, {place});
            local.insert(local.begin(), place);
        }
        for (std::size_t done = 0; done < remote.size(); done += kMostOperands - 1) {
            const std::size_t end = std::min(remote.size(), done + kMostOperands - 1);
            std::vector<Operand> now{local[0]};
            now.insert(now.end(), remote.begin() + static_cast<std::ptrdiff_t>(done),
                       remote.begin() + static_cast<std::ptrdiff_t>(end));
            local[0] = place;
            if (end == remote.size())
                last(now);
            else
                emit(now, {place});
        }
        for (const Operand& each : to_remote) emit({place}, {each});
    }

    void copy_out(const Operand& source, const std::vector<Operand>& to_local,
                  const std::vector<Operand>& to_remote, const std::vector<Operand>& to_switch) {
        for (const auto* all : {&to_local, &to_remote, &to_switch})
            for (const Operand& to : *all)
                if (!(to == source)) emit({source}, {to});
    }

    /// The needs of the instruction go to the first of its operations.
    void emit(const std::vector<Operand>& sources, const std::vector<Operand>& destinations) {
        code_->add(sources, destinations);
        for (const ir::Need& need : needs_) found_needs_.emplace_back(code_->instructions.size() - 1, need);
        needs_.clear();
    }

    /// Needs name instructions of the program as it was.
    void set_needs() {
        std::size_t next = 0;
        for (std::size_t r = 0; r < out_.ranks.size(); ++r)
            for (std::size_t b = 0; b < out_.ranks[r].threadblocks.size(); ++b) {
                ir::Threadblock& code = out_.ranks[r].threadblocks[b];
                const auto& found = needs_of_[next++];
                std::size_t n = 0;
                for (std::size_t i = 0; i < code.instructions.size(); ++i) {
                    ir::Instruction& instruction = code.instructions[i];
                    instruction.first_need = static_cast<std::uint32_t>(code.needs.size());
                    for (; n < found.size() && found[n].first == i; ++n)
                        code.needs.push_back(renamed(found[n].second));
                    instruction.needs =
                        static_cast<std::uint16_t>(code.needs.size() - instruction.first_need);
                }
            }
    }

    ir::Need renamed(const ir::Need& need) const {
        if (need.instruction == kEntry) return {need.rank, need.threadblock, 0, ir::Event::completed};
        if (need.rank < 0 || at(need.rank) >= last_.size() || need.threadblock < 0 ||
            at(need.threadblock) >= last_[at(need.rank)].size() || need.instruction < 0 ||
            at(need.instruction) >= last_[at(need.rank)][at(need.threadblock)].size())
            throw input_error("a need of an instruction that does not exist", in_.name);
        const int now = last_[at(need.rank)][at(need.threadblock)][at(need.instruction)];
        return {need.rank, need.threadblock, std::max(now, 0), ir::Event::completed};
    }

    static constexpr std::int32_t kEntry = -2;  // in a need: that the threadblock has begun

    const ir::Program& in_;
    ir::Program out_;
    std::vector<std::vector<Message>> sent_, received_;
    std::vector<std::vector<std::int32_t>> slots_;
    std::vector<std::size_t> next_sent_, next_received_;
    std::vector<std::vector<std::vector<int>>> last_;  ///< [rank][threadblock][instruction]
    std::vector<std::vector<std::pair<std::size_t, ir::Need>>> needs_of_;
    std::vector<std::pair<std::size_t, ir::Need>> found_needs_;
    std::vector<ir::Need> needs_;
    std::set<int> entered_;
    ir::Threadblock* code_ = nullptr;
    int rank_ = 0, block_ = 0;
};

/// One pass of tidy; whether anything changed.
bool tidy_once(ir::Program& program) {
    ir::mark_posts(program);
    bool changed = false;
    std::vector<std::vector<std::vector<std::int32_t>>> now(program.ranks.size());
    for (std::size_t r = 0; r < program.ranks.size(); ++r)
        for (std::size_t b = 0; b < program.ranks[r].threadblocks.size(); ++b) {
            ir::Threadblock& block = program.ranks[r].threadblocks[b];
            ir::Threadblock out;
            out.sends = block.sends, out.receives = block.receives;
            auto& numbers = now[r].emplace_back();
            std::vector<ir::Need> pending;
            std::map<std::pair<int, int>, std::int32_t> known;  // of threadblock: last instruction waited for
            const auto sort_pending = [&] {
                std::sort(pending.begin(), pending.end(), [](const ir::Need& x, const ir::Need& y) {
                    return std::pair(x.rank, x.threadblock) < std::pair(y.rank, y.threadblock);
                });
            };
            for (const ir::Instruction& i : block.instructions) {
                for (const ir::Need& need : block.needs_of(i)) {
                    if (at(need.rank) == r && at(need.threadblock) == b) continue;
                    const auto [last, added] =
                        known.try_emplace({need.rank, need.threadblock}, need.instruction);
                    if (!added && need.instruction <= last->second) continue;
                    last->second = need.instruction;
                    std::erase_if(pending, [&](const ir::Need& other) {
                        return other.rank == need.rank && other.threadblock == need.threadblock;
                    });
                    pending.push_back({need.rank, need.threadblock, need.instruction, ir::Event::completed});
                }
                const bool kept = i.sources > 0 || (i.post && (!pending.empty() || out.instructions.empty()));
                if (kept) {
                    sort_pending();
                    out.add(block.sources(i), block.destinations(i), pending);
                    pending.clear();
                }
                numbers.push_back(std::max(0, static_cast<std::int32_t>(out.instructions.size()) - 1));
            }
            sort_pending();
            if (!pending.empty()) out.add({}, {}, pending);
            changed = changed || out.instructions.size() != block.instructions.size() ||
                      out.needs.size() != block.needs.size();
            block = std::move(out);
        }
    for (ir::RankProgram& rank : program.ranks)
        for (ir::Threadblock& block : rank.threadblocks)
            for (ir::Need& need : block.needs)
                need.instruction = now[at(need.rank)][at(need.threadblock)][at(need.instruction)];
    return changed;
}

}  // namespace

void tidy(ir::Program& program) {
    while (tidy_once(program)) {
    }
}

}  // namespace mscclpp

ir::Program mscclpp_form(const ir::Program& program) {
    ir::Program formed = mscclpp::PlanFormer(program).run();
    try {
        if (ir::verify(formed).assurance == ir::Assurance::not_proven)
            throw input_error("the plan is too large to be proven right, and is not exported", program.name);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed) throw;
        throw input_error(fmt::format("does not run on MSCCL++'s executor: {}", error.what()), program.name);
    }
    return formed;
}

}  // namespace baton::codegen
