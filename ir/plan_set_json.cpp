// Plan sets as JSON.
#include <baton/base/json_reader.hpp>
#include <baton/ir/json_choice.hpp>
#include <baton/ir/json_text.hpp>
#include <baton/ir/plan_set.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace baton::ir {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPlans = 100'000;
constexpr std::array kOrders{Order::any, Order::fixed, Order::replicas_equal, Order::rank_order};

bool says_any(const JsonReader& value) { return value.is_string() && value.string() == "any"; }

int small(const JsonReader& plan, std::string_view key, int otherwise) {
    const auto value = plan.find(key);
    return value ? static_cast<int>(value->integer(0, INT32_MAX)) : otherwise;
}

std::variant<std::shared_ptr<const Schedule>, std::string> read_schedule_of(const JsonReader& value,
                                                                            std::optional<int> root) {
    if (value.is_string()) return value.string();
    if (!value.is_object()) throw value.error("expected a schedule, or the path of its file");
    LoadOptions options;
    options.root = root;
    return std::make_shared<const Schedule>(read_schedule(value, options));
}

Plan read_plan(const JsonReader& value) {
    value.only_keys({"id", "collective", "root", "in_place", "types", "from", "below", "schedule", "tiles",
                     "channels", "protocol", "mode", "slots", "wide", "time", "bound", "order"});
    Plan plan;
    plan.id = value.at("id").string();
    const auto kind = value.at("collective");
    plan.kind = parse_collective_kind(kind.string(), kind.where());
    if (const auto root = value.find("root"); root && !says_any(*root))
        plan.root = static_cast<int>(root->integer(0, INT32_MAX));
    if (plan.root && !has_root(plan.kind))
        throw value.at("root").error(fmt::format("{} has no root", to_string(plan.kind)));
    if (const auto in_place = value.find("in_place"); in_place && !says_any(*in_place))
        plan.in_place = in_place->boolean();
    if (const auto types = value.find("types"); types && !says_any(*types)) {
        for (const auto& type : types->elements())
            plan.types.push_back(parse_data_type(type.string(), type.where()));
        if (plan.types.empty()) throw types->error("an empty list of types", "write \"any\" for all types");
    }
    if (const auto from = value.find("from")) plan.from = from->bytes();
    if (const auto below = value.find("below"); below && !below->is_null()) plan.below = below->bytes();
    plan.tiles = small(value, "tiles", plan.tiles);
    plan.channels = small(value, "channels", plan.channels);
    plan.slots = small(value, "slots", plan.slots);
    if (const auto protocol = value.find("protocol"))
        plan.protocol = choice(*protocol, kProtocols, "protocol");
    if (const auto mode = value.find("mode")) plan.mode = choice(*mode, kModes, "mode");
    if (const auto wide = value.find("wide")) plan.wide = wide->boolean();
    if (const auto time = value.find("time")) plan.time = time->time();
    if (const auto bound = value.find("bound")) plan.bound = bound->time();
    if (const auto order = value.find("order")) plan.order = choice(*order, kOrders, "order");
    plan.schedule = read_schedule_of(value.at("schedule"), plan.root);
    return plan;
}

/// In the largest unit that keeps every picosecond.
std::string exact(Time time) {
    constexpr std::array<std::pair<const char*, int>, 4> kUnits{{{"s", 12}, {"ms", 9}, {"us", 6}, {"ns", 3}}};
    const std::string digits = std::to_string(time.picoseconds);
    for (const auto& [unit, places] : kUnits) {
        if (time.picoseconds < 0 || static_cast<int>(digits.size()) <= places) continue;
        std::string text = digits;
        text.insert(text.size() - static_cast<std::size_t>(places), ".");
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.pop_back();
        return text + unit;
    }
    return digits + "ps";
}

