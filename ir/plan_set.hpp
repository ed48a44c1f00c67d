// PlanSet: which schedule, run how, for which collective and size ("baton": "plans/1"; docs/ir.md describes
// the file). synth and tune write it, the runtime reads it.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/data_type.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace baton {
class JsonReader;
}

namespace baton::ir {

/// One call of a collective, as far as the choice of a plan goes. All of it is the same on every rank.
struct PlanCall {
    CollectiveKind kind = CollectiveKind::all_reduce;
    int root = 0;  ///< for kinds with a root
    Bytes size;    ///< of the larger of the send and the receive buffer of a rank
    bool in_place = false;
    DataType type = DataType::f32;
};

/// One row: a schedule with the choices for a range of sizes.
struct Plan {
    std::string id;  ///< unique within the set
    CollectiveKind kind = CollectiveKind::all_reduce;
    std::optional<int> root;       ///< none = any; always none for kinds without a root
    std::optional<bool> in_place;  ///< none = both
    std::vector<DataType> types;   ///< each once; empty = all
    Bytes from;                    ///< first size that the row serves
    std::optional<Bytes> below;    ///< first size that it no longer serves; none = no end
    /// The schedule itself, or the path of its file, seen from the folder of the plan set.
    std::variant<std::shared_ptr<const Schedule>, std::string> schedule;
    int tiles = 1;     ///< at least 1; raised by the runtime until every message fits one slot
    int channels = 1;  ///< parallel lanes for steps without a channel of their own
    Protocol protocol = Protocol::automatic;
    std::optional<Mode> mode;  ///< transfer mode; none = the lowering's choice
    int slots = 0;             ///< depth of staged connections; 0 = the lowering's default
    bool wide = false;         ///< f16, bf16 and f8 travel as f32 until finalized
    std::optional<Time> time,
        bound;  ///< time at `from`, by the set's model or measurement; proven lower limit there
    std::optional<Order> order;  ///< proven order of reduction
};

/// Plans for one communicator. Rows of one key (kind, root, in_place, types) cover their sizes without gap or
/// overlap.
struct PlanSet {
    std::string name;
    std::string topology_name, topology_hash;  ///< the machine it was made for; empty = any
    int ranks = 1;
    std::vector<std::vector<int>> groups;  ///< as in Collective
    std::string model;                     ///< where the times come from, in words: "simulated: flow"
    std::vector<Plan> plans;
    std::string folder;  ///< of the file it was read from; paths of schedules start there

    /// Throws an input error at `where` that names the plan: an id twice, sizes with a gap or an overlap, two
    /// rows that serve the same call equally well, roots out of range, an inline schedule of another kind,
    /// root or communicator.
    void check(const std::string& where = {}) const;

    /// The plan for a call; null when none serves it. A row for the call's root goes before one for any root,
    /// then a row for the call's placement before one for both, then a row that lists the type before one for
    /// all types.
    const Plan* find(const PlanCall& call) const;

    /// The schedule of a plan, read from its file where it is not inline, for `root` where the plan leaves
    /// the root open. Throws an input error when the file is absent or broken, or does not fit the plan.
    Schedule schedule_of(const Plan& plan, std::optional<int> root = std::nullopt) const;
};

/// Why a plan does not serve a call, in words ("serves sizes from 1MiB, the call has 4KiB"); "" when it does.
std::string refusal(const Plan& plan, const PlanCall& call);

/// Reads a file, JSON or CBOR, and checks it. Files of schedules are not opened. Throws an input error with
/// file and JSON pointer. At most 100,000 plans.
PlanSet load_plan_set(const std::string& path);
/// The same from text; `name` stands for the file in messages.
PlanSet parse_plan_set(std::string_view text, const std::string& name = "<text>");
/// The same from a document that is already open.
PlanSet read_plan_set(const JsonReader& root);

/// One plan a line. Parses back to the same set.
std::string to_json(const PlanSet& set);

}  // namespace baton::ir
