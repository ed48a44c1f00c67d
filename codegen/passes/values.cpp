#include <baton/codegen/passes/values.hpp>

#include <baton/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace baton::codegen {

Values::Values(const ir::Algorithm& algorithm, bool wide)
    : collective_(&algorithm.collective), wide_(wide), scratch_places_(algorithm.scratch_places()) {
    const std::size_t ranks = collective_->ranks;
    scratch_places_.resize(ranks, 0);
    next_temporary_.assign(ranks, kTemporaryPlaces);
    maps_.resize(ranks * 3);
    scratch_classes_.resize(ranks);
    group_sizes_.assign(ranks, 0);
    for (int group = 0; group < collective_->group_count(); ++group) {
        for (int position = 0; position < collective_->group_size(group); ++position) {
            group_sizes_[collective_->rank_at(group, position)] = collective_->group_size(group);
        }
    }
    if (collective_->custom) {
        std::size_t most = 0, least = SIZE_MAX;
        for (const auto& outputs : collective_->custom->outputs) {
            for (const ir::OutputPlace& place : outputs) {
                if (place.contributions.size() < 2) continue;
                most = std::max(most, place.contributions.size());
                least = std::min(least, place.contributions.size());
            }
        }
        if (most == least) custom_full_ = static_cast<std::int64_t>(most);
    }
}

std::int64_t Values::full(int rank, ir::Buffer buffer, std::int64_t index) const {
    if (collective_->kind == ir::CollectiveKind::custom) {
        if (custom_full_ > 0 || !collective_->custom) return custom_full_;
        if (buffer != ir::Buffer::output) return 0;
        return static_cast<std::int64_t>(collective_->custom->outputs[rank][index].contributions.size());
    }
    if (!ir::reduces(collective_->kind)) return 0;
    // A relay works for some group; with groups of unequal size it could not know which, so it never
    // completes values.
    if (group_sizes_[rank] > 0) return group_sizes_[rank];
    return collective_->group_count() == 1 ? collective_->group_size(0) : 0;
}

std::int64_t Values::class_at(const Run& place, std::int64_t offset) const {
    const std::int64_t index = place.index + offset;
    if (place.buffer != ir::Buffer::scratch) {
        if (collective_->kind != ir::CollectiveKind::custom) return index % collective_->chunks;
        return collective_->class_of(place.rank, place.buffer, index);
    }
    std::int64_t found = 0;
    scratch_classes_[place.rank].look(index, index + 1,
                                      [&](auto, auto, std::int64_t value) { found = value; });
    return std::max<std::int64_t>(found - 1, 0);
}

std::int64_t Values::scratch_shift(const Run& destination, const Run& like) const {
    const std::int64_t stride = std::max<std::int64_t>(scratch_places_[destination.rank], 1);
    for (std::int64_t generation = 0;; ++generation) {
        const std::int64_t shift = generation * stride;
        if (destination.index + destination.chunks + shift >= kMirrorPlaces) {
            throw input_error("too many scratch places", fmt::format("rank {}", destination.rank),
                              "use fewer scratch places, or each for one class of chunks");
        }
        bool fits = true;
        scratch_classes_[destination.rank].look(
            destination.index + shift, destination.index + shift + destination.chunks,
            [&](std::int64_t begin, std::int64_t end, std::int64_t value) {
                for (std::int64_t i = begin; fits && value > 0 && i < end; ++i) {
                    fits = value == class_at(like, i - shift - destination.index) + 1;
                }
            });
        if (fits) return shift;
    }
}

void Values::set_classes(const Run& places, const Run& like) {
    for (std::int64_t i = 0; i < places.chunks;) {
        const std::int64_t first = class_at(like, i);
        std::int64_t n = 1;
        while (i + n < places.chunks && class_at(like, i + n) == first) ++n;
        scratch_classes_[places.rank].assign(places.index + i, places.index + i + n, first + 1);
        i += n;
    }
}

namespace {

// What must be the same over a move: where both ends lie, and whether the result is partial or complete.
struct Likeness {
    Value source, destination;
    bool partial = false, complete = false;
    bool operator==(const Likeness& other) const {
        return source.same_home(other.source) && destination.same_home(other.destination) &&
               partial == other.partial && complete == other.complete &&
               source.contributions == other.source.contributions;
    }
};

void add_cuts(const IntervalMap<Value>& map, const Run& run, std::vector<std::int64_t>& cuts) {
    map.look(run.index, run.index + run.chunks, [&](std::int64_t begin, std::int64_t end, const Value&) {
        cuts.push_back(begin - run.index);
        cuts.push_back(end - run.index);
    });
}

Value value_at(const IntervalMap<Value>& map, const Run& run, std::int64_t offset) {
    Value value;
    value.buffer = run.buffer;
    value.contributions = run.buffer == ir::Buffer::input ? 1 : 0;
    map.look(run.index + offset, run.index + offset + 1,
             [&](auto, auto, const Value& known) { value = known; });
    return value;
}

Run part_of(const Run& run, std::int64_t begin, std::int64_t end) {
    return {run.rank, run.buffer, run.index + begin, end - begin};
}

}  // namespace

