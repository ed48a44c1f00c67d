#include <baton/sim/fold.hpp>

#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

namespace baton::sim {
namespace {

using Color = std::uint64_t;

constexpr std::int64_t kMostWork = 200'000'000;  // steps times rounds
constexpr std::int64_t kLeastGain = 4;           // steps per class

Color mixed(Color h, std::uint64_t value) {
    h ^= value + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2);
    h ^= h >> 31;
    h *= 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 29);
}
Color mixed(Color h, double value) {
    // Shares that differ in the last bits only are the same share.
    return mixed(h, static_cast<std::uint64_t>(value * 1e12 + 0.5));
}

/// Classes of equal colors, numbered by first appearance.
struct Classes {
    std::vector<std::int32_t> of, first;
    explicit Classes(const std::vector<Color>& colors) {
        std::unordered_map<Color, std::int32_t> known;
        of.reserve(colors.size());
        for (std::size_t i = 0; i < colors.size(); ++i) {
            const auto [found, fresh] = known.try_emplace(colors[i], static_cast<std::int32_t>(first.size()));
            if (fresh) first.push_back(static_cast<std::int32_t>(i));
            of.push_back(found->second);
        }
    }
    std::vector<std::int64_t> sizes() const {
        std::vector<std::int64_t> count(first.size(), 0);
        for (const std::int32_t c : of) ++count[at(c)];
        return count;
    }
};

class Folding {
public:
    explicit Folding(const PreparedAlgorithm::Data& whole)
        : whole_(whole),
          graph_(whole.graph),
          steps_(graph_.size()),
          step_(at(steps_)),
          lane_(at(whole.lanes), 1),
          rank_(at(whole.collective.ranks), 1) {
        for (const double capacity : capacities(*whole.topology))
            resource_.push_back(mixed(Color{3}, capacity * 1e3));
        color_steps();
    }

    std::optional<PreparedAlgorithm::Data> fold() {
        std::size_t known = 0;
        for (std::int64_t work = 0; work < kMostWork; work += steps_) {
            stop_point();
            refine();
            const std::size_t now = Classes(step_).first.size();
            if (static_cast<std::int64_t>(now) * kLeastGain > steps_) return std::nullopt;
            if (now == known) return quotient();
            known = now;
        }
        return std::nullopt;
    }

private:
    const Path* path(std::int64_t s) const {
        const std::int32_t p = whole_.path_of[at(s)];
        return p < 0 ? nullptr : &whole_.paths[at(p)];
    }

    void color_steps() {
        // Sums over runs of chunks that tell which weights these have, in any order.
        std::vector<Color> prefix{0};
        for (const std::int64_t weight : whole_.collective.weights)
            prefix.push_back(prefix.back() + mixed(Color{11}, static_cast<std::uint64_t>(weight)));
        const std::int64_t classes = whole_.collective.chunks;
        std::vector<std::uint64_t> in_lane(at(whole_.lanes), 0), in_rank(rank_.size(), 0);
        for (std::int64_t s = 0; s < steps_; ++s) {
            Color weights = 0;
            for (const ClassRun& run : graph_.runs(s)) {
                if (prefix.size() == 1) {
                    weights += static_cast<Color>(run.count);
                    continue;
                }
                const std::int64_t end = run.first + run.count % classes;
                weights += static_cast<Color>(run.count / classes) * prefix.back() - prefix[at(run.first)] +
                           (end <= classes ? prefix[at(end)] : prefix.back() + prefix[at(end - classes)]);
            }
            Color color = mixed(static_cast<Color>(graph_.step(s).op), weights);
            const std::int32_t lane = whole_.lane_of[at(s)];
            if (lane >= 0) color = mixed(color, ++in_lane[at(lane)]);
            if (reduces_at_rank(s)) color = mixed(color, ++in_rank[at(graph_.step(s).destination)]);
            if (const Path* way = path(s))
                color = mixed(color, static_cast<std::uint64_t>(way->latency.picoseconds));
            step_[at(s)] = color;
        }
    }

    /// One round, all from the colors before it: steps of a par block may wait for later ones.
    void refine() {
        std::vector<Color> waits(at(steps_), 0), lanes(lane_.size(), 0), ranks(rank_.size(), 0),
            resources(resource_.size(), 0);
        for (std::int64_t s = 0; s < steps_; ++s)
            for (const Successor& next : graph_.successors(s))
                waits[at(next.step)] += mixed(step_[at(s)], static_cast<std::uint64_t>(next.wait));
        for (std::int64_t s = 0; s < steps_; ++s) {
            Color color = mixed(step_[at(s)], waits[at(s)]);
            const std::int32_t lane = whole_.lane_of[at(s)];
            if (lane >= 0) color = mixed(color, lane_[at(lane)]);
            const bool reduces = reduces_at_rank(s);
            if (reduces) color = mixed(color, rank_[at(graph_.step(s).destination)]);
            if (const Path* way = path(s)) {
                Color used = 0;  // the order of resources says nothing
                for (const Use& use : way->uses) used += mixed(resource_[at(use.resource)], use.weight);
                color = mixed(color, used);
            }
            step_[at(s)] = color;
            if (lane >= 0) lanes[at(lane)] += mixed(color, std::uint64_t{5});
            if (reduces) ranks[at(graph_.step(s).destination)] += mixed(color, std::uint64_t{7});
            if (const Path* way = path(s))
                for (const Use& use : way->uses) resources[at(use.resource)] += mixed(color, use.weight);
        }
        for (std::size_t i = 0; i < lane_.size(); ++i) lane_[i] = mixed(lane_[i], lanes[i]);
        for (std::size_t i = 0; i < rank_.size(); ++i) rank_[i] = mixed(rank_[i], ranks[i]);
        for (std::size_t i = 0; i < resource_.size(); ++i) resource_[i] = mixed(resource_[i], resources[i]);
    }

