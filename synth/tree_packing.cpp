#include <baton/synth/tree_packing.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/synth/cut_search.hpp>
#include <baton/synth/layered_trees.hpp>
#include <baton/synth/max_flow.hpp>
#include <baton/synth/tree_count.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>

namespace baton::synth {
namespace {

constexpr std::int64_t kInfinite = INT64_MAX / 8;

// A tree in growth. While it has no edge it is only its root.
struct Batch {
    int root = -1;
    std::int64_t multiplicity = 0;
    std::vector<int> vertices, depth;  // in order of growth; depth per rank
    std::vector<char> holds;
    std::vector<std::pair<int, int>> edges;
};

class Packer {
public:
    Packer(int ranks, const std::vector<RankEdge>& edges, std::vector<std::int64_t> capacity, Work& work)
        : ranks_(ranks), edges_(edges), capacity_(std::move(capacity)), out_(at(ranks)), work_(work) {
        for (std::size_t e = 0; e < edges.size(); ++e) {
            if (capacity_[e] > 0) out_[at(edges[e].from)].push_back(static_cast<int>(e));
        }
        for (int v = 0; v < ranks; ++v) {
            // Short ways first; among equals the next rank round the machine, so that load spreads.
            std::stable_sort(out_[at(v)].begin(), out_[at(v)].end(), [&](int a, int b) {
                const auto key = [&](int e) {
                    return std::pair(edges_[at(e)].latency, (edges_[at(e)].to - v + ranks_) % ranks_);
                };
                return key(a) < key(b);
            });
        }
    }

    std::vector<PackedTree> pack(const std::vector<RootDemand>& demands) {
        start(demands);
        while (!waiting_.empty()) {
            Batch batch = std::move(waiting_.front());
            waiting_.pop_front();
            grow(batch, ranks_);
            if (batch.vertices.size() < at(ranks_))
                throw internal_error("a tree of a feasible packing could not be completed");
            done_.push_back({batch.root, batch.multiplicity, std::move(batch.edges)});
        }
        return finish();
    }

    // All trees grow at once, layer by layer: shallower, but each probe sees all of them. Empty when
    // `allowed` (arcs times flows) does not suffice.
    std::vector<PackedTree> pack_by_layers(const std::vector<RootDemand>& demands, std::int64_t allowed) {
        start(demands);
        const std::int64_t stop = work_.left - std::min(allowed, work_.left);
        for (int layer = 1; !waiting_.empty(); ++layer) {
            if (layer >= 2 * ranks_)
                throw internal_error("trees of a feasible packing could not be completed");
            later_.clear();
            while (!waiting_.empty()) {
                if (work_.left <= stop) return {};
                Batch batch = std::move(waiting_.front());
                waiting_.pop_front();
                grow(batch, layer);
                if (batch.vertices.size() == at(ranks_))
                    done_.push_back({batch.root, batch.multiplicity, std::move(batch.edges)});
                else
                    later_.push_back(std::move(batch));
            }
            waiting_.swap(later_);
        }
        return finish();
    }

private:
    void start(const std::vector<RootDemand>& demands) {
        place_.assign(at(ranks_), 0);
        for (const RootDemand& demand : demands) {
            place_[at(demand.root)] = waiting_.size();
            if (demand.trees == 0) continue;
            Batch batch;
            batch.root = demand.root;
            batch.multiplicity = demand.trees;
            batch.vertices = {demand.root};
            batch.depth.assign(at(ranks_), 0);
            batch.holds.assign(at(ranks_), 0);
            batch.holds[at(demand.root)] = 1;
            waiting_.push_back(std::move(batch));
        }
    }
    std::vector<PackedTree> finish() {
        std::stable_sort(done_.begin(), done_.end(), [&](const PackedTree& a, const PackedTree& b) {
            return place_[at(a.root)] < place_[at(b.root)];
        });
        return std::move(done_);
    }
    // Adds what fits to vertices of less than `layer` edges from the root.
    void grow(Batch& batch, int layer) {
        prepare();
        for (std::size_t i = 0; i < batch.vertices.size() && batch.vertices.size() < at(ranks_); ++i) {
            const int x = batch.vertices[i];
            if (batch.depth[at(x)] >= layer) continue;
            for (const int e : out_[at(x)]) {
                const int y = edges_[at(e)].to;
                if (batch.holds[at(y)] || capacity_[at(e)] == 0) continue;
                const std::int64_t amount = room(e, batch.multiplicity);
                if (amount == 0) continue;
                if (amount < batch.multiplicity) {
                    Batch rest = batch;
                    rest.multiplicity = batch.multiplicity - amount;
                    batch.multiplicity = amount;
                    waiting_.push_front(std::move(rest));
                    prepare();
                }
                batch.edges.push_back({x, y});
                batch.vertices.push_back(y);
                batch.holds[at(y)] = 1;
                batch.depth[at(y)] = batch.depth[at(x)] + 1;
                capacity_[at(e)] -= amount;
                flow_->set_capacity(e, capacity_[at(e)]);
            }
        }
    }

