#include <baton/ir/plan_set.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace baton::ir {
namespace {

constexpr int kMostTiles = 1 << 20, kMostChannels = 1024, kMostSlots = 1024;

/// What rows must have in common to divide one range of sizes among them.
using Key = std::tuple<CollectiveKind, std::optional<int>, std::optional<bool>, std::vector<DataType>>;

Key key_of(const Plan& plan) {
    auto types = plan.types;
    std::sort(types.begin(), types.end());
    return {plan.kind, plan.root, plan.in_place, std::move(types)};
}

std::string words(const Plan& plan) {
    std::string text = fmt::format("plan \"{}\" ({}", plan.id, to_string(plan.kind));
    if (has_root(plan.kind)) text += plan.root ? fmt::format(", root {}", *plan.root) : ", any root";
    if (plan.in_place) text += *plan.in_place ? ", in place" : ", out of place";
    for (const DataType type : plan.types) text += fmt::format(", {}", to_string(type));
    return text + ")";
}

std::int64_t end_of(const Plan& plan) {
    return plan.below ? plan.below->count : std::numeric_limits<std::int64_t>::max();
}

void check_row(const PlanSet& set, const Plan& plan, const std::string& where) {
    const auto refuse = [&](const std::string& what, const std::string& remedy = {}) {
        throw input_error(words(plan) + ": " + what, where, remedy);
    };
    if (plan.id.empty()) refuse("the id is empty");
    if (plan.root && !has_root(plan.kind)) refuse(fmt::format("{} has no root", to_string(plan.kind)));
    if (plan.root && (*plan.root < 0 || *plan.root >= set.ranks))
        refuse(fmt::format("root {} of {} ranks", *plan.root, set.ranks));
    for (std::size_t i = 0; i < plan.types.size(); ++i) {
        if (std::find(plan.types.begin(), plan.types.begin() + static_cast<std::ptrdiff_t>(i),
                      plan.types[i]) != plan.types.begin() + static_cast<std::ptrdiff_t>(i))
            refuse(fmt::format("type {} is listed twice", to_string(plan.types[i])));
    }
    if (plan.from.count < 0) refuse("from is negative");
    if (end_of(plan) <= plan.from.count)
        refuse(fmt::format("serves no size: from {} below {}", to_string(plan.from), to_string(*plan.below)),
               "from is included, below is not");
    if (plan.tiles < 1 || plan.tiles > kMostTiles)
        refuse(fmt::format("{} tiles are out of range", plan.tiles), fmt::format("use 1 to {}", kMostTiles));
    if (plan.channels < 1 || plan.channels > kMostChannels)
        refuse(fmt::format("{} channels are out of range", plan.channels),
               fmt::format("use 1 to {}", kMostChannels));
    if (plan.slots < 0 || plan.slots > kMostSlots)
        refuse(fmt::format("{} slots are out of range", plan.slots),
               fmt::format("use 1 to {}, or 0 for the default", kMostSlots));
    if (plan.mode && *plan.mode != Mode::staged &&
        (plan.protocol == Protocol::ll || plan.protocol == Protocol::ll128))
        refuse(fmt::format("protocol {} is staged, mode is {}", to_string(plan.protocol),
                           to_string(*plan.mode)));
}

/// A schedule must be of the plan's kind and communicator and, once it is bound to a root, of its root.
void check_fit(const PlanSet& set, const Plan& plan, const Schedule& schedule, std::optional<int> root,
               const std::string& where) {
    const Collective& collective = collective_of(schedule);
    const auto refuse = [&](const std::string& what) { throw input_error(words(plan) + ": " + what, where); };
    if (collective.kind != plan.kind)
        refuse(fmt::format("its schedule is of kind {}", to_string(collective.kind)));
    if (collective.ranks != set.ranks)
        refuse(
            fmt::format("its schedule is for {} ranks, the plans are for {}", collective.ranks, set.ranks));
    if (collective.groups != set.groups) refuse("its schedule has other groups");
    if (has_root(plan.kind) && root && collective.root != *root)
        refuse(fmt::format("its schedule has root {}", collective.root));
    if (has_root(plan.kind) && !root && std::holds_alternative<Program>(schedule))
        refuse(fmt::format("its schedule is a program for root {} only", collective.root));
}

/// Sizes of rows of one key, sorted: each begins where the one before ends.
void check_sizes(std::vector<const Plan*>& rows, const std::string& where) {
    std::sort(rows.begin(), rows.end(), [](const Plan* a, const Plan* b) { return a->from < b->from; });
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const std::int64_t end = end_of(*rows[i - 1]), begin = rows[i]->from.count;
        if (end == begin) continue;
        if (end < begin)
            throw input_error(
                fmt::format("{} ends below {} and plan \"{}\" begins at {}: the sizes between have no plan",
                            words(*rows[i - 1]), to_string(Bytes{end}), rows[i]->id, to_string(Bytes{begin})),
                where, "make them meet");
        throw input_error(fmt::format("{} and plan \"{}\" both serve size {}", words(*rows[i - 1]),
                                      rows[i]->id, to_string(Bytes{begin})),
                          where);
    }
}

