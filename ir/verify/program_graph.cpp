#include <baton/ir/verify/program_graph.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <tuple>

namespace baton::ir::checks {

const Operand& ProgramGraph::put_target(int connection, std::int64_t k) const {
    const Site site = receive_site(connection, k);
    return code(site).destinations(at(site))[0];
}

const Operand& ProgramGraph::get_source(int connection, std::int64_t k) const {
    const Site site = send_site(connection, k);
    return code(site).sources(at(site))[0];
}

std::string ProgramGraph::name(Site site) const {
    const Block& block = blocks[site.block];
    const Instruction& instruction = at(site);
    std::string text = fmt::format("rank {}, threadblock {}, instruction {} ({}", block.rank, block.number,
                                   site.instruction, shape(*block.code, instruction));
    if (instruction.step >= 0) text += fmt::format(", step {}", instruction.step);
    return text + ")";
}

std::string ProgramGraph::connection_name(int connection) const {
    const Connection& c = program->connections[connection];
    return fmt::format("connection {} ({} -> {}, channel {})", connection, c.src, c.dst, c.channel);
}

std::string place_name(Buffer buffer, std::int64_t index, std::int64_t chunks) {
    if (chunks == 1) return fmt::format("{}[{}]", to_string(buffer), index);
    return fmt::format("{}[{}..{}]", to_string(buffer), index, index + chunks - 1);
}

namespace {

class Builder {
public:
    explicit Builder(const Program& program) : program_(program) { graph_.program = &program; }

    ProgramGraph build() {
        program_.collective.check("collective");
        if (static_cast<std::int64_t>(program_.ranks.size()) != program_.collective.ranks) {
            throw check_error(fmt::format("the program has {} ranks, its collective {}",
                                          program_.ranks.size(), program_.collective.ranks));
        }
        for (std::size_t r = 0; r < program_.ranks.size(); ++r) {
            graph_.first_block.push_back(static_cast<std::int32_t>(graph_.blocks.size()));
            const auto& blocks = program_.ranks[r].threadblocks;
            for (std::size_t b = 0; b < blocks.size(); ++b) {
                graph_.blocks.push_back({static_cast<int>(r), static_cast<int>(b), &blocks[b]});
            }
            check_scratch(static_cast<int>(r));
            graph_.places.push_back({program_.collective.places(static_cast<int>(r), Buffer::input),
                                     program_.collective.places(static_cast<int>(r), Buffer::output),
                                     static_cast<std::int64_t>(program_.ranks[r].scratch_classes.size())});
        }
        graph_.first_block.push_back(static_cast<std::int32_t>(graph_.blocks.size()));
        check_connections();
        check_switch_groups();
        for (std::size_t b = 0; b < graph_.blocks.size(); ++b)
            claim_connections(static_cast<std::int32_t>(b));
        check_owners();
        for (std::size_t b = 0; b < graph_.blocks.size(); ++b) check_block(static_cast<std::int32_t>(b));
        for (std::size_t c = 0; c < graph_.ends.size(); ++c) check_pairing(static_cast<int>(c));
        return std::move(graph_);
    }

private:
    static Error fault(const std::string& what, const std::string& where, const std::string& remedy = {}) {
        return check_error(what, where, remedy);
    }

    void check_scratch(int rank) const {
        const auto& classes = program_.ranks[rank].scratch_classes;
        for (std::size_t i = 0; i < classes.size(); ++i) {
            if (classes[i] < 0 || classes[i] >= program_.collective.chunks) {
                throw fault(fmt::format("scratch[{}] has class {}, classes are 0 to {}", i, classes[i],
                                        program_.collective.chunks - 1),
                            fmt::format("rank {}", rank));
            }
        }
    }

