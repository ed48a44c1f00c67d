#include <baton/synth/tree_schedules.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/ir/transform.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

// Fractions of a shard at which some tree begins or ends, over all forests, as multiples of 1/K.
struct Classes {
    std::int64_t per_whole = 1;            // K
    std::vector<std::int64_t> boundaries;  // ascending, from 0 to K
    std::vector<std::int64_t> weights() const {
        std::vector<std::int64_t> list;
        for (std::size_t i = 1; i < boundaries.size(); ++i) list.push_back(boundaries[i] - boundaries[i - 1]);
        const std::int64_t divisor =
            std::accumulate(list.begin(), list.end(), std::int64_t{0},
                            [](std::int64_t a, std::int64_t b) { return std::gcd(a, b); });
        for (std::int64_t& weight : list) weight /= divisor;
        return list;
    }
    std::int64_t index(std::int64_t boundary) const {
        return std::lower_bound(boundaries.begin(), boundaries.end(), boundary) - boundaries.begin();
    }
};

Classes common_classes(const std::vector<const Forest*>& forests) {
    Classes classes;
    for (const Forest* forest : forests) classes.per_whole = std::lcm(classes.per_whole, forest->per_root);
    std::set<std::int64_t> boundaries = {0, classes.per_whole};
    for (const Forest* forest : forests) {
        const std::int64_t unit = classes.per_whole / forest->per_root;
        std::map<int, std::int64_t> sum;
        for (const PackedTree& tree : forest->trees)
            boundaries.insert((sum[tree.root] += tree.multiplicity) * unit);
    }
    classes.boundaries.assign(boundaries.begin(), boundaries.end());
    return classes;
}

// One edge of one tree, with the classes it carries.
struct Hop {
    int depth;
    std::size_t tree;
    int from, to;
    std::int64_t first, count;
    int way;
};

// Hops of all trees, level by level.
std::vector<Hop> hops_of(const Forest& forest, const Classes& classes) {
    std::vector<Hop> hops;
    std::map<int, std::int64_t> begin;
    const std::int64_t unit = classes.per_whole / forest.per_root;
    for (std::size_t t = 0; t < forest.trees.size(); ++t) {
        const PackedTree& tree = forest.trees[t];
        const std::int64_t first = classes.index(begin[tree.root]);
        const std::int64_t end = classes.index(begin[tree.root] += tree.multiplicity * unit);
        std::map<int, int> depth = {{tree.root, 0}};
        for (std::size_t e = 0; e < tree.edges.size(); ++e) {
            const auto& [from, to] = tree.edges[e];
            depth[to] = depth[from] + 1;
            hops.push_back(
                {depth[to], t, from, to, first, end - first, tree.ways.empty() ? -1 : tree.ways[e]});
        }
    }
    std::stable_sort(hops.begin(), hops.end(), [](const Hop& a, const Hop& b) { return a.depth < b.depth; });
    return hops;
}

// broadcast or all_gather along the trees, level by level.
ir::Algorithm out_trees(const ir::Collective& collective, const Forest& forest, const Classes& classes) {
    const bool gather = collective.kind == Kind::all_gather;
    const std::int64_t chunks = collective.chunks;
    const std::vector<Hop> hops = hops_of(forest, classes);
    ir::AlgorithmBuilder builder("", collective);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        if (gather)
            builder.copy({rank, Buffer::input, 0}, {rank, Buffer::output, rank * chunks}, chunks);
        else if (rank == collective.root)
            builder.copy({rank, Buffer::input, 0}, {rank, Buffer::output, 0}, chunks);
    }
    for (const Hop& hop : hops) {
        stop_point();
        const int root = forest.trees[hop.tree].root;
        const std::int64_t index = (gather ? root * chunks : 0) + hop.first;
        builder.channel(hop.way);
        builder.send({hop.from, hop.from == root ? Buffer::input : Buffer::output,
                      hop.from == root ? hop.first : index},
                     {hop.to, Buffer::output, index}, hop.count);
    }
    return builder.build();
}

