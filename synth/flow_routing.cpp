#include <baton/synth/flow_routing.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>

#include <algorithm>
#include <functional>
#include <queue>

namespace baton::synth {
namespace {

constexpr double kDust = 1e-7;  // units of a flow that are rounding errors

// What all resources carry, and what one more chunk on each would cost.
class ChunkLoads {
public:
    ChunkLoads(const FlowNetwork& network, std::int64_t chunks) : load_(network.resources.size(), 0) {
        for (const FlowResource& resource : network.resources)
            step_.push_back(1 / (static_cast<double>(chunks) * static_cast<double>(resource.capacity)));
        price_.resize(load_.size());
        use_power(8, 1);
    }

    // Utilizations are measured against `unit` seconds per byte.
    // Every link costs `per_link` times what it costs on a large busy one.
    void use_power(int power, double unit, double per_link = 1e-4) {
        power_ = power;
        scale_ = 1 / unit;
        const double least = *std::min_element(step_.begin(), step_.end());
        per_link_ = per_link * power * least * scale_;
        for (std::size_t r = 0; r < load_.size(); ++r) update(r);
    }

    // Puts a path on or takes it off (amount -1); returns the change of the sum of powers.
    double add(const FlowHops& hops, const std::vector<int>& path, double amount) {
        double change = 0;
        for (const int h : path) {
            change += amount * per_link_ * hops[h].links;
            for (const auto& [r, share] : hops[h].load) {
                const double before = powered(at(r));
                load_[at(r)] += amount * share;
                change += powered(at(r)) - before;
                update(at(r));
            }
        }
        return change;
    }

    double price(const FlowArc& arc) const {
        double sum = per_link_;
        for (const int r : arc.resources) sum += price_[at(r)];
        return sum;
    }
    // Seconds per byte.
    double use(int r) const { return load_[at(r)] * step_[at(r)]; }
    double most_use() const {
        double most = 0;
        for (std::size_t r = 0; r < load_.size(); ++r) most = std::max(most, load_[r] * step_[r]);
        return most;
    }

private:
    double powered(std::size_t r) const {
        return whole_power(std::max(0.0, load_[r]) * step_[r] * scale_, power_);
    }
    void update(std::size_t r) {
        const double now = std::max(0.0, load_[r]) * step_[r] * scale_;
        price_[r] = whole_power(now + step_[r] * scale_, power_) - whole_power(now, power_);
    }

    std::vector<double> load_, step_, price_;  // load_ in chunks, step_: seconds per byte of one chunk
    int power_ = 8;
    double scale_ = 1, per_link_ = 0;
};

class ChunkRouter {
public:
    ChunkRouter(const FlowNetwork& network, FlowHops& hops, std::int64_t chunks,
                std::int64_t work = kMostRoutingWork)
        : network_(network),
          hops_(hops),
          loads_(network, chunks),
          distance_(at(network.vertices), 0),
          arrived_(at(network.vertices), -1),
          seen_(at(network.vertices), 0),
          work_(work) {
        routing_.chunks = chunks;
        for (const FlowDemand& demand : network.demands) {
            routing_.first.push_back(routing_.paths.size());
            routing_.paths.resize(routing_.paths.size() + demand.sinks.size() * at(chunks));
        }
    }

    // `rounded`: along the flow.
    void start(const ConcurrentFlow& flow, bool rounded) {
        const double unit = flow.bound > 0 ? flow.bound : 1 / static_cast<double>(least_capacity());
        loads_.use_power(8, unit);
        std::vector<int> path;
        for (std::size_t d = 0; d < network_.demands.size(); ++d) {
            const FlowDemand& demand = network_.demands[d];
            std::vector<double> rest;
            if (rounded) rest = flow.units[d];
            for (double& units : rest)
                units = units < kDust ? 0 : units * static_cast<double>(routing_.chunks);
            // Chunk by chunk over all sinks, so that what is rounded up here is rounded down there.
            for (std::int64_t k = 0; k < routing_.chunks; ++k) {
                stop_point();
                for (std::size_t s = 0; s < demand.sinks.size(); ++s) {
                    std::vector<int>& hops =
                        routing_.paths[routing_.first[d] + s * at(routing_.chunks) + at(k)];
                    const bool follows = !rest.empty() && walk_back(demand, demand.sinks[s], rest, path) &&
                                         hops_.along(path, false, hops);
                    if (!follows) {
                        cheapest(demand.source, demand.sinks[s], path);
                        if (!hops_.along(path, false, hops))
                            throw input_error("a path of the flow is none that steps may take");
                    }
                    loads_.add(hops_, hops, 1);
                }
            }
        }
    }

