#include <baton/synth/joint.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/joint_optimum.hpp>
#include <baton/synth/joint_plan.hpp>
#include <baton/synth/joint_search.hpp>
#include <baton/synth/rank_graph.hpp>
#include <baton/synth/rank_symmetry.hpp>
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

constexpr double kLoss = 5e-4;
constexpr std::int64_t kPiecesPerHop = 16;  // of the deepest pair of trees: pieces of about equal size

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

// Seconds that a unit of rate on each edge takes of each resource, by number.
EdgeLoads loads_of_edges(const RankGraph& graph) {
    EdgeLoads loads;
    for (const auto& uses : graph.uses()) {
        loads.emplace_back();
        for (const topologies::LinkShare& use : uses)
            loads.back().push_back({at(use.link), use.share / graph.capacities()[at(use.link)]});
    }
    return loads;
}

// The same for a unit of a piece.
std::vector<std::pair<std::size_t, double>> loads_of(const Piece& piece, const EdgeLoads& edges) {
    std::map<std::size_t, double> sum;
    for (const PlannedTree* tree : {piece.in, piece.out}) {
        for (const PlannedTree::Hop& hop : tree->hops) {
            for (const auto& [resource, load] : edges[at(hop.edge)]) sum[resource] += load;
        }
    }
    return {sum.begin(), sum.end()};
}

