// An independent check of the optimum over tree schedules: takes the witness as it is printed and counts both
// of its sides again on the topology, in integers.
#pragma once

#include <baton/base/index.hpp>
#include <baton/ir/collective.hpp>
#include <baton/topologies/topology.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <queue>
#include <string>
#include <vector>

namespace baton::test {

class TreeRateCheck {
public:
    __extension__ using Wide = __int128;

    TreeRateCheck(const topologies::Topology& topology, const ir::Collective& collective)
        : topology_(topology), member_(topology.nodes.size(), 0) {
        for (int r = 0; r < collective.ranks; ++r) {
            ranks_.push_back(topology.rank_nodes[at(r)]);
            member_[at(ranks_.back())] = 1;
        }
    }

    /// Empty when the witness proves that no trees are faster than `at_most` and that trees of `at_least`
    /// exist; else what is wrong.
    std::string fault(const nlohmann::ordered_json& witness) const {
        Fraction most, least, unit;
        if (!read(witness, "at_most", most) || !read(witness, "at_least", least) ||
            !read(witness, "unit", unit))
            return "a number is no fraction";
        std::vector<std::int64_t> prices, limit_prices, rates[2];
        if (!by_link(witness["link_prices"], prices) || !by_link(witness["reduce"], rates[0]) ||
            !by_link(witness["broadcast"], rates[1]))
            return "a link is not known, or a number is negative";
        for (const topologies::Limit& limit : topology_.limits)
            limit_prices.push_back(witness["limit_prices"].value(limit.id, std::int64_t{0}));
        std::string why = prices_prove(prices, limit_prices, most);
        if (why.empty()) why = rates_prove(rates, witness["shares"], unit, least);
        if (why.empty() && Wide{least.num} * most.den > Wide{most.num} * least.den) why = "the sides cross";
        return why;
    }

private:
    struct Fraction {
        std::int64_t num = 0, den = 1;
    };
    struct Edge {
        int from, to;
        Wide price;
    };

    static bool read(const nlohmann::ordered_json& witness, const char* name, Fraction& value) {
        if (!witness.contains(name) || !witness[name].is_string()) return false;
        const std::string text = witness[name];
        char* end = nullptr;
        value = {std::strtoll(text.c_str(), &end, 10), 1};
        if (*end == '/') value.den = std::strtoll(end + 1, &end, 10);
        return *end == 0 && value.num > 0 && value.den > 0;
    }

    bool by_link(const nlohmann::ordered_json& object, std::vector<std::int64_t>& values) const {
        values.assign(topology_.links.size(), 0);
        std::size_t known = 0;
        for (std::size_t l = 0; l < values.size(); ++l) {
            if (!object.contains(topology_.links[l].id)) continue;
            values[l] = object[topology_.links[l].id];
            if (values[l] < 0) return false;
            ++known;
        }
        return known == object.size();
    }

    bool usable(const topologies::Link& link) const {
        for (const int end : {link.from, link.to}) {
            const auto node = at(end);
            if (topology_.nodes[node].type == topologies::NodeType::gpu && !member_[node]) return false;
        }
        return true;
    }

    // The cheapest trees cost so much that all links together pay for no more than `most`.
    std::string prices_prove(const std::vector<std::int64_t>& prices, const std::vector<std::int64_t>& limits,
                             const Fraction& most) const {
        Wide worth = 0;
        std::vector<Wide> cost(prices.begin(), prices.end());
        for (std::size_t l = 0; l < prices.size(); ++l) {
            if (usable(topology_.links[l]))
                worth += Wide{topology_.links[l].capacity().bytes_per_second} * prices[l];
        }
        for (std::size_t l = 0; l < limits.size(); ++l) {
            if (limits[l] < 0) return "a price is negative";
            worth += Wide{topology_.limits[l].bandwidth.bytes_per_second} * limits[l];
            for (const int link : topology_.limits[l].links) cost[at(link)] += limits[l];
        }
        // Floyd and Warshall, all nodes.
        const std::size_t n = topology_.nodes.size();
        const Wide far = Wide{1} << 80;
        std::vector<std::vector<Wide>> way(n, std::vector<Wide>(n, far));
        for (std::size_t l = 0; l < prices.size(); ++l) {
            const topologies::Link& link = topology_.links[l];
            if (!usable(link)) continue;
            Wide& direct = way[at(link.from)][at(link.to)];
            direct = std::min(direct, cost[l]);
        }
        for (std::size_t k = 0; k < n; ++k) {
            for (std::size_t i = 0; i < n; ++i) {
                for (std::size_t j = 0; j < n; ++j) way[i][j] = std::min(way[i][j], way[i][k] + way[k][j]);
            }
        }
        Wide cheapest = far;
        for (int root = 0; root < static_cast<int>(ranks_.size()); ++root) {
            Wide both = 0;
            for (const bool turned : {false, true}) {
                std::vector<Edge> edges;
                for (int a = 0; a < static_cast<int>(ranks_.size()); ++a) {
                    for (int b = 0; b < static_cast<int>(ranks_.size()); ++b) {
                        if (a != b)
                            edges.push_back(
                                {turned ? b : a, turned ? a : b, way[at(ranks_[at(a)])][at(ranks_[at(b)])]});
                    }
                }
                both += arborescence(static_cast<int>(ranks_.size()), root, std::move(edges));
            }
            cheapest = std::min(cheapest, both);
        }
        if (cheapest <= 0) return "trees cost nothing";
        if (Wide{most.num} * cheapest < worth * most.den) return "prices allow more than at_most";
        if ((Wide{most.num} - most.den) * cheapest >= worth * most.den)
            return "prices prove less than at_most";
        return "";
    }