    // The flow network of the batches that wait: vertex P gives each of them its multiplicity.
    void prepare() {
        const int p = ranks_;
        flow_ = std::make_unique<MaxFlow<std::int64_t>>(ranks_ + 1 +
                                                        static_cast<int>(waiting_.size() + later_.size()));
        arcs_ = static_cast<std::int64_t>(edges_.size());
        for (std::size_t e = 0; e < edges_.size(); ++e)
            flow_->add(edges_[e].from, edges_[e].to, capacity_[e]);
        for (int v = 0; v < ranks_; ++v) flow_->add(v, p, 0);
        needed_ = 0;
        std::vector<std::int64_t> alone(at(ranks_), 0);
        int extra = ranks_ + 1;
        for (const std::deque<Batch>* batches : {&waiting_, &later_}) {
            for (const Batch& batch : *batches) {
                needed_ += batch.multiplicity;
                if (batch.vertices.size() == 1) {
                    alone[at(batch.root)] += batch.multiplicity;
                    continue;
                }
                flow_->add(p, extra, batch.multiplicity);
                for (const int v : batch.vertices) flow_->add(extra, v, kInfinite);
                arcs_ += static_cast<std::int64_t>(batch.vertices.size());
                ++extra;
            }
        }
        for (int v = 0; v < ranks_; ++v) {
            if (alone[at(v)] > 0) flow_->add(p, v, alone[at(v)]);
        }
    }

    // How many of the batch's trees may take edge e so that all others can still be completed.
    std::int64_t room(int e, std::int64_t multiplicity) {
        const int x = edges_[at(e)].from, y = edges_[at(e)].to;
        const std::int64_t most = std::min(capacity_[at(e)], multiplicity);
        const int to_p = static_cast<int>(edges_.size()) + x;
        work_.spend(arcs_);
        flow_->set_capacity(to_p, kInfinite);
        const std::int64_t flow = flow_->run(x, y, needed_ + most);
        flow_->set_capacity(to_p, 0);
        return std::max<std::int64_t>(0, std::min(most, flow - needed_));
    }

