#include <baton/synth/tree_rate.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/capacity_graph.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/rooted_cuts.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

namespace baton::synth {
namespace {

constexpr std::int64_t kFar = INT64_MAX / 4;

using Matrix = std::vector<std::vector<std::int64_t>>;  // [from][to]

// Least price of a way between any two ranks, over all vertices.
Matrix price_distances(const CapacityGraph& graph, const std::vector<int>& ranks,
                       const std::vector<std::int64_t>& prices) {
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
            for (const int a : graph.out[at(v)]) {
                const int to = graph.arcs[at(a)].to;
                const std::int64_t length = distance[at(v)] + prices[at(a)];
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

// num / den in units of `scale`, reduced; rounded up to whole units of one where 64 bits do not hold it.
Rational fraction(Wide num, Wide den, std::int64_t scale) {
    num *= scale;
    Wide a = num, b = den;
    while (b != 0) std::swap(a %= b, b);
    num /= a, den /= a;
    if (num <= INT64_MAX && den <= INT64_MAX)
        return Rational(static_cast<std::int64_t>(num), static_cast<std::int64_t>(den));
    return Rational(static_cast<std::int64_t>((num + den - 1) / den));
}

class TreeRateProof {
public:
    TreeRateProof(const CapacityGraph& graph, const std::vector<char>& is_rank, const JointOptimum& optimum)
        : graph_(graph), is_rank_(is_rank), optimum_(optimum) {
        for (int v = 0; v < graph.vertices; ++v) {
            if (is_rank[at(v)]) ranks_.push_back(v);
        }
    }

    // Upper bound of the rate for whole prices; none when they are worth nothing.
    std::optional<Rational> at_most(const std::vector<std::int64_t>& prices) const {
        const Matrix out = price_distances(graph_, ranks_, prices), in = transposed(out);
        std::int64_t least = kFar;
        for (int v = 0; v < static_cast<int>(ranks_.size()); ++v)
            least = std::min(least, least_arborescence(out, v) + least_arborescence(in, v));
        if (least <= 0 || least >= kFar / 2) return std::nullopt;
        Wide worth = 0;
        for (std::size_t a = 0; a < prices.size(); ++a) worth += Wide{graph_.arcs[a].capacity} * prices[a];
        return fraction(worth, least, graph_.scale);
    }

    // The duals as whole prices: small ones where they are fractions of small numbers, else fine ones.
    std::vector<std::int64_t> whole_prices(bool fine) const {
        const double largest = *std::max_element(optimum_.prices.begin(), optimum_.prices.end());
        constexpr int kSmall = 2520;
        constexpr double kFine = 1 << 30;
        double factor = kFine;
        for (int k = 1; k <= kSmall && !fine; ++k) {
            const bool fits = std::all_of(optimum_.prices.begin(), optimum_.prices.end(), [&](double price) {
                const double scaled = price / largest * k;
                return std::abs(scaled - std::round(scaled)) < 1e-5 * k;
            });
            if (!fits) continue;
            factor = k;
            break;
        }
        std::vector<std::int64_t> prices;
        for (const double price : optimum_.prices) prices.push_back(std::llround(price / largest * factor));
        return prices;
    }

    // Lower bound: the rates of the program in whole numbers, as far as cuts confirm them.
    Rational at_least() const {
        // Units of a rate: as fine as 62 bits for the sum of all capacities allow.
        std::int64_t fine = 1;
        while (fine < (std::int64_t{1} << 40) && graph_.total <= (std::int64_t{1} << 60) / (fine * 2))
            fine *= 2;
        const double unit = static_cast<double>(graph_.scale) / static_cast<double>(fine);
        std::vector<std::int64_t> rates[2];
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            const std::int64_t capacity = graph_.arcs[a].capacity * fine;
            const auto whole = [&](double rate) {
                return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(rate / unit + 0.5)), 0,
                                                capacity);
            };
            rates[0].push_back(whole(optimum_.broadcast[a]));
            rates[1].push_back(std::min(whole(optimum_.reduce[a]), capacity - rates[0][a]));
        }
        std::vector<std::pair<int, int>> arcs[2];
        for (const CapacityArc& arc : graph_.arcs) {
            arcs[0].push_back({arc.from, arc.to});
            arcs[1].push_back({arc.to, arc.from});
        }
        for (const bool turned : {false, true}) balance(arcs[turned], rates[turned]);
        for (double less = 0; less < 1e-2; less = less == 0 ? 1e-12 : less * 10) {
            std::vector<std::int64_t> shares;
            std::int64_t sum = 0;
            for (const int v : ranks_) {
                shares.push_back(std::max<std::int64_t>(
                    0,
                    static_cast<std::int64_t>(std::floor(optimum_.share[at(v)] / unit * (1 - less) + 0.5))));
                sum += shares.back();
            }
            bool fit = true;
            for (const bool turned : {false, true})
                fit = fit && RootedCuts(graph_.vertices, arcs[turned], ranks_, ranks_)
                                 .violated(rates[turned], shares)
                                 .empty();
            if (fit) return floor_fraction(sum, fine);
        }
        return 0;
    }

private:
    Rational floor_fraction(std::int64_t sum, std::int64_t fine) const {
        const Wide num = Wide{sum} * graph_.scale;
        const std::int64_t divisor = std::gcd(sum, fine);
        const Wide reduced = Wide{sum / divisor} * graph_.scale;
        if (reduced <= INT64_MAX) return Rational(static_cast<std::int64_t>(reduced), fine / divisor);
        return Rational(static_cast<std::int64_t>(num / fine));
    }
    // Takes away what arrives where it is not passed on, and what leaves without having arrived.
    void balance(const std::vector<std::pair<int, int>>& arcs, std::vector<std::int64_t>& rates) const {
        std::vector<std::vector<std::size_t>> in(at(graph_.vertices)), out(at(graph_.vertices));
        std::vector<std::int64_t> surplus(at(graph_.vertices), 0);
        for (std::size_t a = 0; a < arcs.size(); ++a) {
            in[at(arcs[a].second)].push_back(a);
            out[at(arcs[a].first)].push_back(a);
            surplus[at(arcs[a].second)] += rates[a];
            surplus[at(arcs[a].first)] -= rates[a];
        }
        std::vector<int> queue;
        for (int v = 0; v < graph_.vertices; ++v) queue.push_back(v);
        while (!queue.empty()) {
            const int v = queue.back();
            queue.pop_back();
            if (is_rank_[at(v)]) continue;
            for (const std::size_t a : surplus[at(v)] > 0 ? in[at(v)] : out[at(v)]) {
                const std::int64_t amount = std::min(rates[a], std::abs(surplus[at(v)]));
                if (amount == 0) continue;
                rates[a] -= amount;
                surplus[at(arcs[a].second)] -= amount;
                surplus[at(arcs[a].first)] += amount;
                queue.push_back(arcs[a].first == v ? arcs[a].second : arcs[a].first);
            }
        }
    }

