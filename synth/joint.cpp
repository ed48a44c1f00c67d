#include <baton/synth/joint.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/joint_trees.hpp>
#include <baton/synth/rank_graph.hpp>
#include <baton/synth/symmetric_forest.hpp>
#include <baton/synth/tree_lanes.hpp>
#include <baton/synth/tree_optimum.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

namespace baton::synth {
namespace {

constexpr std::int64_t kFewTrees = 64;
constexpr std::int64_t kManyTrees = 1 << 16;
constexpr double kLoss = 5e-4;
constexpr std::int64_t kPiecesPerHop = 16;  // of the deepest pair of trees: pieces of about equal size

// A tree with a whole share, its hops from the root on; of an in-tree they run towards the root.
struct PlannedTree {
    struct Hop {
        int depth, parent, child, way;
    };
    int root = -1, depth = 0;
    std::int64_t weight = 0;
    std::vector<Hop> hops;
};

// The trees of both phases; those of a root stand side by side and weigh the same in both.
struct Plan {
    std::vector<PlannedTree> in, out;
    std::int64_t total() const {
        std::int64_t sum = 0;
        for (const PlannedTree& tree : out) sum += tree.weight;
        return sum;
    }
};

PlannedTree planned(int root, std::int64_t weight, const std::vector<std::pair<int, int>>& edges,
                    const std::vector<int>& ways) {
    PlannedTree tree;
    tree.root = root;
    tree.weight = weight;
    std::map<int, int> depth = {{root, 0}};
    for (std::size_t e = 0; e < edges.size(); ++e) {
        const auto& [parent, child] = edges[e];
        depth[child] = depth[parent] + 1;
        tree.depth = std::max(tree.depth, depth[child]);
        tree.hops.push_back({depth[child], parent, child, ways.empty() ? -1 : ways[e]});
    }
    return tree;
}

// The trees of two forests with equal shares of all ranks.
Plan planned(const Forest& in, const Forest& out) {
    Plan plan;
    const std::int64_t whole = std::lcm(in.per_root, out.per_root);
    for (const PackedTree& tree : in.trees)
        plan.in.push_back(
            planned(tree.root, tree.multiplicity * (whole / in.per_root), tree.edges, tree.ways));
    for (const PackedTree& tree : out.trees)
        plan.out.push_back(
            planned(tree.root, tree.multiplicity * (whole / out.per_root), tree.edges, tree.ways));
    return plan;
}

// A piece of the buffer: reduced along one tree, sent out along another.
struct Piece {
    const PlannedTree* in = nullptr;
    const PlannedTree* out = nullptr;
    std::int64_t weight = 0;
    std::vector<int> channels = {};  // of its messages in order, see `messages`; -1: the pair's only one
};

struct Message {
    int from, to, way;
    bool up;
};

// Trees with whole shares, `count` in all.
class Rounding {
public:
    Rounding(const RankGraph& graph, const JointTrees& trees) : graph_(graph), trees_(trees) {
        for (std::size_t e = 0; e < graph_.edges().size(); ++e) {
            const RankEdge& edge = graph_.edges()[e];
            edge_of_[{edge.from, edge.to, edge.way}] = e;
        }
    }

    /// As few as lose little.
    Plan best() const {
        Plan best;
        double best_rate = 0;
        const auto offer = [&](std::int64_t count) {
            Plan plan = of(count);
            const double made = rate(plan);
            if (made <= best_rate) return;
            best_rate = made;
            best = std::move(plan);
        };
        for (std::int64_t count = 1; count <= kFewTrees; ++count) {
            offer(count);
            if (best_rate >= trees_.rate * (1 - kLoss)) return best;
        }
        offer(kManyTrees);
        return best;
    }

    /// Bytes per second at which the busiest resource is full.
    double rate(const Plan& plan) const {
        std::vector<double> load(graph_.capacities().size(), 0);
        for (const bool out : {false, true}) {
            for (const PlannedTree& tree : out ? plan.out : plan.in) {
                for (const PlannedTree::Hop& hop : tree.hops) {
                    for (const topologies::LinkShare& use : graph_.uses()[edge(hop, out)])
                        load[at(use.link)] += use.share * static_cast<double>(tree.weight);
                }
            }
        }
        double worst = 0;
        for (std::size_t r = 0; r < load.size(); ++r) {
            if (load[r] > 0) worst = std::max(worst, load[r] / graph_.capacities()[r]);
        }
        return worst > 0 ? static_cast<double>(plan.total()) / worst : 0;
    }

