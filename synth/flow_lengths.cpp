#include <baton/synth/flow_lengths.hpp>

#include <baton/base/index.hpp>
#include <baton/base/rational.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/max_flow.hpp>
#include <baton/synth/multicommodity.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

namespace baton::synth {
namespace {

// Greatest common divisor of wide numbers.
Wide wide_gcd(Wide a, Wide b) {
    while (b != 0) {
        const Wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Multiples at which all lengths are close to integers come first; then fine grids.
std::vector<double> scales_to_try(const std::vector<double>& lengths) {
    double longest = 0;
    for (const double length : lengths) longest = std::max(longest, length);
    if (longest <= 0) return {};
    double shortest = longest;
    for (const double length : lengths) {
        if (length > longest * 1e-7) shortest = std::min(shortest, length);
    }
    std::vector<double> scales;
    for (const double unit : {shortest, longest}) {
        for (int q = 1; q <= 720 && scales.size() < 4; ++q) {
            const double scale = q / unit;
            const bool near = std::all_of(lengths.begin(), lengths.end(), [&](double length) {
                const double scaled = length * scale;
                return scaled < 1e9 && std::abs(scaled - std::round(scaled)) <= 1e-6 * std::max(1.0, scaled);
            });
            if (!near) continue;
            scales.push_back(scale);
            break;
        }
    }
    for (const double most : {5040.0, 27720.0, 360'360.0, 1e7, 1000.0, 120.0})
        scales.push_back(most / longest);
    return scales;
}

// What integer lengths prove; capacity 0 when it does not fit.
LengthBound evaluate(const FlowNetwork& network, std::vector<std::int64_t> lengths) {
    LengthBound bound;
    Wide demand = 0, capacity = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r)
        capacity += static_cast<Wide>(lengths[r]) * network.resources[r].capacity;
    const std::vector<std::int64_t> of_arc = arc_lengths(network, lengths);
    for (const FlowDemand& wanted : network.demands) {
        const std::vector<std::int64_t> distance = distances_from(network, of_arc, wanted.source);
        for (const int sink : wanted.sinks) {
            if (distance[at(sink)] == kOutOfReach) return bound;
            demand += distance[at(sink)];
        }
    }
    if (demand <= 0 || capacity <= 0) return bound;
    const Wide divisor = wide_gcd(demand, capacity);
    demand /= divisor, capacity /= divisor;
    if (demand > INT64_MAX || capacity > INT64_MAX) return bound;
    bound.lengths = std::move(lengths);
    bound.demand = static_cast<std::int64_t>(demand);
    bound.capacity = static_cast<std::int64_t>(capacity);
    return bound;
}

}  // namespace

std::vector<std::int64_t> distances_from(const FlowNetwork& network, const std::vector<std::int64_t>& lengths,
                                         int source, std::vector<int>* order) {
    stop_point();
    std::vector<std::int64_t> distance(at(network.vertices), kOutOfReach);
    using Entry = std::pair<std::int64_t, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    std::vector<char> done(at(network.vertices), 0);
    distance[at(source)] = 0;
    open.push({0, source});
    while (!open.empty()) {
        const auto [reached, v] = open.top();
        open.pop();
        if (done[at(v)]) continue;
        done[at(v)] = 1;
        if (order != nullptr) order->push_back(v);
        for (const int a : network.out[at(v)]) {
            const std::int64_t next = reached + lengths[at(a)];
            std::int64_t& known = distance[at(network.arcs[at(a)].to)];
            if (next >= known) continue;
            known = next;
            open.push({next, network.arcs[at(a)].to});
        }
    }
    return distance;
}

LengthBound round_lengths(const FlowNetwork& network, const ConcurrentFlow& flow) {
    LengthBound best;
    for (const double scale : scales_to_try(flow.lengths)) {
        std::vector<std::int64_t> lengths;
        for (const double length : flow.lengths)
            lengths.push_back(std::max<std::int64_t>(0, std::llround(length * scale)));
        LengthBound tried = evaluate(network, std::move(lengths));
        if (tried.capacity == 0) continue;
        if (best.capacity == 0 ||
            static_cast<Wide>(tried.demand) * best.capacity > static_cast<Wide>(best.demand) * tried.capacity)
            best = std::move(tried);
        if (best.value() >= flow.bound * (1 - 1e-9)) break;
    }
    return best;
}

}  // namespace baton::synth
