// Program to JSON and CBOR.
#include <baton/ir/collective_json.hpp>
#include <baton/ir/json_text.hpp>
#include <baton/ir/program_json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::ir {
namespace {

using Json = nlohmann::ordered_json;

Json operand(const Operand& o) {
    switch (o.kind) {
        case OperandKind::local: return Json::array({to_string(o.buffer), o.index});
        case OperandKind::message: return Json::array({"message", o.target});
        case OperandKind::remote: return Json::array({"remote", o.target, to_string(o.buffer), o.index});
        case OperandKind::switch_group:
            return Json::array({"switch", o.target, to_string(o.buffer), o.index});
    }
    return {};
}

Json instruction(const Threadblock& block, const Instruction& i) {
    Json json = Json::object();
    if (i.needs > 0) {
        Json list = Json::array();
        for (const Need& need : block.needs_of(i)) {
            Json entry = Json::array({need.rank, need.threadblock, need.instruction});
            if (need.event == Event::source_free) entry.push_back("source_free");
            list.push_back(std::move(entry));
        }
        json["need"] = std::move(list);
    }
    const auto operands = [&](const char* name, std::span<const Operand> all) {
        Json list = Json::array();
        for (const Operand& each : all) list.push_back(operand(each));
        json[name] = std::move(list);
    };
    operands("from", block.sources(i));
    operands("to", block.destinations(i));
    if (i.sources > 0 && block.sources(i)[0].chunks != 1) json["chunks"] = block.sources(i)[0].chunks;
    if (i.finalize) json["finalize"] = true;
    if (i.step >= 0) json["step"] = i.step;
    return json;
}

Json connection(const Connection& c) {
    Json json{{"src", c.src},
              {"dst", c.dst},
              {"channel", c.channel},
              {"mode", to_string(c.mode)},
              {"protocol", to_string(c.protocol)}};
    if (c.mode == Mode::staged) json["slots"] = c.slots;
    return json;
}

/// Members of the document before "ranks".
Json head(const Program& program) {
    Json json;
    json["baton"] = "program/1";
    json["name"] = program.name;
    json["collective"] = collective_json(program.collective);
    if (program.wide) json["wide"] = true;
    if (program.clobbers_input) json["clobbers_input"] = true;
    if (program.in_place) json["in_place"] = *program.in_place;
    if (!program.switch_groups.empty()) json["switch_groups"] = program.switch_groups;
    if (!program.topology_hash.empty()) json["topology"]["hash"] = program.topology_hash;
    if (!program.foreign.empty()) json["foreign"] = program.foreign;
    json["connections"] = Json::array();
    for (const Connection& each : program.connections) json["connections"].push_back(connection(each));
    return json;
}

/// Members of a threadblock besides "instructions".
Json block_head(const Threadblock& block) {
    Json json{{"sends", block.sends}, {"receives", block.receives}};
    if (!block.repeats.empty()) {
        Json list = Json::array();
        for (const Repeat& repeat : block.repeats)
            list.push_back(Json::array({repeat.first, repeat.body, repeat.times}));
        json["repeats"] = std::move(list);
    }
    return json;
}

template <class Range, class Line>
void lines(std::string& text, const Range& range, const std::string& indent, const Line& line) {
    bool first = true;
    for (const auto& each : range) {
        text += (first ? "\n" : ",\n") + indent;
        line(each);
        first = false;
    }
}

}  // namespace

std::string to_json(const Program& program) {
    const Json json = head(program);
    std::string text;
    for (auto it = json.begin(); it != json.end(); ++it) {
        text += (text.empty() ? "{" : ",\n ") + spaced_json(it.key()) + ": ";
        if (it.key() != "connections") {
            text += spaced_json(*it);
            continue;
        }
        text += '[';
        lines(text, *it, "  ", [&](const Json& each) { text += spaced_json(each); });
        text += ']';
    }
    text += ",\n \"ranks\": [";
    lines(text, program.ranks, "  ", [&](const RankProgram& rank) {
        text += '{';
        if (!rank.scratch_classes.empty())
            text += fmt::format("\"scratch\": {}, ", spaced_json(rank.scratch_classes));
        text += "\"threadblocks\": [";
        lines(text, rank.threadblocks, "   ", [&](const Threadblock& block) {
            const std::string rest = spaced_json(block_head(block));
            text += rest.substr(0, rest.size() - 1) + ", \"instructions\": [";
            lines(text, block.instructions, "    ",
                  [&](const Instruction& each) { text += spaced_json(instruction(block, each)); });
            text += "]}";
        });
        text += "]}";
    });
    return text + "]}\n";
}

std::string to_cbor(const Program& program) {
    Json json = head(program);
    json["ranks"] = Json::array();
    for (const RankProgram& rank : program.ranks) {
        Json entry = Json::object();
        if (!rank.scratch_classes.empty()) entry["scratch"] = rank.scratch_classes;
        entry["threadblocks"] = Json::array();
        for (const Threadblock& block : rank.threadblocks) {
            Json code = block_head(block);
            code["instructions"] = Json::array();
            for (const Instruction& each : block.instructions)
                code["instructions"].push_back(instruction(block, each));
            entry["threadblocks"].push_back(std::move(code));
        }
        json["ranks"].push_back(std::move(entry));
    }
    return cbor_bytes(json);
}

}  // namespace baton::ir
