#include <baton/synth/tree_rate.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/rooted_cuts.hpp>
#include <baton/synth/tree_prices.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace baton::synth {
namespace {

// num / den, reduced; where 64 bits do not hold it, whole, rounded up or down.
Rational rounded(Wide num, Wide den, bool up) {
    Wide a = num, b = den;
    while (b != 0) std::swap(a %= b, b);
    num /= a, den /= a;
    if (num <= INT64_MAX && den <= INT64_MAX)
        return Rational(static_cast<std::int64_t>(num), static_cast<std::int64_t>(den));
    return Rational(static_cast<std::int64_t>((num + (up ? den - 1 : 0)) / den));
}

class TreeRateProof {
public:
    TreeRateProof(const JointGraph& graph, const JointOptimum& optimum, std::vector<int> ranks)
        : graph_(graph), optimum_(optimum), ranks_(std::move(ranks)) {
        used_.resize(graph.capacity.size(), 0);
        for (const JointGraph::Arc& arc : graph.arcs) {
            for (const topologies::LinkShare& use : arc.uses) used_[at(use.link)] = 1;
        }
        for (std::size_t r = 0; r < used_.size(); ++r)
            whole_.push_back(used_[r] ? std::llround(graph.capacity[r]) : 0);
    }

    // What no rate is above at whole prices; false when they say nothing.
    bool price(const std::vector<std::int64_t>& prices, TreeRate& rate) const {
        const std::int64_t least = least_price_of_a_piece(graph_, ranks_, prices);
        if (least <= 0) return false;
        Wide worth = 0;
        for (std::size_t r = 0; r < prices.size(); ++r) worth += Wide{whole_[r]} * prices[r];
        rate.piece = least;
        rate.at_most = rounded(worth, least, true);
        return true;
    }

