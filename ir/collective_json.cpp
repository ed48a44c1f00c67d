#include <baton/ir/collective_json.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::ir {
namespace {

std::shared_ptr<const CustomPlaces> read_places(const JsonReader& value) {
    auto places = std::make_shared<CustomPlaces>();
    for (const auto& rank : value.at("inputs").elements()) {
        places->inputs.emplace_back();
        for (const auto& place : rank.elements()) {
            if (!place.is_array() || place.size() != 2) throw place.error("expected [shard, class]");
            places->inputs.back().push_back({place.at(std::size_t{0}).integer(0), place.at(1).integer(0)});
        }
    }
    for (const auto& rank : value.at("outputs").elements()) {
        places->outputs.emplace_back();
        for (const auto& place : rank.elements()) {
            place.only_keys({"class", "from"});
            OutputPlace output;
            output.chunk_class = place.at("class").integer(0);
            for (const auto& source : place.at("from").elements()) {
                if (!source.is_array() || source.size() != 2) throw source.error("expected [rank, shard]");
                output.contributions.push_back(
                    {static_cast<int>(source.at(std::size_t{0}).integer(0, INT32_MAX)),
                     source.at(1).integer(0, INT32_MAX)});
            }
            places->outputs.back().push_back(std::move(output));
        }
    }
    return places;
}

}  // namespace

int read_collective(const JsonReader& value, std::optional<int> ranks, std::optional<int> root,
                    const std::map<std::string, std::int64_t>& params, Collective& collective,
                    Expression& chunks) {
    if (!value.is_object()) throw value.error("expected a collective, an object");
    value.only_keys({"kind", "ranks", "chunks", "root", "peer", "weights", "groups", "inputs", "outputs"});
    const auto kind = value.at("kind");
    collective.kind = parse_collective_kind(kind.string(), kind.where());
    int written_for = 0;
    if (const auto given = value.find("ranks")) written_for = static_cast<int>(given->integer(1, 1 << 20));
    if (!ranks && written_for == 0)
        throw value.error("the number of ranks is missing", "name it in the file, or where it is loaded");
    collective.ranks = ranks ? *ranks : written_for;
    if (const auto groups = value.find("groups"))
        for (const auto& group : groups->elements()) {
            collective.groups.emplace_back();
            for (const auto& rank : group.elements())
                collective.groups.back().push_back(static_cast<int>(rank.integer(0, collective.ranks - 1)));
            if (collective.groups.back().empty()) throw group.error("a group without ranks");
        }
    Bindings bindings;
    bindings.values.emplace_back("N", collective.group_size());
    for (const auto& [name, number] : params) bindings.values.emplace_back(name, number);
    const auto number = [&](const JsonReader& at, Expression& written) -> std::int64_t {
        if (at.is_integer()) return at.integer();
        written = Expression::parse(at.string(), at.where());
        try {
            return written.evaluate(bindings);
        } catch (const Error& error) {
            throw at.error(error.message(), error.remedy());
        }
    };
    Expression written_root;
    std::int64_t root_position = 0;
    if (const auto given = value.find("root")) root_position = number(*given, written_root);
    if (root) root_position = *root;
    if (root_position < 0 || root_position >= collective.ranks)
        throw value.error(fmt::format("root {} of {} ranks", root_position, collective.ranks));
    collective.root = static_cast<int>(root_position);
    bindings.values.emplace_back("root", root_position);
    if (const auto peer = value.find("peer"))
        collective.peer = static_cast<int>(peer->integer(-1, collective.ranks - 1));
    if (const auto given = value.find("chunks")) collective.chunks = number(*given, chunks);
    if (const auto weights = value.find("weights"))
        for (const auto& weight : weights->elements()) collective.weights.push_back(weight.integer(1));
    if (collective.kind == CollectiveKind::custom)
        collective.custom = read_places(value);
    else if (value.find("inputs") || value.find("outputs"))
        throw value.error("only a custom collective lists inputs and outputs");
    collective.check(value.where());
    return written_for;
}

Collective read_collective(const JsonReader& value) {
    Collective collective;
    Expression chunks;
    read_collective(value, std::nullopt, std::nullopt, {}, collective, chunks);
    return collective;
}

nlohmann::ordered_json collective_json(const Collective& c) {
    nlohmann::ordered_json json;
    json["kind"] = to_string(c.kind);
    json["ranks"] = c.ranks;
    json["chunks"] = c.chunks;
    if (c.root != 0) json["root"] = c.root;
    if (c.peer >= 0) json["peer"] = c.peer;
    if (!c.weights.empty()) json["weights"] = c.weights;
    if (!c.groups.empty()) json["groups"] = c.groups;
    if (!c.custom) return json;
    auto inputs = nlohmann::ordered_json::array(), outputs = nlohmann::ordered_json::array();
    for (const auto& rank : c.custom->inputs) {
        auto list = nlohmann::ordered_json::array();
        for (const auto& place : rank) list.push_back({place.shard, place.chunk_class});
        inputs.push_back(std::move(list));
    }
    for (const auto& rank : c.custom->outputs) {
        auto list = nlohmann::ordered_json::array();
        for (const auto& place : rank) {
            auto from = nlohmann::ordered_json::array();
            for (const auto& source : place.contributions) from.push_back({source.rank, source.shard});
            list.push_back({{"class", place.chunk_class}, {"from", std::move(from)}});
        }
        outputs.push_back(std::move(list));
    }
    json["inputs"] = std::move(inputs);
    json["outputs"] = std::move(outputs);
    return json;
}

}  // namespace baton::ir
