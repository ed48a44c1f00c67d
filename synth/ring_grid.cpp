// Rings through grids and through sparse direct networks.
#include <baton/base/stop.hpp>
#include <baton/synth/ring_network.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace baton::synth {
namespace {

/// Rows in turn, up and down: consecutive ranks are neighbors; the way back is one step where `rows` is even.
/// `at(row, column)` gives the rank.
template <class At>
std::vector<int> snake(int rows, int columns, At at) {
    std::vector<int> order;
    // Column 0 is kept for the way back; the rest is walked in rows of columns-1.
    for (int row = 0; row < rows; ++row)
        for (int i = 1; i < columns; ++i) order.push_back(at(row, row % 2 == 0 ? i : columns - i));
    for (int row = rows - 1; row >= 0; --row) order.push_back(at(row, 0));
    return order;
}

/// The ring order of a torus of the sizes, each rank numbered with the last dimension fastest. The ring of
/// all dimensions but the last is walked as if it were one.
std::vector<int> torus_ring(const std::vector<int>& sizes) {
    std::vector<int> ring(static_cast<std::size_t>(sizes[0]));
    std::iota(ring.begin(), ring.end(), 0);
    for (std::size_t d = 1; d < sizes.size(); ++d) {
        const int length = static_cast<int>(ring.size()), size = sizes[d];
        const auto at = [&](int i, int j) { return ring[static_cast<std::size_t>(i)] * size + j; };
        // On a grid without wrap-around the number of rows must be even: turn it when it is not.
        if (length % 2 == 1 && size % 2 == 0)
            ring = snake(size, length, [&](int j, int i) { return at(i, j); });
        else
            ring = snake(length, size, at);
    }
    return ring;
}

}  // namespace

std::vector<std::vector<int>> grid_rings(int size) {
    std::vector<std::vector<int>> rings;
    if (size > 1 << 16) return rings;
    for (int a = 2; a * 2 <= size; ++a) {
        if (size % a) continue;
        rings.push_back(torus_ring({a, size / a}));
        for (int b = 2; b * 2 <= size / a; ++b)
            if (size / a % b == 0) rings.push_back(torus_ring({a, b, size / a / b}));
    }
    return rings;
}

std::vector<int> neighbor_ring(const RingNetwork& network, std::uint64_t seed) {
    const auto& topology = network.topology();
    const int n = network.size();
    std::vector<int> number(static_cast<std::size_t>(topology.rank_count()), -1);
    for (int i = 0; i < n; ++i) number[static_cast<std::size_t>(network.rank(i))] = i;
    struct Edge {
        int to;
        double rate;
    };
    std::vector<std::vector<Edge>> edges(static_cast<std::size_t>(n));
    std::vector<double> rates;
    for (int i = 0; i < n; ++i) {
        std::vector<int> seen;
        for (const int link : topology.out_links[static_cast<std::size_t>(
                 topology.rank_nodes[static_cast<std::size_t>(network.rank(i))])]) {
            const int rank =
                topology.nodes[static_cast<std::size_t>(topology.links[static_cast<std::size_t>(link)].to)]
                    .rank;
            const int to = rank < 0 ? -1 : number[static_cast<std::size_t>(rank)];
            if (to < 0 || to == i || std::find(seen.begin(), seen.end(), to) != seen.end()) continue;
            seen.push_back(to);
            // Rotations turn parts of a path round: only edges that carry both ways serve.
            const double rate = std::min(network.hop(i, to).rate, network.hop(to, i).rate);
            if (rate <= 0) continue;
            edges[static_cast<std::size_t>(i)].push_back({to, rate});
            rates.push_back(rate);
        }
        if (edges[static_cast<std::size_t>(i)].empty()) return {};
    }
    std::sort(rates.begin(), rates.end(), std::greater<>());
    rates.erase(std::unique(rates.begin(), rates.end(), [](double a, double b) { return at_least(b, a); }),
                rates.end());
    std::mt19937_64 random(seed);
    std::vector<int> path, place;
    for (std::size_t level = 0; level < std::min<std::size_t>(rates.size(), 6); ++level) {
        const auto open = [&](int a, int b) {
            for (const Edge& edge : edges[static_cast<std::size_t>(a)])
                if (edge.to == b) return at_least(edge.rate, rates[level]);
            return false;
        };
        path = {0};
        place.assign(static_cast<std::size_t>(n), -1);
        place[0] = 0;
        const std::int64_t budget = 2000 + 200LL * n;
        for (std::int64_t tries = 0; tries < budget; ++tries) {
            if (tries % 256 == 0) stop_point();
            const int end = path.back();
            if (static_cast<int>(path.size()) == n && open(end, path.front())) return path;
            std::vector<int> fresh, old;
            for (const Edge& edge : edges[static_cast<std::size_t>(end)]) {
                if (!at_least(edge.rate, rates[level])) continue;
                const int at = place[static_cast<std::size_t>(edge.to)];
                if (at < 0)
                    fresh.push_back(edge.to);
                else if (at + 2 < static_cast<int>(path.size()))
                    old.push_back(at);
            }
            if (!fresh.empty()) {
                const int next = fresh[random() % fresh.size()];
                place[static_cast<std::size_t>(next)] = static_cast<int>(path.size());
                path.push_back(next);
            } else if (!old.empty()) {
                const auto from = static_cast<std::ptrdiff_t>(old[random() % old.size()]) + 1;
                std::reverse(path.begin() + from, path.end());
                for (auto i = static_cast<std::size_t>(from); i < path.size(); ++i)
                    place[static_cast<std::size_t>(path[i])] = static_cast<int>(i);
            } else if (tries % 16 == 15) {  // stuck: grow from the other end
                std::reverse(path.begin(), path.end());
                for (std::size_t i = 0; i < path.size(); ++i)
                    place[static_cast<std::size_t>(path[i])] = static_cast<int>(i);
            }
        }
    }
    return {};
}

}  // namespace baton::synth
