// Two algorithms, one after the other.
#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/transform.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace baton::ir {
namespace {

using Kind = CollectiveKind;

/// Most places, over all ranks, of a custom collective that two collectives make.
constexpr std::int64_t kMaxCustomPlaces = 10'000'000;

std::string both(const Collective& first, const Collective& second) {
    return fmt::format("{}, then {}", describe(first), describe(second));
}

std::optional<Kind> named_result(Kind first, Kind second) {
    if (first == Kind::reduce && second == Kind::broadcast) return Kind::all_reduce;
    if (first == Kind::reduce_scatter && second == Kind::all_gather) return Kind::all_reduce;
    if (first == Kind::gather && second == Kind::broadcast) return Kind::all_gather;
    if (first == Kind::reduce && second == Kind::scatter) return Kind::reduce_scatter;
    if (first == Kind::scatter && second == Kind::all_gather) return Kind::broadcast;
    if (first == Kind::reduce_scatter && second == Kind::gather) return Kind::reduce;
    return std::nullopt;
}

/// Weights with "all 1" always written as empty.
std::vector<std::int64_t> weights_of(const Collective& c) {
    if (std::all_of(c.weights.begin(), c.weights.end(), [](std::int64_t w) { return w == 1; })) return {};
    return c.weights;
}

/// Weights of a whole buffer that is made of the shards of `c`.
std::vector<std::int64_t> whole_weights(const Collective& c) {
    const auto one = weights_of(c);
    if (!has_shards(c.kind) || one.empty()) return one;
    std::vector<std::int64_t> all;
    for (int p = 0; p < c.group_size(); ++p) all.insert(all.end(), one.begin(), one.end());
    return all;
}

std::int64_t whole_chunks(const Collective& c) {
    return has_shards(c.kind) ? c.group_size() * c.chunks : c.chunks;
}

/// For the pairs that have a name. Shards of both sides divide the same buffer.
Collective named(const Collective& first, const Collective& second, Kind kind) {
    const bool shards = has_shards(first.kind) || has_shards(second.kind);
    for (int g = 1; shards && g < first.group_count(); ++g) {
        if (first.group_size(g) != first.group_size())
            throw input_error("groups of different sizes cannot share one number of chunks",
                              both(first, second));
    }
    if (has_root(first.kind) && has_root(second.kind) && first.root != second.root)
        throw input_error(
            fmt::format("the first ends at root {}, the second starts at root {}", first.root, second.root),
            both(first, second));
    if (whole_chunks(first) != whole_chunks(second))
        throw input_error(fmt::format("the first leaves {} chunks, the second takes {}", whole_chunks(first),
                                      whole_chunks(second)),
                          both(first, second));
    if (whole_weights(first) != whole_weights(second))
        throw input_error("their weights differ", both(first, second));
    Collective result;
    result.kind = kind;
    result.ranks = first.ranks;
    result.groups = first.groups;
    if (has_root(kind)) result.root = has_root(first.kind) ? first.root : second.root;
    const Collective& sharded = has_shards(first.kind) ? first : second;
    result.chunks = has_shards(kind) ? sharded.chunks : whole_chunks(first);
    result.weights = has_shards(kind) ? weights_of(sharded) : whole_weights(first);
    return result;
}

/// For all other pairs: each output of the second is traced through the first.
Collective traced(const Collective& first, const Collective& second) {
    const auto refuse = [&](const std::string& why) { throw input_error(why, both(first, second)); };
    if (first.chunks != second.chunks)
        refuse(fmt::format("the first has {} classes of chunks, the second {}", first.chunks, second.chunks));
    if (weights_of(first) != weights_of(second)) refuse("their weights differ");
    std::int64_t total = 0;
    for (int rank = 0; rank < first.ranks; ++rank) {
        const std::int64_t out = first.places(rank, Buffer::output), in = second.places(rank, Buffer::input);
        if (out != in)
            refuse(fmt::format("the first leaves {} places at rank {}, the second takes {}", out, rank, in));
        total += in + first.places(rank, Buffer::input) + second.places(rank, Buffer::output);
        if (total > kMaxCustomPlaces)
            refuse(fmt::format("the custom collective they make has more than {} places", kMaxCustomPlaces));
    }
    auto places = std::make_shared<CustomPlaces>();
    // (rank, shard, class) of an input of the second -> its place.
    std::map<std::array<std::int64_t, 3>, std::int64_t> place_of;
    for (int rank = 0; rank < first.ranks; ++rank) {
        auto& inputs = places->inputs.emplace_back();
        for (std::int64_t i = 0; i < first.places(rank, Buffer::input); ++i)
            inputs.push_back(first.input(rank, i));
        for (std::int64_t i = 0; i < second.places(rank, Buffer::input); ++i) {
            const InputPlace place = second.input(rank, i);
            if (first.class_of(rank, Buffer::output, i) != place.chunk_class)
                refuse(fmt::format("place {} of rank {} has another class in the second", i, rank));
            place_of[{rank, place.shard, place.chunk_class}] = i;
        }
    }
    std::int64_t contributions = 0;
    for (int rank = 0; rank < first.ranks; ++rank) {
        auto& outputs = places->outputs.emplace_back();
        for (std::int64_t i = 0; i < second.places(rank, Buffer::output); ++i) {
            OutputPlace output = second.output(rank, i);
            std::vector<Contribution> all;
            for (const Contribution& from : output.contributions) {
                const auto found = place_of.find({from.rank, from.shard, output.chunk_class});
                if (found == place_of.end()) refuse("an input of the second is named that it does not have");
                const OutputPlace middle = first.output(from.rank, found->second);
                all.insert(all.end(), middle.contributions.begin(), middle.contributions.end());
                contributions += static_cast<std::int64_t>(middle.contributions.size());
                if (contributions > kMaxCustomPlaces)
                    refuse(fmt::format("the custom collective they make has more than {} contributions",
                                       kMaxCustomPlaces));
            }
            std::sort(all.begin(), all.end());
            if (std::adjacent_find(all.begin(), all.end()) != all.end())
                refuse(fmt::format("an input would be added to output {} of rank {} twice", i, rank));
            outputs.push_back({output.chunk_class, std::move(all)});
        }
    }
    Collective result;
    result.kind = Kind::custom;
    result.ranks = first.ranks;
    result.groups = first.groups;
    result.chunks = first.chunks;
    result.weights = weights_of(first);
    result.custom = std::move(places);
    return result;
}

/// Where a buffer of one of the two algorithms stands in the result.
struct Target {
    Buffer buffer = Buffer::scratch;
    std::int64_t offset = 0;
    bool operator==(const Target&) const = default;
};
/// [rank][buffer]
using Targets = std::vector<std::array<Target, 3>>;

/// Appends the steps of `algorithm`, moved to where `targets` says.
class Appender {
public:
    Appender(Algorithm& result, std::vector<Step>& out) : result_(result), out_(out) {}

