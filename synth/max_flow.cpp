#include <baton/synth/max_flow.hpp>

#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>

namespace baton::synth {
template <class Amount>
int MaxFlow<Amount>::add(int from, int to, Amount capacity) {
    const int half = static_cast<int>(halves_.size());
    first_[at(from)].push_back(half);
    first_[at(to)].push_back(half + 1);
    halves_.push_back({to, 0});
    halves_.push_back({from, 0});
    capacity_.push_back(capacity);
    return half / 2;
}

template <class Amount>
bool MaxFlow<Amount>::levels(int source, int sink) {
    level_.assign(first_.size(), -1);
    queue_.clear();
    queue_.push_back(source);
    level_[at(source)] = 0;
    for (std::size_t head = 0; head < queue_.size(); ++head) {
        const int u = queue_[head];
        for (const int half : first_[at(u)]) {
            const Half& arc = halves_[at(half)];
            if (arc.rest == 0 || level_[at(arc.to)] >= 0) continue;
            level_[at(arc.to)] = level_[at(u)] + 1;
            if (arc.to == sink) return true;
            queue_.push_back(arc.to);
        }
    }
    return false;
}

// One augmenting path in the level graph, found with an explicit stack: paths can be as long as the graph.
template <class Amount>
Amount MaxFlow<Amount>::augment(int source, int sink, Amount wanted) {
    path_.clear();
    int u = source;
    while (u != sink) {
        bool advanced = false;
        for (std::size_t& place = next_[at(u)]; place < first_[at(u)].size(); ++place) {
            const int half = first_[at(u)][place];
            const Half& arc = halves_[at(half)];
            if (arc.rest > 0 && level_[at(arc.to)] == level_[at(u)] + 1) {
                path_.push_back(half);
                u = arc.to;
                advanced = true;
                break;
            }
        }
        if (advanced) continue;
        if (u == source) return 0;
        level_[at(u)] = -2;  // dead end in this phase
        u = halves_[at(path_.back() ^ 1)].to;
        path_.pop_back();
    }
    Amount amount = wanted;
    for (const int half : path_) amount = std::min(amount, halves_[at(half)].rest);
    for (const int half : path_) {
        halves_[at(half)].rest -= amount;
        halves_[at(half ^ 1)].rest += amount;
    }
    return amount;
}

template <class Amount>
Amount MaxFlow<Amount>::run(int source, int sink, Amount limit) {
    for (std::size_t a = 0; a < capacity_.size(); ++a) {
        halves_[2 * a].rest = capacity_[a];
        halves_[2 * a + 1].rest = 0;
    }
    return move(source, sink, limit);
}

template <class Amount>
Amount MaxFlow<Amount>::move(int source, int sink, Amount limit) {
    stop_point();
    Amount flow = 0;
    while (flow < limit && levels(source, sink)) {
        next_.assign(first_.size(), 0);
        while (flow < limit) {
            const Amount amount = augment(source, sink, limit - flow);
            if (amount == 0) break;
            flow += amount;
        }
    }
    return flow;
}

template class MaxFlow<std::int64_t>;
template class MaxFlow<Wide>;

}  // namespace baton::synth
