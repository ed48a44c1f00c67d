#include <baton/synth/switch_pruning.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace baton::synth {
namespace {

using ir::Buffer;
using ir::Step;
using ir::StepOp;

// Which ways of two messages of one rank can be one message through switches.
class SharedWays {
public:
    SharedWays(const topologies::Topology& topology, const topologies::Routes& routes)
        : topology_(topology), routes_(routes) {}

    /// Messages from `hub` to both (`reduce`: from both to `hub`).
    bool joined(int hub, int first, int second, bool reduce) {
        const auto [place, fresh] =
            known_.try_emplace({hub, std::min(first, second), std::max(first, second), reduce}, 0);
        if (fresh) place->second = meet(hub, first, second, reduce) ? 1 : 0;
        return place->second != 0;
    }

private:
    // Per node that a way passes, the links over which it leaves towards the far end.
    using Passed = std::map<int, std::vector<int>>;
    Passed passed(int hub, int other, bool reduce) const {
        const topologies::Route& route = reduce ? routes_.between(other, hub) : routes_.between(hub, other);
        Passed nodes;
        for (const topologies::LinkShare& use : route.links) {
            const topologies::Link& link = topology_.links[at(use.link)];
            nodes[reduce ? link.to : link.from].push_back(use.link);
        }
        for (auto& [node, links] : nodes) std::sort(links.begin(), links.end());
        return nodes;
    }

    // True when both ways are the same wherever they pass a node together that cannot do it, and some node
    // that both pass can.
    bool meet(int hub, int first, int second, bool reduce) const {
        const Passed a = passed(hub, first, reduce), b = passed(hub, second, reduce);
        if (a.empty() || b.empty()) return false;
        bool capable = false;
        for (const auto& [node, links] : a) {
            const auto other = b.find(node);
            if (other == b.end()) continue;
            const topologies::Node& one = topology_.nodes[at(node)];
            const bool can = reduce ? one.reduce : one.multicast;
            if (!can && links != other->second) return false;
            capable = capable || can;
        }
        return capable && a.contains(topology_.rank_nodes[at(hub)]) &&
               b.contains(topology_.rank_nodes[at(hub)]);
    }

    const topologies::Topology& topology_;
    const topologies::Routes& routes_;
    std::map<std::tuple<int, int, int, bool>, char> known_;
};

class SwitchPruning {
public:
    SwitchPruning(const topologies::Topology& topology, const topologies::Routes& routes,
                  const ir::Algorithm& algorithm)
        : algorithm_(algorithm), ways_(topology, routes), steps_(ir::expand(algorithm)) {
        const auto kind = algorithm.collective.kind;
        same_place_ = kind == ir::CollectiveKind::all_reduce || kind == ir::CollectiveKind::broadcast ||
                      kind == ir::CollectiveKind::reduce;
    }

    PrunedAlgorithm run() {
        gone_.assign(steps_.size(), 0);
        for (std::size_t s = 0; s < steps_.size(); ++s) look_at(s);
        PrunedAlgorithm made;
        std::map<std::size_t, std::vector<Step>> placed;  // switch steps by the step whose place they take
        for (const Bundle& bundle : bundles_) finish(bundle, made, placed);
        for (const std::vector<Bundle>& open : sums_) {
            // A sum begins once: the largest bundle begins it, the others are added as they were.
            finish(*std::max_element(
                       open.begin(), open.end(),
                       [](const Bundle& a, const Bundle& b) { return a.members.size() < b.members.size(); }),
                   made, placed);
        }
        std::vector<Step> kept;
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            const auto here = placed.find(s);
            // A sum begins with one's own copy, which comes first, or with the step of the switch.
            const bool copy = steps_[s].op == StepOp::copy;
            if (copy && !gone_[s]) kept.push_back(steps_[s]);
            if (here != placed.end()) kept.insert(kept.end(), here->second.begin(), here->second.end());
            if (!copy && !gone_[s]) kept.push_back(steps_[s]);
        }
        made.algorithm = algorithm_;
        made.algorithm.over_positions = false;
        made.algorithm.switch_groups = groups_;
        made.algorithm.body = {
            {ir::ExplicitSteps{std::make_shared<const std::vector<Step>>(std::move(kept))}, 0}};
        return made;
    }

private:
    // Messages of one place that may become one.
    struct Bundle {
        bool reduce = false;
        int hub = -1;
        std::size_t first = 0;             // step whose place the switch step takes
        std::vector<std::size_t> members;  // steps
    };
    struct Place {
        std::int64_t written = -1, touched = -1;  // last step that wrote it, that read or wrote it
        std::int64_t begun_by = -1;  // step that gave it a value, sums aside; -1 once it was read
        std::int64_t claim = -1;     // number in `sums_` of what adds to it
    };
    using Key = std::tuple<int, Buffer, Buffer, int, int, int>;  // hub, buffers, indices, chunks

