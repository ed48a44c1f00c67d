#include <baton/codegen/emit/analysis.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace baton::codegen {
namespace {

struct Place {
    int rank = 0, threadblock = 0, instruction = 0;
};

class Analysis {
public:
    explicit Analysis(const ir::Program& program) : program_(program) { plan_.program = &program; }

    EmitPlan run() {
        check();
        pair_messages();
        find_classes();
        number_tokens();
        plan_.ranks.resize(program_.ranks.size());
        for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
            plan_.first.push_back(static_cast<int>(plan_.threadblocks.size()));
            ManifestRank& manifest = plan_.ranks[rank];
            manifest.scratch_places = static_cast<std::int64_t>(program_.ranks[rank].scratch_classes.size());
            const auto& threadblocks = program_.ranks[rank].threadblocks;
            for (std::size_t number = 0; number < threadblocks.size(); ++number) {
                add_threadblock(static_cast<int>(rank), static_cast<int>(number));
            }
            // A rank without work still enters and leaves, so that all ranks count the same calls.
            if (threadblocks.empty())
                plan_.threadblocks.push_back({static_cast<int>(rank), 0, {}, {}, {}, {}, {}, {}, {}, {}});
            manifest.threadblocks = static_cast<int>(plan_.threadblocks.size()) - plan_.first.back();
            manifest.tokens = rank_tokens_[rank];
        }
        plan_.first.push_back(static_cast<int>(plan_.threadblocks.size()));
        describe_connections();
        find_peers();
        return std::move(plan_);
    }

private:
    std::string where(int rank, int threadblock, int instruction) const {
        return fmt::format("rank {}, threadblock {}, instruction {}", rank, threadblock, instruction);
    }