    // Least sum of prices of a spanning out-tree (Edmonds, on lists of edges).
    static Wide arborescence(int vertices, int root, std::vector<Edge> edges) {
        Wide sum = 0;
        while (true) {
            std::vector<int> best(at(vertices), -1);
            for (std::size_t e = 0; e < edges.size(); ++e) {
                int& into = best[at(edges[e].to)];
                if (edges[e].to != root && (into < 0 || edges[e].price < edges[at(into)].price))
                    into = static_cast<int>(e);
            }
            std::vector<int> name(at(vertices), -1), walk(name);
            int count = 0;
            for (int v = 0; v < vertices; ++v) {
                if (v == root) continue;
                sum += edges[at(best[at(v)])].price;
                int u = v;
                while (u != root && name[at(u)] < 0 && walk[at(u)] != v) {
                    walk[at(u)] = v;
                    u = edges[at(best[at(u)])].from;
                }
                if (u == root || name[at(u)] >= 0) continue;
                for (int w = u; name[at(w)] < 0; w = edges[at(best[at(w)])].from) name[at(w)] = count;
                ++count;
            }
            if (count == 0) return sum;
            for (int& own : name) {
                if (own < 0) own = count++;
            }
            std::vector<Edge> next;
            for (const Edge& edge : edges) {
                const int from = name[at(edge.from)], to = name[at(edge.to)];
                if (from == to || edge.to == root) continue;
                const int into = best[at(edge.to)];
                next.push_back({from, to, edge.price - edges[at(into)].price});
            }
            edges = std::move(next);
            root = name[at(root)];
            vertices = count;
        }
    }

    // Rates fit into the machine and their cuts suffice for all shares.
    std::string rates_prove(const std::vector<std::int64_t> (&rates)[2], const nlohmann::ordered_json& shares,
                            const Fraction& unit, const Fraction& least) const {
        if (shares.size() != ranks_.size()) return "another number of shares";
        const auto fits = [&](Wide amount, Rate rate) {
            return amount * unit.num <= Wide{rate.bytes_per_second} * unit.den;
        };
        for (std::size_t l = 0; l < topology_.links.size(); ++l) {
            const Wide sum = Wide{rates[0][l]} + rates[1][l];
            if (sum > 0 && !usable(topology_.links[l])) return "a rate on a link that takes no part";
            if (!fits(sum, topology_.links[l].capacity())) return "a link is overloaded";
        }
        for (const topologies::Limit& limit : topology_.limits) {
            Wide sum = 0;
            for (const int link : limit.links) sum += Wide{rates[0][at(link)]} + rates[1][at(link)];
            if (!fits(sum, limit.bandwidth)) return "a limit is exceeded";
        }
        Wide all = 0;
        for (const std::int64_t share : shares) {
            if (share < 0) return "a share is negative";
            all += share;
        }
        // Both sides times den * unit.den: `all * unit` is at_least, or less than one above it.
        if (all * unit.num * least.den < Wide{least.num} * unit.den) return "shares sum to less";
        for (const bool turned : {false, true}) {
            const std::vector<std::int64_t>& own = rates[turned ? 0 : 1];
            std::vector<Wide> surplus(topology_.nodes.size(), 0);
            for (std::size_t l = 0; l < own.size(); ++l) {
                surplus[at(topology_.links[l].to)] += own[l];
                surplus[at(topology_.links[l].from)] -= own[l];
            }
            for (std::size_t v = 0; v < surplus.size(); ++v) {
                if (!member_[v] && surplus[v] != 0) return "a node passes on another amount than it receives";
            }
            for (const int sink : ranks_) {
                if (flow(own, shares, turned, sink) < all) return "a cut does not suffice";
            }
        }
        return "";
    }

    // Maximum flow of all shares to a rank, along shortest augmenting paths.
    Wide flow(const std::vector<std::int64_t>& rates, const nlohmann::ordered_json& shares, bool turned,
              int sink) const {
        const auto source = static_cast<int>(topology_.nodes.size());
        std::vector<std::map<int, Wide>> rest(topology_.nodes.size() + 1);
        for (std::size_t l = 0; l < rates.size(); ++l) {
            const topologies::Link& link = topology_.links[l];
            rest[at(turned ? link.to : link.from)][turned ? link.from : link.to] += rates[l];
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            rest[at(source)][ranks_[r]] = shares[r].get<std::int64_t>();
        Wide sum = 0;
        while (true) {
            std::vector<int> before(rest.size(), -1);
            std::queue<int> queue;
            queue.push(source);
            before[at(source)] = source;
            while (!queue.empty() && before[at(sink)] < 0) {
                const int v = queue.front();
                queue.pop();
                for (const auto& [to, amount] : rest[at(v)]) {
                    if (amount <= 0 || before[at(to)] >= 0) continue;
                    before[at(to)] = v;
                    queue.push(to);
                }
            }
            if (before[at(sink)] < 0) return sum;
            Wide amount = Wide{1} << 100;
            for (int v = sink; v != source; v = before[at(v)])
                amount = std::min(amount, rest[at(before[at(v)])][v]);
            for (int v = sink; v != source; v = before[at(v)]) {
                const int u = before[at(v)];
                rest[at(u)][v] -= amount;
                rest[at(v)][u] += amount;
            }
            sum += amount;
        }
    }

    const topologies::Topology& topology_;
    std::vector<char> member_;  // per node
    std::vector<int> ranks_;    // their nodes
};

}  // namespace baton::test