    void append(const Algorithm& algorithm, const Targets& targets) {
        const auto group_shift = static_cast<std::int32_t>(result_.switch_groups.size());
        result_.switch_groups.insert(result_.switch_groups.end(), algorithm.switch_groups.begin(),
                                     algorithm.switch_groups.end());
        bool block_open = false;
        auto cursor = algorithm.steps();
        for (Step step; cursor.next(step);) {
            if (out_.size() % 1024 == 0) stop_point();
            if (!step.par) block_open = false;
            const bool group_reads = step.op == StepOp::switch_reduce,
                       group_writes = step.op == StepOp::multicast;
            const int reader = step.src_rank, writer = group_reads ? step.src_rank : step.dst_rank;
            if (group_reads || group_writes) {
                place(group_target(algorithm, targets, step, group_reads ? step.src_buffer : step.dst_buffer),
                      group_reads ? step.src_buffer : step.dst_buffer,
                      group_reads ? step.src_index : step.dst_index, step);
                step.dst_rank += group_shift;
            }
            if (!group_reads)
                place(at(targets, reader, step.src_buffer), step.src_buffer, step.src_index, step);
            if (!group_writes)
                place(at(targets, writer, step.dst_buffer), step.dst_buffer, step.dst_index, step);
            // What the second would copy from its input to its own output may stand there already.
            if (step.op == StepOp::copy && step.src_buffer == step.dst_buffer &&
                step.src_index == step.dst_index)
                continue;
            if (step.via >= 0) step.via = route(algorithm.vias.at(static_cast<std::size_t>(step.via)));
            step.par = block_open ? 1 : 0;
            block_open = step.in_par != 0;
            out_.push_back(step);
        }
    }

private:
    static const Target& at(const Targets& targets, int rank, Buffer buffer) {
        return targets[static_cast<std::size_t>(rank)][static_cast<std::size_t>(buffer)];
    }