    int ranks_;
    const std::vector<RankEdge>& edges_;
    std::vector<std::int64_t> capacity_;
    std::vector<std::vector<int>> out_;
    std::deque<Batch> waiting_, later_;  // to grow, and grown in this layer
    std::vector<PackedTree> done_;
    std::vector<std::size_t> place_;  // of a root among the demands
    std::unique_ptr<MaxFlow<std::int64_t>> flow_;
    std::int64_t needed_ = 0, arcs_ = 0;
    Work& work_;
};

}  // namespace

namespace {

int deepest(const std::vector<PackedTree>& trees, int ranks) {
    int most = 0;
    std::vector<int> depth(at(ranks), 0);
    for (const PackedTree& tree : trees) {
        depth[at(tree.root)] = 0;
        for (const auto& [from, to] : tree.edges) most = std::max(most, depth[at(to)] = depth[at(from)] + 1);
    }
    return most;
}

// The shallowest trees of several ways to pack; the demands are known to fit. Empty when all are too deep.
std::vector<PackedTree> pack_shallow(int ranks, const std::vector<RankEdge>& edges,
                                     const std::vector<std::int64_t>& capacity,
                                     const std::vector<RootDemand>& demands, int most_depth, Work& work) {
    constexpr std::int64_t kLayerWork = 20'000'000;
    std::vector<PackedTree> best = layered_trees(ranks, edges, capacity, demands, most_depth);
    if (best.empty() || deepest(best, ranks) > 3) {
        Work little{kLayerWork};
        std::vector<PackedTree> other;
        if (static_cast<std::int64_t>(edges.size()) * ranks * static_cast<std::int64_t>(demands.size()) <
            kLayerWork / 16)
            other =
                Packer(ranks, edges, capacity, little).pack_by_layers(demands, kLayerWork - kLayerWork / 8);
        if (other.empty() && best.empty()) other = Packer(ranks, edges, capacity, work).pack(demands);
        if (best.empty() || (!other.empty() && deepest(other, ranks) < deepest(best, ranks)))
            best = std::move(other);
    }
    if (most_depth > 0 && deepest(best, ranks) > most_depth) return {};
    return best;
}

}  // namespace

double forest_optimum(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                      std::vector<char>* critical) {
    CapacityGraph graph;
    graph.node_count = graph.vertices = ranks;
    graph.out.resize(at(ranks));
    graph.in.resize(at(ranks));
    double largest = 0;
    for (const RankEdge& edge : edges) largest = std::max(largest, edge.rate);
    const double unit = largest / (1 << 20);
    for (const RankEdge& edge : edges) {
        const auto capacity = static_cast<std::int64_t>(std::floor(edge.rate / unit + 1e-6));
        if (capacity == 0) continue;
        graph.out[at(edge.from)].push_back(static_cast<int>(graph.arcs.size()));
        graph.in[at(edge.to)].push_back(static_cast<int>(graph.arcs.size()));
        graph.arcs.push_back({edge.from, edge.to, capacity, static_cast<int>(graph.arcs.size()), -1});
        graph.total += capacity;
    }
    std::vector<int> sinks;
    for (int v = 0; v < ranks; ++v) {
        if (roots.size() > 1 || v != roots.front()) sinks.push_back(v);
    }
    BestArgument best;
    std::int64_t work = INT64_MAX;
    raise_to_worst_cut(graph, roots, sinks, nullptr, work, best);
    if (critical != nullptr) *critical = best.inside;
    return static_cast<double>(best.demand) / (static_cast<double>(best.capacity) * unit);
}

namespace {

// Time of the busiest edge per byte of each root, where no two edges join the same ranks.
double time_of(const Forest& forest, const std::vector<RankEdge>& edges) {
    std::map<std::pair<int, int>, double> load;
    for (const PackedTree& tree : forest.trees) {
        for (const auto& edge : tree.edges) load[edge] += static_cast<double>(tree.multiplicity);
    }
    double most = 0;
    for (const RankEdge& edge : edges) {
        const auto found = load.find({edge.from, edge.to});
        if (found != load.end()) most = std::max(most, found->second / edge.rate);
    }
    return most / static_cast<double>(forest.per_root);
}

// Trees no deeper than the bound at about the least time at which they are found; none where ranks are too
// far apart for any.
void slow_down(Forest& forest, int ranks, const std::vector<RankEdge>& edges, double u,
               const std::vector<RootDemand>& demands, int most_depth) {
    constexpr double kFine = 1.01, kSlowest = 1e12;
    const double time = forest.seconds_per_byte;
    const auto found = [&](double slower) {
        std::vector<PackedTree> trees =
            layered_trees(ranks, edges, tree_capacities(edges, u * slower), demands, most_depth);
        if (trees.empty()) return false;
        forest.trees = std::move(trees);
        forest.seconds_per_byte = time * slower;
        return true;
    };
    double low = 1, high = 1.02;
    for (double step = 1.03; !found(high); step = std::min(step * step, 4.0)) {
        if (high > kSlowest) return;
        low = high;
        high *= step;
    }
    while (high / low > kFine) {
        const double middle = std::sqrt(high * low);
        (found(middle) ? high : low) = middle;
    }
    const bool plain = std::all_of(edges.begin(), edges.end(), [](const RankEdge& e) { return e.way < 0; });
    if (plain) forest.seconds_per_byte = std::min(forest.seconds_per_byte, time_of(forest, edges));
}

}  // namespace

Forest pack_forest(int ranks, const std::vector<RankEdge>& edges, const std::vector<int>& roots,
                   const ForestOptions& options) {
    Forest forest;
    if (ranks == 1) {
        forest.per_root = 1;
        forest.trees.push_back({roots.front(), 1, {}});
        return forest;
    }
    Work work{options.work};
    forest.optimum = forest_optimum(ranks, edges, roots);
    const TreeCount count = least_trees({ranks, ranks, edges, roots}, forest.optimum, options, work);
    forest.per_root = count.per_root;
    const double best_u = count.u;
    if (forest.per_root == 0) throw input_error("the rates between ranks do not connect all of them");
    forest.seconds_per_byte = count.seconds_per_byte();
    std::vector<RootDemand> demands;
    for (const int root : roots) demands.push_back({root, forest.per_root});
    forest.trees =
        pack_shallow(ranks, edges, tree_capacities(edges, best_u), demands, options.most_depth, work);
    if (forest.trees.empty()) slow_down(forest, ranks, edges, best_u, demands, options.most_depth);
    if (forest.trees.empty())
        throw input_error(fmt::format("no trees of at most {} hops were found", options.most_depth), {},
                          "allow deeper trees");
    return forest;
}

bool trees_fit(int ranks, const std::vector<RankEdge>& edges, const std::vector<std::int64_t>& capacity,
               const std::vector<RootDemand>& demands) {
    MaxFlow<std::int64_t> flow(ranks + 1);
    for (std::size_t e = 0; e < edges.size(); ++e) flow.add(edges[e].from, edges[e].to, capacity[e]);
    std::int64_t wanted = 0;
    for (const RootDemand& demand : demands) {
        flow.add(ranks, demand.root, demand.trees);
        wanted += demand.trees;
    }
    for (int v = 0; v < ranks; ++v) {
        if ((v == 0 ? flow.run(ranks, v, wanted) : flow.move(v - 1, v, wanted)) < wanted) return false;
    }
    return true;
}

std::vector<PackedTree> pack_trees(int ranks, const std::vector<RankEdge>& edges,
                                   const std::vector<std::int64_t>& capacity,
                                   const std::vector<RootDemand>& demands, std::int64_t work,
                                   int most_depth) {
    if (!trees_fit(ranks, edges, capacity, demands)) return {};
    Work left{work};
    return pack_shallow(ranks, edges, capacity, demands, most_depth, left);
}

void choose_ways(Forest& forest, const std::vector<RankEdge>& edges) {
    if (std::none_of(edges.begin(), edges.end(), [](const RankEdge& edge) { return edge.way >= 0; })) return;
    struct Way {
        int number;
        std::int64_t rest;
    };
    std::map<std::pair<int, int>, std::vector<Way>> ways;
    const std::vector<std::int64_t> capacity =
        tree_capacities(edges, forest.seconds_per_byte * static_cast<double>(forest.per_root));
    for (std::size_t e = 0; e < edges.size(); ++e)
        ways[{edges[e].from, edges[e].to}].push_back({edges[e].way, capacity[e]});
    std::vector<PackedTree> chosen;
    for (const PackedTree& tree : forest.trees) {
        for (std::int64_t left = tree.multiplicity; left > 0;) {
            PackedTree part = tree;
            std::vector<Way*> taken;
            std::int64_t amount = left;
            for (const auto& edge : tree.edges) {
                std::vector<Way>& list = ways.at(edge);
                // The first that holds all, default routes before detours; else the one that holds most.
                Way* best = &list.front();
                for (Way& way : list) {
                    if (best->rest >= left) break;
                    if (way.rest > best->rest) best = &way;
                }
                taken.push_back(best);
                amount = std::min(amount, best->rest);
            }
            if (amount <= 0) throw internal_error("the ways between two ranks do not hold their trees");
            for (Way* way : taken) {
                way->rest -= amount;
                part.ways.push_back(way->number);
            }
            part.multiplicity = amount;
            left -= amount;
            chosen.push_back(std::move(part));
        }
    }
    forest.trees = std::move(chosen);
}

}  // namespace baton::synth