    void check() const {
        if (program_.ranks.size() != static_cast<std::size_t>(program_.collective.ranks)) {
            throw check_error("the program and its collective have different numbers of ranks",
                              program_.name);
        }
        for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
            const auto& threadblocks = program_.ranks[rank].threadblocks;
            for (std::size_t number = 0; number < threadblocks.size(); ++number) {
                for (std::size_t i = 0; i < threadblocks[number].instructions.size(); ++i) {
                    check(threadblocks[number], threadblocks[number].instructions[i],
                          where(static_cast<int>(rank), static_cast<int>(number), static_cast<int>(i)));
                }
            }
        }
    }

    void check(const ir::Threadblock& threadblock, const ir::Instruction& instruction,
               const std::string& place) const {
        if (instruction.sources > 32 || instruction.destinations > 32) {
            throw input_error("an instruction has more than 32 sources or destinations", place, "split it");
        }
        const auto fine = [&](const ir::Operand& operand) {
            if (operand.kind == ir::OperandKind::switch_group)
                throw input_error("switch operands cannot be emitted yet", place, "use messages");
            if (operand.kind == ir::OperandKind::message &&
                (operand.target < 0 ||
                 static_cast<std::size_t>(operand.target) >= program_.connections.size())) {
                throw check_error("a message names no connection", place);
            }
        };
        for (const ir::Operand& operand : threadblock.sources(instruction)) fine(operand);
        for (const ir::Operand& operand : threadblock.destinations(instruction)) fine(operand);
    }

    void pair_messages() {
        sends_.resize(program_.connections.size());
        receives_.resize(program_.connections.size());
        for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
            const auto& threadblocks = program_.ranks[rank].threadblocks;
            for (std::size_t number = 0; number < threadblocks.size(); ++number) {
                const ir::Threadblock& tb = threadblocks[number];
                for (std::size_t i = 0; i < tb.instructions.size(); ++i) {
                    const Place place{static_cast<int>(rank), static_cast<int>(number), static_cast<int>(i)};
                    for (const ir::Operand& operand : tb.sources(tb.instructions[i])) {
                        if (operand.kind == ir::OperandKind::message)
                            receives_[operand.target].push_back(place);
                    }
                    for (const ir::Operand& operand : tb.destinations(tb.instructions[i])) {
                        if (operand.kind == ir::OperandKind::message) sends_[operand.target].push_back(place);
                    }
                }
            }
        }
        for (std::size_t c = 0; c < sends_.size(); ++c) {
            if (sends_[c].size() != receives_[c].size()) {
                throw check_error(fmt::format("{} messages are sent and {} received", sends_[c].size(),
                                              receives_[c].size()),
                                  fmt::format("connection {}", c));
            }
        }
    }

    const ir::Threadblock& threadblock(const Place& place) const {
        return program_.ranks[place.rank].threadblocks[place.threadblock];
    }
    const ir::Instruction& instruction(const Place& place) const {
        return threadblock(place).instructions[place.instruction];
    }

    std::vector<ClassRun> classes_at(int rank, const ir::Operand& operand) const {
        const std::int64_t classes = program_.collective.chunks;
        const bool custom = program_.collective.kind == ir::CollectiveKind::custom;
        if (operand.buffer != ir::Buffer::scratch && !custom)
            return {{operand.index % classes, operand.chunks}};
        std::vector<ClassRun> runs;
        for (std::int64_t i = operand.index; i < operand.index + std::int64_t{operand.chunks}; ++i) {
            const std::int64_t k = operand.buffer == ir::Buffer::scratch
                                       ? program_.ranks[rank].scratch_classes.at(static_cast<std::size_t>(i))
                                       : program_.collective.class_of(rank, operand.buffer, i);
            // Shards of custom collectives follow no rule, so their chunks stay apart.
            if (!custom && !runs.empty() && (runs.back().first + runs.back().chunks) % classes == k) {
                ++runs.back().chunks;
            } else {
                runs.push_back({k, 1});
            }
        }
        return runs;
    }

    /// Classes of every instruction: from a place it names, else from the sender of a message it takes.
    void find_classes() {
        for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
            const auto& threadblocks = program_.ranks[rank].threadblocks;
            classes_.emplace_back();
            for (std::size_t number = 0; number < threadblocks.size(); ++number) {
                const ir::Threadblock& tb = threadblocks[number];
                classes_.back().emplace_back(tb.instructions.size());
                for (std::size_t i = 0; i < tb.instructions.size(); ++i) {
                    const ir::Instruction& instruction = tb.instructions[i];
                    for (int o = 0; o < instruction.sources + instruction.destinations; ++o) {
                        const ir::Operand& operand = tb.operands[instruction.first_operand + o];
                        if (operand.kind != ir::OperandKind::local && operand.kind != ir::OperandKind::remote)
                            continue;
                        auto& classes = classes_[rank][number][i];
                        if (!classes.empty() && operand.buffer == ir::Buffer::scratch) continue;
                        classes = classes_at(
                            operand.kind == ir::OperandKind::remote ? operand.target : static_cast<int>(rank),
                            operand);
                    }
                }
            }
        }
        // Elided values: follow the messages, whose order is acyclic in a verified program.
        std::map<std::tuple<int, int, int>, std::pair<int, std::size_t>> taken;
        for (std::size_t c = 0; c < receives_.size(); ++c) {
            for (std::size_t k = 0; k < receives_[c].size(); ++k) {
                const Place& place = receives_[c][k];
                if (classes_[place.rank][place.threadblock][place.instruction].empty()) {
                    taken[{place.rank, place.threadblock, place.instruction}] = {static_cast<int>(c), k};
                }
            }
        }
        for (const auto& item : taken) {
            std::vector<Place> chain;
            Place at{std::get<0>(item.first), std::get<1>(item.first), std::get<2>(item.first)};
            while (classes_[at.rank][at.threadblock][at.instruction].empty()) {
                chain.push_back(at);
                const auto source = taken.find({at.rank, at.threadblock, at.instruction});
                if (source == taken.end() || chain.size() > taken.size()) {
                    throw check_error("messages go in a circle and never touch a place",
                                      where(at.rank, at.threadblock, at.instruction));
                }
                at = sends_[source->second.first][source->second.second];
            }
            for (const Place& place : chain) {
                classes_[place.rank][place.threadblock][place.instruction] =
                    classes_[at.rank][at.threadblock][at.instruction];
            }
        }
    }

    /// One counter per (posting threadblock, waiting rank).
    void number_tokens() {
        rank_tokens_.resize(program_.ranks.size());
        for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
            const auto& threadblocks = program_.ranks[rank].threadblocks;
            for (std::size_t number = 0; number < threadblocks.size(); ++number) {
                for (const ir::Instruction& instruction : threadblocks[number].instructions) {
                    for (const ir::Need& need : threadblocks[number].needs_of(instruction)) {
                        if (need.rank == static_cast<int>(rank) &&
                            need.threadblock == static_cast<int>(number))
                            continue;
                        const auto key = std::make_tuple(need.rank, need.threadblock, static_cast<int>(rank));
                        const auto [it, fresh] =
                            tokens_.try_emplace(key, static_cast<int>(plan_.tokens.size()));
                        if (fresh) {
                            plan_.tokens.push_back({need.rank, need.threadblock, static_cast<int>(rank)});
                            rank_tokens_[need.rank].push_back(it->second);
                            if (need.rank != static_cast<int>(rank)) rank_tokens_[rank].push_back(it->second);
                        }
                        posted_[{need.rank, need.threadblock, need.instruction}].insert(it->second);
                    }
                }
            }
        }
    }

    int local_token(int rank, int token) const {
        const auto& list = rank_tokens_[rank];
        return static_cast<int>(std::find(list.begin(), list.end(), token) - list.begin());
    }

    void add_threadblock(int rank, int number) {
        const ir::Threadblock& tb = program_.ranks[rank].threadblocks[number];
        EmitThreadblock out;
        out.rank = rank;
        out.number = number;
        out.repeats = tb.repeats;
        auto& table = plan_.ranks[rank].connections;
        for (const int c : tb.sends) {
            out.sends.push_back(static_cast<int>(table.size()));
            out.send_peers.push_back(program_.connections[c].dst);
            out.send_modes.push_back(program_.connections[c].mode);
            table.emplace_back(c, true);
        }
        for (const int c : tb.receives) {
            out.receives.push_back(static_cast<int>(table.size()));
            out.receive_peers.push_back(program_.connections[c].src);
            out.receive_modes.push_back(program_.connections[c].mode);
            table.emplace_back(c, false);
        }
        std::vector<std::int64_t> sent(tb.sends.size(), 0), received(tb.receives.size(), 0);
        for (std::size_t i = 0; i < tb.instructions.size(); ++i) {
            out.instructions.push_back(describe(tb, {rank, number, static_cast<int>(i)}, sent, received));
        }
        plan_.advance =
            std::max<std::int64_t>(plan_.advance, static_cast<std::int64_t>(tb.instructions.size()));
        plan_.threadblocks.push_back(std::move(out));
    }

    static int end_of(const std::vector<int>& list, int connection, const std::string& place) {
        const auto it = std::find(list.begin(), list.end(), connection);
        if (it == list.end())
            throw check_error(fmt::format("the threadblock does not own connection {}", connection), place);
        return static_cast<int>(it - list.begin());
    }

    Access place_access(Site site, int rank, const ir::Operand& operand) const {
        Access access;
        access.site = site;
        access.buffer = operand.buffer;
        access.index = operand.index;
        if (program_.collective.kind == ir::CollectiveKind::custom && operand.buffer != ir::Buffer::scratch) {
            for (int j = 0; j < operand.chunks; ++j)
                access.shards.push_back(
                    program_.collective.shard_of(rank, operand.buffer, operand.index + j));
        }
        return access;
    }

    /// A place of another rank, behind the end of a put connection that the threadblock owns.
    Access remote_access(const ir::Threadblock& tb, const ir::Operand& operand, const std::string& place) {
        Access access = place_access(Site::remote, operand.target, operand);
        const auto end = std::find_if(tb.sends.begin(), tb.sends.end(), [&](int c) {
            return program_.connections[c].dst == operand.target &&
                   program_.connections[c].mode == ir::Mode::put;
        });
        if (end == tb.sends.end())
            throw internal_error("no connection to the rank of a remote operand", place);
        access.end = static_cast<int>(end - tb.sends.begin());
        access.sends = true;
        note_remote(operand.target, operand.buffer);
        return access;
    }

    static const ir::Operand& only_local(std::span<const ir::Operand> operands, const std::string& place) {
        for (const ir::Operand& operand : operands) {
            if (operand.kind == ir::OperandKind::local) return operand;
        }
        throw check_error("a put or get has no place at its other end", place);
    }

    EmitInstruction describe(const ir::Threadblock& tb, const Place& at, std::vector<std::int64_t>& sent,
                             std::vector<std::int64_t>& received) {
        const ir::Instruction& instruction = tb.instructions[at.instruction];
        const std::string place = where(at.rank, at.threadblock, at.instruction);
        EmitInstruction out;
        out.number = at.instruction;
        out.shape = ir::shape(tb, instruction);
        out.finalize = instruction.finalize;
        out.classes = classes_[at.rank][at.threadblock][at.instruction];
        if (instruction.sources > 0) out.chunks = tb.sources(instruction)[0].chunks;
        bool moves = true;
        // Needs come first: they speak of messages before this instruction's own.
        for (const ir::Need& need : tb.needs_of(instruction)) add_need(out, tb, at, need, sent);
        for (const ir::Operand& operand : tb.sources(instruction)) {
            if (operand.kind == ir::OperandKind::local) {
                out.sources.push_back(place_access(Site::local, at.rank, operand));
                continue;
            }
            if (operand.kind == ir::OperandKind::remote) {
                out.sources.push_back(remote_access(tb, operand, place));
                continue;
            }
            const ir::Connection& connection = program_.connections[operand.target];
            const int end = end_of(tb.receives, operand.target, place);
            const std::int64_t k = received[end]++;
            out.wait_messages.push_back(end);
            if (connection.mode == ir::Mode::put) {
                out.passes.push_back(end);
                moves = false;
                continue;
            }
            out.releases.push_back(end);
            Access access;
            access.site = Site::message;
            if (connection.mode == ir::Mode::get) {
                const Place& sender = sends_[operand.target][k];
                access =
                    place_access(Site::remote, sender.rank,
                                 only_local(threadblock(sender).sources(this->instruction(sender)), place));
                note_remote(sender.rank, access.buffer);
            }
            access.end = end;
            out.sources.push_back(std::move(access));
        }
        for (const ir::Operand& operand : tb.destinations(instruction)) {
            if (operand.kind == ir::OperandKind::local) {
                out.destinations.push_back(place_access(Site::local, at.rank, operand));
                continue;
            }
            if (operand.kind == ir::OperandKind::remote) {
                out.destinations.push_back(remote_access(tb, operand, place));
                continue;
            }
            const ir::Connection& connection = program_.connections[operand.target];
            const int end = end_of(tb.sends, operand.target, place);
            const std::int64_t k = sent[end]++;
            out.publishes.push_back(end);
            if (connection.mode == ir::Mode::get) {
                if (instruction.destinations > 1)
                    throw check_error("a get publishes together with other destinations", place);
                moves = false;
                continue;
            }
            Access access;
            access.site = Site::message;
            if (connection.mode == ir::Mode::put) {
                const Place& receiver = receives_[operand.target][k];
                access = place_access(
                    Site::remote, receiver.rank,
                    only_local(threadblock(receiver).destinations(this->instruction(receiver)), place));
                note_remote(receiver.rank, access.buffer);
            } else {
                out.wait_slots.push_back(end);
            }
            access.end = end;
            access.sends = true;
            out.destinations.push_back(std::move(access));
        }
        if (!moves) out.sources.clear(), out.destinations.clear();
        const auto posted = posted_.find({at.rank, at.threadblock, at.instruction});
        if (posted != posted_.end()) {
            for (const int token : posted->second) out.posts.push_back(local_token(at.rank, token));
        }
        return out;
    }

    void add_need(EmitInstruction& out, const ir::Threadblock& tb, const Place& at, const ir::Need& need,
                  const std::vector<std::int64_t>& sent) const {
        const bool own = need.rank == at.rank && need.threadblock == at.threadblock;
        if (need.event == ir::Event::source_free) {
            if (!own) {
                throw input_error("waiting for the readers of another threadblock's get cannot be emitted",
                                  where(at.rank, at.threadblock, at.instruction),
                                  "let the publishing threadblock overwrite the source");
            }
            const ir::Instruction& publisher = tb.instructions[need.instruction];
            for (const ir::Operand& operand : tb.destinations(publisher)) {
                if (operand.kind != ir::OperandKind::message ||
                    program_.connections[operand.target].mode != ir::Mode::get)
                    continue;
                const auto& sends = sends_[operand.target];
                const auto it = std::find_if(sends.begin(), sends.end(), [&](const Place& place) {
                    return place.instruction == need.instruction;
                });
                const int end = end_of(tb.sends, operand.target, "");
                out.wait_source_free.push_back({end, sent[end] - (it - sends.begin())});
            }
            return;
        }
        if (own) return;
        const int token = tokens_.at({need.rank, need.threadblock, at.rank});
        out.needs.push_back(
            {local_token(at.rank, token), need.rank == at.rank ? -1 : need.rank, need.instruction});
    }

    void note_remote(int rank, ir::Buffer buffer) {
        ManifestRank& manifest = plan_.ranks[rank];
        (buffer == ir::Buffer::input    ? manifest.remote_input
         : buffer == ir::Buffer::output ? manifest.remote_output
                                        : manifest.remote_scratch) = true;
    }

    void describe_connections() {
        for (std::size_t c = 0; c < program_.connections.size(); ++c) {
            const ir::Connection& connection = program_.connections[c];
            ManifestConnection out{connection.src,
                                   connection.dst,
                                   connection.channel,
                                   connection.mode,
                                   connection.protocol,
                                   connection.mode == ir::Mode::staged ? connection.slots : 0,
                                   {}};
            for (const Place& place : sends_[c]) {
                MessageShape shape{0, 1};
                for (const ClassRun& run : classes_[place.rank][place.threadblock][place.instruction]) {
                    shape.pieces += run.chunks;
                    for (std::int64_t j = 0; j < run.chunks && !program_.collective.weights.empty(); ++j) {
                        shape.weight = std::max(
                            shape.weight,
                            program_.collective.weights[(run.first + j) % program_.collective.chunks]);
                    }
                }
                if (std::find(out.messages.begin(), out.messages.end(), shape) == out.messages.end())
                    out.messages.push_back(shape);
            }
            plan_.connections.push_back(std::move(out));
        }
    }

    void find_peers() {
        std::vector<std::set<int>> peers(program_.ranks.size());
        const auto join = [&](int a, int b) {
            if (a == b) return;
            peers[a].insert(b);
            peers[b].insert(a);
        };
        for (const ir::Connection& connection : program_.connections) join(connection.src, connection.dst);
        for (const ManifestToken& token : plan_.tokens) join(token.rank, token.waiter);
        for (std::size_t rank = 0; rank < peers.size(); ++rank)
            plan_.ranks[rank].peers.assign(peers[rank].begin(), peers[rank].end());
    }

    const ir::Program& program_;
    EmitPlan plan_;
    std::vector<std::vector<Place>> sends_, receives_;
    std::vector<std::vector<std::vector<std::vector<ClassRun>>>>
        classes_;  // [rank][threadblock][instruction]
    std::map<std::tuple<int, int, int>, int> tokens_;
    std::map<std::tuple<int, int, int>, std::set<int>> posted_;
    std::vector<std::vector<int>> rank_tokens_;
};

}  // namespace

EmitPlan analyze(const ir::Program& program) { return Analysis(program).run(); }

}  // namespace baton::codegen
