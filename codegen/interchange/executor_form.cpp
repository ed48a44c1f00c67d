#include <baton/codegen/interchange/executor_form.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/codegen/interchange/complete.hpp>
#include <baton/ir/verify.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace baton::codegen {
namespace {

using ir::Operand;
using ir::OperandKind;

/// Which ends of connections one threadblock of the result owns; -1: none.
struct Part {
    int send = -1, receive = -1;
};

bool has_form(const ir::Program& program, const ExecutorForm& form);

class Former {
public:
    /// `messages_first`: no source of a reduction is read before all its messages are there. It takes more
    /// instructions, and is needed where the messages are what orders the reading.
    Former(const ir::Program& program, const ExecutorForm& form, bool messages_first = false)
        : in_(program), form_(form), messages_first_(messages_first) {}

    ir::Program run() {
        check();
        if (has_form(in_, form_)) {
            ir::Program same = in_;
            sort_connections(same);
            return same;
        }
        move_needs();
        out_ = without_threadblocks(in_);
        plan_parts();
        for (std::size_t r = 0; r < in_.ranks.size(); ++r) rank(static_cast<int>(r));
        for (std::size_t r = 0; r < in_.ranks.size(); ++r) set_needs(static_cast<int>(r));
        set_connections();
        sort_connections(out_);
        complete_values(out_);
        ir::mark_posts(out_);
        return std::move(out_);
    }

private:
    Error refused(std::string what, std::string remedy = {}) const {
        return input_error(form_.executor + " has " + std::move(what), in_.name, std::move(remedy));
    }

    void check() const {
        const ir::Collective& collective = in_.collective;
        if (collective.kind == ir::CollectiveKind::custom || collective.kind == ir::CollectiveKind::send_recv)
            throw refused(fmt::format("no counterpart of {}", to_string(collective.kind)));
        require_equal_chunks(in_, form_.executor);
        if (!collective.groups.empty()) throw refused("no groups of ranks within a collective");
        for (const ir::RankProgram& rank : in_.ranks)
            for (const ir::Threadblock& block : rank.threadblocks) {
                for (const Operand& operand : block.operands)
                    if (operand.kind == OperandKind::remote || operand.kind == OperandKind::switch_group)
                        throw refused(operand.kind == OperandKind::remote
                                          ? "no access to memory of other ranks"
                                          : "no switches that compute");
            }
    }

    /// A put waits at its sender for room at the receiver. Staged, the receiver stores, and waits itself.
    void move_needs() {
        std::vector<std::vector<const ir::Instruction*>> received(in_.connections.size());
        std::vector<std::size_t> sent(in_.connections.size(), 0);
        for (const ir::RankProgram& rank : in_.ranks)
            for (const ir::Threadblock& block : rank.threadblocks)
                for (const ir::Instruction& i : block.instructions)
                    for (const Operand& source : block.sources(i))
                        if (source.kind == OperandKind::message) received[at(source.target)].push_back(&i);
        for (std::size_t r = 0; r < in_.ranks.size(); ++r)
            for (const ir::Threadblock& block : in_.ranks[r].threadblocks)
                for (const ir::Instruction& i : block.instructions) {
                    std::vector<std::pair<int, const ir::Instruction*>> receivers;
                    for (const Operand& to : block.destinations(i)) {
                        if (to.kind != OperandKind::message) continue;
                        const std::size_t k = sent[at(to.target)]++;
                        if (in_.connections[at(to.target)].mode == ir::Mode::put &&
                            k < received[at(to.target)].size())
                            receivers.emplace_back(in_.connections[at(to.target)].dst,
                                                   received[at(to.target)][k]);
                    }
                    for (const ir::Need& need : block.needs_of(i)) {
                        if (at(need.rank) == r) continue;
                        bool moved = false;
                        for (const auto& [dst, instruction] : receivers) {
                            if (dst != need.rank) continue;
                            moved_needs_[instruction].push_back(need);
                            moved = true;
                        }
                        if (!moved)
                            throw refused("no tokens between ranks",
                                          "lower the algorithm with --mode staged");
                    }
                }
    }

