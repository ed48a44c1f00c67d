#include <baton/synth/tree_lanes.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/rank_graph.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace baton::synth {
namespace {

using topologies::LinkShare;
using topologies::Routes;
using topologies::Topology;

constexpr std::int64_t kMostEdges = 100'000;  // of trees on default routes
constexpr std::int64_t kUnits = 1024;         // of the data of a root, at which trees are cut

// All that a pair of ranks sends along one way.
struct Lane {
    int sender, receiver, way;
    std::vector<LinkShare> uses;
    std::vector<double> load;  // per phase, in bytes for a byte of each root
    int channels = 1;
    int first = -1;  // its first channel
};

class Lanes {
public:
    Lanes(const Topology& topology, const Routes& routes, const std::vector<TreePhase>& phases,
          const LaneRoutes& ways, const LaneLimits& limits)
        : routes_(routes),
          phases_(phases),
          ways_(ways),
          limits_(limits),
          limits_of_(limits_of_links(topology)),
          capacity_(resource_capacities(topology)) {
        for (std::size_t p = 0; p < phases.size(); ++p) collect(p);
        for (std::size_t p = 0; p < phases.size(); ++p) time_.push_back(busiest(p));
    }

    /// Chooses how many channels each lane gets.
    void choose() {
        double least = INFINITY;
        std::vector<int> best;
        std::vector<double> lacks(lanes_.size());
        std::map<int, int> sends, receives;
        for (const Lane& lane : lanes_) ++sends[lane.sender], ++receives[lane.receiver];
        for (int round = 0; round < 40 * limits_.most_per_rank; ++round) {
            const double worst = find_lacks(lacks);
            if (worst < least * (1 - 1e-9)) {
                least = worst;
                best.clear();
                for (const Lane& lane : lanes_) best.push_back(lane.channels);
            }
            if (worst <= 1 + limits_.tolerance) break;
            bool room = true;
            for (std::size_t l = 0; l < lanes_.size(); ++l) {
                if (lacks[l] < worst * 0.99) continue;
                Lane& lane = lanes_[l];
                room = room && sends[lane.sender] < limits_.most_per_rank &&
                       receives[lane.receiver] < limits_.most_per_rank;
                ++lane.channels, ++sends[lane.sender], ++receives[lane.receiver];
            }
            if (!room) break;
        }
        for (std::size_t l = 0; l < lanes_.size(); ++l) lanes_[l].channels = best[l];
    }

    bool trivial() const {
        return std::all_of(lanes_.begin(), lanes_.end(),
                           [](const Lane& lane) { return lane.channels == 1 && lane.way < 0; });
    }

    /// Deals the trees of each lane out to its channels, in order, and cuts them where one channel ends and
    /// the next begins.
    LaneRoutes deal() {
        LaneRoutes pinned;
        number(pinned);
        for (std::size_t p = 0; p < phases_.size(); ++p) {
            Forest& forest = *phases_[p].forest;
            std::int64_t finer = 1;
            while (2 * finer * forest.per_root <= kUnits) finer *= 2;
            forest.per_root *= finer;
            for (PackedTree& tree : forest.trees) tree.multiplicity *= finer;
            for (const double near : {0.02, 0.1, 0.3, 1e9}) {
                const Cuts cuts = cut_evenly(p, near);
                std::int64_t steps = 0;
                for (std::size_t t = 0; t < forest.trees.size(); ++t)
                    steps += (std::ssize(cuts.within[t]) + 1) * std::ssize(forest.trees[t].edges);
                if (near < 1 && steps > limits_.most_steps) continue;
                divide(p, cuts);
                break;
            }
        }
        return pinned;
    }

private:
    static double share(const Forest& forest, const PackedTree& tree) {
        return static_cast<double>(tree.multiplicity) / static_cast<double>(forest.per_root);
    }

    void collect(std::size_t p) {
        const Forest& forest = *phases_[p].forest;
        lane_of_.emplace_back();
        for (const PackedTree& tree : forest.trees) {
            std::vector<int>& list = lane_of_.back().emplace_back();
            for (std::size_t e = 0; e < tree.edges.size(); ++e) {
                auto [from, to] = tree.edges[e];
                if (phases_[p].turned) std::swap(from, to);
                const int l = lane(from, to, tree.ways.empty() ? -1 : tree.ways[e]);
                lanes_[at(l)].load[p] += share(forest, tree);
                list.push_back(l);
            }
        }
    }

