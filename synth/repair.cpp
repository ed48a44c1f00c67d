#include <baton/synth/repair.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_rerouting.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

namespace baton::synth {
namespace {

using ir::Buffer;
using Kind = ir::CollectiveKind;

// What stands in a place: which value, and the inputs of how many ranks it sums up.
struct Held {
    std::int64_t value = -1;  // shard * classes + class
    int inputs = 0;
};

// Parents of every rank, for one value.
struct LiftedWays {
    std::vector<int> in, out;  // -1: none
};

class Lifting {
public:
    explicit Lifting(const ir::Algorithm& algorithm) : algorithm_(algorithm), c_(algorithm.collective) {
        const bool sums = ir::reduces(c_.kind);
        if (c_.kind != Kind::broadcast && c_.kind != Kind::all_gather && !sums)
            throw input_error(fmt::format("schedules of {} are not made of trees that can be repaired",
                                          ir::to_string(c_.kind)));
        if (!c_.groups.empty()) throw input_error("schedules of groups of ranks cannot be repaired");
        complete_ = sums ? c_.ranks : 1;
        const std::int64_t shards = ir::has_shards(c_.kind) ? c_.ranks : 1;
        ways_.assign(at(shards * c_.chunks),
                     {std::vector<int>(at(c_.ranks), -1), std::vector<int>(at(c_.ranks), -1)});
        held_.resize(at(c_.ranks));
    }

    LiftedForests run() {
        auto cursor = algorithm_.steps();
        for (ir::Step step; cursor.next(step);) {
            if (step.op == ir::StepOp::multicast || step.op == ir::StepOp::switch_reduce)
                throw input_error("schedules with steps of switches cannot be repaired");
            if (!step.in_par || !step.par) settle();
            for (std::int64_t i = 0; i < step.chunks; ++i) pass(step, i);
        }
        settle();
        LiftedForests made;
        if (complete_ > 1) made.in = forest(&LiftedWays::in);
        if (c_.kind == Kind::broadcast || c_.kind == Kind::all_gather || c_.kind == Kind::all_reduce)
            made.out = forest(&LiftedWays::out);
        return made;
    }

private:
    static std::int64_t key(Buffer buffer, std::int64_t index) {
        return index * 3 + static_cast<std::int64_t>(buffer);
    }
    Held at_place(int rank, Buffer buffer, std::int64_t index) const {
        const auto found = held_[at(rank)].find(key(buffer, index));
        if (found != held_[at(rank)].end()) return found->second;
        if (buffer != Buffer::input) return {};
        const std::int64_t shard = c_.kind == Kind::all_gather ? rank : index / c_.chunks;
        return {shard * c_.chunks + index % c_.chunks, 1};
    }

    void pass(const ir::Step& step, std::int64_t i) {
        const Held source = at_place(step.src_rank, step.src_buffer, step.src_index + i);
        if (source.value < 0) throw input_error("the schedule sends what nobody wrote");
        Held made = source;
        if (step.reducing()) {
            const Held there = at_place(step.dst_rank, step.dst_buffer, step.dst_index + i);
            if (there.value != source.value) throw input_error("the schedule sums up values of two kinds");
            made.inputs += there.inputs;
        }
        written_.push_back({step.dst_rank, key(step.dst_buffer, step.dst_index + i), made});
        if (!step.crosses()) return;
        LiftedWays& ways = ways_[at(source.value)];
        if (source.inputs < complete_) {
            int& parent = ways.in[at(step.src_rank)];
            if (parent >= 0)
                throw input_error(fmt::format("rank {} passes a partial sum on twice", step.src_rank));
            parent = step.dst_rank;
        } else {
            int& parent = ways.out[at(step.dst_rank)];
            if (parent >= 0) throw input_error(fmt::format("a value reaches rank {} twice", step.dst_rank));
            parent = step.src_rank;
        }
    }

    void settle() {
        for (const auto& [rank, place, made] : written_) held_[at(rank)][place] = made;
        written_.clear();
    }