    // ---- which connections share a threadblock

    /// A threadblock with one connection a side keeps them together. Of others, a receiving and a sending end
    /// that most often meet in one instruction are paired.
    void plan_parts() {
        parts_.resize(in_.ranks.size());
        component_.resize(in_.connections.size());
        std::iota(component_.begin(), component_.end(), 0);
        for (std::size_t r = 0; r < in_.ranks.size(); ++r) {
            for (const ir::Threadblock& block : in_.ranks[r].threadblocks) {
                std::vector<Part>& parts = parts_[r].emplace_back();
                std::map<std::pair<int, int>, std::int64_t> meetings;  // (receive, send)
                if (block.sends.size() == 1 && block.receives.size() == 1)
                    ++meetings[{block.receives[0], block.sends[0]}];
                for (const ir::Instruction& instruction : block.instructions)
                    for (const Operand& source : block.sources(instruction))
                        for (const Operand& destination : block.destinations(instruction))
                            if (source.kind == OperandKind::message &&
                                destination.kind == OperandKind::message)
                                ++meetings[{source.target, destination.target}];
                std::vector<std::tuple<std::int64_t, int, int>> pairs;
                for (const auto& [ends, count] : meetings)
                    pairs.emplace_back(-count, ends.first, ends.second);
                std::sort(pairs.begin(), pairs.end());
                std::set<int> sends(block.sends.begin(), block.sends.end());
                std::set<int> receives(block.receives.begin(), block.receives.end());
                for (const auto& [count, receive, send] : pairs) {
                    if (!sends.contains(send) || !receives.contains(receive) || !unite(receive, send))
                        continue;
                    parts.push_back({send, receive});
                    sends.erase(send), receives.erase(receive);
                }
                for (const int send : sends) parts.push_back({send, -1});
                for (const int receive : receives) parts.push_back({-1, receive});
                if (parts.empty()) parts.push_back({});
                std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
                    return std::pair(a.send, a.receive) < std::pair(b.send, b.receive);
                });
            }
        }
    }

    int find(int connection) {
        while (component_[at(connection)] != connection)
            connection = component_[at(connection)] = component_[at(component_[at(connection)])];
        return connection;
    }
    /// Puts two connections on one channel; false where another of that channel joins the same ranks.
    bool unite(int a, int b) {
        a = find(a), b = find(b);
        if (a == b) return true;
        if (members_.empty()) {
            members_.resize(in_.connections.size());
            for (std::size_t c = 0; c < members_.size(); ++c) members_[c] = {static_cast<int>(c)};
        }
        std::set<std::pair<int, int>> lanes;
        for (const int c : {a, b})
            for (const int member : members_[at(c)])
                if (!lanes.insert({in_.connections[at(member)].src, in_.connections[at(member)].dst}).second)
                    return false;
        if (members_[at(a)].size() < members_[at(b)].size()) std::swap(a, b);
        members_[at(a)].insert(members_[at(a)].end(), members_[at(b)].begin(), members_[at(b)].end());
        members_[at(b)].clear();
        component_[at(b)] = a;
        return true;
    }

    /// The lowest free channel for each set of connections that must share one, those that use most first by
    /// the channel they had.
    void set_connections() {
        std::map<int, std::vector<int>> sets;
        for (std::size_t c = 0; c < in_.connections.size(); ++c)
            sets[find(static_cast<int>(c))].push_back(static_cast<int>(c));
        std::vector<std::pair<int, int>> order;  // channel wished for, set
        for (const auto& [root, members] : sets) {
            int wish = INT32_MAX;
            for (const int c : members) wish = std::min(wish, in_.connections[at(c)].channel);
            order.emplace_back(wish, root);
        }
        std::sort(order.begin(), order.end());
        std::map<std::pair<int, int>, std::set<int>> used;  // channels of a pair of ranks
        out_.connections = in_.connections;
        for (const auto& [wish, root] : order) {
            int channel = 0;
            const std::vector<int>& members = sets[root];
            const auto taken = [&] {
                return std::any_of(members.begin(), members.end(), [&](int c) {
                    return used[{in_.connections[at(c)].src, in_.connections[at(c)].dst}].contains(channel);
                });
            };
            while (taken()) ++channel;
            for (const int c : members) {
                ir::Connection& connection = out_.connections[at(c)];
                used[{connection.src, connection.dst}].insert(channel);
                connection.channel = channel;
                connection.mode = ir::Mode::staged;
                connection.protocol = form_.protocol;
                connection.slots = form_.slots;
            }
        }
    }

    // ---- one rank

    void rank(int r) {
        rank_ = r;
        last_.emplace_back();
        const ir::RankProgram& source = in_.ranks[at(r)];
        for (std::size_t b = 0; b < source.threadblocks.size(); ++b) {
            const std::vector<Part>& parts = parts_[at(r)][b];
            first_part_ = static_cast<int>(out_.ranks[at(r)].threadblocks.size());
            for (const Part& part : parts) {
                ir::Threadblock& block = out_.ranks[at(r)].threadblocks.emplace_back();
                if (part.send >= 0) block.sends.push_back(part.send);
                if (part.receive >= 0) block.receives.push_back(part.receive);
            }
            parts_now_ = &parts;
            previous_ = -1;
            last_.back().emplace_back();
            for (const ir::Instruction& instruction : source.threadblocks[b].instructions) {
                source_needs_.clear();
                for (const ir::Need& need : source.threadblocks[b].needs_of(instruction))
                    if (need.rank == r) source_needs_.push_back(need);
                if (const auto more = moved_needs_.find(&instruction); more != moved_needs_.end())
                    source_needs_.insert(source_needs_.end(), more->second.begin(), more->second.end());
                take_apart(source.threadblocks[b], instruction);
                last_.back().back().push_back({previous_, previous_ < 0 ? -1 : size_of(previous_) - 1});
            }
        }
    }

    int size_of(int part) const {
        return static_cast<int>(out_.ranks[at(rank_)].threadblocks[at(part)].instructions.size());
    }

    /// Cuts long runs, then takes one instruction apart.
    void take_apart(const ir::Threadblock& block, const ir::Instruction& instruction) {
        const auto sources = block.sources(instruction), destinations = block.destinations(instruction);
        if (sources.empty()) {
            emit(previous_ >= 0 ? previous_ : first_part_, {}, {});
            return;
        }
        const int chunks = sources[0].chunks;
        for (int done = 0; done < chunks; done += form_.most_chunks) {
            const auto piece = [&](std::span<const Operand> all) {
                std::vector<Operand> cut(all.begin(), all.end());
                for (Operand& operand : cut) {
                    if (operand.kind == OperandKind::local) operand.index += done;
                    operand.chunks = std::min(form_.most_chunks, chunks - done);
                }
                return cut;
            };
            take_apart(piece(sources), piece(destinations));
        }
    }

    void take_apart(const std::vector<Operand>& sources, const std::vector<Operand>& destinations) {
        std::vector<Operand> messages, locals, to_local, to_message;
        for (const Operand& each : sources)
            (each.kind == OperandKind::message ? messages : locals).push_back(each);
        for (const Operand& each : destinations)
            (each.kind == OperandKind::message ? to_message : to_local).push_back(each);
        if (messages.empty() && locals.size() == 1) {
            copy_out(locals[0], to_local, to_message);
            return;
        }
        if (to_local.empty() && to_message.size() == 1 && messages.size() == 1 && locals.size() == 1 &&
            part_of_receive(messages[0].target) == part_of_send(to_message[0].target)) {  // recv_reduce_send
            emit(part_of_receive(messages[0].target), {messages[0], locals[0]}, {to_message[0]});
            return;
        }
        // The result is made where it belongs, unless that overwrites a source before its turn.
        bool own_place = !to_local.empty();
        if (own_place) {
            for (std::size_t i = 1; i < locals.size(); ++i)
                if (same_memory(locals[i], to_local[0])) std::swap(locals[0], locals[i]);
            for (std::size_t i = 1; i < locals.size(); ++i)
                own_place = own_place && !may_overlap(locals[i], to_local[0]);
        }
        const Operand place = own_place ? to_local[0] : temporary(sources);
        if (messages_first_ && !messages.empty() && locals.size() + messages.size() > 2)
            combine_after_messages(messages, locals, place);
        else
            combine(messages, locals, place, to_message);
        if (own_place) to_local.erase(to_local.begin());
        copy_out(place, to_local, to_message);
    }

    /// Brings the reduction of all sources to `place`; a send that the last instruction can do is done and
    /// removed from `to_message`.
    void combine(const std::vector<Operand>& messages, std::vector<Operand> locals, const Operand& place,
                 std::vector<Operand>& to_message) {
        std::size_t used = 0;  // locals that are in `place`
        if (messages.empty() || locals.size() > 1) {
            if (!locals.empty() && !same_memory(locals[0], place)) emit(home(), {locals[0]}, {place});
            for (std::size_t i = 1; i < locals.size(); ++i) emit(home(), {place, locals[i]}, {place});
            if (!locals.empty()) locals.assign(1, place);
            used = 1;
        }
        for (std::size_t m = 0; m < messages.size(); ++m) {
            const int part = part_of_receive(messages[m].target);
            std::vector<Operand> from{messages[m]}, to{place};
            if (m > 0 || used > 0)
                from.push_back(place);
            else if (!locals.empty())
                from.push_back(locals[0]);
            if (m + 1 == messages.size()) {
                for (std::size_t i = 0; i < to_message.size(); ++i) {
                    if (part_of_send(to_message[i].target) != part) continue;
                    to.push_back(to_message[i]);
                    to_message.erase(to_message.begin() + static_cast<std::ptrdiff_t>(i));
                    break;
                }
            }
            emit(part, from, to);
        }
    }

    /// The same for sources that may be read only when all messages are there.
    void combine_after_messages(const std::vector<Operand>& messages, const std::vector<Operand>& locals,
                                const Operand& place) {
        if (messages.size() == 1) {
            emit(part_of_receive(messages[0].target), {messages[0], locals[0]}, {place});
        } else {
            const Operand arrived = temporary(messages);
            for (std::size_t m = 0; m < messages.size(); ++m) {
                std::vector<Operand> from{messages[m]};
                if (m > 0) from.push_back(arrived);
                emit(part_of_receive(messages[m].target), from, {arrived});
            }
            if (!locals.empty() && same_memory(locals[0], place)) {
                emit(home(), {place, arrived}, {place});
            } else {
                // The first source may share memory with the place in some calls.
                if (!locals.empty()) emit(home(), {arrived, locals[0]}, {arrived});
                emit(home(), {arrived}, {place});
            }
        }
        for (std::size_t i = 1; i < locals.size(); ++i) emit(home(), {place, locals[i]}, {place});
    }

    void copy_out(const Operand& place, const std::vector<Operand>& to_local,
                  const std::vector<Operand>& to_message) {
        for (const Operand& to : to_local)
            if (!same_memory(place, to)) emit(home(), {place}, {to});
        for (const Operand& to : to_message) emit(part_of_send(to.target), {place}, {to});
    }

    /// Where work without a message is done: at the end that was used last.
    int home() const { return previous_ >= 0 ? previous_ : first_part_; }

    int part_of_send(int connection) const {
        for (std::size_t p = 0; p < parts_now_->size(); ++p)
            if ((*parts_now_)[p].send == connection) return first_part_ + static_cast<int>(p);
        throw internal_error("a send on a connection that the threadblock does not own", in_.name);
    }
    int part_of_receive(int connection) const {
        for (std::size_t p = 0; p < parts_now_->size(); ++p)
            if ((*parts_now_)[p].receive == connection) return first_part_ + static_cast<int>(p);
        throw internal_error("a receive on a connection that the threadblock does not own", in_.name);
    }

    std::pair<ir::Buffer, std::int64_t> in_place_memory(const Operand& o) const {
        if (o.buffer == ir::Buffer::input) {
            const std::int64_t output = in_.collective.output_alias(rank_, o.index);
            if (output >= 0) return {ir::Buffer::output, output};
        }
        return {o.buffer, o.index};
    }
    /// In every placement that the program serves.
    bool same_memory(const Operand& a, const Operand& b) const {
        if (in_.in_place.value_or(false)) return in_place_memory(a) == in_place_memory(b);
        return a.buffer == b.buffer && a.index == b.index;
    }
    /// In some placement that the program serves.
    bool may_overlap(const Operand& a, const Operand& b) const {
        const auto meet = [&](const auto& x, const auto& y) {
            return x.first == y.first && x.second < y.second + b.chunks && y.second < x.second + a.chunks;
        };
        return meet(std::pair(a.buffer, std::int64_t{a.index}), std::pair(b.buffer, std::int64_t{b.index})) ||
               (in_.in_place.value_or(true) && meet(in_place_memory(a), in_place_memory(b)));
    }

    /// Scratch of its own for a partial result.
    Operand temporary(const std::vector<Operand>& sources) {
        auto& classes = out_.ranks[at(rank_)].scratch_classes;
        Operand place;
        place.buffer = ir::Buffer::scratch;
        place.index = static_cast<std::int32_t>(classes.size());
        place.chunks = sources[0].chunks;
        if (static_cast<std::int64_t>(classes.size()) + place.chunks > kMostImportedPlaces)
            throw input_error("partial results need too much scratch", in_.name);
        classes.resize(classes.size() + at(place.chunks), 0);
        return place;
    }

    void emit(int part, const std::vector<Operand>& sources, const std::vector<Operand>& destinations) {
        ir::Threadblock& block = out_.ranks[at(rank_)].threadblocks[at(part)];
        std::vector<ir::Need> needs =
            std::move(source_needs_);  // of the first instruction only: the rest follow it
        source_needs_.clear();
        if (previous_ >= 0 && previous_ != part) needs.push_back({-1, previous_, size_of(previous_) - 1});
        block.add(sources, destinations, needs);
        previous_ = part;
    }

    /// Needs of the source name its threadblocks; those of rank -1 the new ones already.
    void set_needs(int r) {
        for (std::size_t b = 0; b < out_.ranks[at(r)].threadblocks.size(); ++b) {
            ir::Threadblock& block = out_.ranks[at(r)].threadblocks[b];
            std::vector<ir::Need> needs;
            for (ir::Instruction& instruction : block.instructions) {
                const auto first = static_cast<std::uint32_t>(needs.size());
                for (ir::Need need : block.needs_of(instruction)) {
                    if (need.rank >= 0) {
                        const auto& blocks = last_[at(r)];
                        if (at(need.threadblock) >= blocks.size() ||
                            at(need.instruction) >= blocks[at(need.threadblock)].size())
                            throw input_error("a need of an instruction that does not exist", in_.name);
                        const auto [part, index] = blocks[at(need.threadblock)][at(need.instruction)];
                        need = {r, part, index};
                    }
                    need.rank = r;
                    need.event = ir::Event::completed;
                    if (at(need.threadblock) == b) continue;  // its own order
                    const auto same = std::find_if(
                        needs.begin() + first, needs.end(),
                        [&](const ir::Need& other) { return other.threadblock == need.threadblock; });
                    if (same == needs.end())
                        needs.push_back(need);
                    else
                        same->instruction = std::max(same->instruction, need.instruction);
                }
                instruction.first_need = first;
                instruction.needs = static_cast<std::uint16_t>(needs.size() - first);
            }
            block.needs = std::move(needs);
        }
    }

    const ir::Program& in_;
    const ExecutorForm& form_;
    bool messages_first_ = false;
    ir::Program out_;
    std::vector<int> component_;
    std::vector<std::vector<int>> members_;
    std::vector<std::vector<std::vector<Part>>> parts_;  // [rank][threadblock]
    std::vector<std::vector<std::vector<std::pair<int, int>>>>
        last_;  // [rank][tb][instruction]: its last part
    std::vector<ir::Need> source_needs_;
    std::map<const ir::Instruction*, std::vector<ir::Need>> moved_needs_;
    const std::vector<Part>* parts_now_ = nullptr;
    int rank_ = 0, first_part_ = 0, previous_ = -1;
};