    Place& place(int rank, Buffer buffer, std::int64_t index) {
        const auto key = (static_cast<std::uint64_t>(rank) << 34) |
                         (static_cast<std::uint64_t>(buffer) << 32) | static_cast<std::uint64_t>(index);
        return places_[key];
    }

    void look_at(std::size_t s) {
        stop_point();
        const Step& step = steps_[s];
        if (step.op == StepOp::multicast || step.op == StepOp::switch_reduce)
            throw input_error("the schedule has steps of switches already", ir::describe(step));
        const bool plain = step.via < 0 && !step.in_par;
        if (step.op == StepOp::send && plain) bundle_send(s);
        if (step.op == StepOp::send_reduce && plain) bundle_sum(s);
        const auto now = static_cast<std::int64_t>(s);
        for (std::int32_t k = 0; k < step.chunks; ++k) {
            Place& from = place(step.src_rank, step.src_buffer, step.src_index + k);
            from.touched = now;
            from.begun_by = -1;
            Place& to = place(step.dst_rank, step.dst_buffer, step.dst_index + k);
            to.touched = to.written = now;
            if (step.reducing()) continue;
            to.begun_by = step.in_par ? -1 : now;
            to.claim = -1;
        }
    }

    // A send joins the bundle of its place if nothing between the first of them and itself minds.
    void bundle_send(std::size_t s) {
        const Step& step = steps_[s];
        const Key key = {step.src_rank,  step.src_buffer, step.dst_buffer,
                         step.src_index, step.dst_index,  step.chunks};
        std::vector<std::size_t>& open = sends_[key];
        for (const std::size_t b : open) {
            Bundle& bundle = bundles_[b];
            if (fits(bundle, step)) {
                bundle.members.push_back(s);
                return;
            }
        }
        open.push_back(bundles_.size());
        bundles_.push_back({false, step.src_rank, s, {s}});
    }

    bool fits(const Bundle& bundle, const Step& step) {
        const auto first = static_cast<std::int64_t>(bundle.first);
        for (std::int32_t k = 0; k < step.chunks; ++k) {
            if (place(step.src_rank, step.src_buffer, step.src_index + k).written >= first) return false;
            if (place(step.dst_rank, step.dst_buffer, step.dst_index + k).touched >= first) return false;
            // In place, the input of the receiver is the same memory.
            if (same_place_ && place(step.dst_rank, Buffer::input, step.dst_index + k).touched >= first)
                return false;
        }
        return joins_all(bundle, step.dst_rank);
    }

    // All members pairwise, and no rank twice.
    bool joins_all(const Bundle& bundle, int rank) {
        return std::all_of(bundle.members.begin(), bundle.members.end(), [&](std::size_t m) {
            const int other = bundle.reduce ? steps_[m].src_rank : steps_[m].dst_rank;
            return other != rank && ways_.joined(bundle.hub, other, rank, bundle.reduce);
        });
    }

