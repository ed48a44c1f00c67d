#include <baton/synth/joint.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/tree_packing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace baton::synth {
namespace {

constexpr std::int64_t kFewTrees = 64;
constexpr std::int64_t kManyTrees = 1 << 16;
constexpr double kLoss = 1e-3;

// Whole trees per root, and room for them on each edge in each phase.
struct WholeTrees {
    std::vector<RootDemand> demands;
    std::vector<std::int64_t> reduce, broadcast;
    double rate = 0;  // bytes per second
};

// Shares of `count` trees by largest remainder.
std::vector<RootDemand> whole_shares(const JointOptimum& optimum, std::int64_t count) {
    std::vector<std::pair<double, int>> rests;
    std::vector<std::int64_t> whole;
    std::int64_t left = count;
    for (std::size_t v = 0; v < optimum.share.size(); ++v) {
        const double exact = optimum.share[v] / optimum.rate * static_cast<double>(count);
        whole.push_back(static_cast<std::int64_t>(exact + 1e-6));
        left -= whole.back();
        rests.push_back({exact - static_cast<double>(whole.back()), static_cast<int>(v)});
    }
    std::stable_sort(rests.begin(), rests.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = 0; i < rests.size() && left > 0; ++i, --left) ++whole[at(rests[i].second)];
    std::vector<RootDemand> demands;
    for (std::size_t v = 0; v < whole.size(); ++v) {
        if (whole[v] > 0) demands.push_back({static_cast<int>(v), whole[v]});
    }
    return demands;
}

// Seconds per unit of load on the busiest resource.
double busiest(const RankGraph& graph, const std::vector<std::int64_t>& reduce,
               const std::vector<std::int64_t>& broadcast) {
    std::vector<double> load(graph.capacities().size(), 0);
    for (std::size_t e = 0; e < graph.uses().size(); ++e) {
        for (const topologies::LinkShare& use : graph.uses()[e])
            load[at(use.link)] += use.share * static_cast<double>(reduce[e] + broadcast[e]);
    }
    double worst = 0;
    for (std::size_t r = 0; r < load.size(); ++r) {
        if (load[r] > 0) worst = std::max(worst, load[r] / graph.capacities()[r]);
    }
    return worst;
}

WholeTrees scaled_up(const RankGraph& graph, const JointOptimum& optimum, std::int64_t count,
                     double tolerance) {
    WholeTrees whole;
    whole.demands = whole_shares(optimum, count);
    const auto room = [&](const std::vector<double>& rates) {
        std::vector<std::int64_t> list;
        for (const double rate : rates)
            list.push_back(static_cast<std::int64_t>(
                std::ceil(rate / optimum.rate * static_cast<double>(count) - tolerance)));
        return list;
    };
    whole.reduce = room(optimum.reduce);
    whole.broadcast = room(optimum.broadcast);
    const int ranks = graph.ranks();
    if (!trees_fit(ranks, graph.edges(), whole.broadcast, whole.demands) ||
        !trees_fit(ranks, graph.turned(), whole.reduce, whole.demands))
        return {};
    whole.rate = static_cast<double>(count) / busiest(graph, whole.reduce, whole.broadcast);
    return whole;
}

WholeTrees whole_trees(const RankGraph& graph, const JointOptimum& optimum) {
    WholeTrees best;
    for (std::int64_t count = 1; count <= kFewTrees; ++count) {
        WholeTrees whole = scaled_up(graph, optimum, count, 1e-3);
        if (whole.rate > best.rate) best = std::move(whole);
        if (best.rate >= optimum.rate * (1 - kLoss)) return best;
    }
    for (const double tolerance : {0.0, -static_cast<double>(graph.ranks())}) {
        WholeTrees whole = scaled_up(graph, optimum, kManyTrees, tolerance);
        if (whole.rate > best.rate) best = std::move(whole);
    }
    if (best.rate <= 0) throw input_error("no whole trees near the optimum of the linear program were found");
    return best;
}

// A piece of the buffer: reduced along one tree, sent out along another.
struct Piece {
    const PackedTree* in = nullptr;
    const PackedTree* out = nullptr;
    std::int64_t weight = 0;
};

std::vector<Piece> overlay(const std::vector<PackedTree>& in, const std::vector<PackedTree>& out) {
    std::vector<Piece> pieces;
    std::size_t i = 0, o = 0;
    std::int64_t in_left = in.empty() ? 0 : in[0].multiplicity;
    std::int64_t out_left = out.empty() ? 0 : out[0].multiplicity;
    while (i < in.size() && o < out.size()) {
        const std::int64_t weight = std::min(in_left, out_left);
        pieces.push_back({&in[i], &out[o], weight});
        if ((in_left -= weight) == 0 && ++i < in.size()) in_left = in[i].multiplicity;
        if ((out_left -= weight) == 0 && ++o < out.size()) out_left = out[o].multiplicity;
    }
    // Slivers cost steps and move nothing: without a thousandth of the data the rest is that much slower.
    std::vector<std::size_t> order(pieces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return pieces[a].weight < pieces[b].weight; });
    std::int64_t total = 0, dropped = 0;
    for (const Piece& piece : pieces) total += piece.weight;
    for (const std::size_t p : order) {
        if (static_cast<double>(dropped + pieces[p].weight) > kLoss * static_cast<double>(total)) break;
        dropped += pieces[p].weight;
        pieces[p].weight = 0;
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.weight == 0; });
    return pieces;
}