bool canonical(const ir::Threadblock& block, const ir::Instruction& instruction, const ExecutorForm& form) {
    if (instruction.step >= 0) return false;
    const auto sources = block.sources(instruction), destinations = block.destinations(instruction);
    for (const Operand& each : sources)
        if (each.chunks > form.most_chunks) return false;
    const auto messages = [](std::span<const Operand> all) {
        return std::count_if(all.begin(), all.end(),
                             [](const Operand& o) { return o.kind == OperandKind::message; });
    };
    for (const ir::Need& need : block.needs_of(instruction))
        if (need.event != ir::Event::completed) return false;
    if (sources.empty()) return &instruction == &block.instructions.back();
    if (sources.size() > 2 || destinations.size() > 2 || messages(destinations) > 1) return false;
    if (destinations.size() == 2 && destinations[1].kind != OperandKind::message) return false;
    if (destinations.size() == 2 && sources[0].kind != OperandKind::message) return false;
    if (sources[0].kind == OperandKind::message) {
        if (sources.size() == 2) return sources[1].kind == OperandKind::local;
        return destinations[0].kind == OperandKind::local;
    }
    if (sources.size() == 1) return true;
    return sources[1].kind == OperandKind::local && destinations.size() == 1 && sources[0] == destinations[0];
}