    /// Seconds that a unit of a piece takes of each resource, by number.
    std::vector<std::pair<std::size_t, double>> loads(const Piece& piece) const {
        std::map<std::size_t, double> sum;
        for (const bool out : {false, true}) {
            for (const PlannedTree::Hop& hop : (out ? piece.out : piece.in)->hops) {
                for (const topologies::LinkShare& use : graph_.uses()[edge(hop, out)])
                    sum[at(use.link)] += use.share / graph_.capacities()[at(use.link)];
            }
        }
        return {sum.begin(), sum.end()};
    }

private:
    std::size_t edge(const PlannedTree::Hop& hop, bool out) const {
        return out ? edge_of_.at({hop.parent, hop.child, hop.way})
                   : edge_of_.at({hop.child, hop.parent, hop.way});
    }
    // Whole numbers near to `exact` that sum to `sum`, by largest remainder.
    static std::vector<std::int64_t> shared_out(const std::vector<double>& exact, std::int64_t sum) {
        double all = 0;
        for (const double value : exact) all += value;
        std::vector<std::int64_t> whole;
        std::vector<std::pair<double, std::size_t>> rests;
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const double part = all > 0 ? exact[i] / all * static_cast<double>(sum) : 0;
            whole.push_back(static_cast<std::int64_t>(part + 1e-6));
            rests.push_back({part - static_cast<double>(whole.back()), i});
        }
        std::int64_t left = sum - std::accumulate(whole.begin(), whole.end(), std::int64_t{0});
        std::stable_sort(rests.begin(), rests.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        for (std::size_t i = 0; i < rests.size() && left > 0; ++i, --left) ++whole[rests[i].second];
        return whole;
    }

    Plan of(std::int64_t count) const {
        std::map<int, double> share;
        for (const WeightedTree& tree : trees_.in) share[tree.root] += tree.rate;
        std::vector<int> roots;
        std::vector<double> exact;
        for (const auto& [root, rate] : share) {
            roots.push_back(root);
            exact.push_back(rate);
        }
        const std::vector<std::int64_t> whole = shared_out(exact, count);
        Plan plan;
        for (std::size_t i = 0; i < roots.size(); ++i) {
            if (whole[i] == 0) continue;
            add(trees_.in, roots[i], whole[i], false, plan.in);
            add(trees_.out, roots[i], whole[i], true, plan.out);
        }
        return plan;
    }

    void add(const std::vector<WeightedTree>& trees, int root, std::int64_t sum, bool out,
             std::vector<PlannedTree>& list) const {
        std::vector<const WeightedTree*> own;
        std::vector<double> exact;
        for (const WeightedTree& tree : trees) {
            if (tree.root != root) continue;
            own.push_back(&tree);
            exact.push_back(tree.rate);
        }
        const std::vector<std::int64_t> whole = shared_out(exact, sum);
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (whole[i] == 0) continue;
            std::vector<std::pair<int, int>> edges;
            std::vector<int> ways;
            for (const int e : own[i]->edges) {
                const RankEdge& edge = graph_.edges()[at(e)];
                edges.push_back(out ? std::pair(edge.from, edge.to) : std::pair(edge.to, edge.from));
                ways.push_back(edge.way);
            }
            list.push_back(planned(root, whole[i], edges, ways));
        }
    }

    const RankGraph& graph_;
    const JointTrees& trees_;
    std::map<std::tuple<int, int, int>, std::size_t> edge_of_;
};

std::vector<Piece> overlay(const Plan& plan) {
    std::vector<Piece> pieces;
    std::size_t i = 0, o = 0;
    std::int64_t in_left = plan.in.empty() ? 0 : plan.in[0].weight;
    std::int64_t out_left = plan.out.empty() ? 0 : plan.out[0].weight;
    while (i < plan.in.size() && o < plan.out.size()) {
        const std::int64_t weight = std::min(in_left, out_left);
        pieces.push_back({&plan.in[i], &plan.out[o], weight});
        if ((in_left -= weight) == 0 && ++i < plan.in.size()) in_left = plan.in[i].weight;
        if ((out_left -= weight) == 0 && ++o < plan.out.size()) out_left = plan.out[o].weight;
    }
    // Slivers cost steps and move nothing: without a thousandth of the data the rest is that much slower.
    std::vector<std::size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return pieces[a].weight < pieces[b].weight; });
    const std::int64_t total = plan.total();
    std::int64_t dropped = 0;
    for (const std::size_t p : order) {
        if (static_cast<double>(dropped + pieces[p].weight) > kLoss * static_cast<double>(total)) break;
        dropped += pieces[p].weight;
        pieces[p].weight = 0;
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.weight == 0; });
    return pieces;
}

