// Algorithm to JSON and CBOR.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/collective_json.hpp>
#include <baton/ir/json_text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::ir {
namespace {

using Json = nlohmann::ordered_json;

Json value(const Expression& expression) {
    if (const auto number = expression.literal()) return *number;
    return expression.text();
}

class Writer {
public:
    explicit Writer(const Algorithm& algorithm) : algorithm_(algorithm) {}

    Json body(const Body& items) {
        Json list = Json::array();
        for (const auto& entry : items) std::visit([&](const auto& kind) { item(kind, list); }, entry.value);
        return list;
    }

private:
    static Json place(Json rank, Buffer buffer, Json index) {
        return Json::array({std::move(rank), to_string(buffer), std::move(index)});
    }

    void hints(Json& json, Protocol protocol, int via) const {
        if (protocol != Protocol::automatic) json["protocol"] = to_string(protocol);
        if (via >= 0) json["via"] = algorithm_.vias.at(static_cast<std::size_t>(via));
    }

    void item(const StepTemplate& step, Json& list) {
        const bool from_group = step.op == StepOp::switch_reduce;
        Json json;
        json["op"] = to_string(step.op);
        json["src"] =
            place(value(from_group ? step.dst_rank : step.src_rank), step.src_buffer, value(step.src_index));
        json["dst"] =
            place(value(from_group ? step.src_rank : step.dst_rank), step.dst_buffer, value(step.dst_index));
        if (step.chunks.present() && step.chunks.literal() != 1) json["chunks"] = value(step.chunks);
        if (step.channel.present()) json["channel"] = value(step.channel);
        hints(json, step.protocol, step.via);
        if (!step.condition) {
            list.push_back(std::move(json));
            return;
        }
        list.push_back({{"if", value(*step.condition)}, {"then", Json::array({std::move(json)})}});
    }
    void item(const Loop& loop, Json& list) {
        Json json;
        json["for"] = Json::array({loop.variable, value(loop.from), value(loop.to)});
        if (loop.multiply != 0) json["mul"] = loop.multiply;
        if (loop.multiply == 0 && loop.add != 1) json["add"] = loop.add;
        json["do"] = body(*loop.body);
        list.push_back(std::move(json));
    }
    void item(const Let& let, Json& list) {
        Json named;
        named[let.name] = value(let.value);
        list.push_back({{"let", std::move(named)}});
    }
    void item(const Branch& branch, Json& list) {
        Json json;
        json["if"] = value(branch.condition);
        json["then"] = branch.then_body ? body(*branch.then_body) : Json::array();
        if (branch.else_body) json["else"] = body(*branch.else_body);
        list.push_back(std::move(json));
    }
    void item(const Parallel& parallel, Json& list) {
        in_par_ = true;
        list.push_back({{"par", body(*parallel.body)}});
        in_par_ = false;
    }
    void item(const ExplicitSteps& run, Json& list) {
        if (algorithm_.over_positions && !algorithm_.collective.groups.empty())
            throw input_error(
                "explicit steps name ranks, but the algorithm is over the positions of its groups",
                algorithm_.name, "set over_positions to false");
        for (const auto& step : *run.steps) {
            Json json = explicit_step(step);
            if (!step.in_par || in_par_)
                list.push_back(std::move(json));
            else if (!step.par)
                list.push_back({{"par", Json::array({std::move(json)})}});
            else
                list.back()["par"].push_back(std::move(json));
        }
    }

    Json explicit_step(const Step& step) const {
        const bool from_group = step.op == StepOp::switch_reduce;
        Json json;
        json["op"] = to_string(step.op);
        json["src"] = place(from_group ? step.dst_rank : step.src_rank, step.src_buffer, step.src_index);
        json["dst"] = place(from_group ? step.src_rank : step.dst_rank, step.dst_buffer, step.dst_index);
        if (step.chunks != 1) json["chunks"] = step.chunks;
        if (step.channel >= 0) json["channel"] = step.channel;
        hints(json, step.protocol, step.via);
        return json;
    }

    const Algorithm& algorithm_;
    bool in_par_ = false;
};

Json document(const Algorithm& algorithm) {
    Json json;
    json["baton"] = "algorithm/1";
    json["name"] = algorithm.name;
    json["collective"] = collective_json(algorithm.collective);
    if (algorithm.chunks_expression.present())
        json["collective"]["chunks"] = value(algorithm.chunks_expression);
    if (!algorithm.params.empty()) json["params"] = algorithm.params;
    for (std::size_t i = 0; i < algorithm.requirements.size(); ++i) {
        const bool words = i < algorithm.requirement_words.size() && !algorithm.requirement_words[i].empty();
        Json that = value(algorithm.requirements[i]);
        json["requires"].push_back(
            words ? Json{{"that", std::move(that)}, {"words", algorithm.requirement_words[i]}}
                  : std::move(that));
    }
    if (!algorithm.over_positions && !algorithm.collective.groups.empty()) json["over"] = "ranks";
    if (!algorithm.switch_groups.empty()) json["switch_groups"] = algorithm.switch_groups;
    if (!algorithm.topology_name.empty()) json["topology"]["name"] = algorithm.topology_name;
    if (!algorithm.topology_hash.empty()) json["topology"]["hash"] = algorithm.topology_hash;
    json["steps"] = Writer(algorithm).body(algorithm.body);
    return json;
}

}  // namespace

std::string to_json(const Algorithm& algorithm) {
    const Json json = document(algorithm);
    std::string text;
    for (auto it = json.begin(); it != json.end(); ++it) {
        text += (text.empty() ? "{" : ",\n ") + spaced_json(it.key()) + ": ";
        if (it.key() != "steps") {
            text += spaced_json(*it);
            continue;
        }
        text += "[";
        for (std::size_t i = 0; i < it->size(); ++i)
            text += (i == 0 ? "\n  " : ",\n  ") + spaced_json((*it)[i]);
        text += "]";
    }
    return text + "}\n";
}

std::string to_cbor(const Algorithm& algorithm) { return cbor_bytes(document(algorithm)); }

}  // namespace baton::ir