    bool reduces_at_rank(std::int64_t s) const {
        const ir::StepOp op = graph_.step(s).op;
        return whole_.topology->machine.reduction.bytes_per_second > 0 &&
               (op == ir::StepOp::reduce || op == ir::StepOp::send_reduce);
    }

    PreparedAlgorithm::Data quotient() const {
        const Classes steps(step_), lanes(lane_), ranks(rank_), resources(resource_);
        const std::vector<std::int64_t> resource_count = resources.sizes();
        const std::size_t count = steps.first.size();
        // What each class of steps takes of a class of resources in all.
        std::vector<std::map<std::int32_t, double>> takes(count);
        for (std::int64_t s = 0; s < steps_; ++s)
            if (const Path* way = path(s))
                for (const Use& use : way->uses)
                    takes[at(steps.of[at(s)])][resources.of[at(use.resource)]] += use.weight;
        StepGraph::Parts parts;
        std::vector<std::vector<Successor>> successors(count);
        for (std::int64_t s = 0; s < steps_; ++s) {
            // Waits of the first step of a class stand for the others'.
            for (const Successor& next : graph_.successors(s)) {
                const std::int32_t waiting = steps.of[at(next.step)];
                if (steps.first[at(waiting)] == next.step)
                    successors[at(steps.of[at(s)])].push_back({waiting, next.wait});
            }
        }
        PreparedAlgorithm::Data data{
            whole_.topology,    whole_.collective, StepGraph(),           {}, {}, {}, lanes_in(lanes),
            whole_.unreachable, whole_.warnings,   whole_.policy_in_words};
        for (std::size_t c = 0; c < count; ++c) {
            const std::int32_t s = steps.first[c];
            StepNode node = graph_.step(s);
            node.start_waits = node.commit_waits = 0;
            node.destination =
                reduces_at_rank(s) ? ranks.first[at(ranks.of[at(node.destination)])] : node.destination;
            parts.steps.push_back(node);
            const auto runs = graph_.runs(s);
            parts.runs.insert(parts.runs.end(), runs.begin(), runs.end());
            parts.run_offsets.push_back(static_cast<std::int64_t>(parts.runs.size()));
            const std::int32_t lane = whole_.lane_of[at(s)];
            data.lane_of.push_back(lane < 0 ? -1 : lanes.of[at(lane)]);
            data.path_of.push_back(-1);
            if (const Path* way = path(s)) {
                Path all = *way;
                all.uses.clear();
                for (const auto& [resource, amount] : takes[c])
                    all.uses.push_back({resources.first[at(resource)],
                                        amount / static_cast<double>(resource_count[at(resource)])});
                std::sort(all.uses.begin(), all.uses.end(),
                          [](const Use& a, const Use& b) { return a.resource < b.resource; });
                data.path_of.back() = static_cast<std::int32_t>(data.paths.size());
                data.paths.push_back(std::move(all));
            }
        }
        for (std::size_t c = 0; c < count; ++c) {
            auto& own = successors[c];
            const auto order = [](const Successor& a, const Successor& b) {
                return a.step != b.step ? a.step < b.step : a.wait < b.wait;
            };
            std::sort(own.begin(), own.end(), order);
            for (std::size_t i = 0; i < own.size(); ++i) {
                if (i > 0 && own[i].step == own[i - 1].step && own[i].wait == own[i - 1].wait) continue;
                parts.successors.push_back(own[i]);
                StepNode& waiting = parts.steps[at(own[i].step)];
                ++(own[i].wait == Wait::start_after_commit ? waiting.start_waits : waiting.commit_waits);
            }
            parts.offsets.push_back(static_cast<std::int64_t>(parts.successors.size()));
        }
        data.graph = StepGraph(std::move(parts));
        data.even = true;
        data.policy_in_words +=
            fmt::format("; steps that symmetry makes equal run once, {} for {}", count, steps_);
        return data;
    }

    static int lanes_in(const Classes& lanes) { return static_cast<int>(lanes.first.size()); }

    const PreparedAlgorithm::Data& whole_;
    const StepGraph& graph_;
    std::int64_t steps_;
    std::vector<Color> step_, lane_, rank_, resource_;
};

}  // namespace

std::optional<PreparedAlgorithm::Data> folded(const PreparedAlgorithm::Data& whole) {
    if (whole.graph.size() == 0 || !whole.unreachable.empty()) return std::nullopt;
    return Folding(whole).fold();
}

}  // namespace baton::sim
