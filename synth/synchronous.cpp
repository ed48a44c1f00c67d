#include <baton/synth/synchronous.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

constexpr int kMostSynchronousRanks = 64;
constexpr std::int64_t kMostChunksPerRound = 16;
constexpr std::int64_t kCoarseUnits = 4;
constexpr std::int64_t kMostAutomorphismNodes = 200'000;
constexpr std::size_t kMostAutomorphisms = 512;

// Backtracking over images of ranks 0, 1, ...: rank i goes where its arcs to and from 0..i-1 have images.
class AutomorphismSearch {
public:
    explicit AutomorphismSearch(const SynchronousMachine& machine)
        : n_(machine.ranks), weight_(at(n_), std::vector<std::int64_t>(at(n_), 0)) {
        for (const SynchronousArc& arc : machine.arcs) weight_[at(arc.from)][at(arc.to)] = arc.chunks;
        for (int v = 0; v < n_; ++v) {
            std::vector<std::pair<std::int64_t, std::int64_t>> degrees;
            for (int u = 0; u < n_; ++u) degrees.push_back({weight_[at(v)][at(u)], weight_[at(u)][at(v)]});
            std::sort(degrees.begin(), degrees.end());
            signature_.push_back(std::move(degrees));
        }
    }

    /// Automorphisms that move every rank.
    std::vector<RankPermutation> run() {
        image_.assign(at(n_), -1);
        used_.assign(at(n_), 0);
        // Images of rank 0 take turns, so that a bound on the number does not favor the first.
        for (int first = 1; first < n_; ++first) {
            most_ = found_.size() + kMostAutomorphisms / at(n_) + 1;
            budget_ = kMostAutomorphismNodes / n_;
            place(0, first);
        }
        return std::move(found_);
    }

private:
    void place(int v, int w) {
        if (used_[at(w)] || w == v || signature_[at(v)] != signature_[at(w)]) return;
        if (found_.size() >= most_ || --budget_ < 0) return;
        for (int u = 0; u < v; ++u) {
            if (weight_[at(u)][at(v)] != weight_[at(image_[at(u)])][at(w)] ||
                weight_[at(v)][at(u)] != weight_[at(w)][at(image_[at(u)])])
                return;
        }
        image_[at(v)] = w;
        used_[at(w)] = 1;
        if (v + 1 == n_) {
            found_.push_back(image_);
        } else {
            for (int x = 0; x < n_; ++x) place(v + 1, x);
        }
        used_[at(w)] = 0;
    }

    int n_;
    std::vector<std::vector<std::int64_t>> weight_;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> signature_;
    std::vector<int> image_;
    std::vector<char> used_;
    std::size_t most_ = 0;
    std::int64_t budget_ = 0;
    std::vector<RankPermutation> found_;
};

RankPermutation after(const RankPermutation& a, const RankPermutation& b) {
    RankPermutation both(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) both[i] = b[at(a[i])];
    return both;
}

// All products of `generators`, or nothing when an element other than the identity leaves a rank in place.
std::vector<RankPermutation> free_closure(int ranks, const std::vector<RankPermutation>& generators) {
    RankPermutation identity(at(ranks));
    std::iota(identity.begin(), identity.end(), 0);
    std::vector<RankPermutation> elements = {identity};
    std::set<RankPermutation> known = {identity};
    for (std::size_t i = 0; i < elements.size(); ++i) {
        for (const RankPermutation& generator : generators) {
            const RankPermutation next = after(elements[i], generator);
            if (!known.insert(next).second) continue;
            for (int v = 0; v < ranks; ++v) {
                if (next[at(v)] == v) return {};
            }
            elements.push_back(next);
            if (elements.size() > at(ranks)) return {};
        }
    }
    return elements;
}

}  // namespace

std::vector<std::vector<int>> SynchronousMachine::out() const {
    std::vector<std::vector<int>> list(at(ranks));
    for (std::size_t a = 0; a < arcs.size(); ++a) list[at(arcs[a].from)].push_back(static_cast<int>(a));
    return list;
}

std::vector<std::vector<int>> SynchronousMachine::in() const {
    std::vector<std::vector<int>> list(at(ranks));
    for (std::size_t a = 0; a < arcs.size(); ++a) list[at(arcs[a].to)].push_back(static_cast<int>(a));
    return list;
}

std::vector<std::vector<int>> SynchronousMachine::distances() const {
    const std::vector<std::vector<int>> leaving = out();
    std::vector<std::vector<int>> all;
    for (int root = 0; root < ranks; ++root) {
        std::vector<int> distance(at(ranks), -1), queue = {root};
        distance[at(root)] = 0;
        for (std::size_t i = 0; i < queue.size(); ++i) {
            for (const int a : leaving[at(queue[i])]) {
                const int to = arcs[at(a)].to;
                if (distance[at(to)] >= 0) continue;
                distance[at(to)] = distance[at(queue[i])] + 1;
                queue.push_back(to);
            }
        }
        all.push_back(std::move(distance));
    }
    return all;
}

SynchronousMachine SynchronousMachine::reversed() const {
    SynchronousMachine turned = *this;
    std::vector<std::size_t> order(arcs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (SynchronousArc& arc : turned.arcs) std::swap(arc.from, arc.to);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(turned.arcs[a].from, turned.arcs[a].to) <
               std::pair(turned.arcs[b].from, turned.arcs[b].to);
    });
    std::vector<int> place(arcs.size());
    std::vector<SynchronousArc> sorted;
    for (const std::size_t a : order) {
        place[a] = static_cast<int>(sorted.size());
        sorted.push_back(turned.arcs[a]);
    }
    turned.arcs = std::move(sorted);
    for (SynchronousLimit& limit : turned.limits) {
        for (int& arc : limit.arcs) arc = place[at(arc)];
        std::sort(limit.arcs.begin(), limit.arcs.end());
    }
    return turned;
}