    // Rates of the program in whole numbers, as far as cuts confirm them; false when they do not. `fine`: in
    // as small units as sums of 62 bits allow, else in a common denominator of the rates.
    bool realize(bool fine, TreeRate& rate) const {
        Wide total = 0;
        std::int64_t divisor = 0;
        for (const std::int64_t capacity : whole_) {
            total += capacity;
            divisor = std::gcd(divisor, capacity);
        }
        if (divisor == 0) return false;
        const Wide room = (Wide{1} << 60) / (total / divisor);
        std::int64_t parts = 1;
        if (fine) {
            while (parts < (std::int64_t{1} << 40) && parts * 2 <= room) parts *= 2;
        } else {
            std::vector<double> all = optimum_.share;
            all.insert(all.end(), optimum_.reduce.begin(), optimum_.reduce.end());
            all.insert(all.end(), optimum_.broadcast.begin(), optimum_.broadcast.end());
            parts = common_denominator(all, static_cast<double>(divisor));
        }
        if (parts == 0 || parts > room) return false;
        rate.unit = Rational(divisor, parts);
        const double unit = rate.unit.value();
        std::vector<std::int64_t> rates[2];
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            rates[0].push_back(std::llround(optimum_.broadcast[a] / unit));
            rates[1].push_back(std::llround(optimum_.reduce[a] / unit));
        }
        fit(rates, divisor, parts);
        std::vector<std::pair<int, int>> arcs[2];
        for (const JointGraph::Arc& arc : graph_.arcs) {
            arcs[0].push_back({arc.from, arc.to});
            arcs[1].push_back({arc.to, arc.from});
        }
        for (const bool turned : {false, true}) balance(arcs[turned], rates[turned]);
        for (double less = 0; less < 1e-2; less = less == 0 ? 1e-12 : less * 10) {
            rate.shares.clear();
            for (const int v : ranks_)
                rate.shares.push_back(std::llround(optimum_.share[at(v)] / unit * (1 - less)));
            bool suffice = true;
            for (const bool turned : {false, true})
                suffice = suffice && RootedCuts(graph_.vertices, arcs[turned], ranks_, ranks_)
                                         .violated(rates[turned], rate.shares)
                                         .empty();
            if (!suffice && !fine) return false;
            if (!suffice) continue;
            const Wide sum = std::accumulate(rate.shares.begin(), rate.shares.end(), std::int64_t{0});
            rate.at_least = rounded(sum * divisor, parts, false);
            rate.broadcast = rates[0];
            rate.reduce = rates[1];
            return true;
        }
        return false;
    }

private:
    // Lowers rates until capacities and limits hold.
    void fit(std::vector<std::int64_t> (&rates)[2], std::int64_t divisor, std::int64_t parts) const {
        std::vector<std::int64_t> left;
        for (const std::int64_t capacity : whole_) left.push_back(capacity / divisor * parts);
        for (std::size_t a = 0; a < graph_.arcs.size(); ++a) {
            for (std::vector<std::int64_t>& phase : rates) {
                for (const topologies::LinkShare& use : graph_.arcs[a].uses)
                    phase[a] = std::min(phase[a], left[at(use.link)]);
                for (const topologies::LinkShare& use : graph_.arcs[a].uses) left[at(use.link)] -= phase[a];
            }
        }
    }
    // Takes away what arrives where it is not passed on, and what leaves without having arrived: along
    // shortest ways of what flows, from or to a rank or where the other is the case.
    void balance(const std::vector<std::pair<int, int>>& arcs, std::vector<std::int64_t>& rates) const {
        std::vector<std::vector<std::size_t>> in(at(graph_.vertices)), out(at(graph_.vertices));
        std::vector<std::int64_t> surplus(at(graph_.vertices), 0);
        for (std::size_t a = 0; a < arcs.size(); ++a) {
            in[at(arcs[a].second)].push_back(a);
            out[at(arcs[a].first)].push_back(a);
            surplus[at(arcs[a].second)] += rates[a];
            surplus[at(arcs[a].first)] -= rates[a];
        }
        for (int v = 0; v < graph_.vertices; ++v) {
            while (!graph_.is_rank[at(v)] && surplus[at(v)] != 0) {
                const bool back = surplus[at(v)] > 0;
                const std::vector<std::size_t> way = shortest(
                    back ? in : out, v, [&](std::size_t a) { return back ? arcs[a].first : arcs[a].second; },
                    [&](std::size_t a) { return rates[a] > 0; },
                    [&](int end) {
                        return graph_.is_rank[at(end)] ||
                               (back ? surplus[at(end)] < 0 : surplus[at(end)] > 0);
                    });
                if (way.empty()) break;
                const int end = back ? arcs[way.back()].first : arcs[way.back()].second;
                std::int64_t amount = std::abs(surplus[at(v)]);
                if (!graph_.is_rank[at(end)]) amount = std::min(amount, std::abs(surplus[at(end)]));
                for (const std::size_t a : way) amount = std::min(amount, rates[a]);
                for (const std::size_t a : way) rates[a] -= amount;
                surplus[at(v)] -= back ? amount : -amount;
                surplus[at(end)] += back ? amount : -amount;
            }
        }
    }

    // The fewest arcs from v to an end; empty when there is none.
    template <class Next, class Open, class End>
    std::vector<std::size_t> shortest(const std::vector<std::vector<std::size_t>>& arcs_at, int v,
                                      const Next& next, const Open& open, const End& is_end) const {
        std::vector<std::ptrdiff_t> by(at(graph_.vertices), -1);
        std::vector<int> from(at(graph_.vertices), -1), queue = {v};
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const std::size_t a : arcs_at[at(queue[i])]) {
                const int to = next(a);
                if (!open(a) || to == v || by[at(to)] >= 0) continue;
                by[at(to)] = static_cast<std::ptrdiff_t>(a);
                from[at(to)] = queue[i];
                queue.push_back(to);
                if (!is_end(to)) continue;
                std::vector<std::size_t> way;
                for (int u = to; u != v; u = from[at(u)]) way.push_back(at(by[at(u)]));
                std::reverse(way.begin(), way.end());
                return way;
            }
        }
        return {};
    }

    const JointGraph& graph_;
    const JointOptimum& optimum_;
    std::vector<int> ranks_;           // their vertices
    std::vector<char> used_;           // per resource
    std::vector<std::int64_t> whole_;  // capacities of resources that are used
};

}  // namespace

Time TreeRate::time(Bytes size) const {
    constexpr std::int64_t kPicoseconds = 1'000'000'000'000;
    if (size.count <= 0) return {};
    const Wide each = Wide{size.count} * at_most.den();
    const Wide seconds = each / at_most.num(), rest = each % at_most.num();
    if (seconds > INT64_MAX / kPicoseconds / 2) return Time::max();
    // rest < 2^63 and a picosecond count needs 40 bits more.
    return {static_cast<std::int64_t>(seconds * kPicoseconds + rest * kPicoseconds / at_most.num())};
}