struct JointHop {
    int depth, parent, child;
    std::int64_t chunk;
};

std::vector<JointHop> joint_hops(const std::vector<Piece>& pieces, bool in) {
    std::vector<JointHop> hops;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        const PackedTree& tree = in ? *pieces[p].in : *pieces[p].out;
        std::map<int, int> depth = {{tree.root, 0}};
        for (const auto& [parent, child] : tree.edges) {
            depth[child] = depth[parent] + 1;
            hops.push_back({depth[child], parent, child, static_cast<std::int64_t>(p)});
        }
    }
    std::stable_sort(hops.begin(), hops.end(), [&](const JointHop& a, const JointHop& b) {
        return in ? a.depth > b.depth : a.depth < b.depth;
    });
    return hops;
}

ir::Algorithm joint_steps(ir::Collective collective, const std::vector<Piece>& pieces, int& depth) {
    using ir::Buffer;
    collective.chunks = static_cast<std::int64_t>(pieces.size());
    collective.weights.clear();
    std::int64_t divisor = 0;
    for (const Piece& piece : pieces) divisor = std::gcd(divisor, piece.weight);
    for (const Piece& piece : pieces) collective.weights.push_back(piece.weight / divisor);
    if (std::all_of(collective.weights.begin(), collective.weights.end(), [](auto w) { return w == 1; }))
        collective.weights.clear();
    const std::vector<JointHop> up = joint_hops(pieces, true), down = joint_hops(pieces, false);
    depth = (up.empty() ? 0 : up.front().depth) + (down.empty() ? 0 : down.back().depth);
    // Partial sums stand in the output; leaves send their input as it is.
    std::vector<std::vector<char>> sums(pieces.size(), std::vector<char>(at(collective.ranks), 0));
    for (std::size_t p = 0; p < pieces.size(); ++p) sums[p][at(pieces[p].in->root)] = 1;
    for (const JointHop& hop : up) sums[at(hop.chunk)][at(hop.parent)] = 1;
    ir::AlgorithmBuilder builder("joint all_reduce", collective);
    for (int rank = 0; rank < collective.ranks; ++rank) {
        for (std::size_t p = 0; p < pieces.size(); ++p) {
            const auto chunk = static_cast<std::int64_t>(p);
            if (sums[p][at(rank)]) builder.copy({rank, Buffer::input, chunk}, {rank, Buffer::output, chunk});
        }
    }
    for (const JointHop& hop : up) {
        const Buffer from = sums[at(hop.chunk)][at(hop.child)] ? Buffer::output : Buffer::input;
        builder.send_reduce({hop.child, from, hop.chunk}, {hop.parent, Buffer::output, hop.chunk});
    }
    for (const JointHop& hop : down)
        builder.send({hop.parent, Buffer::output, hop.chunk}, {hop.child, Buffer::output, hop.chunk});
    return builder.build();
}

}  // namespace

JointAlgorithm joint(const topologies::Topology& topology, const ir::Collective& collective,
                     topologies::RoutePolicy policy, std::uint64_t seed) {
    if (collective.kind != ir::CollectiveKind::all_reduce)
        throw input_error(
            fmt::format("joint is made for all_reduce, not for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("joint serves one group of all ranks only");
    if (collective.ranks < 2) throw input_error("one rank alone has nothing to reduce over links");
    if (collective.ranks > kMostJointRanks)
        throw input_error(fmt::format("{} ranks are more than the {} of joint's linear program",
                                      collective.ranks, kMostJointRanks));
    const RankGraph graph(topology, collective.ranks, policy, seed);
    if (!graph.connected()) throw input_error("the pairs of ranks with a route do not connect all ranks");
    if (graph.edges().size() > kMostJointPairs)
        throw input_error(fmt::format("{} pairs of ranks are more than the {} of joint's linear program",
                                      graph.edges().size(), kMostJointPairs));
    JointGraph pairs;
    pairs.vertices = graph.ranks();
    pairs.is_rank.assign(at(graph.ranks()), 1);
    pairs.capacity = graph.capacities();
    for (std::size_t e = 0; e < graph.edges().size(); ++e)
        pairs.arcs.push_back({graph.edges()[e].from, graph.edges()[e].to, graph.uses()[e]});
    const JointOptimum optimum = joint_optimum(pairs);
    const WholeTrees whole = whole_trees(graph, optimum);
    const std::vector<PackedTree> in = pack_trees(graph.ranks(), graph.turned(), whole.reduce, whole.demands);
    const std::vector<PackedTree> out =
        pack_trees(graph.ranks(), graph.edges(), whole.broadcast, whole.demands);
    const std::vector<Piece> pieces = overlay(in, out);
    JointAlgorithm made;
    made.optimum = optimum.rate;
    made.rate = whole.rate;
    made.trees = static_cast<std::int64_t>(pieces.size());
    made.roots = static_cast<int>(whole.demands.size());
    made.algorithm = joint_steps(collective, pieces, made.depth);
    return made;
}

}  // namespace baton::synth