/// Whether there is nothing to rewrite.
bool has_form(const ir::Program& program, const ExecutorForm& form) {
    if (program.wide || !program.topology_hash.empty()) return false;
    std::set<std::tuple<int, int, int>> lanes;
    for (const ir::Connection& c : program.connections)
        if (c.mode != ir::Mode::staged || c.protocol != form.protocol || c.slots != form.slots ||
            !lanes.insert({c.src, c.dst, c.channel}).second)
            return false;
    for (std::size_t r = 0; r < program.ranks.size(); ++r)
        for (const ir::Threadblock& block : program.ranks[r].threadblocks) {
            if (block.sends.size() > 1 || block.receives.size() > 1 || !block.repeats.empty()) return false;
            if (!block.sends.empty() && !block.receives.empty() &&
                program.connections[at(block.sends[0])].channel !=
                    program.connections[at(block.receives[0])].channel)
                return false;
            for (const ir::Need& need : block.needs)
                if (at(need.rank) != r) return false;
            for (const ir::Instruction& instruction : block.instructions)
                if (!canonical(block, instruction, form)) return false;
        }
    return true;
}

}  // namespace

ir::Program executor_form(const ir::Program& program, const ExecutorForm& form) {
    const auto right = [&](const ir::Program& formed) {
        if (ir::verify(formed).assurance != ir::Assurance::not_proven) return;
        throw input_error(
            "the program is too large to be proven right for " + form.executor + ", and is not exported",
            program.name);
    };
    ir::Program formed = Former(program, form).run();
    try {
        right(formed);
        return formed;
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed) throw;
    }
    formed = Former(program, form, true).run();
    try {
        right(formed);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::check_failed) throw;
        throw input_error(
            fmt::format("does not run on {}, which keeps {} messages under way on a connection: {}",
                        form.executor, form.slots, error.what()),
            program.name, fmt::format("lower the algorithm with --mode staged --slots {}", form.slots));
    }
    return formed;
}

}  // namespace baton::codegen