    int lane(int sender, int receiver, int way) {
        const auto [place, fresh] =
            numbers_.emplace(std::tuple(sender, receiver, way), static_cast<int>(lanes_.size()));
        if (fresh) {
            Lane& made = lanes_.emplace_back();
            made.sender = sender, made.receiver = receiver, made.way = way;
            made.load.assign(phases_.size(), 0);
            made.uses =
                resource_uses(way < 0 ? routes_.between(sender, receiver)
                                      : routes_.via(sender, receiver, ways_.at({sender, receiver, way})),
                              limits_of_);
        }
        return place->second;
    }

    double busiest(std::size_t p) const {
        std::vector<double> sum(capacity_.size(), 0);
        for (const Lane& lane : lanes_) {
            for (const LinkShare& use : lane.uses) sum[at(use.link)] += use.share * lane.load[p];
        }
        double most = 0;
        for (std::size_t r = 0; r < sum.size(); ++r) most = std::max(most, sum[r] / capacity_[r]);
        return most;
    }

    // Per lane, what its channels need over what the fair share on its worst resource gives; the largest.
    double find_lacks(std::vector<double>& lacks) const {
        double worst = 0;
        std::fill(lacks.begin(), lacks.end(), 0);
        std::vector<double> weight(capacity_.size());
        for (std::size_t p = 0; p < phases_.size(); ++p) {
            std::fill(weight.begin(), weight.end(), 0);
            for (const Lane& lane : lanes_) {
                if (lane.load[p] <= 0) continue;
                for (const LinkShare& use : lane.uses) weight[at(use.link)] += use.share * lane.channels;
            }
            for (std::size_t l = 0; l < lanes_.size(); ++l) {
                const Lane& lane = lanes_[l];
                double most = 0;
                for (const LinkShare& use : lane.uses)
                    most = std::max(most, weight[at(use.link)] / capacity_[at(use.link)]);
                lacks[l] = std::max(lacks[l], lane.load[p] / lane.channels * most / time_[p]);
                worst = std::max(worst, lacks[l]);
            }
        }
        return worst;
    }

    // Places in trees, in units of multiplicity.
    struct Cuts {
        std::vector<std::vector<std::int64_t>> within;  // per tree, ascending
        // Per lane, where its channels end but the last: tree and place in it.
        std::vector<std::vector<std::pair<std::size_t, std::int64_t>>> ends;
    };

    // Equal channels, save that a channel may end at the end of a tree or at another cut in it, if that is as
    // `near` as this part of a channel.
    Cuts cut_evenly(std::size_t p, double near) const {
        const std::vector<PackedTree>& trees = phases_[p].forest->trees;
        Cuts cuts;
        cuts.within.resize(trees.size());
        cuts.ends.resize(lanes_.size());
        std::vector<std::vector<std::size_t>> on_lane(lanes_.size());
        for (std::size_t t = 0; t < trees.size(); ++t) {
            for (const int l : lane_of_[p][t]) on_lane[at(l)].push_back(t);
        }
        for (std::size_t l = 0; l < lanes_.size(); ++l) {
            const std::int64_t channels = lanes_[l].channels;
            std::int64_t total = 0, begin = 0, next = 1;
            for (const std::size_t t : on_lane[l]) total += trees[t].multiplicity;
            const double most = near * static_cast<double>(total) / static_cast<double>(channels);
            for (const std::size_t t : on_lane[l]) {
                const std::int64_t size = trees[t].multiplicity;
                for (; next < channels && total * next / channels < begin + size; ++next)
                    cuts.ends[l].push_back(
                        {t, cut_near(cuts.within[t], total * next / channels - begin, size, most)});
                begin += size;
            }
        }
        return cuts;
    }

    static std::int64_t cut_near(std::vector<std::int64_t>& cuts, std::int64_t wanted, std::int64_t size,
                                 double most) {
        std::int64_t nearest = 2 * wanted < size ? 0 : size;
        for (const std::int64_t cut : cuts) {
            if (std::abs(cut - wanted) < std::abs(nearest - wanted)) nearest = cut;
        }
        if (static_cast<double>(std::abs(nearest - wanted)) <= most) return nearest;
        cuts.insert(std::lower_bound(cuts.begin(), cuts.end(), wanted), wanted);
        return wanted;
    }