    void check_connections() {
        graph_.ends.resize(program_.connections.size());
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < program_.connections.size(); ++i) {
            const Connection& c = program_.connections[i];
            const std::string where = fmt::format("connection {}", i);
            for (const int rank : {c.src, c.dst}) {
                if (rank < 0 || rank >= program_.collective.ranks) {
                    throw fault(
                        fmt::format("names rank {}, ranks are 0 to {}", rank, program_.collective.ranks - 1),
                        where);
                }
            }
            if (c.src == c.dst) throw fault(fmt::format("joins rank {} with itself", c.src), where);
            if (c.channel < 0) throw fault(fmt::format("has channel {}", c.channel), where);
            if (c.mode == Mode::staged && c.slots < 1) {
                throw fault(fmt::format("has {} slots", c.slots), where,
                            "a staged connection needs at least one slot");
            }
            if (c.protocol == Protocol::automatic)
                throw fault("has no protocol chosen", where, "name simple, ll or ll128");
            if (c.mode != Mode::staged && c.protocol != Protocol::simple) {
                throw fault(
                    fmt::format("has mode {} with protocol {}", to_string(c.mode), to_string(c.protocol)),
                    where, "ll and ll128 are staged only");
            }
            order.push_back(i);
        }
        const auto key = [&](std::size_t i) {
            const Connection& c = program_.connections[i];
            return std::tuple(c.src, c.dst, c.channel, c.protocol);
        };
        std::sort(order.begin(), order.end(),
                  [&](auto a, auto b) { return std::pair(key(a), a) < std::pair(key(b), b); });
        for (std::size_t i = 1; i < order.size(); ++i) {
            if (key(order[i - 1]) == key(order[i])) {
                throw fault(
                    fmt::format("has the same ranks, channel and protocol as connection {}", order[i - 1]),
                    fmt::format("connection {}", order[i]), "give it another channel");
            }
        }
    }

    void check_switch_groups() const {
        for (std::size_t g = 0; g < program_.switch_groups.size(); ++g) {
            const std::string where = fmt::format("switch group {}", g);
            auto members = program_.switch_groups[g];
            if (members.empty()) throw fault("has no members", where);
            std::sort(members.begin(), members.end());
            if (members.front() < 0 || members.back() >= program_.collective.ranks) {
                throw fault(fmt::format("names a rank outside 0 to {}", program_.collective.ranks - 1),
                            where);
            }
            if (std::adjacent_find(members.begin(), members.end()) != members.end()) {
                throw fault("names a rank twice", where);
            }
        }
    }

    void claim(const std::vector<int>& list, std::int32_t block, bool send) {
        const Block& b = graph_.blocks[block];
        const std::string where = fmt::format("rank {}, threadblock {}", b.rank, b.number);
        for (const int c : list) {
            if (c < 0 || static_cast<std::size_t>(c) >= graph_.ends.size()) {
                throw fault(fmt::format("owns connection {}, there are {}", c, graph_.ends.size()), where);
            }
            const Connection& connection = program_.connections[c];
            const int rank = send ? connection.src : connection.dst;
            if (rank != b.rank) {
                throw fault(fmt::format("{} on {}, whose {} is rank {}", send ? "sends" : "receives",
                                        graph_.connection_name(c), send ? "sender" : "receiver", rank),
                            where);
            }
            std::int32_t& owner = send ? graph_.ends[c].sender : graph_.ends[c].receiver;
            if (owner >= 0) {
                throw fault(
                    fmt::format("{} has two {}: threadblocks {} and {}", graph_.connection_name(c),
                                send ? "senders" : "receivers", graph_.blocks[owner].number, b.number),
                    where);
            }
            owner = block;
        }
    }

    void claim_connections(std::int32_t block) {
        claim(graph_.blocks[block].code->sends, block, true);
        claim(graph_.blocks[block].code->receives, block, false);
    }

    void check_owners() const {
        for (std::size_t c = 0; c < graph_.ends.size(); ++c) {
            if (graph_.ends[c].sender < 0 || graph_.ends[c].receiver < 0) {
                throw fault(
                    fmt::format("no threadblock {} on it", graph_.ends[c].sender < 0 ? "sends" : "receives"),
                    graph_.connection_name(static_cast<int>(c)));
            }
        }
    }

    void check_range(int rank, const Operand& operand, Site site) const {
        const std::int64_t total = graph_.places[rank][static_cast<std::size_t>(operand.buffer)];
        if (operand.index < 0 || operand.index + std::int64_t{operand.chunks} > total) {
            throw fault(fmt::format("uses {} of rank {}, which has {} places there",
                                    place_name(operand.buffer, operand.index, operand.chunks), rank, total),
                        graph_.name(site));
        }
    }