// What each vertex of one tree passes on: the shards of its descendants, in preorder, so that every subtree
// is one run.
class Relays {
public:
    explicit Relays(const PackedTree& tree) {
        for (const auto& [from, to] : tree.edges) children_[from].push_back(to);
        visit(tree.root);
    }
    /// Number of vertices below and including `v`.
    std::int64_t size(int v) const { return end_.at(v) - begin_.at(v); }
    /// Place of `d` among the descendants of `v`, without `v` itself.
    std::int64_t place(int v, int d) const { return begin_.at(d) - begin_.at(v) - 1; }
    /// Descendants of `v`, without `v`.
    std::vector<int> below(int v) const {
        return {order_.begin() + begin_.at(v) + 1, order_.begin() + end_.at(v)};
    }

private:
    // Preorder with a stack of its own: trees can be chains.
    void visit(int root) {
        std::vector<std::pair<int, std::size_t>> stack = {{root, 0}};
        begin_[root] = 0;
        order_.push_back(root);
        while (!stack.empty()) {
            auto& [v, next] = stack.back();
            const std::vector<int>& children = children_[v];
            if (next == children.size()) {
                end_[v] = static_cast<std::int64_t>(order_.size());
                stack.pop_back();
                continue;
            }
            const int child = children[next++];
            begin_[child] = static_cast<std::int64_t>(order_.size());
            order_.push_back(child);
            stack.push_back({child, 0});
        }
    }

    std::map<int, std::vector<int>> children_;
    std::map<int, std::int64_t> begin_, end_;
    std::vector<int> order_;
};

// scatter or all_to_all: every tree carries to each rank what its root has for it.
ir::Algorithm scatter_trees(const ir::Collective& collective, const Forest& forest, const Classes& classes) {
    const bool all = collective.kind == Kind::all_to_all;
    const std::int64_t chunks = collective.chunks;
    ir::AlgorithmBuilder builder("", collective);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        if (all || rank == collective.root)
            builder.copy({rank, Buffer::input, rank * chunks},
                         {rank, Buffer::output, all ? rank * chunks : 0}, chunks);
    }
    std::vector<Relays> relays;
    for (const PackedTree& tree : forest.trees) relays.emplace_back(tree);
    std::vector<std::int64_t> scratch(at(collective.ranks), 0);
    std::vector<std::map<int, std::int64_t>> base(
        forest.trees.size());  // per tree: first scratch place of a relay
    // In place, results overwrite what other trees still have to send: all first hops read before any writes.
    int depth = 0;
    for (const Hop& hop : hops_of(forest, classes)) {
        stop_point();
        if (hop.depth == 1 && depth == 0) builder.begin_par();
        if (hop.depth == 2 && depth == 1) builder.end_par();
        depth = hop.depth;
        const Relays& tree = relays[hop.tree];
        const int root = forest.trees[hop.tree].root;
        const std::int64_t n = hop.count, below = tree.size(hop.to) - 1;
        const auto source = [&](int d) {
            if (hop.from == root) return ir::Place{root, Buffer::input, d * chunks + hop.first};
            return ir::Place{hop.from, Buffer::scratch,
                             base[hop.tree].at(hop.from) + tree.place(hop.from, d) * n};
        };
        if (below > 0) {
            const std::int64_t to = base[hop.tree][hop.to] = scratch[at(hop.to)];
            scratch[at(hop.to)] += below * n;
            if (hop.from == root) {
                for (const int d : tree.below(hop.to))
                    builder.send(source(d), {hop.to, Buffer::scratch, to + tree.place(hop.to, d) * n}, n);
            } else {
                builder.send(source(tree.below(hop.to).front()), {hop.to, Buffer::scratch, to}, below * n);
            }
        }
        builder.send(source(hop.to), {hop.to, Buffer::output, (all ? root * chunks : 0) + hop.first}, n);
    }
    if (depth == 1) builder.end_par();
    return builder.build();
}

// send_recv: each tree's way from the sender to the receiver carries its share.
ir::Algorithm send_along(const ir::Collective& collective, const Forest& forest, const Classes& classes) {
    ir::AlgorithmBuilder builder("", collective);
    const int sender = collective.root, receiver = collective.receiver();
    if (sender == receiver)
        return builder.copy({sender, Buffer::input, 0}, {sender, Buffer::output, 0}, collective.chunks)
            .build();
    std::vector<std::int64_t> scratch(at(collective.ranks), 0);
    std::int64_t begin = 0;
    const std::int64_t unit = classes.per_whole / forest.per_root;
    for (const PackedTree& tree : forest.trees) {
        const std::int64_t first = classes.index(begin),
                           n = classes.index(begin += tree.multiplicity * unit) - first;
        std::map<int, int> parent;
        for (const auto& [from, to] : tree.edges) parent[to] = from;
        std::vector<int> way = {receiver};
        while (way.back() != sender) way.push_back(parent.at(way.back()));
        std::reverse(way.begin(), way.end());
        ir::Place held{sender, Buffer::input, first};
        for (std::size_t i = 1; i < way.size(); ++i) {
            ir::Place next{way[i], Buffer::output, first};
            if (way[i] != receiver) {
                next = {way[i], Buffer::scratch, scratch[at(way[i])]};
                scratch[at(way[i])] += n;
            }
            builder.send(held, next, n);
            held = next;
        }
    }
    return builder.build();
}

