#include <baton/synth/layered_trees.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/max_flow.hpp>

#include <algorithm>
#include <set>

namespace baton::synth {
namespace {

struct LayerPart {
    int parent;
    std::int64_t amount;
};

class Layers {
public:
    Layers(int ranks, const std::vector<RankEdge>& edges, const std::vector<std::int64_t>& capacity,
           const std::vector<RootDemand>& demands, std::int64_t& work)
        : ranks_(ranks), work_(work), edges_(edges), capacity_(capacity), in_(at(ranks)), out_(at(ranks)) {
        for (const RootDemand& demand : demands) {
            if (demand.trees > 0) demands_.push_back(demand);
        }
        for (std::size_t e = 0; e < edges.size(); ++e) {
            if (capacity[e] <= 0) continue;
            in_[at(edges[e].to)].push_back(static_cast<int>(e));
            out_[at(edges[e].from)].push_back(static_cast<int>(e));
        }
        // Of edges that serve alike, the quickest is asked first.
        for (auto& list : in_)
            std::stable_sort(list.begin(), list.end(),
                             [&](int a, int b) { return edges[at(a)].latency < edges[at(b)].latency; });
        parts_.assign(demands_.size(), std::vector<std::vector<LayerPart>>(at(ranks)));
    }

    // Levels settle, or false.
    bool settle(int most_depth, int variant) {
        variant_ = variant;
        if (!hops()) return false;
        const int most = most_depth > 0 ? most_depth : ranks_ - 1;
        least_depth_ = depth();
        if (least_depth_ > most) return false;
        std::vector<char> dirty(at(ranks_), 1);
        for (bool again = true; again;) {
            again = false;
            std::vector<std::pair<int, int>> raised;
            for (int y = 0; y < ranks_; ++y) {
                if (!dirty[at(y)]) continue;
                dirty[at(y)] = 0;
                work_ -= static_cast<std::int64_t>(demands_.size() * (in_[at(y)].size() + 1));
                if (work_ < 0) return false;
                for (const int i : serve(y)) raised.push_back({i, y});
            }
            for (const auto& [i, y] : raised) {
                if (++level_[at(i)][at(y)] > most) return false;
                again = true;
                dirty[at(y)] = 1;
                for (const int e : out_[at(y)]) dirty[at(edges_[at(e)].to)] = 1;
            }
        }
        return true;
    }

    // No trees are shallower than the hops to the farthest rank.
    int least_depth() const { return least_depth_; }
    int depth() const {
        int deepest = 0;
        for (const auto& levels : level_)
            deepest = std::max(deepest, *std::max_element(levels.begin(), levels.end()));
        return deepest;
    }

    std::vector<PackedTree> trees() const {
        std::vector<PackedTree> all;
        for (std::size_t i = 0; i < demands_.size(); ++i) {
            const std::size_t first = all.size();
            std::vector<int> order;
            std::set<std::int64_t> boundaries = {demands_[i].trees};
            for (int y = 0; y < ranks_; ++y) {
                if (y == demands_[i].root) continue;
                order.push_back(y);
                std::int64_t end = 0;
                for (const LayerPart& part : parts_[i][at(y)]) boundaries.insert(end += part.amount);
            }
            std::stable_sort(order.begin(), order.end(),
                             [&](int a, int b) { return level_[i][at(a)] < level_[i][at(b)]; });
            std::int64_t begin = 0;
            for (const std::int64_t end : boundaries) {
                PackedTree tree{demands_[i].root, end - begin, {}};
                for (const int y : order) {
                    std::int64_t reached = 0;
                    for (const LayerPart& part : parts_[i][at(y)]) {
                        reached += part.amount;
                        if (reached < end) continue;
                        tree.edges.push_back({part.parent, y});
                        break;
                    }
                }
                if (all.size() > first && all.back().edges == tree.edges)
                    all.back().multiplicity += tree.multiplicity;
                else
                    all.push_back(std::move(tree));
                begin = end;
            }
        }
        return all;
    }

private:
    bool hops() {
        level_.assign(demands_.size(), std::vector<int>(at(ranks_), -1));
        for (std::size_t i = 0; i < demands_.size(); ++i) {
            std::vector<int> queue = {demands_[i].root};
            level_[i][at(queue[0])] = 0;
            for (std::size_t q = 0; q < queue.size(); ++q) {
                for (const int e : out_[at(queue[q])]) {
                    const int y = edges_[at(e)].to;
                    if (level_[i][at(y)] >= 0) continue;
                    level_[i][at(y)] = level_[i][at(queue[q])] + 1;
                    queue.push_back(y);
                }
            }
            if (queue.size() < at(ranks_)) return false;
        }
        return true;
    }