// The largest piece sets how long a deep pipeline takes to fill.
void split_large(std::vector<Piece>& pieces) {
    std::int64_t total = 0, depth = 0;
    for (const Piece& piece : pieces) {
        total += piece.weight;
        depth = std::max<std::int64_t>(depth, piece.in->depth + piece.out->depth);
    }
    std::vector<Piece> parts;
    for (const Piece& piece : pieces) {
        const std::int64_t count = (piece.weight * kPiecesPerHop * depth + total - 1) / total;
        for (std::int64_t i = 0; i < count; ++i) {
            parts.push_back(piece);
            parts.back().weight = piece.weight * (i + 1) / count - piece.weight * i / count;
        }
    }
    std::erase_if(parts, [](const Piece& piece) { return piece.weight == 0; });
    pieces = std::move(parts);
}

// An order in which every link gets its work evenly: links take what is ready piece by piece, and one whose
// pieces come late would be idle first and the last to end.
void spread_out(std::vector<Piece>& pieces, const Rounding& rounding) {
    std::vector<std::vector<std::pair<std::size_t, double>>> loads;
    std::vector<double> whole;
    double total = 0;
    for (const Piece& piece : pieces) {
        loads.push_back(rounding.loads(piece));
        total += static_cast<double>(piece.weight);
        for (const auto& [resource, load] : loads.back()) {
            whole.resize(std::max(whole.size(), resource + 1), 0);
            whole[resource] += load * static_cast<double>(piece.weight);
        }
    }
    // ahead: work of the pieces so far beyond each resource's even share.
    std::vector<double> ahead(whole.size(), 0);
    std::vector<Piece> order;
    std::vector<char> taken(pieces.size(), 0);
    const auto dot = [&](const std::vector<double>& a, const std::vector<double>& b) {
        return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
    };
    const double squares = dot(whole, whole) / total / total;
    while (order.size() < pieces.size()) {
        const double level = dot(ahead, whole) / total;
        std::size_t best = pieces.size();
        double least = INFINITY;
        for (std::size_t p = 0; p < pieces.size(); ++p) {
            if (taken[p]) continue;
            double linear = -level, square = squares;
            for (const auto& [resource, load] : loads[p]) {
                linear += ahead[resource] * load;
                square += load * load - 2 * load * whole[resource] / total;
            }
            const double change = 2 * linear + static_cast<double>(pieces[p].weight) * square;
            if (change < least) least = change, best = p;
        }
        taken[best] = 1;
        order.push_back(pieces[best]);
        const auto weight = static_cast<double>(pieces[best].weight);
        for (std::size_t r = 0; r < whole.size(); ++r) ahead[r] -= whole[r] / total * weight;
        for (const auto& [resource, load] : loads[best]) ahead[resource] += load * weight;
    }
    pieces = std::move(order);
}

// Its messages in order: up, the deepest first, then down.
std::vector<Message> messages(const Piece& piece) {
    std::vector<Message> list;
    for (const bool out : {false, true}) {
        std::vector<PlannedTree::Hop> hops = (out ? piece.out : piece.in)->hops;
        std::stable_sort(hops.begin(), hops.end(), [&](const auto& a, const auto& b) {
            return out ? a.depth < b.depth : a.depth > b.depth;
        });
        for (const PlannedTree::Hop& hop : hops)
            list.push_back({out ? hop.parent : hop.child, out ? hop.child : hop.parent, hop.way, !out});
    }
    return list;
}

// Channels for all messages, so that ports that several pairs share are divided as the pieces need; pieces
// are divided where channels need more of them. All of it runs at once: one phase.
LaneRoutes assign_channels(std::vector<Piece>& pieces, const topologies::Topology& topology,
                           const topologies::Routes& routes, const LaneRoutes& ways) {
    constexpr std::int64_t kMostSteps = 60'000;
    Forest all;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        PackedTree together;
        together.root = static_cast<int>(p);
        together.multiplicity = pieces[p].weight;
        for (const Message& message : messages(pieces[p])) {
            together.edges.push_back({message.from, message.to});
            together.ways.push_back(message.way);
        }
        all.per_root += pieces[p].weight;
        all.trees.push_back(std::move(together));
    }
    LaneLimits limits;
    limits.most_steps = kMostSteps;
    LaneRoutes lanes = assign_lanes(topology, routes, {{&all, false}}, ways, limits);
    std::vector<Piece> parts;
    for (PackedTree& tree : all.trees) {
        const Piece& piece = pieces[at(tree.root)];
        parts.push_back({piece.in, piece.out, tree.multiplicity, std::move(tree.ways)});
    }
    pieces = std::move(parts);
    return lanes;
}

