// Maximum flow on exact integers: the engine of every bandwidth bound.
#pragma once

#include <cstdint>
#include <vector>

namespace baton::synth {

__extension__ using Wide = __int128;

/// Maximum flow with Dinic's algorithm. `Amount` is std::int64_t or Wide (128 bits); the caller guarantees
/// that the sum of all capacities fits. Arcs are added once; `run` may be called again with other ends and
/// starts from an empty flow each time. (Boost.Graph's algorithms take no limit at which to stop, and rebuild
/// their property maps for every pair; the bounds ask for one flow per rank on one graph and stop each as
/// soon as it is large enough.)
template <class Amount>
class MaxFlow {
public:
    explicit MaxFlow(int vertices) : first_(static_cast<std::size_t>(vertices)) {}

    /// Adds a directed arc; returns its number (0, 1, ...).
    int add(int from, int to, Amount capacity);
    /// Changes the capacity of an arc for later runs.
    void set_capacity(int arc, Amount capacity) { capacity_[static_cast<std::size_t>(arc)] = capacity; }

    /// The maximum flow from source to sink, or `limit` when it is at least that.
    /// REQUIRES: source != sink, limit >= 0.
    Amount run(int source, int sink, Amount limit);

    /// Moves flow that has arrived at `from` on to `to`, without undoing the rest: for the next sink of the
    /// same sources. Returns how much of `amount` could be moved; all of it, exactly when `run(source, to,
    /// amount)` would reach it, given that `run(source, from, amount)` did. A minimum cut is then
    /// `source_side` and the source itself.
    Amount move(int from, int to, Amount amount);

    /// After a `run` or `move` that stayed below its limit: true for the vertices on the source side of a
    /// minimum cut (the smallest such side).
    bool source_side(int vertex) const { return level_[static_cast<std::size_t>(vertex)] >= 0; }

    /// After a `run`: what flows over an arc.
    Amount flow_on(int arc) const {
        return capacity_[static_cast<std::size_t>(arc)] - halves_[2 * static_cast<std::size_t>(arc)].rest;
    }

private:
    struct Half {
        int to = 0;
        Amount rest = 0;
    };
    bool levels(int source, int sink);
    Amount augment(int source, int sink, Amount wanted);

    std::vector<std::vector<int>> first_;  // half-arc numbers per vertex; arc a is halves 2a and 2a+1
    std::vector<Half> halves_;
    std::vector<Amount> capacity_;
    std::vector<int> level_, queue_, path_;
    std::vector<std::size_t> next_;
};

extern template class MaxFlow<std::int64_t>;
extern template class MaxFlow<Wide>;

}  // namespace baton::synth