std::vector<Move> Values::cut(const ir::Step& step, std::int64_t position) const {
    Move whole;
    whole.step = step;
    whole.position = position;
    whole.source = {step.src_rank, step.src_buffer, step.src_index, step.chunks};
    whole.destination = {step.dst_rank, step.dst_buffer, step.dst_index, step.chunks};
    whole.reducing = step.reducing();
    whole.crosses = step.src_rank != step.dst_rank;
    const auto& sources = map(step.src_rank, step.src_buffer);
    const auto& destinations = map(step.dst_rank, step.dst_buffer);
    std::vector<std::int64_t> cuts = {0, step.chunks};
    add_cuts(sources, whole.source, cuts);
    if (whole.reducing) add_cuts(destinations, whole.destination, cuts);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

    std::vector<Move> moves;
    Likeness last;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        Likeness now;
        now.source = value_at(sources, whole.source, cuts[i]);
        if (whole.reducing) now.destination = value_at(destinations, whole.destination, cuts[i]);
        const std::int64_t count = now.source.contributions + now.destination.contributions;
        const std::int64_t all = full(step.dst_rank, step.dst_buffer, step.dst_index + cuts[i]);
        now.partial = all > 1 && count > 1 && count < all;
        now.complete = all > 1 && count == all;
        if (!moves.empty() && now == last) {
            moves.back().source.chunks = moves.back().destination.chunks += cuts[i + 1] - cuts[i];
        } else {
            moves.push_back(whole);
            moves.back().source = part_of(whole.source, cuts[i], cuts[i + 1]);
            moves.back().destination = part_of(whole.destination, cuts[i], cuts[i + 1]);
        }
        last = now;
    }
    return moves;
}

Run Values::place(const Run& run, const Hazards* hazards) const {
    const auto& values = map(run.rank, run.buffer);
    const Value first = value_at(values, run, 0);
    Run real = {run.rank, first.buffer, run.index + first.shift, run.chunks};
    if (!hazards || first.copied_by < 0) return real;
    bool alike = true;
    std::int32_t earliest = first.copied_by;
    values.look(run.index, run.index + run.chunks, [&](auto, auto, const Value& value) {
        alike = alike && value.copied_by >= 0 && value.copy_shift == first.copy_shift;
        earliest = std::min(earliest, value.copied_by);
    });
    const Run input = {run.rank, ir::Buffer::input, run.index + first.copy_shift, run.chunks};
    if (!alike) return real;
    // In place the input may have been overwritten since it was copied, unless both are one place.
    return hazards->same_memory(input, run) || hazards->last_writer_in_place(input) < earliest ? input : real;
}

std::int32_t Values::contributions(const Run& run) const {
    return value_at(map(run.rank, run.buffer), run, 0).contributions;
}

Values::Update Values::update(const Move& move, const Run& source, std::int32_t contributions,
                              std::int32_t node) {
    const Run& run = move.destination;
    auto& values = map(run.rank, run.buffer);
    Update result;
    const Value before = value_at(values, run, 0);
    const std::int64_t all = full(run.rank, run.buffer, run.index);
    std::vector<std::pair<std::int64_t, std::int32_t>>
        held;  // end and contributions of each part of the destination
    if (move.reducing) {
        const auto stage = [&](std::int32_t more) {  // how the result lies: alone, a partial sum, or complete
            const std::int64_t total = std::int64_t{contributions} + more;
            return all > 1 && total > 1 ? (total == all ? 2 : 1) : 0;
        };
        values.look(run.index, run.index + run.chunks, [&](auto, std::int64_t end, const Value& value) {
            if (!value.same_home(before) || stage(value.contributions) != stage(before.contributions)) {
                throw input_error("several reductions of one par block find different states in one run",
                                  ir::describe(move.step), "give each part its own step");
            }
            held.emplace_back(std::min(end, run.index + run.chunks), value.contributions);
        });
        result.before = {run.rank, before.buffer, run.index + before.shift, run.chunks};
    }
    Value after;
    after.contributions = contributions + (move.reducing ? before.contributions : 0);
    result.finalize = move.reducing && all > 1 && after.contributions == all;
    // A single rank's value is complete as it stands: the copy from input finalizes it.
    if (all == 1 && collective_->kind != ir::CollectiveKind::custom && !move.reducing &&
        source.buffer == ir::Buffer::input) {
        result.finalize = true;
    }
    after.buffer = run.buffer;
    if (run.buffer == ir::Buffer::scratch) {
        after.shift = scratch_shift(run, source);
    } else if (wide_ && all > 1 && after.contributions > 1 && after.contributions < all) {
        after.buffer = ir::Buffer::scratch;
        after.shift = kMirrorPlaces;
    }
    result.after = {run.rank, after.buffer, run.index + after.shift, run.chunks};
    if (after.buffer == ir::Buffer::scratch) set_classes(result.after, source);
    if (!move.reducing && !move.crosses && source.buffer == ir::Buffer::input) {
        after.copied_by = node;
        after.copy_shift = source.index - run.index;
    }
    values.assign(run.index, run.index + run.chunks, after);
    std::int64_t begin = run.index;
    for (const auto& [end, more] : held) {
        after.contributions = contributions + more;
        if (more != before.contributions) values.assign(begin, end, after);
        begin = end;
    }
    return result;
}

Run Values::temporary(const Run& source) {
    Run run = {source.rank, ir::Buffer::scratch, next_temporary_[source.rank], source.chunks};
    next_temporary_[source.rank] += source.chunks;
    set_classes(run, source);
    return run;
}

}  // namespace baton::codegen