ir::Collective with_classes(ir::Collective collective, Kind kind, const Classes& classes) {
    collective.kind = kind;
    collective.weights = classes.weights();
    collective.chunks = static_cast<std::int64_t>(collective.weights.size());
    if (std::all_of(collective.weights.begin(), collective.weights.end(),
                    [](std::int64_t w) { return w == 1; }))
        collective.weights.clear();
    if (!ir::has_root(kind)) collective.root = 0;
    if (kind != Kind::send_recv) collective.peer = -1;
    return collective;
}

ir::Algorithm along(const ir::Collective& collective, Kind kind, const Forest& forest,
                    const Classes& classes) {
    const ir::Collective with = with_classes(collective, kind, classes);
    if (kind == Kind::broadcast || kind == Kind::all_gather) return out_trees(with, forest, classes);
    if (kind == Kind::send_recv) return send_along(with, forest, classes);
    return scatter_trees(with, forest, classes);
}

}  // namespace

TreePhases tree_phases(const ir::Collective& collective) {
    TreePhases phases;
    phases.in = ir::reduces(collective.kind) || collective.kind == Kind::gather;
    phases.out = !phases.in || collective.kind == Kind::all_reduce;
    for (int rank = 0; rank < collective.ranks; ++rank) {
        if (!ir::has_root(collective.kind) || rank == collective.root) phases.roots.push_back(rank);
    }
    return phases;
}

namespace {

// Says how much memory the steps of a schedule take before anything else is made of them.
void require_steps(std::int64_t steps, std::int64_t most_steps, const char* what) {
    if (steps <= most_steps) return;
    throw input_error(
        fmt::format("{} {} steps, {:.2g} GB of them alone, more than the limit of {}", what, steps,
                    static_cast<double>(steps) * static_cast<double>(sizeof(ir::Step)) / 1e9, most_steps),
        {}, "fewer ranks, or compose, whose schedules are loops");
}

}  // namespace

void require_few_steps(const ir::Collective& collective, std::int64_t most_steps) {
    const TreePhases phases = tree_phases(collective);
    std::int64_t steps = 0;
    for (int g = 0; g < collective.group_count(); ++g) {
        const std::int64_t size = collective.group_size(g);
        const std::int64_t roots = ir::has_root(collective.kind) ? 1 : size;
        steps += roots * (size - 1) * ((phases.in ? 1 : 0) + (phases.out ? 1 : 0));
    }
    require_steps(steps, most_steps, "one tree per root takes at least");
}

void require_few_steps(const Forest* in, const Forest* out, std::int64_t most_steps) {
    std::int64_t steps = 0;
    for (const Forest* forest : {in, out}) {
        if (forest == nullptr) continue;
        for (const PackedTree& tree : forest->trees) steps += static_cast<std::int64_t>(tree.edges.size());
    }
    require_steps(steps, most_steps, "these trees take");
}

int depth_of(const Forest& forest) {
    int deepest = 0;
    for (const PackedTree& tree : forest.trees) {
        std::map<int, int> depth = {{tree.root, 0}};
        for (const auto& [from, to] : tree.edges) deepest = std::max(deepest, depth[to] = depth[from] + 1);
    }
    return deepest;
}

ir::Algorithm tree_schedule(const ir::Collective& collective, const Forest* in, const Forest* out) {
    std::vector<const Forest*> used;
    for (const Forest* forest : {in, out}) {
        if (forest != nullptr) used.push_back(forest);
    }
    const Classes classes = common_classes(used);
    switch (collective.kind) {
        case Kind::reduce: return ir::reverse(along(collective, Kind::broadcast, *in, classes));
        case Kind::gather: return ir::reverse(along(collective, Kind::scatter, *in, classes));
        case Kind::reduce_scatter: return ir::reverse(along(collective, Kind::all_gather, *in, classes));
        case Kind::all_reduce:
            return ir::concatenate(ir::reverse(along(collective, Kind::all_gather, *in, classes)),
                                   along(collective, Kind::all_gather, *out, classes));
        default: return along(collective, collective.kind, *out, classes);
    }
}

}  // namespace baton::synth
