#include <baton/synth/relay.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <climits>
#include <map>
#include <queue>
#include <tuple>

namespace baton::synth {
namespace {

/// Ways through ranks, one search per source, made when first asked for. Of the ways of least latency and
/// fewest hops each is given where it has been used least so far, hop by hop from the destination.
class Ways {
public:
    Ways(const topologies::Routes& routes, int ranks)
        : routes_(routes), ranks_(ranks), before_(static_cast<std::size_t>(ranks)) {}

    /// The ranks on the way, both ends included; counts `chunks` on each of its hops.
    std::vector<int> between(int source, int destination, std::int64_t chunks) {
        auto& before = before_[static_cast<std::size_t>(source)];
        if (before.empty()) before = search(source);
        std::vector<int> way{destination};
        while (way.back() != source) {
            const std::vector<int>& previous = before[static_cast<std::size_t>(way.back())];
            if (previous.empty())
                throw input_error(fmt::format("rank {} cannot reach rank {}, not even through other ranks",
                                              source, destination),
                                  routes_.topology().name, "add links, or take these ranks out");
            const int at = way.back();
            const int best = *std::min_element(previous.begin(), previous.end(), [&](int a, int b) {
                return use_[{a, at}] < use_[{b, at}];
            });
            use_[{best, at}] += chunks;
            way.push_back(best);
        }
        std::reverse(way.begin(), way.end());
        return way;
    }

private:
    // Dijkstra by (latency, hops): for each rank all ranks that may come before it.
    std::vector<std::vector<int>> search(int source) const {
        using Distance = std::pair<std::int64_t, int>;
        constexpr Distance kFar{INT64_MAX, INT_MAX};
        std::vector<Distance> distance(static_cast<std::size_t>(ranks_), kFar);
        std::vector<std::vector<int>> before(static_cast<std::size_t>(ranks_));
        using Entry = std::tuple<std::int64_t, int, int>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
        distance[static_cast<std::size_t>(source)] = {0, 0};
        open.emplace(0, 0, source);
        while (!open.empty()) {
            const auto [latency, hops, at] = open.top();
            open.pop();
            if (distance[static_cast<std::size_t>(at)] != Distance{latency, hops}) continue;
            for (int next = 0; next < ranks_; ++next) {
                if (next == at) continue;
                const topologies::Route& route = routes_.between(at, next);
                if (!route.reachable) continue;
                const Distance reached{latency + route.latency.picoseconds, hops + 1};
                Distance& known = distance[static_cast<std::size_t>(next)];
                if (reached > known) continue;
                auto& candidates = before[static_cast<std::size_t>(next)];
                if (reached < known) {
                    known = reached;
                    candidates.clear();
                    open.emplace(reached.first, reached.second, next);
                }
                candidates.push_back(at);
            }
        }
        return before;
    }

    const topologies::Routes& routes_;
    int ranks_;
    std::vector<std::vector<std::vector<int>>> before_;
    std::map<std::pair<int, int>, std::int64_t> use_;
};

bool needs_relay(const ir::Step& step, const topologies::Routes& routes) {
    if (!step.crosses() || step.via >= 0) return false;
    if (step.op == ir::StepOp::multicast || step.op == ir::StepOp::switch_reduce) return false;
    return !routes.between(step.src_rank, step.dst_rank).reachable;
}

class Relayer {
public:
    Relayer(const ir::Algorithm& algorithm, const topologies::Routes& routes, std::int64_t step_limit)
        : ways_(routes, algorithm.collective.ranks),
          routes_(routes),
          limit_(step_limit),
          scratch_(algorithm.scratch_places()) {}

    void add(const ir::Step& step) {
        // A par block ends where a step does not belong to the one before it.
        if (!step.par) flush();
        if (!needs_relay(step, routes_)) return push(step);
        const std::vector<int> way = ways_.between(step.src_rank, step.dst_rank, step.chunks);
        ir::Step hop = step;
        for (std::size_t i = 1; i < way.size(); ++i) {
            const bool last = i + 1 == way.size();
            hop.dst_rank = way[i];
            hop.op = last ? step.op : ir::StepOp::send;
            hop.dst_buffer = last ? step.dst_buffer : ir::Buffer::scratch;
            hop.dst_index = last ? step.dst_index : take(way[i], step.chunks);
            if (i == 1) {
                push(hop);
            } else {
                hop.par = hop.in_par = 0;
                step.in_par ? later_.push_back(hop) : push(hop);
            }
            hop.src_rank = hop.dst_rank;
            hop.src_buffer = hop.dst_buffer;
            hop.src_index = hop.dst_index;
        }
    }
    std::vector<ir::Step> take_steps() {
        flush();
        return std::move(steps_);
    }

private:
    // Every relayed message has places of its own, so that no dependency ties one to another.
    std::int32_t take(int rank, std::int64_t chunks) {
        std::int64_t& next = scratch_[static_cast<std::size_t>(rank)];
        const std::int64_t index = next;
        next += chunks;
        if (next > INT32_MAX)
            throw input_error(fmt::format("relaying needs more than 2^31 scratch places at rank {}", rank));
        return static_cast<std::int32_t>(index);
    }
    void push(const ir::Step& step) {
        if (static_cast<std::int64_t>(steps_.size()) >= limit_)
            throw input_error(fmt::format("relaying gives more than {} steps", limit_));
        steps_.push_back(step);
    }
    void flush() {
        for (const ir::Step& step : later_) push(step);
        later_.clear();
    }

    Ways ways_;
    const topologies::Routes& routes_;
    std::int64_t limit_;
    std::vector<std::int64_t> scratch_;
    std::vector<ir::Step> steps_, later_;
};

}  // namespace

ir::Algorithm with_relays(const ir::Algorithm& algorithm, const topologies::Routes& routes,
                          std::int64_t step_limit) {
    ir::Step step;
    bool needed = false;
    for (ir::StepCursor cursor = algorithm.steps(); !needed && cursor.next(step);) {
        stop_point();
        needed = needs_relay(step, routes);
    }
    if (!needed) return algorithm;
    Relayer relayer(algorithm, routes, step_limit);
    for (ir::StepCursor cursor = algorithm.steps(); cursor.next(step);) {
        stop_point();
        relayer.add(step);
    }
    ir::Algorithm relayed = algorithm;
    // What is left is explicit: it speaks of ranks and holds for these alone.
    relayed.over_positions = false;
    relayed.chunks_expression = {};
    relayed.requirements.clear();
    relayed.requirement_words.clear();
    relayed.params.clear();
    relayed.body.clear();
    ir::Item item;
    item.value = ir::ExplicitSteps{std::make_shared<const std::vector<ir::Step>>(relayer.take_steps())};
    relayed.body.push_back(std::move(item));
    return relayed;
}

}  // namespace baton::synth
