#include <baton/synth/rank_symmetry.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/rank_shifts.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace baton::synth {

namespace {

std::uint64_t mixed(std::uint64_t x) {
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ULL;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dULL;
    return x ^ (x >> 33);
}

// Compares a machine with itself after ranks were permuted.
class Likeness {
public:
    explicit Likeness(const RankGraph& graph) : graph_(graph), ranks_(graph.ranks()) {
        edges_.resize(at(ranks_) * at(ranks_));
        color_.assign(at(ranks_), 0);
        for (std::size_t e = 0; e < graph.edges().size(); ++e) {
            const RankEdge& edge = graph.edges()[e];
            kind_.push_back(kind(e));
            std::vector<int>& beside = edges_[at(edge.from) * at(ranks_) + at(edge.to)];
            order_.push_back(std::count_if(beside.begin(), beside.end(),
                                           [&](int other) { return kind_[at(other)] == kind_[e]; }));
            beside.push_back(static_cast<int>(e));
            color_[at(edge.from)] += mixed(kind_[e]);
            color_[at(edge.to)] += mixed(kind_[e] + 1);
        }
        std::vector<int> same(graph.edges().size());
        std::iota(same.begin(), same.end(), 0);
        plain_ = resources(same);
    }

    bool same(const std::vector<int>& image) {
        for (int v = 0; v < ranks_; ++v) {
            if (color_[at(v)] != color_[at(image[at(v)])]) return false;
        }
        const auto [place, fresh] = known_.emplace(image, false);
        if (fresh) {
            const std::vector<int> edges = turned(image);
            place->second = !edges.empty() && resources(edges) == plain_;
        }
        return place->second;
    }

    /// Where the permutation takes each edge; empty where it takes one to a pair without. Of several edges of
    /// a pair those that look alike go to each other in order.
    std::vector<int> turned(const std::vector<int>& image) const {
        std::vector<int> list;
        for (std::size_t e = 0; e < graph_.edges().size(); ++e) {
            const RankEdge& edge = graph_.edges()[e];
            const std::vector<int>& others = edges_between(image[at(edge.from)], image[at(edge.to)]);
            const auto place = std::find_if(others.begin(), others.end(), [&](int other) {
                return kind_[at(other)] == kind_[e] && order_[at(other)] == order_[e];
            });
            if (place == others.end()) return {};
            list.push_back(*place);
        }
        return list;
    }

private:
    static std::uint64_t rounded(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

    // What each resource is and who uses it how much by default routes, edges renamed; sorted.
    std::vector<std::uint64_t> resources(const std::vector<int>& names) const {
        std::vector<std::uint64_t> sum(graph_.capacities().size(), 0);
        for (std::size_t e = 0; e < names.size(); ++e) {
            if (graph_.edges()[e].way >= 0) continue;
            for (const topologies::LinkShare& use : graph_.uses()[e])
                sum[at(use.link)] +=
                    mixed(static_cast<std::uint64_t>(names[e]) * 0x100000001b3ULL + rounded(use.share * 1e6));
        }
        for (std::size_t r = 0; r < sum.size(); ++r) {
            if (sum[r] != 0) sum[r] = mixed(sum[r] ^ mixed(rounded(graph_.capacities()[r])));
        }
        std::sort(sum.begin(), sum.end());
        return sum;
    }

    const std::vector<int>& edges_between(int from, int to) const {
        return edges_[at(from) * at(ranks_) + at(to)];
    }

    // What the edge is, whoever it joins.
    std::uint64_t kind(std::size_t e) const {
        std::uint64_t sum = static_cast<std::uint64_t>(graph_.edges()[e].latency.picoseconds);
        for (const topologies::LinkShare& use : graph_.uses()[e])
            sum += mixed(rounded(graph_.capacities()[at(use.link)]) + mixed(rounded(use.share * 1e6)));
        return sum;
    }

    const RankGraph& graph_;
    int ranks_;
    std::vector<std::vector<int>> edges_;  // per pair of ranks
    std::vector<std::uint64_t> kind_;      // per edge
    std::vector<std::ptrdiff_t> order_;    // per edge, among those of its kind and pair
    std::vector<std::uint64_t> plain_, color_;
    std::map<std::vector<int>, bool> known_;
};

}  // namespace

RankGroup symmetric_shifts(const RankGraph& graph, const std::vector<int>& hosts) {
    const int ranks = graph.ranks();
    Likeness likeness(graph);
    std::vector<int> best_members = {0};
    Shifts best({ranks});
    for (const std::vector<int>& radix : shift_readings(ranks, hosts)) {
        const Shifts shifts(radix);
        std::vector<int> members = {0};
        std::vector<char> inside(at(ranks), 0);
        inside[0] = 1;
        for (int g = 1; g < ranks; ++g) {
            if (inside[at(g)]) continue;
            std::vector<int> image;
            for (int v = 0; v < ranks; ++v) image.push_back(shifts.add(v, g));
            if (!likeness.same(image)) continue;
            // The group grows by all multiples of g.
            const std::vector<int> before = members;
            for (int multiple = g; !inside[at(multiple)]; multiple = shifts.add(multiple, g)) {
                for (const int h : before) {
                    members.push_back(shifts.add(h, multiple));
                    inside[at(members.back())] = 1;
                }
            }
        }
        if (members.size() <= best_members.size()) continue;
        best_members = members;
        best = shifts;
        if (std::ssize(members) == ranks) break;
    }
    RankGroup group;
    for (const int g : best_members) {
        std::vector<int>& image = group.emplace_back();
        for (int v = 0; v < ranks; ++v) image.push_back(best.add(v, g));
    }
    return group;
}

std::vector<std::vector<int>> turned_edges(const RankGraph& graph, const RankGroup& group) {
    const Likeness likeness(graph);
    std::vector<std::vector<int>> edges;
    for (const std::vector<int>& image : group) {
        edges.push_back(likeness.turned(image));
        if (edges.back().size() < graph.edges().size()) return {};
    }
    return edges;
}

}  // namespace baton::synth