ir::Algorithm joint_steps(ir::Collective collective, const std::vector<Piece>& pieces) {
    using ir::Buffer;
    collective.chunks = static_cast<std::int64_t>(pieces.size());
    collective.weights.clear();
    std::int64_t divisor = 0;
    for (const Piece& piece : pieces) divisor = std::gcd(divisor, piece.weight);
    for (const Piece& piece : pieces) collective.weights.push_back(piece.weight / divisor);
    if (std::all_of(collective.weights.begin(), collective.weights.end(), [](auto w) { return w == 1; }))
        collective.weights.clear();
    ir::AlgorithmBuilder builder("joint all_reduce", collective);
    std::vector<std::vector<char>> sums(pieces.size(), std::vector<char>(at(collective.ranks), 0));
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        sums[p][at(pieces[p].in->root)] = 1;
        for (const PlannedTree::Hop& hop : pieces[p].in->hops) sums[p][at(hop.parent)] = 1;
    }
    // Partial sums stand in the output; leaves send their input as it is.
    for (int rank = 0; rank < collective.ranks; ++rank) {
        for (std::size_t p = 0; p < pieces.size(); ++p) {
            const auto chunk = static_cast<std::int64_t>(p);
            if (sums[p][at(rank)]) builder.copy({rank, Buffer::input, chunk}, {rank, Buffer::output, chunk});
        }
    }
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        const auto chunk = static_cast<std::int64_t>(p);
        const std::vector<Message> list = messages(pieces[p]);
        for (std::size_t m = 0; m < list.size(); ++m) {
            const auto& [from, to, way, up] = list[m];
            builder.channel(pieces[p].channels[m]);
            if (up)
                builder.send_reduce({from, sums[p][at(from)] ? Buffer::output : Buffer::input, chunk},
                                    {to, Buffer::output, chunk});
            else
                builder.send({from, Buffer::output, chunk}, {to, Buffer::output, chunk});
        }
    }
    return builder.build();
}

// Equal shares of all ranks, where they reach the target: the shallowest trees there are, one root's turned
// to all others.
std::optional<Plan> by_symmetry(const topologies::Topology& topology, const ir::Collective& collective,
                                topologies::RoutePolicy policy, std::uint64_t seed, double target) {
    if (policy != topologies::RoutePolicy::spread) return std::nullopt;
    const topologies::Routes routes(topology, policy, seed);
    std::optional<Forest> forests[2];
    double seconds = 0;
    for (const bool turned : {true, false}) {
        const double least = phase_optimum(topology, collective, turned);
        SymmetryOptions options;
        options.turned = turned;
        forests[turned] = symmetric_forest(topology, routes, collective.ranks, least, options);
        if (!forests[turned]) return std::nullopt;
        seconds += forests[turned]->seconds_per_byte;
    }
    if (collective.ranks / seconds < target * (1 - 2 * kLoss)) return std::nullopt;
    return planned(*forests[1], *forests[0]);
}

// The pairs that trees may use. A route past the node of another rank is two edges in a row.
std::vector<std::size_t> single_edges(const RankGraph& graph, const topologies::Topology& topology) {
    std::vector<std::size_t> list;
    std::vector<char> rank_node(topology.nodes.size(), 0);
    for (int rank = 0; rank < graph.ranks(); ++rank) rank_node[at(topology.rank_nodes[at(rank)])] = 1;
    for (std::size_t e = 0; e < graph.edges().size(); ++e) {
        const int end = topology.rank_nodes[at(graph.edges()[e].to)];
        const auto& uses = graph.uses()[e];
        const bool past = std::any_of(uses.begin(), uses.end(), [&](const topologies::LinkShare& use) {
            if (at(use.link) >= topology.links.size()) return false;
            const int head = topology.links[at(use.link)].to;
            return head != end && rank_node[at(head)] != 0;
        });
        if (!past) list.push_back(e);
    }
    return list;
}

// One search of trees on the graph as it is. What several pairs draw on is divided evenly, by weights, as far
// as the target allows.
// Ports that several pairs share idle a little at run time, when no message happens to be ready. Where they
// are but a small part of what the machine can carry, they are planned for less. Returns what that costs of
// the rate.
double spare_shared(const std::vector<int>& users, const std::vector<double>& prices,
                    std::vector<double>& capacities) {
    constexpr double kSpare = 0.015, kMostCost = 0.0025;
    double shared = 0, all = 0;
    for (std::size_t r = 0; r < capacities.size(); ++r) {
        all += prices[r] * capacities[r];
        if (users[r] > 1) shared += prices[r] * capacities[r];
    }
    const double cost = all > 0 ? kSpare * shared / all : 0;
    if (cost > kMostCost) return 0;
    for (std::size_t r = 0; r < capacities.size(); ++r) {
        if (users[r] > 1) capacities[r] *= 1 - kSpare;
    }
    return cost;
}