bool SynchronousMachine::operator==(const SynchronousMachine& other) const {
    const auto same_arc = [](const SynchronousArc& a, const SynchronousArc& b) {
        return a.from == b.from && a.to == b.to && a.chunks == b.chunks;
    };
    const auto same_limit = [](const SynchronousLimit& a, const SynchronousLimit& b) {
        return a.arcs == b.arcs && a.chunks == b.chunks;
    };
    return ranks == other.ranks && unit == other.unit &&
           std::equal(arcs.begin(), arcs.end(), other.arcs.begin(), other.arcs.end(), same_arc) &&
           std::equal(limits.begin(), limits.end(), other.limits.begin(), other.limits.end(), same_limit);
}

SynchronousMachine synchronous_machine(const topologies::Topology& topology, int ranks) {
    if (ranks > kMostSynchronousRanks)
        throw input_error(
            fmt::format("{} ranks are more than the {} of exact search", ranks, kMostSynchronousRanks));
    SynchronousMachine machine;
    machine.ranks = ranks;
    std::map<std::pair<int, int>, std::int64_t> rates;
    const auto pair_of = [&](int link) {
        return std::pair(topology.nodes[at(topology.links[at(link)].from)].rank,
                         topology.nodes[at(topology.links[at(link)].to)].rank);
    };
    const auto direct = [&](int link) {
        const auto [from, to] = pair_of(link);
        return from >= 0 && to >= 0 && from < ranks && to < ranks && from != to;
    };
    for (std::size_t l = 0; l < topology.links.size(); ++l) {
        if (direct(static_cast<int>(l)))
            rates[pair_of(static_cast<int>(l))] += topology.links[l].capacity().bytes_per_second;
        else
            machine.all_links = false;
    }
    std::int64_t unit = 0, least = INT64_MAX, most = 0;
    for (const auto& [pair, rate] : rates) {
        unit = std::gcd(unit, rate);
        least = std::min(least, rate);
        most = std::max(most, rate);
    }
    if (unit > 0 && most / unit > kMostChunksPerRound) {
        machine.exact = false;
        unit = std::max<std::int64_t>({1, least / kCoarseUnits, most / 64});
    }
    machine.unit = static_cast<double>(unit);
    std::map<std::pair<int, int>, int> number;
    for (const auto& [pair, rate] : rates) {
        if (rate < unit) continue;
        number[pair] = static_cast<int>(machine.arcs.size());
        machine.arcs.push_back({pair.first, pair.second, rate / unit});
    }
    for (const topologies::Limit& limit : topology.limits) {
        std::set<int> arcs;
        std::int64_t together = 0;
        for (const int link : limit.links) {
            if (direct(link) && number.contains(pair_of(link))) arcs.insert(number[pair_of(link)]);
        }
        for (const int arc : arcs) together += machine.arcs[at(arc)].chunks;
        const std::int64_t chunks = limit.bandwidth.bytes_per_second / std::max<std::int64_t>(1, unit);
        if (arcs.empty() || chunks >= together) continue;
        if (chunks < 1)
            throw input_error(
                fmt::format("limit {} is too low for exact search: less than one chunk per round", limit.id));
        if (limit.bandwidth.bytes_per_second % unit != 0) machine.exact = false;
        machine.limits.push_back({{arcs.begin(), arcs.end()}, chunks});
    }
    for (const std::vector<int>& row : machine.distances()) {
        if (std::find(row.begin(), row.end(), -1) != row.end())
            throw input_error(
                "exact search looks at links between ranks only, and these do not lead from every "
                "rank to every other");
    }
    return machine;
}

std::vector<std::vector<RankPermutation>> free_symmetries(const SynchronousMachine& machine) {
    std::vector<std::vector<RankPermutation>> groups;
    if (machine.ranks > 1 && machine.limits.empty()) {
        std::vector<std::vector<RankPermutation>> cyclic;
        for (const RankPermutation& g : AutomorphismSearch(machine).run()) {
            if (auto elements = free_closure(machine.ranks, {g}); !elements.empty())
                cyclic.push_back(std::move(elements));
        }
        std::stable_sort(cyclic.begin(), cyclic.end(),
                         [](const auto& a, const auto& b) { return a.size() > b.size(); });
        if (!cyclic.empty()) {
            std::vector<RankPermutation> generators = {cyclic[0][1]}, grown = cyclic[0];
            for (const auto& candidate : cyclic) {
                if (grown.size() == at(machine.ranks)) break;
                generators.push_back(candidate[1]);
                auto bigger = free_closure(machine.ranks, generators);
                if (bigger.size() > grown.size())
                    grown = std::move(bigger);
                else
                    generators.pop_back();
            }
            if (grown.size() > cyclic[0].size()) groups.push_back(grown);
            groups.push_back(cyclic[0]);
            // A smaller one for what the larger ones rule out.
            for (const auto& candidate : cyclic) {
                if (candidate.size() == 2 && cyclic[0].size() > 2) {
                    groups.push_back(candidate);
                    break;
                }
            }
        }
    }
    RankPermutation identity(at(machine.ranks));
    std::iota(identity.begin(), identity.end(), 0);
    groups.push_back({identity});
    return groups;
}

}  // namespace baton::synth
