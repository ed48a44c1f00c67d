// A map from places to values, kept as intervals: work follows runs of places, never single ones.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace baton::codegen {

/// Intervals [begin, end) with a value each; places that nothing was said about have the default value.
template <class Value>
class IntervalMap {
public:
    /// Calls f(begin, end, value&) for the pieces of [begin, end) in order; pieces are split at both ends and
    /// gaps become pieces of the default value, so that changing `value` changes exactly that piece.
    template <class F>
    void visit(std::int64_t begin, std::int64_t end, F&& f) {
        if (begin >= end) return;
        auto it = split(begin);
        std::int64_t at = begin;
        while (at < end) {
            if (it == pieces_.end() || it->first > at) {
                const std::int64_t stop = it == pieces_.end() ? end : std::min(end, it->first);
                it = pieces_.emplace_hint(it, at, std::make_pair(stop, Value{}));
            } else if (it->second.first > end) {
                split(end);
            }
            f(it->first, it->second.first, it->second.second);
            at = it->second.first;
            ++it;
        }
    }
    /// Calls f(begin, end, const value&) for what is known in [begin, end), clipped to it; gaps are left out.
    template <class F>
    void look(std::int64_t begin, std::int64_t end, F&& f) const {
        auto it = pieces_.upper_bound(begin);
        if (it != pieces_.begin() && std::prev(it)->second.first > begin) --it;
        for (; it != pieces_.end() && it->first < end; ++it) {
            f(std::max(begin, it->first), std::min(end, it->second.first), it->second.second);
        }
    }
    /// Sets [begin, end) to one value as one piece.
    void assign(std::int64_t begin, std::int64_t end, Value value) {
        if (begin >= end) return;
        auto it = split(begin);
        auto last = split(end);
        it = pieces_.erase(it, last);
        pieces_.emplace_hint(it, begin, std::make_pair(end, std::move(value)));
    }
    /// All pieces: begin -> (end, value).
    const std::map<std::int64_t, std::pair<std::int64_t, Value>>& pieces() const { return pieces_; }

private:
    /// Makes `at` a boundary; returns the first piece that begins at or after it.
    typename std::map<std::int64_t, std::pair<std::int64_t, Value>>::iterator split(std::int64_t at) {
        auto it = pieces_.lower_bound(at);
        if (it == pieces_.begin()) return it;
        auto before = std::prev(it);
        if (before->second.first <= at) return it;
        Value copy = before->second.second;
        const std::int64_t end = before->second.first;
        before->second.first = at;
        return pieces_.emplace_hint(it, at, std::make_pair(end, std::move(copy)));
    }

    std::map<std::int64_t, std::pair<std::int64_t, Value>> pieces_;
};

}  // namespace baton::codegen