    void check_place(const Operand& operand, Site site, bool destination) {
        const int rank = graph_.blocks[site.block].rank;
        const std::string where = graph_.name(site);
        if (operand.kind != OperandKind::message && destination && operand.buffer == Buffer::input &&
            !program_.clobbers_input) {
            throw fault("writes input", where, "results stand in output; or declare clobbers_input");
        }
        switch (operand.kind) {
            case OperandKind::local: check_range(rank, operand, site); return;
            case OperandKind::remote:
                if (operand.target < 0 || operand.target >= program_.collective.ranks) {
                    throw fault(fmt::format("names remote rank {}", operand.target), where);
                }
                check_range(operand.target, operand, site);
                return;
            case OperandKind::switch_group:
                if (operand.target < 0 ||
                    static_cast<std::size_t>(operand.target) >= program_.switch_groups.size()) {
                    throw fault(fmt::format("names switch group {}", operand.target), where);
                }
                for (const int member : program_.switch_groups[operand.target])
                    check_range(member, operand, site);
                return;
            case OperandKind::message: record_message(operand.target, site, destination); return;
        }
        throw fault("has an operand of an unknown kind", where);
    }

    void record_message(int connection, Site site, bool send) {
        if (connection < 0 || static_cast<std::size_t>(connection) >= graph_.ends.size()) {
            throw fault(fmt::format("names connection {}, there are {}", connection, graph_.ends.size()),
                        graph_.name(site));
        }
        Ends& ends = graph_.ends[connection];
        if ((send ? ends.sender : ends.receiver) != site.block) {
            throw fault(fmt::format("{} on {}, which its threadblock does not own on that side",
                                    send ? "sends" : "receives", graph_.connection_name(connection)),
                        graph_.name(site));
        }
        auto& list = send ? ends.sends : ends.receives;
        if (!list.empty() && list.back() == site.instruction) {
            throw fault(fmt::format("{} two messages of {}", send ? "sends" : "receives",
                                    graph_.connection_name(connection)),
                        graph_.name(site));
        }
        list.push_back(site.instruction);
    }

    void check_block(std::int32_t number) {
        const Threadblock& code = *graph_.blocks[number].code;
        const Block& block = graph_.blocks[number];
        for (std::size_t i = 0; i < code.instructions.size(); ++i) {
            const Instruction& instruction = code.instructions[i];
            const Site site{number, static_cast<std::int32_t>(i)};
            const std::uint64_t operands = std::uint64_t{instruction.sources} + instruction.destinations;
            if (instruction.first_operand + operands > code.operands.size() ||
                std::uint64_t{instruction.first_need} + instruction.needs > code.needs.size()) {
                throw fault(
                    "names operands or needs outside its threadblock's pools",
                    fmt::format("rank {}, threadblock {}, instruction {}", block.rank, block.number, i));
            }
            if ((instruction.sources == 0) != (instruction.destinations == 0)) {
                throw fault(instruction.sources == 0 ? "has destinations and no source"
                                                     : "has sources and no destination",
                            graph_.name(site));
            }
            check_operands(code, instruction, site);
            for (const Need& need : code.needs_of(instruction)) check_need(need, site);
        }
        check_repeats(number);
    }

    void check_operands(const Threadblock& code, const Instruction& instruction, Site site) {
        const auto sources = code.sources(instruction);
        const auto destinations = code.destinations(instruction);
        if (sources.empty()) return;
        const std::int32_t chunks = sources[0].chunks;
        for (const auto& list : {sources, destinations}) {
            for (const Operand& operand : list) {
                if (operand.chunks != chunks || chunks < 1) {
                    throw fault(fmt::format("has operands of {} and {} chunks", chunks, operand.chunks),
                                graph_.name(site),
                                "all operands of an instruction have the same positive number of chunks");
                }
            }
        }
        for (const Operand& operand : sources) check_place(operand, site, false);
        for (const Operand& operand : destinations) check_place(operand, site, true);
        if (sources.size() > 1 && !reduces(program_.collective.kind)) {
            throw fault(fmt::format("reduces in a {}", to_string(program_.collective.kind)),
                        graph_.name(site));
        }
        for (const Operand& operand : destinations) {
            if (operand.kind == OperandKind::message &&
                program_.connections[operand.target].mode == Mode::get &&
                (sources.size() != 1 || sources[0].kind != OperandKind::local)) {
                throw fault(fmt::format("publishes on {} something else than one local source",
                                        graph_.connection_name(operand.target)),
                            graph_.name(site), "the reader of a get connection reads the sender's memory");
            }
        }
        for (const Operand& operand : sources) {
            if (operand.kind == OperandKind::message &&
                program_.connections[operand.target].mode == Mode::put &&
                (sources.size() != 1 || destinations.size() != 1 ||
                 destinations[0].kind != OperandKind::local)) {
                throw fault(fmt::format("receives on {} otherwise than into one local destination",
                                        graph_.connection_name(operand.target)),
                            graph_.name(site),
                            "the sender of a put connection has already written the destination");
            }
        }
    }