    // The demands that find no room at y; what the others take is kept.
    std::vector<int> serve(int y) {
        const int roots = static_cast<int>(demands_.size()), ways = static_cast<int>(in_[at(y)].size());
        const int source = roots + ways, sink = source + 1;
        MaxFlow<std::int64_t> flow(sink + 1);
        std::int64_t wanted = 0;
        for (int w = 0; w < ways; ++w) flow.add(roots + w, sink, capacity_[at(in_[at(y)][at(w)])]);
        struct Choice {
            int demand, way, arc;
        };
        std::vector<Choice> choices;
        std::vector<int> order(at(roots));
        for (int i = 0; i < roots; ++i) order[at(i)] = i;
        // Who asks first is served first.
        const auto first = [&](int i) {
            const int level = level_[at(i)][at(y)];
            if (variant_ == 0) return static_cast<std::uint64_t>(level);
            if (variant_ == 1) return static_cast<std::uint64_t>(ranks_ - level);
            std::uint64_t mix =
                (static_cast<std::uint64_t>(i) * 1000003 + static_cast<std::uint64_t>(y) + 1) *
                (static_cast<std::uint64_t>(variant_) * 2 + 1) * 0x9E3779B97F4A7C15u;
            mix ^= mix >> 29;
            mix *= 0xBF58476D1CE4E5B9u;
            return mix ^ (mix >> 32);
        };
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return first(a) < first(b); });
        for (const int i : order) {
            const bool own = demands_[at(i)].root == y;
            flow.add(source, i, own ? 0 : demands_[at(i)].trees);
            wanted += own ? 0 : demands_[at(i)].trees;
        }
        for (const int i : order) {
            if (demands_[at(i)].root == y) continue;
            for (int w = 0; w < ways; ++w) {
                const int x = edges_[at(in_[at(y)][at(w)])].from;
                if (level_[at(i)][at(x)] < level_[at(i)][at(y)])
                    choices.push_back({i, w, flow.add(i, roots + w, demands_[at(i)].trees)});
            }
        }
        const bool whole = flow.run(source, sink, wanted) == wanted;
        for (int i = 0; i < roots; ++i) parts_[at(i)][at(y)].clear();
        std::vector<std::int64_t> got(at(roots), 0);
        for (const Choice& choice : choices) {
            const std::int64_t amount = flow.flow_on(choice.arc);
            if (amount == 0) continue;
            got[at(choice.demand)] += amount;
            parts_[at(choice.demand)][at(y)].push_back({edges_[at(in_[at(y)][at(choice.way)])].from, amount});
        }
        std::vector<int> short_of;
        for (int i = 0; i < roots && !whole; ++i) {
            if (demands_[at(i)].root != y && got[at(i)] < demands_[at(i)].trees) short_of.push_back(i);
        }
        return short_of;
    }

    int ranks_, variant_ = 0;
    int least_depth_ = 0;
    std::int64_t& work_;
    const std::vector<RankEdge>& edges_;
    const std::vector<std::int64_t>& capacity_;
    std::vector<RootDemand> demands_;
    std::vector<std::vector<int>> in_, out_;
    std::vector<std::vector<int>> level_;                     // [demand][rank]
    std::vector<std::vector<std::vector<LayerPart>>> parts_;  // [demand][rank]
};

// Each demand as up to `parts` nearly equal ones.
std::vector<RootDemand> divided(const std::vector<RootDemand>& demands, std::int64_t parts) {
    std::vector<RootDemand> list;
    for (const RootDemand& demand : demands) {
        const std::int64_t count = std::min(parts, demand.trees);
        for (std::int64_t i = 0; i < count; ++i)
            list.push_back({demand.root, demand.trees * (i + 1) / count - demand.trees * i / count});
    }
    return list;
}

}  // namespace

std::vector<PackedTree> layered_trees(int ranks, const std::vector<RankEdge>& edges,
                                      const std::vector<std::int64_t>& capacity,
                                      const std::vector<RootDemand>& demands, int most_depth) {
    constexpr int kVariants = 24;
    constexpr std::int64_t kMostParts = 4096;
    std::vector<PackedTree> best;
    int depth = most_depth > 0 ? most_depth + 1 : ranks;
    std::int64_t most = 0, roots = 0;
    for (const RootDemand& demand : demands) {
        most = std::max(most, demand.trees);
        roots += demand.trees > 0 ? 1 : 0;
    }
    std::int64_t work = 20'000'000;
    // Trees of one root with levels of their own can feed each other's ranks: all alike, then more and more
    // apart.
    for (std::int64_t parts = 1; work > 0 && parts <= most && parts * roots <= kMostParts;
         parts = parts < 4 ? parts + 1 : parts * 2) {
        Layers layers(ranks, edges, capacity, divided(demands, parts), work);
        for (int variant = 0; variant < kVariants && depth > 1; ++variant) {
            if (!layers.settle(depth - 1, variant)) continue;
            best = layers.trees();
            depth = layers.depth();
            if (depth <= layers.least_depth()) return best;
        }
    }
    return best;
}

}  // namespace baton::synth