    static const Target& group_target(const Algorithm& algorithm, const Targets& targets, const Step& step,
                                      Buffer buffer) {
        const auto group = static_cast<std::size_t>(step.dst_rank);
        if (step.dst_rank < 0 || group >= algorithm.switch_groups.size() ||
            algorithm.switch_groups[group].empty())
            throw input_error("no such switch group", describe(step));
        const auto& members = algorithm.switch_groups[group];
        const Target& first = at(targets, members.front(), buffer);
        for (const int member : members) {
            if (at(targets, member, buffer) != first)
                throw input_error("the members of a switch group keep this place at different indices",
                                  describe(step));
        }
        return first;
    }

    static void place(const Target& target, Buffer& buffer, std::int32_t& index, const Step& step) {
        const std::int64_t moved = target.offset + index;
        if (moved + step.chunks > INT32_MAX)
            throw input_error("a place leaves the range of indices", describe(step));
        buffer = target.buffer;
        index = static_cast<std::int32_t>(moved);
    }

    std::int32_t route(const std::string& via) {
        const auto found = std::find(result_.vias.begin(), result_.vias.end(), via);
        const auto number = static_cast<std::int32_t>(found - result_.vias.begin());
        if (found == result_.vias.end()) result_.vias.push_back(via);
        return number;
    }

    Algorithm& result_;
    std::vector<Step>& out_;
};

}  // namespace

Collective concatenate(const Collective& first, const Collective& second) {
    first.check("first");
    second.check("second");
    if (first.ranks != second.ranks)
        throw input_error("they have different numbers of ranks", both(first, second));
    if (first.groups != second.groups) throw input_error("they have different groups", both(first, second));
    if (const auto kind = named_result(first.kind, second.kind)) return named(first, second, *kind);
    return traced(first, second);
}

Algorithm concatenate(const Algorithm& first, const Algorithm& second) {
    Algorithm result;
    result.collective = concatenate(first.collective, second.collective);
    result.name = fmt::format("{}, then {}", first.name, second.name);
    result.over_positions = false;
    if (!first.topology_hash.empty() && !second.topology_hash.empty() &&
        first.topology_hash != second.topology_hash)
        throw input_error(fmt::format("they belong to different topologies, {} and {}", first.topology_hash,
                                      second.topology_hash),
                          result.name);
    const Algorithm& machine = first.topology_hash.empty() ? second : first;
    result.topology_name = machine.topology_name;
    result.topology_hash = machine.topology_hash;

    const auto scratch = first.scratch_places();
    Targets first_targets, second_targets;
    for (int rank = 0; rank < result.collective.ranks; ++rank) {
        const std::int64_t below = scratch[static_cast<std::size_t>(rank)];
        const std::int64_t middle = second.collective.places(rank, Buffer::input);
        // Scatter and reduce_scatter share only part of their input with the output.
        const bool partial =
            second.collective.kind == Kind::scatter || second.collective.kind == Kind::reduce_scatter;
        const std::int64_t shared = partial || middle == 0 ? -1 : second.collective.output_alias(rank, 0);
        const Target between = shared >= 0 ? Target{Buffer::output, shared} : Target{Buffer::scratch, below};
        first_targets.push_back({Target{Buffer::input, 0}, between, Target{Buffer::scratch, 0}});
        second_targets.push_back({between, Target{Buffer::output, 0},
                                  Target{Buffer::scratch, below + (shared >= 0 ? 0 : middle)}});
    }
    std::vector<Step> steps;
    Appender appender(result, steps);
    appender.append(first, first_targets);
    appender.append(second, second_targets);
    result.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(steps))}, 0}};
    return result;
}

}  // namespace baton::ir