    void check_need(const Need& need, Site site) const {
        const std::string who = fmt::format("instruction {} of threadblock {} of rank {}", need.instruction,
                                            need.threadblock, need.rank);
        if (need.rank < 0 || need.rank >= program_.collective.ranks || need.threadblock < 0 ||
            static_cast<std::size_t>(need.threadblock) >= program_.ranks[need.rank].threadblocks.size() ||
            need.instruction < 0 ||
            static_cast<std::size_t>(need.instruction) >=
                program_.ranks[need.rank].threadblocks[need.threadblock].instructions.size()) {
            throw fault(fmt::format("needs {}, which does not exist", who), graph_.name(site));
        }
        const std::int32_t block = graph_.block_of(need.rank, need.threadblock);
        if (block != site.block && !graph_.at({block, need.instruction}).post) {
            throw fault(fmt::format("needs {}, which posts no token", who), graph_.name(site));
        }
    }

    void check_repeats(std::int32_t number) const {
        const Block& block = graph_.blocks[number];
        const Threadblock& code = *block.code;
        std::int64_t end = 0;
        for (std::size_t i = 0; i < code.repeats.size(); ++i) {
            const Repeat& repeat = code.repeats[i];
            const std::string where =
                fmt::format("rank {}, threadblock {}, repeat {}", block.rank, block.number, i);
            const std::int64_t last = repeat.first + std::int64_t{repeat.body} * repeat.times;
            if (repeat.body < 1 || repeat.times < 1 || repeat.first < end || last > block.size()) {
                throw fault(
                    fmt::format("marks instructions {} to {} of {}", repeat.first, last, block.size()), where,
                    "repeats are disjoint, ascending and inside the list");
            }
            for (std::int64_t k = repeat.first + repeat.body; k < last; ++k) {
                if (!alike(code, code.instructions[k], code.instructions[k - repeat.body])) {
                    throw fault(
                        fmt::format("instruction {} differs from instruction {} in more than its indices", k,
                                    k - repeat.body),
                        where);
                }
            }
            end = last;
        }
    }

    static bool alike(const Threadblock& code, const Instruction& a, const Instruction& b) {
        if (a.sources != b.sources || a.destinations != b.destinations || a.needs != b.needs ||
            a.post != b.post || a.finalize != b.finalize) {
            return false;
        }
        for (std::uint32_t i = 0; i < std::uint32_t{a.sources} + a.destinations; ++i) {
            const Operand& x = code.operands[a.first_operand + i];
            const Operand& y = code.operands[b.first_operand + i];
            if (x.kind != y.kind || x.target != y.target || x.chunks != y.chunks) return false;
            if (x.kind != OperandKind::message && x.buffer != y.buffer) return false;
        }
        return true;
    }

    void check_pairing(int connection) const {
        const Ends& ends = graph_.ends[connection];
        const std::size_t both = std::min(ends.sends.size(), ends.receives.size());
        for (std::size_t k = 0; k < both; ++k) {
            const std::int32_t sent = chunks_of(graph_.send_site(connection, k));
            const std::int32_t received = chunks_of(graph_.receive_site(connection, k));
            if (sent != received) {
                throw fault(fmt::format("message {} of {} is sent with {} chunks and received with {} by {}",
                                        k, graph_.connection_name(connection), sent, received,
                                        graph_.name(graph_.receive_site(connection, k))),
                            graph_.name(graph_.send_site(connection, k)));
            }
        }
        if (ends.sends.size() != ends.receives.size()) {
            const bool more = ends.sends.size() > both;
            throw fault(
                fmt::format(
                    "{} messages are sent and {} received on {}; the first without a partner is this {}",
                    ends.sends.size(), ends.receives.size(), graph_.connection_name(connection),
                    more ? "send" : "receive"),
                graph_.name(more ? graph_.send_site(connection, both)
                                 : graph_.receive_site(connection, both)));
        }
    }

    std::int32_t chunks_of(Site site) const { return graph_.code(site).sources(graph_.at(site))[0].chunks; }

    const Program& program_;
    ProgramGraph graph_;
};

}  // namespace

ProgramGraph build_graph(const Program& program) { return Builder(program).build(); }

}  // namespace baton::ir::checks
