// The event engine's queue: an array heap of 16-byte events.
#pragma once

#include <baton/base/quantities.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::sim {

/// Something that happens at a point of time. `id` says what; events of one time come out in the order of
/// their ids, so the order never depends on how the queue was filled.
struct Event {
    std::int64_t picoseconds = 0;
    std::uint64_t id = 0;
    friend bool operator<(const Event& a, const Event& b) {
        return a.picoseconds != b.picoseconds ? a.picoseconds < b.picoseconds : a.id < b.id;
    }
    bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 16);

/// A priority queue of events, earliest first: a heap with four children per node in one array. Allocates
/// only while it grows.
class EventQueue {
public:
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    /// The earliest event. REQUIRES: not empty.
    const Event& top() const { return heap_.front(); }
    void clear() { heap_.clear(); }

    void push(Time time, std::uint64_t id) {
        const Event event{time.picoseconds, id};
        std::size_t at = heap_.size();
        heap_.push_back(event);
        while (at > 0) {
            const std::size_t parent = (at - 1) / kChildren;
            if (!(event < heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    /// Removes and returns the earliest event. REQUIRES: not empty.
    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (heap_.empty()) return first;
        std::size_t at = 0;
        for (;;) {
            const std::size_t begin = at * kChildren + 1;
            if (begin >= heap_.size()) break;
            const std::size_t end = begin + kChildren < heap_.size() ? begin + kChildren : heap_.size();
            std::size_t least = begin;
            for (std::size_t child = begin + 1; child < end; ++child) {
                if (heap_[child] < heap_[least]) least = child;
            }
            if (!(heap_[least] < last)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = last;
        return first;
    }

private:
    static constexpr std::size_t kChildren = 4;
    std::vector<Event> heap_;
};

}  // namespace baton::sim