    // What comes unchanged from the input of another rank and is added before anybody read the sum. Where
    // the sum begins with a copy, that is of the same place of one's own input.
    void bundle_sum(std::size_t s) {
        const Step& step = steps_[s];
        if (step.src_buffer != Buffer::input) return;
        const Place start = place(step.dst_rank, step.dst_buffer, step.dst_index);
        if (start.begun_by < 0) return;
        const Step& begin = steps_[at(start.begun_by)];
        const bool copy = begin.op == StepOp::copy;
        if (copy && (begin.src_buffer != Buffer::input ||
                     begin.src_index - begin.dst_index != step.src_index - step.dst_index))
            return;
        if (!copy && (begin.dst_index != step.dst_index || begin.chunks != step.chunks)) return;
        for (std::int32_t k = 0; k < step.chunks; ++k) {
            const Place& sum = place(step.dst_rank, step.dst_buffer, step.dst_index + k);
            if (sum.begun_by != start.begun_by || sum.claim != start.claim) return;
            // In place, one's own input may be the same memory.
            if (place(step.dst_rank, Buffer::input, step.src_index + k).touched > start.begun_by) return;
        }
        std::int64_t claim = start.claim;
        if (claim < 0) {
            claim = static_cast<std::int64_t>(sums_.size());
            sums_.emplace_back();
            if (!copy && begin.op == StepOp::send && begin.src_buffer == Buffer::input && begin.via < 0)
                sums_.back().push_back({true, step.dst_rank, at(start.begun_by), {at(start.begun_by)}});
            for (std::int32_t k = 0; k < step.chunks; ++k)
                place(step.dst_rank, step.dst_buffer, step.dst_index + k).claim = claim;
        }
        std::vector<Bundle>& open = sums_[at(claim)];
        if (!open.empty()) {
            const Step& first = steps_[open.front().members.front()];
            if (first.dst_index != step.dst_index || first.chunks != step.chunks) return;
        }
        for (Bundle& bundle : open) {
            if (steps_[bundle.members.front()].src_index != step.src_index ||
                !joins_all(bundle, step.src_rank))
                continue;
            bundle.members.push_back(s);
            return;
        }
        open.push_back({true, step.dst_rank, at(start.begun_by), {s}});
    }

    void finish(const Bundle& bundle, PrunedAlgorithm& made,
                std::map<std::size_t, std::vector<Step>>& placed) {
        if (bundle.members.size() < 2) return;
        if (std::any_of(bundle.members.begin(), bundle.members.end(),
                        [&](std::size_t m) { return gone_[m]; }))
            return;
        std::vector<int> group;
        for (const std::size_t m : bundle.members) {
            gone_[m] = 1;
            group.push_back(bundle.reduce ? steps_[m].src_rank : steps_[m].dst_rank);
        }
        if (bundle.reduce && steps_[bundle.first].op == StepOp::copy) group.push_back(bundle.hub);
        // Another message that the sum began with is added instead.
        if (bundle.reduce && steps_[bundle.first].op == StepOp::send && !gone_[bundle.first])
            steps_[bundle.first].op = StepOp::send_reduce;
        std::sort(group.begin(), group.end());
        const auto [number, fresh] = group_numbers_.emplace(group, static_cast<int>(groups_.size()));
        if (fresh) groups_.push_back(group);
        Step step = steps_[bundle.members.front()];
        step.op = bundle.reduce ? StepOp::switch_reduce : StepOp::multicast;
        step.src_rank = bundle.hub;
        step.dst_rank = number->second;
        placed[bundle.first].push_back(step);
        made.replaced += static_cast<std::int64_t>(bundle.members.size());
        ++made.switched;
    }

    const ir::Algorithm& algorithm_;
    SharedWays ways_;
    std::vector<Step> steps_;
    std::vector<char> gone_;
    bool same_place_ = false;
    std::unordered_map<std::uint64_t, Place> places_;
    std::map<Key, std::vector<std::size_t>> sends_;  // bundles by place
    std::vector<Bundle> bundles_;                    // of sends
    std::vector<std::vector<Bundle>> sums_;          // bundles that add to the same place
    std::vector<std::vector<int>> groups_;
    std::map<std::vector<int>, int> group_numbers_;
};

}  // namespace

PrunedAlgorithm with_switch_steps(const topologies::Topology& topology, const topologies::Routes& routes,
                                  const ir::Algorithm& algorithm) {
    if (!algorithm.switch_groups.empty()) throw input_error("the schedule has steps of switches already");
    return SwitchPruning(topology, routes, algorithm).run();
}

}  // namespace baton::synth