    void divide(std::size_t p, const Cuts& cuts) {
        std::vector<PackedTree> pieces;
        const std::vector<PackedTree>& trees = phases_[p].forest->trees;
        for (std::size_t t = 0; t < trees.size(); ++t) {
            for (std::size_t c = 0; c <= cuts.within[t].size(); ++c) {
                PackedTree piece = trees[t];
                const std::int64_t begin = c > 0 ? cuts.within[t][c - 1] : 0;
                piece.multiplicity =
                    (c < cuts.within[t].size() ? cuts.within[t][c] : trees[t].multiplicity) - begin;
                piece.ways.assign(piece.edges.size(), -1);
                for (std::size_t e = 0; e < piece.edges.size(); ++e) {
                    const int l = lane_of_[p][t][e];
                    if (lanes_[at(l)].first < 0) continue;
                    const auto& ends = cuts.ends[at(l)];
                    const auto place = std::upper_bound(ends.begin(), ends.end(), std::pair(t, begin));
                    piece.ways[e] = lanes_[at(l)].first + static_cast<int>(place - ends.begin());
                }
                pieces.push_back(std::move(piece));
            }
        }
        phases_[p].forest->trees = std::move(pieces);
    }

    // Numbers the channels of every pair: default route first, pinned ones from 1.
    void number(LaneRoutes& pinned) {
        std::map<std::pair<int, int>, int> next;
        for (const auto& [key, l] : numbers_) {  // ways of a pair follow each other, the default first
            Lane& lane = lanes_[at(l)];
            int& free = next[{lane.sender, lane.receiver}];
            if (lane.way < 0) {
                lane.first = lane.channels > 1 ? 0 : -1;  // alone, it is channel 0 anyway
                free = lane.channels;
                continue;
            }
            lane.first = std::max(free, 1);
            free = lane.first + lane.channels;
            for (int c = lane.first; c < free; ++c) pinned[{lane.sender, lane.receiver, c}] = ways_.at(key);
        }
    }

    const Routes& routes_;
    const std::vector<TreePhase>& phases_;
    const LaneRoutes& ways_;
    LaneLimits limits_;
    std::vector<std::vector<int>> limits_of_;
    std::vector<double> capacity_, time_;
    std::vector<Lane> lanes_;
    std::map<std::tuple<int, int, int>, int> numbers_;
    std::vector<std::vector<std::vector<int>>> lane_of_;  // [phase][tree][edge]
};

}  // namespace

LaneRoutes assign_lanes(const Topology& topology, const Routes& routes, const std::vector<TreePhase>& phases,
                        const LaneRoutes& ways, const LaneLimits& limits) {
    std::int64_t edges = 0;
    for (const TreePhase& phase : phases) {
        for (const PackedTree& tree : phase.forest->trees) edges += std::ssize(tree.edges);
    }
    if (ways.empty() && edges > kMostEdges) return {};
    Lanes lanes(topology, routes, phases, ways, limits);
    lanes.choose();
    if (lanes.trivial()) return {};
    return lanes.deal();
}

void pin_lanes(ir::Algorithm& algorithm, const LaneRoutes& lanes, const Topology& topology) {
    if (lanes.empty()) return;
    std::vector<ir::Step> steps = ir::expand(algorithm);
    std::map<std::string, int> vias;
    for (ir::Step& step : steps) {
        if (!step.crosses()) continue;
        const auto lane = lanes.find({step.src_rank, step.dst_rank, step.channel});
        if (lane == lanes.end()) continue;
        const auto [place, fresh] = vias.emplace(lane->second, static_cast<int>(algorithm.vias.size()));
        if (fresh) algorithm.vias.push_back(lane->second);
        step.via = place->second;
    }
    algorithm.topology_name = topology.name;
    algorithm.topology_hash = topology.hash();
    algorithm.over_positions = false;
    algorithm.body = {
        {ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(std::move(steps))}, 0}};
}

}  // namespace baton::synth
