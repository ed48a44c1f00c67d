// JSON to Algorithm.
#include <baton/base/json_reader.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/collective_json.hpp>
#include <baton/ir/json_choice.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace baton::ir {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::int64_t kMaxIndex = std::int64_t{1} << 31;

Expression expression(const JsonReader& value) {
    if (value.is_integer()) return {value.integer()};
    if (!value.is_string())
        throw value.error(fmt::format("expected an integer or an expression, got {}", value.text()));
    return Expression::parse(value.string(), value.where());
}

constexpr std::array kOps{StepOp::copy,        StepOp::reduce,    StepOp::send,
                          StepOp::send_reduce, StepOp::multicast, StepOp::switch_reduce};

class Reader {
public:
    explicit Reader(Algorithm& algorithm) : algorithm_(algorithm) {}

    /// Whether a step has an operand that is no literal.
    bool found_expression = false;

    Body body(const JsonReader& list, int depth, bool literal_runs) {
        if (depth > kMaxDepth) throw list.error(fmt::format("more than {} levels of loops", kMaxDepth));
        if (!list.is_array()) throw list.error("expected a list of steps");
        Body out;
        std::vector<Step> run;
        int run_line = 0;
        const auto flush = [&] {
            if (run.empty()) return;
            out.push_back(
                {ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(run))}, run_line});
            run = {};
        };
        const std::size_t size = list.size();
        for (std::size_t i = 0; i < size; ++i) {
            const JsonReader item = list.at(i);
            if (literal_runs) {
                if (run.empty()) run_line = static_cast<int>(i);
                if (literal_item(item, run)) continue;
            }
            flush();
            out.push_back({entry(item, depth, literal_runs), static_cast<int>(i)});
        }
        flush();
        return out;
    }

