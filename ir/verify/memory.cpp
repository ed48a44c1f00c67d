#include <baton/ir/verify/memory.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::ir {
namespace {

constexpr std::int64_t kMaxPlaces = std::int64_t{1} << 31;

}  // namespace

Places::Places(const Collective& collective) : collective_(collective) {
    const auto& c = collective;
    ranks_.resize(static_cast<std::size_t>(c.ranks));
    for (int g = 0; g < c.group_count(); ++g)
        for (int p = 0; p < c.group_size(g); ++p) {
            auto& own = ranks_[static_cast<std::size_t>(c.rank_at(g, p))];
            own.group = g;
            own.position = p;
        }
    std::int64_t shards = 1;
    for (int g = 0; g < c.group_count(); ++g)
        if (has_shards(c.kind) && c.kind != CollectiveKind::all_gather && c.kind != CollectiveKind::gather)
            shards = std::max<std::int64_t>(shards, c.group_size(g));
    if (c.kind == CollectiveKind::custom) {
        shards = 1;
        for (const auto& inputs : c.custom->inputs)
            for (const auto& place : inputs) shards = std::max(shards, place.shard + 1);
        for (const auto& outputs : c.custom->outputs)
            for (const auto& place : outputs)
                for (const auto& contribution : place.contributions)
                    shards = std::max(shards, contribution.shard + 1);
    }
    if (__builtin_mul_overflow(shards, c.chunks, &stride_) || stride_ > (std::int64_t{1} << 61) / c.ranks)
        throw input_error(fmt::format("{} shards of {} chunks at {} ranks are too many to number", shards,
                                      c.chunks, c.ranks));
    for (int rank = 0; rank < c.ranks; ++rank) {
        auto& own = ranks_[static_cast<std::size_t>(rank)];
        if (c.kind != CollectiveKind::custom && own.group < 0) continue;
        // Collective::places finds a rank in its group by search; only once per rank.
        own.inputs = c.places(rank, Buffer::input);
        own.outputs = c.places(rank, Buffer::output);
        if (std::max(own.inputs, own.outputs) > kMaxPlaces)
            throw input_error(fmt::format("rank {} has {} places; at most 2^31 can be named", rank,
                                          std::max(own.inputs, own.outputs)),
                              {}, "take fewer chunks");
        if (own.inputs == 0 || own.outputs == 0) continue;
        // In every kind the aliased places are one run, from the first input or from the first output place.
        const std::int64_t output = c.output_alias(rank, 0), input = c.input_alias(rank, 0);
        if (output < 0 && input < 0) continue;
        own.alias.input = output >= 0 ? 0 : input;
        own.alias.output = output >= 0 ? output : 0;
        own.alias.count = std::min(own.inputs - own.alias.input, own.outputs - own.alias.output);
        any_alias_ = true;
    }
}

ContributionNumber Places::number(int rank, std::int64_t input_index) const {
    std::int64_t place = input_index;
    if (collective_.kind == CollectiveKind::custom) {
        const auto entry = collective_.input(rank, input_index);
        place = entry.shard * collective_.chunks + entry.chunk_class;
    }
    return rank * stride_ + place;
}

void Places::initial(int rank, std::int64_t begin, std::int64_t count, std::vector<Piece>& pieces) const {
    if (collective_.kind != CollectiveKind::custom) {
        append(pieces, {count, Value{number(rank, begin), ContributionTable::kSingle}});
        return;
    }
    for (std::int64_t i = begin; i < begin + count; ++i)
        append(pieces, {1, Value{number(rank, i), ContributionTable::kSingle}});
}

Value Places::all_of_group(int group, std::int64_t shard, ContributionTable& table) const {
    all_.resize(static_cast<std::size_t>(collective_.group_count()));
    Value& all = all_[static_cast<std::size_t>(group)];
    if (all.set == kEmptyPlace) {
        std::vector<ContributionNumber> numbers;
        for (int q = 0; q < collective_.group_size(group); ++q)
            numbers.push_back(collective_.rank_at(group, q) * stride_);
        all = table.make(std::move(numbers));
    }
    return {all.base + shard * collective_.chunks, all.set};
}

