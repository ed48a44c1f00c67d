#include <baton/ir/verify/coverage.hpp>

#include <algorithm>
#include <iterator>

namespace baton::ir {

void Coverage::add(std::int64_t begin, std::int64_t end) {
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second >= begin) {
        --it;
        if (it->second >= end) return;
        begin = it->first;
    }
    while (it != ranges_.end() && it->first <= end) {
        end = std::max(end, it->second);
        it = ranges_.erase(it);
    }
    ranges_.emplace_hint(it, begin, end);
}

std::int64_t Coverage::first_outside(const Coverage& other) const {
    for (const auto& [begin, end] : ranges_) {
        std::int64_t at = begin;
        auto it = other.ranges_.upper_bound(at);
        if (it != other.ranges_.begin()) at = std::max(at, std::prev(it)->second);
        if (at < end && (it == other.ranges_.end() || it->first > at)) return at;
        // `it` starts exactly at `at`, or the rest is covered: follow touching ranges.
        while (at < end) {
            if (it == other.ranges_.end() || it->first > at) return at;
            at = std::max(at, it->second);
            ++it;
        }
    }
    return -1;
}

}  // namespace baton::ir