private:
    using ItemValue = decltype(Item::value);

    ItemValue entry(const JsonReader& item, int depth, bool literal_runs) {
        if (!item.is_object())
            throw item.error(fmt::format("expected a step, for, let, if or par; got {}", item.text()));
        if (item.find("op")) {
            const auto step = template_of(item);
            found_expression |= !literal(step);
            return step;
        }
        if (item.find("for")) return loop(item, depth, literal_runs);
        if (item.find("if")) {
            item.only_keys({"if", "then", "else"});
            Branch branch;
            branch.condition = expression(item.at("if"));
            branch.then_body = std::make_shared<const Body>(body(item.at("then"), depth + 1, false));
            if (const auto other = item.find("else"))
                branch.else_body = std::make_shared<const Body>(body(*other, depth + 1, false));
            found_expression = true;
            return branch;
        }
        if (item.find("par")) {
            item.only_keys({"par"});
            if (in_par_) throw item.error("a par block inside a par block");
            in_par_ = true;
            auto inner = std::make_shared<const Body>(body(item.at("par"), depth + 1, literal_runs));
            in_par_ = false;
            return Parallel{std::move(inner)};
        }
        if (item.find("let")) return let(item);
        throw item.error(fmt::format("expected one of op, for, let, if, par; got {}", item.text()));
    }

    Loop loop(const JsonReader& item, int depth, bool literal_runs) {
        item.only_keys({"for", "do", "add", "mul"});
        const auto head = item.at("for");
        if (!head.is_array() || head.size() != 3) throw head.error("expected [variable, from, to]");
        Loop loop;
        loop.variable = head.at(std::size_t{0}).string();
        loop.from = expression(head.at(1));
        loop.to = expression(head.at(2));
        const auto add = item.find("add"), multiply = item.find("mul");
        if (add && multiply) throw item.error("a loop adds or multiplies, not both");
        if (add) loop.add = add->integer();
        if (add && loop.add == 0) throw add->error("a loop that adds 0 never ends");
        if (multiply) loop.multiply = multiply->integer(2);
        loop.body = std::make_shared<const Body>(body(item.at("do"), depth + 1, literal_runs));
        return loop;
    }

    Let let(const JsonReader& item) {
        item.only_keys({"let"});
        const auto names = item.at("let").members();
        if (names.size() != 1) throw item.error("a let names one value", "write one let for each name");
        return {names[0].first, expression(names[0].second)};
    }

    /// Takes a step of literals, or a par block of such, into `run`. Uses the raw value: files of millions of
    /// explicit steps pass here. False leaves the item, right or wrong, to the slow path, which tells what is
    /// wrong.
    bool literal_item(const JsonReader& item, std::vector<Step>& run) {
        const auto& raw = item.raw();
        if (!raw.is_object()) return false;
        if (raw.contains("op")) {
            Step step;
            if (!literal_step(raw, step)) return false;
            check_literal(step, item);
            run.push_back(step);
            return true;
        }
        if (in_par_ || raw.size() != 1 || !raw.contains("par") || !raw.begin()->is_array()) return false;
        const auto& list = *raw.begin();
        std::vector<Step> block(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (!list[i].is_object() || !literal_step(list[i], block[i])) return false;
            check_literal(block[i], item);
            block[i].in_par = 1;
            block[i].par = i > 0;
        }
        run.insert(run.end(), block.begin(), block.end());
        return true;
    }

    static bool literal_step(const nlohmann::ordered_json& raw, Step& step) {
        bool op = false, src = false, dst = false;
        std::int64_t chunks = 1, channel = -1;
        for (auto it = raw.begin(); it != raw.end(); ++it) {
            const auto& key = it.key();
            if (key == "op") {
                op = name(*it, kOps, step.op) && step.op != StepOp::multicast &&
                     step.op != StepOp::switch_reduce;
            } else if (key == "src") {
                src = place(*it, step.src_rank, step.src_buffer, step.src_index);
            } else if (key == "dst") {
                dst = place(*it, step.dst_rank, step.dst_buffer, step.dst_index);
            } else if (key == "chunks") {
                if (!in_range(*it, 1, INT32_MAX, chunks)) return false;
            } else if (key == "channel") {
                if (!in_range(*it, -1, INT16_MAX, channel)) return false;
            } else {
                return false;
            }
        }
        step.chunks = static_cast<std::int32_t>(chunks);
        step.channel = static_cast<std::int16_t>(channel);
        return op && src && dst;
    }
    static bool in_range(const nlohmann::ordered_json& raw, std::int64_t low, std::int64_t high,
                         std::int64_t& value) {
        if (!raw.is_number_integer()) return false;
        if (raw.is_number_unsigned() && raw.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
            return false;
        value = raw.get<std::int64_t>();
        return value >= low && value <= high;
    }
    static bool place(const nlohmann::ordered_json& raw, std::int32_t& rank, Buffer& buffer,
                      std::int32_t& index) {
        std::int64_t r = 0, i = 0;
        if (!raw.is_array() || raw.size() != 3 || !in_range(raw[0], 0, INT32_MAX, r) ||
            !name(raw[1], kBuffers, buffer) || !in_range(raw[2], 0, INT32_MAX, i))
            return false;
        rank = static_cast<std::int32_t>(r);
        index = static_cast<std::int32_t>(i);
        return true;
    }
    template <class Enum, std::size_t Count>
    static bool name(const nlohmann::ordered_json& raw, const std::array<Enum, Count>& all, Enum& value) {
        if (!raw.is_string()) return false;
        const auto& text = raw.get_ref<const std::string&>();
        for (const auto entry : all)
            if (text == to_string(entry)) {
                value = entry;
                return true;
            }
        return false;
    }

    void check_literal(Step& step, const JsonReader& item) const {
        const int ranks = algorithm_.collective.ranks;
        for (const auto rank : {step.src_rank, step.dst_rank})
            if (rank >= ranks)
                throw item.error(
                    fmt::format("{}: rank {}, but there are {} ranks", describe(step), rank, ranks));
        if (std::max(step.src_index, step.dst_index) + std::int64_t{step.chunks} > kMaxIndex)
            throw item.error(fmt::format("{}: the last index is above 2^31-1", describe(step)));
        const bool same = step.src_rank == step.dst_rank;
        if (!same && !step.crosses())
            throw item.error(
                fmt::format("{} between ranks {} and {}", to_string(step.op), step.src_rank, step.dst_rank),
                "copy and reduce stay on one rank; use send or send_reduce");
        if (same && step.op == StepOp::send) step.op = StepOp::copy;
        if (same && step.op == StepOp::send_reduce) step.op = StepOp::reduce;
    }

    StepTemplate template_of(const JsonReader& item) {
        item.only_keys({"op", "src", "dst", "chunks", "channel", "via", "protocol"});
        StepTemplate step;
        step.op = choice(item.at("op"), kOps, "op");
        // A switch group stands first in the place that it owns; the step keeps it as the destination's rank.
        const bool from_group = step.op == StepOp::switch_reduce;
        operand(item.at("src"), from_group ? step.dst_rank : step.src_rank, step.src_buffer, step.src_index);
        operand(item.at("dst"), from_group ? step.src_rank : step.dst_rank, step.dst_buffer, step.dst_index);
        if (const auto chunks = item.find("chunks")) step.chunks = expression(*chunks);
        if (const auto channel = item.find("channel")) step.channel = expression(*channel);
        if (const auto protocol = item.find("protocol"))
            step.protocol = choice(*protocol, kProtocols, "protocol");
        if (const auto via = item.find("via")) {
            const std::string route = via->string();
            auto& vias = algorithm_.vias;
            const auto found = std::find(vias.begin(), vias.end(), route);
            step.via = static_cast<int>(found - vias.begin());
            if (found == vias.end()) vias.push_back(route);
        }
        return step;
    }

    static void operand(const JsonReader& place, Expression& rank, Buffer& buffer, Expression& index) {
        if (!place.is_array() || place.size() != 3)
            throw place.error(fmt::format("expected [rank, buffer, index], got {}", place.text()));
        rank = expression(place.at(std::size_t{0}));
        buffer = choice(place.at(1), kBuffers, "buffer");
        index = expression(place.at(2));
    }

    static bool literal(const StepTemplate& step) {
        const auto constant = [](const Expression& e) { return !e.present() || e.literal(); };
        return constant(step.src_rank) && constant(step.src_index) && constant(step.dst_rank) &&
               constant(step.dst_index) && constant(step.chunks) && constant(step.channel);
    }

    Algorithm& algorithm_;
    bool in_par_ = false;
};

