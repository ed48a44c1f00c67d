// JSON to Program.
#include <baton/base/json_reader.hpp>
#include <baton/ir/collective_json.hpp>
#include <baton/ir/json_choice.hpp>
#include <baton/ir/program_json.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>

namespace baton::ir {
namespace {

constexpr std::int64_t kMostIndex = INT32_MAX;
constexpr std::int64_t kMostOperands = UINT16_MAX;
constexpr std::int64_t kMostProgramSlots = 1 << 20;

constexpr std::array kLoweredProtocols{Protocol::simple, Protocol::ll, Protocol::ll128};

int number(const JsonReader& value, std::int64_t low, std::int64_t high) {
    return static_cast<int>(value.integer(low, high));
}

class Reader {
public:
    Program read(const JsonReader& root) {
        if (!root.is_object()) throw root.error("expected a program, an object");
        const auto format = root.at("baton");
        if (format.string() != "program/1")
            throw format.error(
                fmt::format("expected \"program/1\", got \"{}\"", format.string().substr(0, 60)));
        root.only_keys({"baton", "name", "note", "collective", "wide", "clobbers_input", "switch_groups",
                        "topology", "connections", "ranks", "in_place", "foreign"});
        if (const auto name = root.find("name")) program_.name = name->string();
        program_.collective = read_collective(root.at("collective"));
        if (const auto wide = root.find("wide")) program_.wide = wide->boolean();
        if (const auto clobbers = root.find("clobbers_input")) program_.clobbers_input = clobbers->boolean();
        if (const auto in_place = root.find("in_place")) {
            program_.in_place = in_place->boolean();
            if (*program_.in_place && !has_in_place_form(program_.collective.kind))
                throw in_place->error(
                    fmt::format("{} has no in-place form", to_string(program_.collective.kind)));
        }
        if (const auto foreign = root.find("foreign"))
            for (const auto& [key, value] : foreign->members()) program_.foreign[key] = value.string();
        if (const auto topology = root.find("topology")) {
            topology->only_keys({"name", "hash"});
            if (const auto hash = topology->find("hash")) program_.topology_hash = hash->string();
        }
        last_rank_ = program_.collective.ranks - 1;
        if (const auto groups = root.find("switch_groups"))
            for (const auto& group : groups->elements()) {
                program_.switch_groups.emplace_back();
                for (const auto& member : group.elements())
                    program_.switch_groups.back().push_back(number(member, 0, last_rank_));
                if (program_.switch_groups.back().empty())
                    throw group.error("a switch group without members");
            }
        if (const auto connections = root.find("connections"))
            for (const auto& value : connections->elements())
                program_.connections.push_back(connection(value));
        const auto ranks = root.at("ranks");
        if (!ranks.is_array() || ranks.size() != static_cast<std::size_t>(program_.collective.ranks))
            throw ranks.error(
                fmt::format("expected a list of {} ranks, as the collective has", program_.collective.ranks));
        program_.ranks.reserve(ranks.size());
        for (const auto& value : ranks.elements()) rank(value);
        mark_posts(program_);
        return std::move(program_);
    }

private:
    Connection connection(const JsonReader& value) const {
        value.only_keys({"src", "dst", "channel", "mode", "protocol", "slots"});
        Connection c;
        c.src = number(value.at("src"), 0, last_rank_);
        c.dst = number(value.at("dst"), 0, last_rank_);
        if (c.src == c.dst) throw value.error(fmt::format("joins rank {} with itself", c.src));
        if (const auto channel = value.find("channel")) c.channel = number(*channel, 0, INT16_MAX);
        if (const auto mode = value.find("mode")) c.mode = choice(*mode, kModes, "mode");
        c.protocol = Protocol::simple;
        if (const auto protocol = value.find("protocol"))
            c.protocol = choice(*protocol, kLoweredProtocols, "protocol");
        if (const auto slots = value.find("slots")) {
            if (c.mode != Mode::staged)
                throw slots->error(fmt::format("a connection of mode {} has no slots", to_string(c.mode)));
            c.slots = number(*slots, 1, kMostProgramSlots);
        }
        return c;
    }

    void rank(const JsonReader& value) {
        value.only_keys({"scratch", "threadblocks"});
        RankProgram& rank = program_.ranks.emplace_back();
        if (const auto scratch = value.find("scratch"))
            for (const auto& each : scratch->elements())
                rank.scratch_classes.push_back(each.integer(0, program_.collective.chunks - 1));
        for (const auto& each : value.at("threadblocks").elements())
            rank.threadblocks.push_back(threadblock(each));
    }

    Threadblock threadblock(const JsonReader& value) {
        value.only_keys({"sends", "receives", "instructions", "repeats"});
        Threadblock block;
        for (const auto& each : value.at("instructions").elements()) instruction(each, block);
        const auto owned = [&](const char* name, bool sends, std::vector<int>& list) {
            if (const auto given = value.find(name)) {
                for (const auto& each : given->elements()) list.push_back(connection_number(each));
            } else {
                for (const Instruction& i : block.instructions)
                    for (const Operand& o : sends ? block.destinations(i) : block.sources(i))
                        if (o.kind == OperandKind::message) list.push_back(o.target);
                std::sort(list.begin(), list.end());
                list.erase(std::unique(list.begin(), list.end()), list.end());
            }
            if (std::adjacent_find(list.begin(), list.end(), std::greater_equal<>{}) != list.end())
                throw value.at(name).error("connections must be ascending, each once");
        };
        owned("sends", true, block.sends);
        owned("receives", false, block.receives);
        if (const auto repeats = value.find("repeats"))
            for (const auto& each : repeats->elements()) {
                if (!each.is_array() || each.size() != 3) throw each.error("expected [first, body, times]");
                block.repeats.push_back({number(each.at(std::size_t{0}), 0, kMostIndex),
                                         number(each.at(1), 1, kMostIndex),
                                         number(each.at(2), 1, kMostIndex)});
            }
        return block;
    }