    const CapacityGraph& graph_;
    const std::vector<char>& is_rank_;
    const JointOptimum& optimum_;
    std::vector<int> ranks_;
};

}  // namespace

std::optional<TreeRate> tree_rate(const topologies::Topology& topology, const ir::Collective& collective) {
    const std::optional<JointOptimum> optimum = fabric_optimum(topology, collective);
    if (!optimum || optimum->rate <= 0) return std::nullopt;
    const CapacityGraph graph = capacity_graph(topology, member_nodes(topology, collective));
    std::vector<char> is_rank = member_nodes(topology, collective);
    is_rank.resize(at(graph.vertices), 0);
    const TreeRateProof proof(graph, is_rank, *optimum);
    TreeRate rate;
    std::vector<std::int64_t> best;
    for (const bool fine : {false, true}) {
        const std::vector<std::int64_t> prices = proof.whole_prices(fine);
        const std::optional<Rational> most = proof.at_most(prices);
        if (!most || (!best.empty() && *most >= rate.at_most)) continue;
        rate.at_most = *most;
        best = prices;
        if (rate.at_most.value() <= optimum->rate * (1 + 1e-9)) break;
    }
    if (best.empty()) return std::nullopt;
    rate.at_least = proof.at_least();
    rate.prices.assign(topology.links.size() + topology.limits.size(), 0);
    for (std::size_t a = 0; a < best.size(); ++a) {
        const CapacityArc& arc = graph.arcs[a];
        rate.prices[arc.link >= 0 ? at(arc.link) : topology.links.size() + at(arc.limit)] += best[a];
    }
    return rate;
}

}  // namespace baton::synth
