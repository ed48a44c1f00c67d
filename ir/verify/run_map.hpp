// Values over runs of places.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace baton::ir::checks {

/// A map from [0, size) to values that keeps equal treatment of neighbors as runs. `Value` has
/// `Value advanced(std::int64_t by) const`: what stands `by` places after the run's first place.
template <typename Value>
class RunMap {
public:
    RunMap() = default;
    RunMap(std::int64_t size, Value initial) {
        if (size > 0) runs_.emplace(0, Run{size, std::move(initial)});
    }

    /// Calls `visit(begin, end, value of begin)` for the runs in [begin, end), in order.
    template <typename Visit>
    void visit(std::int64_t begin, std::int64_t end, Visit&& visit) const {
        if (begin >= end) return;
        for (auto it = std::prev(runs_.upper_bound(begin)); it != runs_.end() && it->first < end; ++it) {
            const std::int64_t from = it->first < begin ? begin : it->first;
            const std::int64_t to = it->second.end < end ? it->second.end : end;
            visit(from, to,
                  from == it->first ? it->second.value : it->second.value.advanced(from - it->first));
        }
    }

    /// Calls `change(value)` on the runs in [begin, end), cut to that range.
    template <typename Change>
    void update(std::int64_t begin, std::int64_t end, Change&& change) {
        if (begin >= end) return;
        split(end);
        for (auto it = split(begin); it != runs_.end() && it->first < end; ++it) change(it->second.value);
    }

    /// Replaces [begin, end) by one run.
    void assign(std::int64_t begin, std::int64_t end, Value value) {
        if (begin >= end) return;
        split(end);
        const auto first = split(begin);
        first->second.value = std::move(value);
        auto it = std::next(first);
        while (it != runs_.end() && it->first < end) it = runs_.erase(it);
        first->second.end = end;
    }

private:
    struct Run {
        std::int64_t end = 0;
        Value value;
    };
    using Runs = std::map<std::int64_t, Run>;

    // The run that begins at `at`, cutting one that reaches over it; end() behind the last place.
    typename Runs::iterator split(std::int64_t at) {
        const auto next = runs_.lower_bound(at);
        if (next != runs_.end() && next->first == at) return next;
        if (next == runs_.begin()) return next;
        const auto holder = std::prev(next);
        if (holder->second.end <= at) return next;
        Run tail{holder->second.end, holder->second.value.advanced(at - holder->first)};
        holder->second.end = at;
        return runs_.emplace_hint(next, at, std::move(tail));
    }

    Runs runs_;
};

}  // namespace baton::ir::checks
