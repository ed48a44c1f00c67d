#include <baton/synth/tree_rerouting.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace baton::synth {
namespace {

// A tree as parents: the edge of the graph by which each vertex is reached.
struct Branches {
    int root = -1;
    std::int64_t weight = 1;
    std::vector<int> by;      // per vertex: edge, -1 at the root and where the branch was lost
    std::vector<int> parent;  // per vertex, -1 likewise
    std::vector<int> depth;
};

constexpr std::size_t kUsesOfAnEdge = 8;  // links and limits that one edge of usual machines uses

double power(double x) {  // x^12
    const double cube = x * x * x, sixth = cube * cube;
    return sixth * sixth;
}

class Rerouter {
public:
    Rerouter(const Forest& forest, const RankGraph& graph, bool turned, const ReroutingOptions& options)
        : graph_(graph), options_(options), per_root_(forest.per_root) {
        edges_ = turned ? graph.turned() : graph.edges();
        in_.resize(at(graph.ranks()));
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            if (edges_[e].way < 0) between_[{edges_[e].from, edges_[e].to}] = static_cast<int>(e);
            in_[at(edges_[e].to)].push_back(static_cast<int>(e));
        }
        load_.assign(graph.capacities().size(), 0);
        users_.resize(graph.capacities().size());
        change_places_.resize(graph.capacities().size());
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            for (const topologies::LinkShare& use : graph.uses()[e])
                users_[at(use.link)].push_back(static_cast<int>(e));
        }
        carried_.resize(edges_.size());
        scale_ = 1 / options.target;
        for (const PackedTree& tree : forest.trees) take(tree);
    }

    Rerouted run() {
        hang_lost_branches();
        for (int split = 0;; ++split) {
            while (pass()) {
            }
            if (good_enough() || split == options_.most_splits || spent_ > options_.work) break;
            halve_busy_trees();
        }
        shorten();
        return result();
    }

