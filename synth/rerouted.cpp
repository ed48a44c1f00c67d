#include <baton/synth/rerouted.hpp>

#include <baton/base/error.hpp>
#include <baton/base/stop.hpp>
#include <baton/synth/depth_bound.hpp>
#include <baton/synth/forest.hpp>
#include <baton/synth/shortest_paths.hpp>
#include <baton/synth/tree_optimum.hpp>
#include <baton/synth/tree_rerouting.hpp>
#include <baton/synth/tree_schedules.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace baton::synth {
namespace {

using Kind = ir::CollectiveKind;

constexpr double kAtTheCut = 0.003, kWorthLessDepth = 0.12;
constexpr std::int64_t kRerouteWork = 60'000'000;

// A forest with what decides among forests.
struct Attempt {
    Forest forest;
    int depth = 0;
    double loss = INFINITY;
};

// The attempts that are worth a schedule: least loss, and less depth at some loss.
struct Attempts {
    Attempt best, shallow;

    void offer(Attempt attempt) {
        if (attempt.loss <= kWorthLessDepth &&
            (shallow.forest.trees.empty() || attempt.depth < shallow.depth ||
             (attempt.depth == shallow.depth && attempt.loss < shallow.loss)))
            shallow = attempt;
        if (attempt.loss < best.loss - kAtTheCut ||
            (attempt.loss < best.loss + kAtTheCut && attempt.depth < best.depth))
            best = std::move(attempt);
    }
};

Attempts attempts_on(const RankGraph& graph, bool turned, const std::vector<int>& roots, double target,
                     int most_depth) {
    Attempts found;
    const std::vector<RankEdge> edges = turned ? graph.turned() : graph.edges();
    std::int64_t work = kRerouteWork;
    for (const int more : {0, 1, 2, 4, 8, 12, -1}) {
        for (const std::int64_t per_root : {1, 2, 3, 4, 6, 8}) {
            if (work <= 0) return found;
            stop_point();
            const Forest start =
                shortest_path_forest_within(most_depth, graph.ranks(), edges, roots, per_root);
            ReroutingOptions options;
            options.target = target;
            options.tolerance = 1e-3;
            options.most_splits = 0;
            options.most_depth = more < 0 ? most_depth : depth_of(start) + more;
            if (most_depth > 0) options.most_depth = std::min(options.most_depth, most_depth);
            options.work = work;
            Rerouted rerouted = reroute(start, graph, turned, options);
            work -= rerouted.work + static_cast<std::int64_t>(edges.size());
            Attempt attempt;
            attempt.loss = rerouted.forest.seconds_per_byte / target - 1;
            attempt.depth = depth_of(rerouted.forest);
            attempt.forest = std::move(rerouted.forest);
            found.offer(std::move(attempt));
        }
        if (found.best.loss < kAtTheCut) break;  // more depth gains nothing
    }
    return found;
}

}  // namespace

std::vector<ReroutedAlgorithm> rerouted(const topologies::Topology& topology,
                                        const ir::Collective& collective, topologies::RoutePolicy policy,
                                        std::uint64_t seed, int most_depth) {
    const Kind kind = collective.kind;
    if (!forest_serves(kind))
        throw input_error(fmt::format("rerouted trees are not made for {}", ir::to_string(kind)));
    if (!collective.groups.empty()) throw input_error("rerouted serves one group of all ranks only");
    if (collective.ranks < 2) throw input_error("one rank alone has no links to balance");
    const TreePhases phases = tree_phases(collective);
    const RankGraph graph = graph_within(topology, collective.ranks, phases, most_depth, policy, seed);
    const auto phase = [&](bool turned) {
        return attempts_on(graph, turned, phases.roots, phase_optimum(topology, collective, turned),
                           most_depth);
    };
    Attempts inward, outward;
    if (phases.in) inward = phase(true);
    if (phases.out) outward = phase(false);
    std::vector<ReroutedAlgorithm> all;
    for (Attempt Attempts::*which : {&Attempts::best, &Attempts::shallow}) {
        const Attempt* const up = phases.in ? &(inward.*which) : nullptr;
        const Attempt* const down = phases.out ? &(outward.*which) : nullptr;
        ReroutedAlgorithm made;
        bool missing = false;
        for (const Attempt* attempt : {up, down}) {
            if (attempt == nullptr) continue;
            missing = missing || attempt->forest.trees.empty();
            made.trees_per_root = std::max(made.trees_per_root, attempt->forest.per_root);
            made.depth = std::max(made.depth, attempt->depth);
            made.loss = std::max(made.loss, attempt->loss);
        }
        if (missing || (!all.empty() && made.depth >= all.front().depth)) continue;
        made.algorithm =
            tree_schedule(collective, up ? &up->forest : nullptr, down ? &down->forest : nullptr);
        made.algorithm.name = fmt::format("rerouted {}", ir::to_string(kind));
        all.push_back(std::move(made));
    }
    return all;
}

}  // namespace baton::synth