Json plan_json(const Plan& plan) {
    Json json;
    json["id"] = plan.id;
    json["collective"] = to_string(plan.kind);
    if (has_root(plan.kind)) json["root"] = plan.root ? Json(*plan.root) : Json("any");
    if (plan.in_place) json["in_place"] = *plan.in_place;
    for (const DataType type : plan.types) json["types"].push_back(to_string(type));
    json["from"] = to_string(plan.from);
    if (plan.below) json["below"] = to_string(*plan.below);
    json["tiles"] = plan.tiles;
    json["channels"] = plan.channels;
    if (plan.protocol != Protocol::automatic) json["protocol"] = to_string(plan.protocol);
    if (plan.mode) json["mode"] = to_string(*plan.mode);
    if (plan.slots > 0) json["slots"] = plan.slots;
    if (plan.wide) json["wide"] = true;
    if (plan.time) json["time"] = exact(*plan.time);
    if (plan.bound) json["bound"] = exact(*plan.bound);
    if (plan.order) json["order"] = to_string(*plan.order);
    if (const auto* path = std::get_if<std::string>(&plan.schedule))
        json["schedule"] = *path;
    else
        json["schedule"] = Json::parse(to_json(*std::get<std::shared_ptr<const Schedule>>(plan.schedule)));
    return json;
}

}  // namespace

PlanSet read_plan_set(const JsonReader& root) {
    if (!root.is_object()) throw root.error("expected a plan set, an object");
    const auto format = root.at("baton");
    if (format.string() != "plans/1")
        throw format.error(fmt::format("expected \"plans/1\", got \"{}\"", format.string().substr(0, 60)));
    root.only_keys({"baton", "name", "note", "topology", "ranks", "groups", "model", "plans"});
    PlanSet set;
    if (const auto name = root.find("name")) set.name = name->string();
    if (const auto topology = root.find("topology")) {
        topology->only_keys({"name", "hash"});
        if (const auto name = topology->find("name")) set.topology_name = name->string();
        if (const auto hash = topology->find("hash")) set.topology_hash = hash->string();
    }
    set.ranks = static_cast<int>(root.at("ranks").integer(1, 1 << 20));
    if (const auto groups = root.find("groups")) {
        for (const auto& group : groups->elements()) {
            set.groups.emplace_back();
            for (const auto& member : group.elements())
                set.groups.back().push_back(static_cast<int>(member.integer(0, set.ranks - 1)));
        }
    }
    if (const auto model = root.find("model")) set.model = model->string();
    const auto plans = root.at("plans");
    if (plans.is_array() && plans.size() > kMostPlans)
        throw plans.error(fmt::format("{} plans are too many", plans.size()),
                          fmt::format("use at most {}", kMostPlans));
    for (const auto& plan : plans.elements()) {
        if (!plan.is_object())
            throw plan.error(fmt::format("expected a plan, an object; got {}", plan.text()));
        set.plans.push_back(read_plan(plan));
    }
    set.check(root.where());
    return set;
}

PlanSet load_plan_set(const std::string& path) {
    const auto document = JsonDocument::load(path);
    PlanSet set = read_plan_set(document.root());
    set.folder = std::filesystem::path(path).parent_path().string();
    return set;
}

PlanSet parse_plan_set(std::string_view text, const std::string& name) {
    const auto document = JsonDocument::parse(text, name);
    return read_plan_set(document.root());
}

std::string to_json(const PlanSet& set) {
    Json head;
    head["baton"] = "plans/1";
    if (!set.name.empty()) head["name"] = set.name;
    if (!set.topology_name.empty()) head["topology"]["name"] = set.topology_name;
    if (!set.topology_hash.empty()) head["topology"]["hash"] = set.topology_hash;
    head["ranks"] = set.ranks;
    if (!set.groups.empty()) head["groups"] = set.groups;
    if (!set.model.empty()) head["model"] = set.model;
    std::string text = "{";
    for (auto it = head.begin(); it != head.end(); ++it)
        text += spaced_json(it.key()) + ": " + spaced_json(*it) + ",\n ";
    text += "\"plans\": [";
    for (std::size_t i = 0; i < set.plans.size(); ++i)
        text += (i == 0 ? "\n  " : ",\n  ") + spaced_json(plan_json(set.plans[i]));
    return text + "]}\n";
}

}  // namespace baton::ir