    int connection_number(const JsonReader& value) const {
        if (program_.connections.empty()) throw value.error("names a connection, but the program has none");
        return number(value, 0, static_cast<std::int64_t>(program_.connections.size()) - 1);
    }

    void instruction(const JsonReader& value, Threadblock& block) {
        value.only_keys({"need", "from", "to", "chunks", "finalize", "step"});
        const int chunks = value.find("chunks") ? number(value.at("chunks"), 1, kMostIndex) : 1;
        const auto list = [&](const char* name, std::vector<Operand>& out) {
            out.clear();
            const auto given = value.find(name);
            if (!given) return;
            if (!given->is_array()) throw given->error("expected a list of operands");
            if (static_cast<std::int64_t>(given->size()) > kMostOperands)
                throw given->error(fmt::format("more than {} operands", kMostOperands));
            for (std::size_t i = 0; i < given->size(); ++i) out.push_back(operand(given->at(i), chunks));
        };
        list("from", sources_);
        list("to", destinations_);
        if (sources_.empty() != destinations_.empty())
            throw value.error(sources_.empty() ? "has destinations (to) and no source (from)"
                                               : "has sources (from) and no destination (to)");
        needs_.clear();
        if (const auto given = value.find("need"))
            for (const auto& each : given->elements()) needs_.push_back(need(each));
        if (static_cast<std::int64_t>(needs_.size()) > kMostOperands)
            throw value.at("need").error(fmt::format("more than {} needs", kMostOperands));
        const auto finalize = value.find("finalize");
        const auto step = value.find("step");
        block.add(sources_, destinations_, needs_, step ? step->integer(-1) : -1,
                  finalize && finalize->boolean());
    }

    Operand operand(const JsonReader& value, int chunks) const {
        if (!value.is_array() || value.size() == 0)
            throw value.error(
                fmt::format("expected an operand, got {}", value.text()),
                R"(as ["input", 0], ["message", 3], ["remote", 1, "output", 0] or ["switch", 0, "output", 0])");
        const auto kind = value.at(std::size_t{0});
        const std::string name = kind.string();
        Operand operand;
        operand.chunks = chunks;
        std::size_t place = 0;  // where [buffer, index] stand
        if (name == "message") {
            expect_size(value, 2, "[\"message\", connection]");
            operand.kind = OperandKind::message;
            operand.target = connection_number(value.at(1));
            return operand;
        }
        if (name == "remote") {
            expect_size(value, 4, "[\"remote\", rank, buffer, index]");
            operand.kind = OperandKind::remote;
            operand.target = number(value.at(1), 0, last_rank_);
            place = 2;
        } else if (name == "switch") {
            expect_size(value, 4, "[\"switch\", group, buffer, index]");
            operand.kind = OperandKind::switch_group;
            if (program_.switch_groups.empty())
                throw value.at(1).error("names a switch group, but the program has none");
            operand.target =
                number(value.at(1), 0, static_cast<std::int64_t>(program_.switch_groups.size()) - 1);
            place = 2;
        } else {
            expect_size(value, 2, "[buffer, index]");
        }
        operand.buffer =
            choice(value.at(place), kBuffers, "operand", place == 0 ? ", message, remote, switch" : "");
        operand.index = number(value.at(place + 1), 0, kMostIndex - chunks + 1);
        return operand;
    }

    static void expect_size(const JsonReader& value, std::size_t size, const char* form) {
        if (value.size() != size) throw value.error(fmt::format("expected {}, got {}", form, value.text()));
    }

    Need need(const JsonReader& value) const {
        if (!value.is_array() || value.size() < 3 || value.size() > 4)
            throw value.error(fmt::format(
                "expected [rank, threadblock, instruction] or the same with \"source_free\", got {}",
                value.text()));
        Need need{number(value.at(std::size_t{0}), 0, last_rank_), number(value.at(1), 0, kMostIndex),
                  number(value.at(2), 0, kMostIndex), Event::completed};
        if (value.size() == 4) {
            const std::string event = value.at(3).string();
            if (event != "source_free" && event != "completed")
                throw value.at(3).error(fmt::format("unknown event \"{}\"", event.substr(0, 60)),
                                        "known: completed, source_free");
            if (event == "source_free") need.event = Event::source_free;
        }
        return need;
    }

    Program program_;
    std::int64_t last_rank_ = 0;
    std::vector<Operand> sources_, destinations_;
    std::vector<Need> needs_;
};

}  // namespace

Program read_program(const JsonReader& root) { return Reader().read(root); }

Program load_program(const std::string& path) {
    const auto document = JsonDocument::load(path);
    return read_program(document.root());
}

Program parse_program(std::string_view text, const std::string& name) {
    const auto document = JsonDocument::parse(text, name);
    return read_program(document.root());
}

}  // namespace baton::ir