private:
    void take(const PackedTree& tree) {
        Branches made{tree.root, tree.multiplicity, std::vector<int>(at(graph_.ranks()), -1),
                      std::vector<int>(at(graph_.ranks()), -1), std::vector<int>(at(graph_.ranks()), 0)};
        for (const auto& [from, to] : tree.edges) {
            const auto found = between_.find({from, to});
            made.parent[at(to)] = from;
            if (found != between_.end()) made.by[at(to)] = found->second;
        }
        trees_.push_back(std::move(made));
        const std::size_t t = trees_.size() - 1;
        for (int v = 0; v < graph_.ranks(); ++v) {
            if (trees_[t].by[at(v)] >= 0) carry(t, v, 1);
        }
        deepen(t);
    }

    // Adds or takes away what a branch puts on its edge.
    void carry(std::size_t t, int v, int sign) {
        const int e = trees_[t].by[at(v)];
        const double amount = sign * static_cast<double>(trees_[t].weight) / static_cast<double>(per_root_);
        for (const topologies::LinkShare& use : graph_.uses()[at(e)])
            load_[at(use.link)] += amount * use.share / graph_.capacities()[at(use.link)] * scale_;
        std::vector<std::pair<std::size_t, int>>& list = carried_[at(e)];
        if (sign > 0) {
            list.push_back({t, v});
        } else {
            list.erase(std::find(list.begin(), list.end(), std::pair{t, v}));
        }
    }

    // Depths from parents; lost branches keep hanging where they were until they move.
    void deepen(std::size_t t) {
        Branches& tree = trees_[t];
        std::fill(tree.depth.begin(), tree.depth.end(), -1);
        tree.depth[at(tree.root)] = 0;
        std::vector<int> way;
        for (int v = 0; v < graph_.ranks(); ++v) {
            way.clear();
            int u = v;
            while (tree.depth[at(u)] < 0) {
                way.push_back(u);
                u = tree.parent[at(u)];
                if (u < 0 || way.size() > at(graph_.ranks()))
                    throw internal_error("a tree that is rerouted does not span");
            }
            int depth = tree.depth[at(u)];
            while (!way.empty()) {
                tree.depth[at(way.back())] = ++depth;
                way.pop_back();
            }
        }
    }

    bool below(const Branches& tree, int v, int top) const {  // v is `top` or hangs below it
        while (v >= 0 && v != top) v = tree.parent[at(v)];
        return v == top;
    }
    int height(const Branches& tree, int top) const {
        int most = 0;
        for (int v = 0; v < graph_.ranks(); ++v) {
            if (tree.depth[at(v)] > tree.depth[at(top)] + most && below(tree, v, top))
                most = tree.depth[at(v)] - tree.depth[at(top)];
        }
        return most;
    }

    // Change of the potential when this much leaves some edges for others.
    double change(double amount, const std::vector<int>& from, const std::vector<int>& to) {
        changes_.clear();
        ++change_mark_;
        std::size_t uses = 0;
        const auto note = [&](int e, double sign) {
            uses += graph_.uses()[at(e)].size();
            for (const topologies::LinkShare& use : graph_.uses()[at(e)]) {
                const double by = sign * amount * use.share / graph_.capacities()[at(use.link)] * scale_;
                ChangePlace& place = change_places_[at(use.link)];
                if (place.mark == change_mark_) {
                    changes_[place.index].second += by;
                } else {
                    place = {change_mark_, changes_.size()};
                    changes_.push_back({use.link, by});
                }
            }
        };
        for (const int e : from) note(e, -1);
        for (const int e : to) note(e, 1);
        // Edges that spread over many planes of switches count for more than one.
        spent_ += static_cast<std::int64_t>(std::max(from.size() + to.size(), uses / kUsesOfAnEdge));
        double sum = 0;
        for (const auto& [resource, by] : changes_)
            sum += power(load_[at(resource)] + by) - power(load_[at(resource)]);
        return sum;
    }

    // A branch hung elsewhere: by `edge` into `vertex`, which is its top or a vertex below it; then the way
    // from the old top down to the vertex turns round.
    struct Move {
        int edge = -1, vertex = -1;
        double gain = 0;
        int depth = INT32_MAX;
    };

    // The best other place for a branch; no edge when none lowers the potential (or, for a lost branch, none
    // is there).
    Move best_move(std::size_t t, int v) {
        stop_point();
        const Branches& tree = trees_[t];
        const int own = tree.by[at(v)];
        const double amount = static_cast<double>(tree.weight) / static_cast<double>(per_root_);
        Move best;
        best.gain = own >= 0 ? -1e-9 : INFINITY;
        std::vector<int> from, to;
        for (int x = 0; x < graph_.ranks(); ++x) {
            if (x == tree.root || tree.depth[at(x)] < tree.depth[at(v)] || !below(tree, x, v)) continue;
            from.clear();
            to.clear();
            if (own >= 0) from.push_back(own);
            bool turns = true;
            for (int u = x; u != v && turns; u = tree.parent[at(u)]) {
                const auto back = between_.find({u, tree.parent[at(u)]});
                turns = back != between_.end() && tree.by[at(u)] >= 0;
                if (!turns) break;
                from.push_back(tree.by[at(u)]);
                to.push_back(back->second);
            }
            if (!turns) continue;
            to.push_back(-1);
            const int tall = options_.most_depth > 0 ? height(tree, v) + static_cast<int>(to.size()) - 1 : 0;
            for (const int e : in_[at(x)]) {
                const int w = edges_[at(e)].from;
                if (e == own || below(tree, w, v)) continue;
                const int depth = tree.depth[at(w)] + static_cast<int>(to.size());
                if (options_.most_depth > 0 && depth + tall > options_.most_depth && own >= 0) continue;
                to.back() = e;
                const double gain = change(amount, from, to);
                // Equal gains: the shallower place.
                if (gain < best.gain - 1e-12 ||
                    (best.edge >= 0 && gain < best.gain + 1e-12 && depth < best.depth))
                    best = {e, x, std::min(gain, best.gain), depth};
            }
        }
        return best;
    }

    void make(std::size_t t, int v, const Move& move) {
        std::vector<int> way = {move.vertex};  // from the new top to the old one
        while (way.back() != v) way.push_back(trees_[t].parent[at(way.back())]);
        for (const int u : way) {
            if (trees_[t].by[at(u)] >= 0) carry(t, u, -1);
        }
        for (std::size_t i = way.size() - 1; i > 0; --i) {
            trees_[t].by[at(way[i])] = between_.at({way[i - 1], way[i]});
            trees_[t].parent[at(way[i])] = way[i - 1];
        }
        trees_[t].by[at(move.vertex)] = move.edge;
        trees_[t].parent[at(move.vertex)] = edges_[at(move.edge)].from;
        for (const int u : way) carry(t, u, 1);
        deepen(t);
        ++moved_;
    }

    void hang_lost_branches() {
        for (std::size_t t = 0; t < trees_.size(); ++t) {
            for (int v = 0; v < graph_.ranks(); ++v) {
                if (v == trees_[t].root || trees_[t].by[at(v)] >= 0) continue;
                const Move move = best_move(t, v);
                if (move.edge < 0) {
                    regrow(t);
                    break;
                }
                make(t, v, move);
                ++replaced_;
            }
        }
    }

    // The tree anew, breadth first: all ways into a lost branch come from below it.
    void regrow(std::size_t t) {
        Branches& tree = trees_[t];
        for (int v = 0; v < graph_.ranks(); ++v) {
            if (tree.by[at(v)] >= 0) carry(t, v, -1);
            tree.by[at(v)] = tree.parent[at(v)] = -1;
            tree.depth[at(v)] = -1;
        }
        tree.depth[at(tree.root)] = 0;
        std::vector<int> reached = {tree.root};
        std::vector<std::vector<int>> out(at(graph_.ranks()));
        for (std::size_t e = 0; e < edges_.size(); ++e) {
            if (edges_[e].way < 0) out[at(edges_[e].from)].push_back(static_cast<int>(e));
        }
        for (std::size_t i = 0; i < reached.size(); ++i) {
            for (const int e : out[at(reached[i])]) {
                const int v = edges_[at(e)].to;
                if (tree.depth[at(v)] >= 0) continue;
                tree.by[at(v)] = e;
                tree.parent[at(v)] = reached[i];
                tree.depth[at(v)] = tree.depth[at(reached[i])] + 1;
                reached.push_back(v);
                carry(t, v, 1);
                ++moved_, ++replaced_;
            }
        }
        if (reached.size() < at(graph_.ranks()))
            throw input_error(fmt::format("rank {} cannot reach all other ranks", tree.root));
    }

    std::vector<int> busy() const {
        std::vector<int> list;
        const double most = *std::max_element(load_.begin(), load_.end());
        const double from = std::max(1 + options_.tolerance, 0.9 * most);
        for (std::size_t r = 0; r < load_.size(); ++r) {
            if (load_[r] > from) list.push_back(static_cast<int>(r));
        }
        std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return load_[at(a)] > load_[at(b)]; });
        return list;
    }
    bool good_enough() const { return busy().empty(); }

    // Moves branches off the busiest resources; false when none could move.
    bool pass() {
        bool any = false;
        for (const int resource : busy()) {
            for (const int e : users_[at(resource)]) {
                const std::vector<std::pair<std::size_t, int>> here = carried_[at(e)];
                for (const auto& [t, v] : here) {
                    if (spent_ > options_.work) return false;
                    if (trees_[t].by[at(v)] != e) continue;
                    const Move move = best_move(t, v);
                    if (move.edge < 0) continue;
                    make(t, v, move);
                    any = true;
                }
            }
        }
        return any;
    }

    // Hangs the deepest branches higher where the busiest resource stays as it is.
    void shorten() {
        const double most = std::max(1.0, *std::max_element(load_.begin(), load_.end())) * (1 + 1e-12);
        for (std::size_t t = 0; t < trees_.size(); ++t) {
            std::vector<int> order;
            for (int v = 0; v < graph_.ranks(); ++v) {
                if (v != trees_[t].root) order.push_back(v);
            }
            for (bool again = true; again && spent_ <= options_.work;) {
                again = false;
                std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
                    return trees_[t].depth[at(a)] > trees_[t].depth[at(b)];
                });
                stop_point();
                for (const int v : order) {
                    const Move move = higher_place(t, v, most);
                    if (move.edge < 0) continue;
                    make(t, v, move);
                    again = true;
                }
            }
        }
    }

    Move higher_place(std::size_t t, int v, double most) {
        const Branches& tree = trees_[t];
        const double amount = static_cast<double>(tree.weight) / static_cast<double>(per_root_);
        Move best;
        best.depth = tree.depth[at(v)];
        best.gain = INFINITY;
        for (const int e : in_[at(v)]) {
            const int w = edges_[at(e)].from, depth = tree.depth[at(w)] + 1;
            if (depth > best.depth || depth >= tree.depth[at(v)] || below(tree, w, v)) continue;
            const double gain = change(amount, {tree.by[at(v)]}, {e});
            if (depth == best.depth && gain >= best.gain) continue;
            const bool fits = std::all_of(changes_.begin(), changes_.end(), [&](const auto& c) {
                return c.second <= 0 || load_[at(c.first)] + c.second <= most;
            });
            if (fits) best = {e, v, gain, depth};
        }
        return best;
    }

    void halve_busy_trees() {
        per_root_ *= 2;
        for (Branches& tree : trees_) tree.weight *= 2;
        std::vector<char> busy_tree(trees_.size(), 0);
        for (const int resource : busy()) {
            for (const int e : users_[at(resource)]) {
                for (const auto& [t, v] : carried_[at(e)]) busy_tree[t] = 1;
            }
        }
        const std::size_t before = trees_.size();
        for (std::size_t t = 0; t < before; ++t) {
            if (!busy_tree[t]) continue;
            for (int v = 0; v < graph_.ranks(); ++v) {
                if (v != trees_[t].root) carry(t, v, -1);
            }
            trees_[t].weight /= 2;
            trees_.push_back(trees_[t]);
            for (const std::size_t half : {t, trees_.size() - 1}) {
                for (int v = 0; v < graph_.ranks(); ++v) {
                    if (v != trees_[half].root) carry(half, v, 1);
                }
            }
        }
    }

    Rerouted result() const {
        Rerouted made;
        made.moved = moved_;
        made.replaced = replaced_;
        made.work = spent_;
        made.forest.per_root = per_root_;
        made.forest.optimum = options_.target;
        std::vector<std::size_t> order(trees_.size());
        for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return trees_[a].root < trees_[b].root; });
        for (const std::size_t t : order) {
            const Branches& tree = trees_[t];
            PackedTree packed{tree.root, tree.weight, {}, {}};
            std::vector<int> vertices;
            for (int v = 0; v < graph_.ranks(); ++v) {
                if (v != tree.root) vertices.push_back(v);
            }
            std::stable_sort(vertices.begin(), vertices.end(),
                             [&](int a, int b) { return tree.depth[at(a)] < tree.depth[at(b)]; });
            bool pinned = false;
            for (const int v : vertices) {
                packed.edges.push_back({tree.parent[at(v)], v});
                packed.ways.push_back(edges_[at(tree.by[at(v)])].way);
                pinned = pinned || packed.ways.back() >= 0;
            }
            if (!pinned) packed.ways.clear();
            if (!made.forest.trees.empty() && made.forest.trees.back().root == packed.root &&
                made.forest.trees.back().edges == packed.edges &&
                made.forest.trees.back().ways == packed.ways) {
                made.forest.trees.back().multiplicity += packed.multiplicity;
                continue;
            }
            made.forest.trees.push_back(std::move(packed));
        }
        made.forest.seconds_per_byte = *std::max_element(load_.begin(), load_.end()) / scale_;
        return made;
    }

    const RankGraph& graph_;
    const ReroutingOptions& options_;
    std::int64_t per_root_;
    std::vector<RankEdge> edges_;
    std::map<std::pair<int, int>, int> between_;  // default routes only
    std::vector<std::vector<int>> in_;
    double scale_ = 1;
    std::vector<double> load_;             // per resource: time of its share, the target being 1
    std::vector<std::vector<int>> users_;  // per resource: edges
    std::vector<std::vector<std::pair<std::size_t, int>>> carried_;  // per edge: (tree, vertex)
    std::vector<Branches> trees_;
    struct ChangePlace {
        std::uint64_t mark = 0;
        std::size_t index = 0;
    };
    std::vector<std::pair<int, double>> changes_;  // of the last `change`, by resource
    std::vector<ChangePlace> change_places_;       // per resource, where it stands among `changes_`
    std::uint64_t change_mark_ = 0;
    std::int64_t spent_ = 0, moved_ = 0, replaced_ = 0;
};

}  // namespace

Rerouted reroute(const Forest& forest, const RankGraph& graph, bool turned, const ReroutingOptions& options) {
    return Rerouter(forest, graph, turned, options).run();
}

}  // namespace baton::synth
