#include <baton/ir/verify/place_map.hpp>

#include <algorithm>

namespace baton::ir {
namespace {

constexpr std::size_t kManySegments = 128;
constexpr std::int64_t kPlacesPerSegment = 8;  // denser than this: place by place
constexpr std::int64_t kMaxGrowth = 16;        // a write far beyond the rest goes back to intervals

Value shifted(Value value, std::int64_t by) {
    if (value.set != kEmptyPlace) value.base += by;
    return value;
}

}  // namespace

void append(std::vector<Piece>& pieces, Piece piece) {
    if (piece.length == 0) return;
    if (!pieces.empty()) {
        Piece& last = pieces.back();
        if (shifted(last.value, last.length) == piece.value) {
            last.length += piece.length;
            return;
        }
    }
    pieces.push_back(piece);
}

void PlaceMap::read(std::int64_t begin, std::int64_t count, std::vector<Piece>& pieces) const {
    if (is_dense_) {
        const auto size = static_cast<std::int64_t>(dense_.size());
        const std::int64_t end = begin + count;
        for (std::int64_t i = begin; i < std::min(end, size); ++i)
            append(pieces, {1, dense_[static_cast<std::size_t>(i)]});
        append(pieces, {std::max<std::int64_t>(0, end - std::max(begin, size)), Value{}});
        return;
    }
    auto it =
        std::upper_bound(segments_.begin(), segments_.end(), begin,
                         [](std::int64_t place, const Segment& segment) { return place < segment.begin; }) -
        1;
    const std::int64_t end = begin + count;
    for (std::int64_t at = begin; at < end; ++it) {
        const std::int64_t stop = it + 1 == segments_.end() ? end : std::min(end, (it + 1)->begin);
        append(pieces, {stop - at, shifted(it->value, at - it->begin)});
        at = stop;
    }
}

void PlaceMap::write(std::int64_t begin, const std::vector<Piece>& pieces) {
    for (const auto& piece : pieces) {
        if (is_dense_ && begin + piece.length > kMaxGrowth * static_cast<std::int64_t>(dense_.size()))
            sparsify();
        if (is_dense_) {
            const auto end = static_cast<std::size_t>(begin + piece.length);
            if (dense_.size() < end) dense_.resize(end);
            for (std::int64_t i = 0; i < piece.length; ++i)
                dense_[static_cast<std::size_t>(begin + i)] = shifted(piece.value, i);
        } else {
            write_segment(begin, piece);
            if (may_densify_ && segments_.size() > kManySegments &&
                segments_.back().begin < kPlacesPerSegment * static_cast<std::int64_t>(segments_.size()))
                densify();
        }
        begin += piece.length;
    }
}

void PlaceMap::write_segment(std::int64_t begin, Piece piece) {
    const std::int64_t end = begin + piece.length;
    const auto after = [](std::int64_t place, const Segment& segment) { return place < segment.begin; };
    auto first = std::upper_bound(segments_.begin(), segments_.end(), begin, after) - 1;
    auto last = first;  // the segment that holds `end`
    while (last + 1 != segments_.end() && (last + 1)->begin <= end) ++last;
    // What replaces the segments first..last: a front, the piece, a tail.
    Segment fresh[3];
    std::size_t count = 0;
    const auto put = [&](std::int64_t at, Value value) {
        if (count > 0 && shifted(fresh[count - 1].value, at - fresh[count - 1].begin) == value) return;
        fresh[count++] = {at, value};
    };
    if (first->begin < begin) {
        put(first->begin, first->value);
    } else if (first != segments_.begin()) {
        --first;
        put(first->begin, first->value);
    }
    put(begin, piece.value);
    put(end, shifted(last->value, end - last->begin));
    const auto old = static_cast<std::size_t>(last - first) + 1;
    const std::size_t same = std::min(old, count);
    std::copy_n(fresh, same, first);
    if (old > count)
        segments_.erase(first + static_cast<std::ptrdiff_t>(count), last + 1);
    else if (count > old)
        segments_.insert(first + static_cast<std::ptrdiff_t>(old), fresh + old, fresh + count);
}

void PlaceMap::densify() {
    dense_.resize(static_cast<std::size_t>(segments_.back().begin));
    for (std::size_t s = 0; s + 1 < segments_.size(); ++s)
        for (std::int64_t i = segments_[s].begin; i < segments_[s + 1].begin; ++i)
            dense_[static_cast<std::size_t>(i)] = shifted(segments_[s].value, i - segments_[s].begin);
    segments_.clear();
    segments_.shrink_to_fit();
    is_dense_ = true;
}

void PlaceMap::sparsify() {
    std::vector<Piece> pieces;
    for (const auto& value : dense_) append(pieces, {1, value});
    is_dense_ = may_densify_ = false;
    dense_ = {};
    std::int64_t at = 0;
    for (const auto& piece : pieces) {
        segments_.push_back({at, piece.value});
        at += piece.length;
    }
    if (segments_.empty() || segments_.back().value.set != kEmptyPlace) segments_.push_back({at, Value{}});
}

std::int64_t PlaceMap::bytes() const {
    return static_cast<std::int64_t>(segments_.capacity() * sizeof(Segment) +
                                     dense_.capacity() * sizeof(Value));
}

}  // namespace baton::ir