std::optional<TreeRate> tree_rate(const topologies::Topology& topology, const ir::Collective& collective) {
    const std::optional<JointOptimum> optimum = end_point_optimum(topology, collective);
    if (!optimum || optimum->rate <= 0) return std::nullopt;
    const JointGraph graph = fabric_graph(topology, member_nodes(topology, collective));
    const TreeRateProof proof(graph, *optimum,
                              {topology.rank_nodes.begin(), topology.rank_nodes.begin() + collective.ranks});
    std::optional<TreeRate> rate;
    std::vector<std::int64_t> best;
    for (const bool fine : {false, true}) {
        TreeRate tried;
        std::vector<std::int64_t> prices = whole_prices(optimum->prices, fine);
        if (!proof.price(prices, tried) || (rate && tried.at_most >= rate->at_most)) continue;
        rate = tried;
        best = std::move(prices);
        if (rate->at_most.value() <= optimum->rate * (1 + 1e-9)) break;
    }
    if (!rate || !(proof.realize(false, *rate) || proof.realize(true, *rate))) return std::nullopt;
    const auto links = static_cast<std::ptrdiff_t>(topology.links.size());
    rate->link_prices.assign(best.begin(), best.begin() + links);
    rate->limit_prices.assign(best.begin() + links, best.end());
    for (std::vector<std::int64_t>* phase : {&rate->reduce, &rate->broadcast}) {
        std::vector<std::int64_t> per_link(topology.links.size(), 0);
        for (std::size_t a = 0; a < graph.arcs.size(); ++a)
            per_link[at(graph.arcs[a].uses[0].link)] = (*phase)[a];
        *phase = std::move(per_link);
    }
    return rate;
}

Time yardstick(Time bound, const std::optional<TreeRate>& trees, const ir::Algorithm& algorithm, Bytes size) {
    const bool end_points = algorithm.switch_groups.empty();
    return trees && end_points ? std::max(bound, trees->time(size)) : bound;
}

std::string tree_rate_in_words(const TreeRate& rate) {
    std::map<std::int64_t, int, std::greater<>> counts;
    for (const std::vector<std::int64_t>* prices : {&rate.link_prices, &rate.limit_prices}) {
        for (const std::int64_t price : *prices) {
            if (price > 0) ++counts[price];
        }
    }
    std::string text = fmt::format("{:.6g} GB/s is the optimum over all tree schedules on end points: ",
                                   rate.at_most.value() * 1e-9);
    constexpr std::size_t kMostPrices = 3;
    if (counts.size() <= kMostPrices) {
        const char* comma = "priced ";
        for (const auto& [price, count] : counts) {
            text += fmt::format("{}{} on {} link{}", comma, price, count, count == 1 ? "" : "s");
            comma = ", ";
        }
        text += fmt::format(", a piece costs {} wherever it is reduced", rate.piece);
    } else {
        text += fmt::format("proved by prices of {} links",
                            std::accumulate(counts.begin(), counts.end(), 0,
                                            [](int sum, const auto& entry) { return sum + entry.second; }));
    }
    if (rate.loss() > 1e-12) text += fmt::format("; {:.2g} less are realized", rate.loss());
    return text;
}

std::string to_json(const topologies::Topology& topology, const TreeRate& rate) {
    using Json = nlohmann::ordered_json;
    const auto by_link = [&](const std::vector<std::int64_t>& values) {
        Json list = Json::object();
        for (std::size_t l = 0; l < values.size(); ++l) {
            if (values[l] != 0) list[topology.links[l].id] = values[l];
        }
        return list;
    };
    Json limits = Json::object();
    for (std::size_t l = 0; l < rate.limit_prices.size(); ++l) {
        if (rate.limit_prices[l] != 0) limits[topology.limits[l].id] = rate.limit_prices[l];
    }
    const Json json = {{"at_most", to_string(rate.at_most)},
                       {"at_least", to_string(rate.at_least)},
                       {"piece_costs", rate.piece},
                       {"link_prices", by_link(rate.link_prices)},
                       {"limit_prices", limits},
                       {"unit", to_string(rate.unit)},
                       {"shares", rate.shares},
                       {"reduce", by_link(rate.reduce)},
                       {"broadcast", by_link(rate.broadcast)}};
    return json.dump();
}

}  // namespace baton::synth