    // Trees of all values, those of a root side by side; every root must have as many.
    Forest forest(std::vector<int> LiftedWays::*side) const {
        std::map<int, std::vector<PackedTree>> of_root;
        for (std::size_t value = 0; value < ways_.size(); ++value) {
            const std::int64_t weight = c_.weights.empty() ? 1 : c_.weights[value % at(c_.chunks)];
            PackedTree tree = tree_of(ways_[value].*side);
            tree.multiplicity = weight;
            of_root[tree.root].push_back(std::move(tree));
        }
        Forest made;
        for (auto& [root, trees] : of_root) {
            std::int64_t sum = 0;
            for (PackedTree& tree : trees) {
                sum += tree.multiplicity;
                made.trees.push_back(std::move(tree));
            }
            if (made.per_root == 0) made.per_root = sum;
            if (sum != made.per_root)
                throw input_error("the roots of the schedule have shares of different size");
        }
        const std::size_t wanted = ir::has_root(c_.kind) ? 1 : at(c_.ranks);
        if (of_root.size() != wanted || (wanted == 1 && of_root.begin()->first != c_.root))
            throw input_error("the schedule's trees start at other ranks than those that repair can serve");
        return made;
    }

    PackedTree tree_of(const std::vector<int>& parent) const {
        std::vector<std::vector<int>> below(parent.size());
        PackedTree tree;
        for (std::size_t v = 0; v < parent.size(); ++v) {
            if (parent[v] >= 0) {
                below[at(parent[v])].push_back(static_cast<int>(v));
            } else {
                if (tree.root >= 0) throw input_error("a value of the schedule does not reach every rank");
                tree.root = static_cast<int>(v);
            }
        }
        if (tree.root < 0) throw input_error("a value of the schedule goes in a circle");
        std::vector<int> reached = {tree.root};
        for (std::size_t i = 0; i < reached.size(); ++i) {
            for (const int v : below[at(reached[i])]) {
                tree.edges.push_back({reached[i], v});
                reached.push_back(v);
            }
        }
        if (reached.size() != parent.size()) throw input_error("a value of the schedule goes in a circle");
        return tree;
    }

    struct Write {
        int rank;
        std::int64_t place;
        Held made;
    };
    const ir::Algorithm& algorithm_;
    const ir::Collective& c_;
    int complete_ = 1;
    std::vector<LiftedWays> ways_;  // per value
    std::vector<std::unordered_map<std::int64_t, Held>> held_;
    std::vector<Write> written_;
};

}  // namespace

LiftedForests lift_forests(const ir::Algorithm& algorithm) { return Lifting(algorithm).run(); }

Repaired repair(const topologies::Topology& topology, const ir::Algorithm& old,
                topologies::RoutePolicy policy, std::uint64_t seed) {
    const ir::Collective& collective = old.collective;
    if (collective.ranks != topology.rank_count())
        throw input_error(fmt::format("the schedule is for {} ranks, the machine has {}", collective.ranks,
                                      topology.rank_count()));
    const LiftedForests lifted = lift_forests(old);
    const RankGraph graph(topology, collective.ranks, policy, seed);
    graph.require_connected();
    Repaired made;
    const auto mended = [&](const Forest& forest, bool turned) {
        ReroutingOptions options;
        options.target = phase_optimum(topology, collective, turned);
        const Rerouted rerouted = reroute(forest, graph, turned, options);
        made.moved += rerouted.moved;
        made.replaced += rerouted.replaced;
        made.loss = std::max(made.loss, rerouted.forest.seconds_per_byte / options.target - 1);
        made.depth = std::max(made.depth, depth_of(rerouted.forest));
        return rerouted.forest;
    };
    Forest in, out;
    if (!lifted.in.trees.empty()) in = mended(lifted.in, true);
    if (!lifted.out.trees.empty()) out = mended(lifted.out, false);
    ir::Collective plain = collective;
    plain.weights.clear();
    plain.chunks = 1;
    made.algorithm =
        tree_schedule(plain, in.trees.empty() ? nullptr : &in, out.trees.empty() ? nullptr : &out);
    made.algorithm.name = fmt::format("repaired {}", ir::to_string(collective.kind));
    return made;
}

}  // namespace baton::synth