std::vector<Piece> overlay(const JointPlan& plan) {
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
void split_large(std::vector<Piece>& pieces, std::int64_t copies) {
    std::int64_t total = 0, depth = 0;
    for (const Piece& piece : pieces) {
        total += copies * piece.weight;
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
void spread_out(std::vector<Piece>& pieces, const EdgeLoads& edges) {
    std::vector<std::vector<std::pair<std::size_t, double>>> loads;
    std::vector<double> whole;
    double total = 0;
    for (const Piece& piece : pieces) {
        loads.push_back(loads_of(piece, edges));
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

// A channel for every way: the pair's only one, or of a detour.
LaneRoutes one_lane_per_way(std::vector<Piece>& pieces, const LaneRoutes& ways) {
    LaneRoutes lanes;
    for (const auto& [key, route] : ways) {
        const auto& [from, to, way] = key;
        lanes[{from, to, way + 1}] = route;
    }
    for (Piece& piece : pieces) {
        for (const Message& message : messages(piece))
            piece.channels.push_back(message.way < 0 ? -1 : message.way + 1);
    }
    return lanes;
}

// Every piece with its turned copies, which stand beside each other message by message: so all ranks that
// look alike have the same order, and simulation can fold them.
ir::Algorithm joint_steps(ir::Collective collective, const std::vector<Piece>& pieces,
                          const RankGroup& group) {
    using ir::Buffer;
    const std::size_t copies = group.size();
    collective.chunks = static_cast<std::int64_t>(pieces.size() * copies);
    collective.weights.clear();
    std::int64_t divisor = 0;
    for (const Piece& piece : pieces) divisor = std::gcd(divisor, piece.weight);
    for (const Piece& piece : pieces)
        collective.weights.insert(collective.weights.end(), copies, piece.weight / divisor);
    if (std::all_of(collective.weights.begin(), collective.weights.end(), [](auto w) { return w == 1; }))
        collective.weights.clear();
    ir::AlgorithmBuilder builder("joint all_reduce", collective);
    std::vector<std::vector<char>> sums(pieces.size(), std::vector<char>(at(collective.ranks), 0));
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        sums[p][at(pieces[p].in->root)] = 1;
        for (const PlannedTree::Hop& hop : pieces[p].in->hops) sums[p][at(hop.parent)] = 1;
    }
    const auto chunk = [&](std::size_t p, std::size_t g) {
        return static_cast<std::int64_t>(p * copies + g);
    };
    // Partial sums stand in the output; leaves send their input as it is.
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        for (std::size_t g = 0; g < copies; ++g) {
            for (int rank = 0; rank < collective.ranks; ++rank) {
                const int turned = group[g][at(rank)];
                if (sums[p][at(rank)])
                    builder.copy({turned, Buffer::input, chunk(p, g)}, {turned, Buffer::output, chunk(p, g)});
            }
        }
    }
    for (std::size_t p = 0; p < pieces.size(); ++p) {
        const std::vector<Message> list = messages(pieces[p]);
        for (std::size_t m = 0; m < list.size(); ++m) {
            for (std::size_t g = 0; g < copies; ++g) {
                const int from = group[g][at(list[m].from)], to = group[g][at(list[m].to)];
                const Buffer source =
                    list[m].up && !sums[p][at(list[m].from)] ? Buffer::input : Buffer::output;
                builder.channel(pieces[p].channels[m]);
                if (list[m].up)
                    builder.send_reduce({from, source, chunk(p, g)}, {to, Buffer::output, chunk(p, g)});
                else
                    builder.send({from, source, chunk(p, g)}, {to, Buffer::output, chunk(p, g)});
            }
        }
    }
    return builder.build();
}

// Equal shares of all ranks, where they reach the target: the shallowest trees there are, one root's turned
// to all others.
std::optional<JointPlan> by_symmetry(const topologies::Topology& topology, const ir::Collective& collective,
                                     const RankGraph& graph, topologies::RoutePolicy policy,
                                     std::uint64_t seed, double target) {
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
    return plan_of_forests(graph, *forests[1], *forests[0]);
}

// A machine on which trees are looked for, with its symmetries.
struct Machine {
    RankGraph graph;
    RankGroup group;
};

Machine machine_of(const topologies::Topology& topology, int ranks, topologies::RoutePolicy policy,
                   std::uint64_t seed) {
    Machine machine{RankGraph(topology, ranks, policy, seed), RankGroup(1)};
    machine.graph.require_connected();
    machine.group[0].resize(at(ranks));
    std::iota(machine.group[0].begin(), machine.group[0].end(), 0);
    if (policy == topologies::RoutePolicy::spread)
        machine.group = symmetric_shifts(machine.graph, topology.rank_hosts());
    return machine;
}

void require_few(int ranks, const Machine& machine) {
    if (ranks > kMostJointRanks * std::ssize(machine.group))
        throw input_error(
            fmt::format("{} ranks, {} of them alike, are more than the {} of joint's linear program", ranks,
                        machine.group.size(), kMostJointRanks));
    if (machine.graph.edges().size() > kMostJointPairs * machine.group.size())
        throw input_error(fmt::format("{} pairs of ranks are more than the {} of joint's linear program",
                                      machine.graph.edges().size(), kMostJointPairs * machine.group.size()));
}

SearchedPlan plan_of(Machine& machine, const topologies::Topology& topology, const ir::Collective& collective,
                     const std::optional<JointOptimum>& optimum, topologies::RoutePolicy policy,
                     std::uint64_t seed, JointWays ways) {
    if (optimum && ways == JointWays::usual) {
        if (auto plan = by_symmetry(topology, collective, machine.graph, policy, seed, optimum->rate)) {
            SearchedPlan found;
            found.plan = *std::move(plan);
            found.group.assign(machine.group.begin(), machine.group.begin() + 1);
            return found;
        }
    }
    if (ways == JointWays::detours) {
        machine.graph.add_detours(topology, policy, seed, kMostJointPairs * machine.group.size());
        machine.graph.share(std::vector<double>(machine.graph.edges().size(), 1));
        if (policy == topologies::RoutePolicy::spread)
            machine.group = symmetric_shifts(machine.graph, topology.rank_hosts());
    }
    SearchedPlan found = search_joint_plan(machine.graph, topology, optimum, machine.group, kLoss);
    if (found.plan.out.empty()) throw input_error("no trees were found within the work limit");
    return found;
}

}  // namespace

int joint_roots(const topologies::Topology& topology, int ranks, topologies::RoutePolicy policy,
                std::uint64_t seed) {
    if (ranks > kMostTurnedRanks) return ranks;
    return ranks / static_cast<int>(machine_of(topology, ranks, policy, seed).group.size());
}

JointAlgorithm joint(const topologies::Topology& topology, const ir::Collective& collective,
                     topologies::RoutePolicy policy, std::uint64_t seed, JointWays ways) {
    if (collective.kind != ir::CollectiveKind::all_reduce)
        throw input_error(
            fmt::format("joint is made for all_reduce, not for {}", ir::to_string(collective.kind)));
    if (!collective.groups.empty()) throw input_error("joint serves one group of all ranks only");
    if (collective.ranks < 2) throw input_error("one rank alone has nothing to reduce over links");
    if (collective.ranks > kMostTurnedRanks)
        throw input_error(fmt::format("{} ranks are more than the {} of joint's linear program",
                                      collective.ranks, kMostTurnedRanks));
    Machine machine = machine_of(topology, collective.ranks, policy, seed);
    require_few(collective.ranks, machine);
    const std::optional<JointOptimum> optimum = end_point_optimum(topology, collective);
    const SearchedPlan found = plan_of(machine, topology, collective, optimum, policy, seed, ways);
    const std::size_t copies = found.group.size();
    std::vector<Piece> pieces = overlay(found.plan);
    split_large(pieces, static_cast<std::int64_t>(copies));
    LaneRoutes lanes;
    if (copies > 1) {
        lanes = one_lane_per_way(pieces, machine.graph.ways());
        spread_out(pieces, found.loads);
    } else {
        lanes = assign_channels(pieces, topology, topologies::Routes(topology, policy, seed),
                                machine.graph.ways());
        spread_out(pieces, loads_of_edges(machine.graph));
    }
    JointAlgorithm made;
    made.rate =
        rate_of(copies > 1 ? turned_plan(found.plan, machine.graph, found.group, found.turned) : found.plan,
                machine.graph);
    made.optimum = std::max(optimum ? optimum->rate : 0.0, made.rate);
    made.trees = std::ssize(pieces) * std::ssize(found.group);
    int in = 0, out = 0;
    std::set<int> roots;
    for (const Piece& piece : pieces) {
        in = std::max(in, piece.in->depth);
        out = std::max(out, piece.out->depth);
        for (const std::vector<int>& image : found.group) roots.insert(image[at(piece.in->root)]);
    }
    made.roots = static_cast<int>(roots.size());
    made.depth = in + out;
    made.deepest = std::max(in, out);
    made.algorithm = joint_steps(collective, pieces, found.group);
    pin_lanes(made.algorithm, lanes, topology);
    return made;
}

}  // namespace baton::synth
