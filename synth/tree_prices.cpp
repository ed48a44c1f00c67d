#include <baton/synth/tree_prices.hpp>

#include <baton/base/index.hpp>

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace baton::synth {
namespace {

constexpr std::int64_t kFar = INT64_MAX / 4;
using Matrix = std::vector<std::vector<std::int64_t>>;  // [from][to]

// Least price of a way between any two ranks, over all vertices.
Matrix price_distances(const JointGraph& graph, const std::vector<int>& ranks,
                       const std::vector<std::int64_t>& prices) {
    std::vector<std::vector<std::pair<int, std::int64_t>>> out(at(graph.vertices));
    for (const JointGraph::Arc& arc : graph.arcs) {
        std::int64_t price = 0;
        for (const topologies::LinkShare& use : arc.uses) price += prices[at(use.link)];
        out[at(arc.from)].push_back({arc.to, price});
    }
    Matrix between;
    for (const int source : ranks) {
        std::vector<std::int64_t> distance(at(graph.vertices), kFar);
        std::priority_queue<std::pair<std::int64_t, int>> queue;  // negative distances
        distance[at(source)] = 0;
        queue.push({0, source});
        while (!queue.empty()) {
            const auto [key, v] = queue.top();
            queue.pop();
            if (-key > distance[at(v)]) continue;
            for (const auto& [to, price] : out[at(v)]) {
                const std::int64_t length = distance[at(v)] + price;
                if (length >= distance[at(to)]) continue;
                distance[at(to)] = length;
                queue.push({-length, to});
            }
        }
        std::vector<std::int64_t> row;
        for (const int rank : ranks) row.push_back(distance[at(rank)]);
        between.push_back(std::move(row));
    }
    return between;
}

// Least price of a spanning out-tree from a root (Chu and Liu, Edmonds): every vertex takes its cheapest edge
// in; circles become vertices.
std::int64_t least_arborescence(Matrix price, int root) {
    std::int64_t sum = 0;
    while (true) {
        const int n = static_cast<int>(price.size());
        std::vector<int> parent(at(n), -1), group(at(n), -1), seen(at(n), -1);
        for (int v = 0; v < n; ++v) {
            for (int u = 0; u < n; ++u) {
                if (v == root || u == v) continue;
                if (parent[at(v)] < 0 || price[at(u)][at(v)] < price[at(parent[at(v)])][at(v)])
                    parent[at(v)] = u;
            }
            if (v != root) {
                if (price[at(parent[at(v)])][at(v)] >= kFar / 2) return kFar;
                sum += price[at(parent[at(v)])][at(v)];
            }
        }
        int groups = 0;
        for (int v = 0; v < n; ++v) {
            int u = v;
            while (u != root && seen[at(u)] < 0) {
                seen[at(u)] = v;
                u = parent[at(u)];
            }
            if (u == root || seen[at(u)] != v || group[at(u)] >= 0) continue;
            for (int w = u;;) {
                group[at(w)] = groups;
                w = parent[at(w)];
                if (w == u) break;
            }
            ++groups;
        }
        if (groups == 0) return sum;
        for (int v = 0; v < n; ++v) {
            if (group[at(v)] < 0) group[at(v)] = groups++;
        }
        Matrix next(at(groups), std::vector<std::int64_t>(at(groups), kFar));
        for (int u = 0; u < n; ++u) {
            for (int v = 0; v < n; ++v) {
                if (group[at(u)] == group[at(v)] || v == root) continue;
                const std::int64_t rest = price[at(u)][at(v)] - price[at(parent[at(v)])][at(v)];
                std::int64_t& best = next[at(group[at(u)])][at(group[at(v)])];
                best = std::min(best, rest);
            }
        }
        root = group[at(root)];
        price = std::move(next);
    }
}

Matrix transposed(const Matrix& matrix) {
    Matrix other = matrix;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
        for (std::size_t j = 0; j < matrix.size(); ++j) other[j][i] = matrix[i][j];
    }
    return other;
}

}  // namespace

std::int64_t common_denominator(const std::vector<double>& values, double unit) {
    constexpr int kSmall = 2520;  // denominators that are tried before fine fractions
    for (int k = 1; k <= kSmall; ++k) {
        if (std::all_of(values.begin(), values.end(), [&](double value) {
                const double scaled = value / unit * k;
                return std::abs(scaled - std::round(scaled)) < 1e-6 * k;
            }))
            return k;
    }
    return 0;
}

std::vector<std::int64_t> whole_prices(const std::vector<double>& prices, bool fine) {
    constexpr double kFine = 1 << 30;
    const double largest = *std::max_element(prices.begin(), prices.end());
    const std::int64_t small = fine ? 0 : common_denominator(prices, largest);
    const double factor = small > 0 ? static_cast<double>(small) : kFine;
    std::vector<std::int64_t> list;
    for (const double price : prices) list.push_back(std::llround(price / largest * factor));
    return list;
}

std::int64_t least_price_of_a_piece(const JointGraph& graph, const std::vector<int>& ranks,
                                    const std::vector<std::int64_t>& prices) {
    const Matrix out = price_distances(graph, ranks, prices), in = transposed(out);
    std::int64_t least = kFar;
    for (int v = 0; v < static_cast<int>(ranks.size()); ++v)
        least = std::min(least, least_arborescence(out, v) + least_arborescence(in, v));
    return least >= kFar / 2 ? 0 : least;
}

}  // namespace baton::synth