JointTrees search_trees(const RankGraph& graph, const topologies::Topology& topology,
                        const std::optional<JointOptimum>& optimum) {
    const std::vector<std::size_t> chosen = single_edges(graph, topology);
    std::vector<double> capacities = graph.capacities();
    std::vector<int> users(capacities.size(), 0);
    for (const std::size_t e : chosen) {
        for (const topologies::LinkShare& use : graph.uses()[e]) ++users[at(use.link)];
    }
    const double cost = optimum ? spare_shared(users, optimum->prices, capacities) : 0;
    std::vector<TreeEdge> edges;
    JointTreeOptions options;
    options.first_share = static_cast<int>(capacities.size());
    for (const std::size_t e : chosen) {
        edges.push_back({graph.edges()[e].from, graph.edges()[e].to, graph.uses()[e]});
        const auto& uses = graph.uses()[e];
        if (std::none_of(uses.begin(), uses.end(), [&](const auto& use) { return users[at(use.link)] > 1; }))
            continue;
        edges.back().uses.push_back({static_cast<int>(capacities.size()), 1.0});
        capacities.push_back(graph.edges()[e].rate);
    }
    if (optimum) {
        options.target = optimum->rate * (1 - cost);
        options.prices = optimum->prices;
    }
    JointTrees trees = joint_trees(graph.ranks(), edges, capacities, options);
    for (std::vector<WeightedTree>* list : {&trees.in, &trees.out}) {
        for (WeightedTree& tree : *list) {
            for (int& e : tree.edges) e = static_cast<int>(chosen[at(e)]);
        }
    }
    return trees;
}

}  // namespace

JointAlgorithm joint(const topologies::Topology& topology, const ir::Collective& collective,
                     topologies::RoutePolicy policy, std::uint64_t seed, JointWays ways) {
    if (collective.kind != ir::CollectiveKind::all_reduce)
        throw input_error(
            fmt::format("joint is made for all_reduce, not for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("joint serves one group of all ranks only");
    if (collective.ranks < 2) throw input_error("one rank alone has nothing to reduce over links");
    if (collective.ranks > kMostJointRanks)
        throw input_error(fmt::format("{} ranks are more than the {} of joint's linear program",
                                      collective.ranks, kMostJointRanks));
    RankGraph graph(topology, collective.ranks, policy, seed);
    graph.require_connected();
    if (graph.edges().size() > kMostJointPairs)
        throw input_error(fmt::format("{} pairs of ranks are more than the {} of joint's linear program",
                                      graph.edges().size(), kMostJointPairs));
    const std::optional<JointOptimum> optimum = end_point_optimum(topology, collective);
    std::optional<Plan> plan;
    if (optimum && ways == JointWays::usual)
        plan = by_symmetry(topology, collective, policy, seed, optimum->rate);
    JointAlgorithm made;
    const JointTrees none;
    if (ways == JointWays::detours) {
        graph.add_detours(topology, policy, seed, kMostJointPairs);
        graph.share(std::vector<double>(graph.edges().size(), 1));
    }
    if (!plan) {
        const JointTrees trees = search_trees(graph, topology, optimum);
        if (trees.rate <= 0) throw input_error("no trees were found within the work limit");
        plan = Rounding(graph, trees).best();
    }
    std::vector<Piece> pieces = overlay(*plan);
    split_large(pieces);
    const LaneRoutes lanes =
        assign_channels(pieces, topology, topologies::Routes(topology, policy, seed), graph.ways());
    spread_out(pieces, Rounding(graph, none));
    made.rate = Rounding(graph, none).rate(*plan);
    made.optimum = std::max(optimum ? optimum->rate : 0.0, made.rate);
    made.trees = static_cast<std::int64_t>(pieces.size());
    int in = 0, out = 0;
    std::set<int> roots;
    for (const Piece& piece : pieces) {
        in = std::max(in, piece.in->depth);
        out = std::max(out, piece.out->depth);
        roots.insert(piece.in->root);
    }
    made.roots = static_cast<int>(roots.size());
    made.depth = in + out;
    made.deepest = std::max(in, out);
    made.algorithm = joint_steps(collective, pieces);
    pin_lanes(made.algorithm, lanes, topology);
    return made;
}

}  // namespace baton::synth