    // Goes on from paths that are there.
    void resume(FlowRouting&& routing) {
        routing_ = std::move(routing);
        for (const std::vector<int>& path : routing_.paths) loads_.add(hops_, path, 1);
    }

    void improve(double bound, double enough) {
        constexpr std::pair<int, int> kStages[] = {{8, 4}, {32, 6}, {96, 12}};  // power, passes
        for (const auto& [power, passes] : kStages) {
            for (int pass = 0; pass < passes && work_ > 0; ++pass) {
                const double most = loads_.most_use();
                if (most <= bound * (1 + enough)) return;
                loads_.use_power(power, most);
                // Chunks on what is busy: the highest power looks at the busiest only.
                if (!move_from_busy(std::max(bound * (1 + enough), most * (1 - 1.5 / power)))) break;
            }
        }
    }

    // Gives chunks shorter ways where no busiest resource is made busier.
    void shorten() {
        const double most = loads_.most_use();
        for (const double per_link : {1.0, 1.0, 0.1}) {
            loads_.use_power(96, most, per_link);
            if (!move([](const std::vector<int>& path) { return path.size() > 1; }, most * (1 + 1e-9))) break;
        }
    }

    std::int64_t work_left() const { return work_; }

    FlowRouting take() {
        routing_.seconds_per_byte = loads_.most_use();
        return std::move(routing_);
    }

private:
    std::int64_t least_capacity() const {
        std::int64_t least = INT64_MAX;
        for (const FlowResource& resource : network_.resources) least = std::min(least, resource.capacity);
        return least;
    }

    // From a sink to the source along the arcs with most flow left, which is taken off; false when it leads
    // nowhere or in circles.
    bool walk_back(const FlowDemand& demand, int sink, std::vector<double>& rest, std::vector<int>& path) {
        path.clear();
        ++round_;
        for (int v = sink; v != demand.source;) {
            if (seen_[at(v)] == round_) return false;
            seen_[at(v)] = round_;
            int best = -1;
            for (const int a : network_.in[at(v)]) {
                if (rest[at(a)] == 0) continue;  // never had any: what is used up is below 0
                if (best < 0 || rest[at(a)] > rest[at(best)] + 1e-9 ||
                    (rest[at(a)] > rest[at(best)] - 1e-9 &&
                     loads_.price(network_.arcs[at(a)]) < loads_.price(network_.arcs[at(best)])))
                    best = a;
            }
            if (best < 0) return false;
            path.push_back(best);
            v = network_.arcs[at(best)].from;
        }
        for (const int a : path) rest[at(a)] = rest[at(a)] == 1 ? -1e-12 : rest[at(a)] - 1;
        std::reverse(path.begin(), path.end());
        return true;
    }