/// Rows of different keys that are equally specific must not list a type both.
void check_types(const std::map<Key, std::vector<const Plan*>>& keys, const std::string& where) {
    std::map<std::tuple<CollectiveKind, std::optional<int>, std::optional<bool>, DataType>, const Plan*>
        owner;
    for (const auto& [key, rows] : keys) {
        for (const DataType type : std::get<3>(key)) {
            const auto [it, added] =
                owner.try_emplace({std::get<0>(key), std::get<1>(key), std::get<2>(key), type}, rows.front());
            if (!added)
                throw input_error(fmt::format("{} and {} both serve type {}", words(*it->second),
                                              words(*rows.front()), to_string(type)),
                                  where, "list a type in one set of rows");
        }
    }
}

}  // namespace

void PlanSet::check(const std::string& where) const {
    Collective communicator;
    communicator.ranks = ranks;
    communicator.groups = groups;
    communicator.check(where);
    std::set<std::string_view> ids;
    std::map<Key, std::vector<const Plan*>> keys;
    for (const Plan& plan : plans) {
        check_row(*this, plan, where);
        if (!ids.insert(plan.id).second)
            throw input_error(fmt::format("the id \"{}\" is used twice", plan.id), where);
        if (const auto* held = std::get_if<std::shared_ptr<const Schedule>>(&plan.schedule)) {
            if (!*held) throw input_error(words(plan) + ": it has no schedule", where);
            check_fit(*this, plan, **held, plan.root, where);
        } else if (std::get<std::string>(plan.schedule).empty()) {
            throw input_error(words(plan) + ": the path of its schedule is empty", where);
        }
        keys[key_of(plan)].push_back(&plan);
    }
    for (auto& [key, rows] : keys) check_sizes(rows, where);
    check_types(keys, where);
}

std::string refusal(const Plan& plan, const PlanCall& call) {
    if (plan.kind != call.kind)
        return fmt::format("is for {}, the call is {}", to_string(plan.kind), to_string(call.kind));
    if (has_root(plan.kind) && plan.root && *plan.root != call.root)
        return fmt::format("is for root {}, the call has root {}", *plan.root, call.root);
    if (plan.in_place && *plan.in_place != call.in_place)
        return *plan.in_place ? "is for calls in place" : "is for calls out of place";
    if (!plan.types.empty() && std::find(plan.types.begin(), plan.types.end(), call.type) == plan.types.end())
        return fmt::format("is not for type {}", to_string(call.type));
    if (call.size < plan.from)
        return fmt::format("serves sizes from {}, the call has {}", to_string(plan.from),
                           to_string(call.size));
    if (plan.below && call.size >= *plan.below)
        return fmt::format("serves sizes below {}, the call has {}", to_string(*plan.below),
                           to_string(call.size));
    return {};
}

const Plan* PlanSet::find(const PlanCall& call) const {
    const Plan* best = nullptr;
    const auto rank = [](const Plan& plan) {
        return std::tuple(plan.root.has_value(), plan.in_place.has_value(), !plan.types.empty());
    };
    for (const Plan& plan : plans) {
        if (best != nullptr && rank(plan) <= rank(*best)) continue;
        if (refusal(plan, call).empty()) best = &plan;
    }
    return best;
}

Schedule PlanSet::schedule_of(const Plan& plan, std::optional<int> root) const {
    if (!has_root(plan.kind)) root = std::nullopt;
    if (plan.root && root && *plan.root != *root)
        throw input_error(fmt::format("{}: asked for root {}", words(plan), *root), name);
    if (plan.root) root = plan.root;
    LoadOptions options;
    options.root = root;
    if (const auto* path = std::get_if<std::string>(&plan.schedule)) {
        const auto full = (std::filesystem::path(folder) / *path).string();
        options.ranks = ranks;
        Schedule schedule = load_schedule(full, options);
        check_fit(*this, plan, schedule, root, full);
        return schedule;
    }
    const auto& held = std::get<std::shared_ptr<const Schedule>>(plan.schedule);
    if (!held) throw input_error(words(plan) + ": it has no schedule", name);
    if (!root || collective_of(*held).root == *root) return *held;
    // Loops and expressions may name the root: read them again for this one.
    return parse_schedule(to_json(*held), plan.id, options);
}

}  // namespace baton::ir