std::vector<Goal> Places::goals(int rank, ContributionTable& table) const {
    const auto& c = collective_;
    const auto& own = ranks_[static_cast<std::size_t>(rank)];
    std::vector<Goal> goals;
    if (own.outputs == 0) return goals;
    const auto single = [&](int from, std::int64_t shard) {
        return Value{from * stride_ + shard * c.chunks, ContributionTable::kSingle};
    };
    switch (c.kind) {
        case CollectiveKind::broadcast:
        case CollectiveKind::send_recv: return {{0, c.chunks, single(c.rank_at(own.group, c.root), 0)}};
        case CollectiveKind::scatter:
            return {{0, c.chunks, single(c.rank_at(own.group, c.root), own.position)}};
        case CollectiveKind::gather:
        case CollectiveKind::all_gather:
        case CollectiveKind::all_to_all:
            if (c.groups.empty() && c.kind != CollectiveKind::all_to_all)
                return {{0, own.outputs, single(0, 0)}};
            for (int q = 0; q < c.group_size(own.group); ++q)
                goals.push_back({q * c.chunks, c.chunks,
                                 single(c.rank_at(own.group, q),
                                        c.kind == CollectiveKind::all_to_all ? own.position : 0)});
            return goals;
        case CollectiveKind::reduce:
        case CollectiveKind::all_reduce: return {{0, c.chunks, all_of_group(own.group, 0, table)}};
        case CollectiveKind::reduce_scatter:
            return {{0, c.chunks, all_of_group(own.group, own.position, table)}};
        case CollectiveKind::custom: break;
    }
    for (std::int64_t i = 0; i < own.outputs; ++i) {
        const auto& place = c.custom->outputs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
        std::vector<ContributionNumber> numbers;
        for (const auto& contribution : place.contributions)
            numbers.push_back(contribution.rank * stride_ + contribution.shard * c.chunks +
                              place.chunk_class);
        goals.push_back({i, 1, table.make(std::move(numbers))});
    }
    return goals;
}

std::string Places::describe(ContributionNumber number) const {
    const std::int64_t rank = number / stride_, place = number % stride_;
    std::string text = stride_ == collective_.chunks ? "the input of"
                                                     : fmt::format("shard {} of", place / collective_.chunks);
    text += fmt::format(" rank {}", rank);
    if (collective_.chunks > 1) text += fmt::format(" (class {})", place % collective_.chunks);
    return text;
}

Memory::Memory(const Places& places, bool in_place)
    : places_(places),
      in_place_(in_place),
      outputs_(static_cast<std::size_t>(places.collective().ranks)),
      scratch_(outputs_.size()) {
    if (!in_place) return;
    std::vector<Piece> pieces;
    for (int rank = 0; rank < places.collective().ranks; ++rank) {
        const auto alias = places.alias(rank);
        if (alias.count == 0) continue;
        pieces.clear();
        places.initial(rank, alias.input, alias.count, pieces);
        outputs_[static_cast<std::size_t>(rank)].write(alias.output, pieces);
    }
}

void Memory::read(int rank, Buffer buffer, std::int64_t begin, std::int64_t count,
                  std::vector<Piece>& pieces) const {
    const auto at = static_cast<std::size_t>(rank);
    if (buffer != Buffer::input) {
        (buffer == Buffer::output ? outputs_ : scratch_)[at].read(begin, count, pieces);
        return;
    }
    if (!in_place_) {
        places_.initial(rank, begin, count, pieces);
        return;
    }
    const auto alias = places_.alias(rank);
    const std::int64_t end = begin + count;
    const std::int64_t first = std::clamp(alias.input, begin, end);
    const std::int64_t last = std::clamp(alias.input + alias.count, first, end);
    if (begin < first) places_.initial(rank, begin, first - begin, pieces);
    if (first < last) outputs_[at].read(first - alias.input + alias.output, last - first, pieces);
    if (last < end) places_.initial(rank, last, end - last, pieces);
}

void Memory::write(int rank, Buffer buffer, std::int64_t begin, const std::vector<Piece>& pieces) {
    (buffer == Buffer::output ? outputs_ : scratch_)[static_cast<std::size_t>(rank)].write(begin, pieces);
}

bool Memory::partial_overlap(int rank, Buffer a, std::int64_t a_begin, Buffer b, std::int64_t b_begin,
                             std::int64_t count) const {
    const auto alias = places_.alias(rank);
    if (a != b) {
        if (!in_place_ || alias.count == 0 || a == Buffer::scratch || b == Buffer::scratch) return false;
        // One is input, the other output: compare as output places, within the aliased run.
        if (b == Buffer::input) {
            std::swap(a, b);
            std::swap(a_begin, b_begin);
        }
        const std::int64_t begin = std::max(a_begin, alias.input),
                           end = std::min(a_begin + count, alias.input + alias.count);
        if (begin >= end) return false;
        const std::int64_t shift = alias.output - alias.input;
        return a_begin + shift != b_begin && begin + shift < b_begin + count && b_begin < end + shift;
    }
    return a_begin != b_begin && a_begin < b_begin + count && b_begin < a_begin + count;
}

std::int64_t Memory::bytes() const {
    std::int64_t total = 0;
    for (const auto& map : outputs_) total += map.bytes();
    for (const auto& map : scratch_) total += map.bytes();
    return total;
}

}  // namespace baton::ir