    // Dijkstra's method at the present prices.
    void cheapest(int source, int sink, std::vector<int>& path) {
        stop_point();
        ++round_;
        open_ = {};
        distance_[at(source)] = 0;
        arrived_[at(source)] = -1;
        seen_[at(source)] = round_;
        open_.push({0, source});
        while (!open_.empty()) {
            const auto [reached, v] = open_.top();
            open_.pop();
            if (reached > distance_[at(v)]) continue;
            if (v == sink) break;
            work_ -= static_cast<std::int64_t>(network_.out[at(v)].size());
            for (const int a : network_.out[at(v)]) {
                const int to = network_.arcs[at(a)].to;
                const double next = reached + loads_.price(network_.arcs[at(a)]);
                if (seen_[at(to)] == round_ && next >= distance_[at(to)]) continue;
                seen_[at(to)] = round_;
                distance_[at(to)] = next;
                arrived_[at(to)] = a;
                open_.push({next, to});
            }
        }
        if (seen_[at(sink)] != round_) throw input_error("a rank cannot reach another by routes of ranks");
        path.clear();
        for (int v = sink; v != source; v = network_.arcs[at(path.back())].from)
            path.push_back(arrived_[at(v)]);
        std::reverse(path.begin(), path.end());
    }

    bool move_from_busy(double limit) {
        return move([&](const std::vector<int>& path) { return busy(path, limit); }, 0);
    }

    // Reroutes the chunks whose path is chosen, one after another, where that lowers the sum of powers;
    // unless a resource would be busier than `most` (0: whatever it is).
    template <typename Chosen>
    bool move(const Chosen& chosen, double most) {
        bool moved = false;
        std::vector<int> path, hops;
        for (std::size_t d = 0; d < network_.demands.size(); ++d) {
            stop_point();
            const FlowDemand& demand = network_.demands[d];
            for (std::size_t i = 0; i < demand.sinks.size() * at(routing_.chunks); ++i) {
                if (work_ <= 0) return moved;
                std::vector<int>& now = routing_.paths[routing_.first[d] + i];
                if (!chosen(now)) continue;
                const double before = -loads_.add(hops_, now, -1);
                cheapest(demand.source, demand.sinks[i / at(routing_.chunks)], path);
                bool better = false;
                // A default route may spread the chunk over ways that are worse than the one that was found.
                for (const bool exact : {false, true}) {
                    if (better || !hops_.along(path, exact, hops) || hops == now) continue;
                    const double after = loads_.add(hops_, hops, 1);
                    better = after < before * (1 - 1e-6) && (most == 0 || !busy(hops, most));
                    if (!better) loads_.add(hops_, hops, -1);
                }
                if (better)
                    std::swap(now, hops);
                else
                    loads_.add(hops_, now, 1);
                moved |= better;
            }
        }
        return moved;
    }

    bool busy(const std::vector<int>& path, double limit) const {
        for (const int h : path) {
            for (const auto& [r, share] : hops_[h].load) {
                if (loads_.use(r) > limit) return true;
            }
        }
        return false;
    }

    using Entry = std::pair<double, int>;

    const FlowNetwork& network_;
    FlowHops& hops_;
    ChunkLoads loads_;
    FlowRouting routing_;
    std::vector<double> distance_;
    std::vector<int> arrived_;        // per vertex: the arc
    std::vector<std::int64_t> seen_;  // per vertex: the round that reached it
    std::int64_t round_ = 0;
    std::int64_t work_;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open_;
};

}  // namespace

FlowRouting route_chunks(const FlowNetwork& network, FlowHops& hops, const ConcurrentFlow& flow,
                         std::int64_t chunks, double enough, std::int64_t& work) {
    FlowRouting best;
    for (const bool rounded : {true, false}) {
        if (rounded && flow.units.empty()) continue;
        const std::int64_t allowed = std::min(work, kMostRoutingWork);
        ChunkRouter router(network, hops, chunks, allowed);
        router.start(flow, rounded);
        router.improve(flow.bound, enough);
        work -= allowed - router.work_left();
        FlowRouting routing = router.take();
        if (best.paths.empty() || routing.seconds_per_byte < best.seconds_per_byte * (1 - 1e-9))
            best = std::move(routing);
        if (best.seconds_per_byte <= flow.bound * (1 + enough)) break;
    }
    return best;
}

void shorten_paths(const FlowNetwork& network, FlowHops& hops, FlowRouting& routing) {
    ChunkRouter router(network, hops, routing.chunks);
    router.resume(std::move(routing));
    router.shorten();
    routing = router.take();
}

}  // namespace baton::synth