void read_params(const JsonReader& root, const LoadOptions& options, Algorithm& algorithm) {
    std::string known;
    if (const auto params = root.find("params")) {
        if (!params->is_object()) throw params->error("expected an object of integers");
        for (const auto& [name, value] : params->members()) {
            algorithm.params[name] = value.integer();
            known += (known.empty() ? "" : ", ") + name;
        }
    }
    for (const auto& [name, value] : options.params) {
        const auto found = algorithm.params.find(name);
        if (found == algorithm.params.end())
            throw root.error(fmt::format("the algorithm has no param \"{}\"", name),
                             known.empty() ? "it has none" : "it has: " + known);
        found->second = value;
    }
}

void read_requirements(const JsonReader& root, Algorithm& algorithm) {
    const auto list = root.find("requires");
    if (!list) return;
    const auto add = [&](const JsonReader& value) {
        std::string words;
        if (value.is_object()) {
            value.only_keys({"that", "words"});
            algorithm.requirements.push_back(expression(value.at("that")));
            words = value.at("words").string();
        } else {
            algorithm.requirements.push_back(expression(value));
        }
        for (const auto& name : algorithm.requirements.back().names())
            if (name != "N" && name != "C" && name != "root" && !algorithm.params.count(name))
                throw value.error(fmt::format("unknown name \"{}\"", name),
                                  "requirements are over N, C, root and params");
        algorithm.requirement_words.push_back(words);
    };
    if (!list->is_array()) return add(*list);
    for (const auto& value : list->elements()) add(value);
}

}  // namespace

Algorithm read_algorithm(const JsonReader& root, const LoadOptions& options) {
    if (!root.is_object()) throw root.error("expected an algorithm, an object");
    const auto format = root.at("baton");
    if (format.string() != "algorithm/1")
        throw format.error(
            fmt::format("expected \"algorithm/1\", got \"{}\"", format.string().substr(0, 60)));
    root.only_keys({"baton", "name", "note", "collective", "params", "requires", "over", "switch_groups",
                    "topology", "steps"});
    Algorithm algorithm;
    if (const auto name = root.find("name")) algorithm.name = name->string();
    read_params(root, options, algorithm);
    const int written_for =
        read_collective(root.at("collective"), options.ranks, options.root, algorithm.params,
                        algorithm.collective, algorithm.chunks_expression);
    if (const auto over = root.find("over")) {
        const std::string text = over->string();
        if (text != "positions" && text != "ranks") throw over->error("expected \"positions\" or \"ranks\"");
        algorithm.over_positions = text == "positions";
    }
    read_requirements(root, algorithm);
    algorithm.check_requirements();
    if (const auto groups = root.find("switch_groups"))
        for (const auto& group : groups->elements()) {
            algorithm.switch_groups.emplace_back();
            for (const auto& member : group.elements())
                algorithm.switch_groups.back().push_back(
                    static_cast<int>(member.integer(0, algorithm.collective.ranks - 1)));
            if (algorithm.switch_groups.back().empty()) throw group.error("a switch group without members");
        }
    if (const auto topology = root.find("topology")) {
        topology->only_keys({"name", "hash"});
        if (const auto name = topology->find("name")) algorithm.topology_name = name->string();
        if (const auto hash = topology->find("hash")) algorithm.topology_hash = hash->string();
    }
    // Without groups a position is a rank, and steps of literals need no expressions.
    const bool literals_are_ranks = !algorithm.over_positions || algorithm.collective.groups.empty();
    Reader reader(algorithm);
    algorithm.body = reader.body(root.at("steps"), 0, literals_are_ranks);
    const bool explicit_only =
        !reader.found_expression &&
        std::all_of(algorithm.body.begin(), algorithm.body.end(), [](const Item& item) {
            return std::holds_alternative<ExplicitSteps>(item.value) ||
                   std::holds_alternative<StepTemplate>(item.value);
        });
    if (explicit_only && !algorithm.body.empty() && written_for > 0 &&
        algorithm.collective.ranks != written_for)
        throw root.error(fmt::format("this algorithm is written for {} ranks, step by step; got {}",
                                     written_for, algorithm.collective.ranks));
    // Names and forms are checked by compiling.
    static_cast<void>(algorithm.steps());
    return algorithm;
}

Algorithm load_algorithm(const std::string& path, const LoadOptions& options) {
    const auto document = JsonDocument::load(path);
    return read_algorithm(document.root(), options);
}

Algorithm parse_algorithm(std::string_view text, const std::string& name, const LoadOptions& options) {
    const auto document = JsonDocument::parse(text, name);
    return read_algorithm(document.root(), options);
}

}  // namespace baton::ir
