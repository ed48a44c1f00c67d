// The portfolio: simulates candidates and keeps the best per size. The only part of this layer that
// simulates.
#include <baton/base/error.hpp>
#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/participants.hpp>
#include <baton/synth/synthesize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

namespace baton::synth {
namespace {

using topologies::Topology;

constexpr int kFinalists = 4;                        // simulated at every size
constexpr std::size_t kProbes = 5;                   // sizes at which all candidates are screened
constexpr std::int64_t kMostOperations = 1'000'000;  // steps times tiles of one simulation
// Up to so many operations a long pipeline may have kDeepTiles times the usual most tiles.
constexpr std::int64_t kFewOperations = 130'000;
constexpr int kDeepTiles = 8;
constexpr std::int64_t kLeastTile =
    4096;  // bytes; smaller messages cost more than they gain on any real machine
constexpr double kWorthMoreTiles = 0.997;  // what more tiles must leave of the time

// One candidate on the machine, with everything simulated so far.
class Entrant {
public:
    Entrant(const Topology& topology, const Candidate& candidate, const SynthesisOptions& options)
        : prepared_(topology, *candidate.algorithm, options.policy, options.seed),
          options_(options),
          steps_(candidate.steps),
          chunks_(candidate.algorithm->collective.chunks *
                  units_per_buffer(candidate.algorithm->collective)) {}

    struct Point {
        int tiles = 1;
        Time time = Time::max();
    };

    /// Time with a number of tiles; Time::max() when the run did not finish.
    Time run(Bytes size, int tiles) {
        auto& known = times_[size.count];
        if (const auto found = known.find(tiles); found != known.end()) return found->second;
        sim::SimulationOptions sim_options;
        sim_options.size = size;
        sim_options.tiles = tiles;
        sim_options.policy = options_.policy;
        sim_options.seed = options_.seed;
        sim_options.operation_limit = std::max(kMostOperations, steps_);
        const sim::SimulationResult result = prepared_.run(sim_options);
        model = result.model_in_words;
        if (result.outcome == sim::Outcome::unreachable) reason = result.reason;
        return known[tiles] = result.outcome == sim::Outcome::finished ? result.time : Time::max();
    }

    /// The best number of tiles among powers of two, climbing from `start` while it gets better.
    Point climb(Bytes size, int start) {
        if (options_.tiles > 0) return {options_.tiles, run(size, options_.tiles)};
        while (start > 1 && !worth_tiling(size, start)) start /= 2;
        Point best{start, run(size, start)};
        bool moved = false;
        while (worth_tiling(size, best.tiles * 2)) {
            const Time time = run(size, best.tiles * 2);
            if (time.seconds() >= best.time.seconds() * kWorthMoreTiles) break;
            best = {best.tiles * 2, time};
            moved = true;
        }
        while (!moved && best.tiles > 1) {
            const Time time = run(size, best.tiles / 2);
            if (time.seconds() * kWorthMoreTiles > best.time.seconds()) break;
            best = {best.tiles / 2, time};
        }
        return chosen_[size.count] = best;
    }

    /// Best known point at a size.
    Point best_at(Bytes size) const {
        if (const auto found = chosen_.find(size.count); found != chosen_.end()) return found->second;
        Point best;
        if (const auto found = times_.find(size.count); found != times_.end()) {
            for (const auto& [tiles, time] : found->second) {
                if (time < best.time) best = {tiles, time};
            }
        }
        return best;
    }

    /// Time and tiles between the sizes that were simulated, by interpolation in logarithms.
    std::pair<double, int> guess(Bytes size) const {
        auto above = times_.lower_bound(size.count);
        if (above == times_.end()) --above;
        auto below = above;
        if (above->first > size.count && above != times_.begin()) --below;
        const Point low = best_at(Bytes{below->first}), high = best_at(Bytes{above->first});
        if (low.time == Time::max() || high.time == Time::max()) return {INFINITY, 1};
        const auto log_of = [](std::int64_t value) {
            return std::log2(static_cast<double>(std::max<std::int64_t>(1, value)));
        };
        const double width = log_of(above->first) - log_of(below->first);
        const double share = width > 0 ? (log_of(size.count) - log_of(below->first)) / width : 0;
        const double time =
            log_of(low.time.picoseconds) * (1 - share) + log_of(high.time.picoseconds) * share;
        const double tiles = log_of(low.tiles) * (1 - share) + log_of(high.tiles) * share;
        return {time, 1 << static_cast<int>(std::lround(tiles))};
    }

    bool reachable() const { return reason.empty(); }
    const std::vector<std::string>& warnings() const { return prepared_.warnings(); }
    std::string model, reason;

private:
    bool worth_tiling(Bytes size, int tiles) const {
        const bool few = steps_ * tiles <= kFewOperations && tiles / kDeepTiles <= options_.most_tiles;
        return (tiles <= options_.most_tiles || few) && size.count / chunks_ / tiles >= kLeastTile &&
               steps_ * tiles <= kMostOperations;
    }

    sim::PreparedAlgorithm prepared_;
    const SynthesisOptions& options_;
    std::int64_t steps_, chunks_;                        // chunks_: of a whole buffer
    std::map<std::int64_t, std::map<int, Time>> times_;  // by size, then tiles
    std::map<std::int64_t, Point> chosen_;               // by size: where a climb ended
};

class Portfolio {
public:
    Portfolio(const Topology& topology, const SynthesisOptions& options, Synthesis& result)
        : options_(options), result_(result), start_(std::chrono::steady_clock::now()) {
        std::vector<Candidate> usable;
        for (Candidate& candidate : result.candidates) {
            auto entrant = std::make_unique<Entrant>(topology, candidate, options);
            // One run of the smallest size shows what is out of reach.
            entrant->run(options.sizes.front(), options.tiles > 0 ? options.tiles : 1);
            if (!entrant->reachable()) {
                result.refusals.push_back({candidate.label(), entrant->reason});
                continue;
            }
            usable.push_back(std::move(candidate));
            entrants_.push_back(std::move(entrant));
        }
        result.candidates = std::move(usable);
    }

    void run() {
        if (entrants_.empty()) return;
        screen();
        for (std::size_t s = 0; s < options_.sizes.size(); ++s) {
            progress(fmt::format("simulating {}", to_string(options_.sizes[s])),
                     0.4 + 0.6 * static_cast<double>(s) / static_cast<double>(options_.sizes.size()));
            choose(options_.sizes[s]);
        }
        std::set<std::string> warnings;
        for (const auto& entrant : entrants_) {
            if (!entrant->model.empty()) result_.model = entrant->model;
            warnings.insert(entrant->warnings().begin(), entrant->warnings().end());
        }
        result_.warnings.assign(warnings.begin(), warnings.end());
    }

private:
    bool time_left() {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
        if (spent.count() > options_.seconds || options_.stop.stop_requested()) result_.out_of_time = true;
        return !result_.out_of_time;
    }
    void progress(const std::string& stage, double fraction) const {
        if (options_.progress) options_.progress(stage, fraction);
    }

    std::vector<Bytes> probes() const {
        const std::vector<Bytes>& sizes = options_.sizes;
        std::vector<Bytes> chosen;
        const std::size_t count = std::min(kProbes, sizes.size());
        for (std::size_t i = 0; i < count; ++i)
            chosen.push_back(sizes[count == 1 ? 0 : i * (sizes.size() - 1) / (count - 1)]);
        return chosen;
    }

    // Every candidate at a few sizes; candidates far behind at one size are not tiled there.
    void screen() {
        const std::vector<Bytes> sizes = probes();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            Time best = Time::max();
            for (std::size_t c = 0; c < entrants_.size(); ++c) {
                if (!time_left() && i > 0) return;
                progress(
                    fmt::format("screening {} at {}", result_.candidates[c].label(), to_string(sizes[i])),
                    0.4 * static_cast<double>(i * entrants_.size() + c) /
                        static_cast<double>(sizes.size() * entrants_.size()));
                Entrant& entrant = *entrants_[c];
                const int start = i == 0 || options_.tiles > 0 ? std::max(1, options_.tiles)
                                                               : entrant.best_at(sizes[i - 1]).tiles;
                const Time untiled = entrant.run(sizes[i], start);
                // Tiling makes pipelines of trees and chains: it can win a factor of their depth.
                const Time time =
                    untiled == Time::max() || !time_left() ? untiled : entrant.climb(sizes[i], start).time;
                best = std::min(best, time);
            }
        }
    }

    void choose(Bytes size) {
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t c = 0; c < entrants_.size(); ++c)
            order.push_back({entrants_[c]->guess(size).first, c});
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        Choice choice;
        choice.size = size;
        choice.bound = result_.bound.at(size);
        for (std::size_t i = 0; i < order.size(); ++i) {
            const std::size_t c = order[i].second;
            Entrant& entrant = *entrants_[c];
            const int start = entrant.guess(size).second;
            Entrant::Point point = entrant.best_at(size);
            if (i < kFinalists && std::isfinite(order[i].first) && time_left())
                point = entrant.climb(size, start);
            if (point.time < Time::max())
                choice.timings.push_back({static_cast<int>(c), point.tiles, point.time});
        }
        std::stable_sort(choice.timings.begin(), choice.timings.end(),
                         [](const Timing& a, const Timing& b) { return a.time < b.time; });
        if (!choice.timings.empty()) result_.choices.push_back(std::move(choice));
    }

    const SynthesisOptions& options_;
    Synthesis& result_;
    std::vector<std::unique_ptr<Entrant>> entrants_;
    std::chrono::steady_clock::time_point start_;
};

Error nothing_serves(const Synthesis& result, const ir::Collective& collective,
                     const SynthesisOptions& options) {
    // One reason keeps the line readable; each synthesizer asked for by name tells its own.
    const bool any = options.algorithm == "auto";
    std::string what =
        any ? fmt::format("no algorithm serves {} on this topology", ir::to_string(collective.kind))
            : fmt::format("{} does not serve {} on this topology", options.algorithm,
                          ir::to_string(collective.kind));
    if (!result.refusals.empty()) {
        const Refusal& first = result.refusals.front();
        what += any ? fmt::format(" ({}: {})", first.name, first.why) : fmt::format(" ({})", first.why);
    }
    return input_error(what, {}, any ? "--algorithm NAME says why another does not" : "try --algorithm auto");
}

}  // namespace

Synthesis synthesize(const Topology& topology, const ir::Collective& collective,
                     const SynthesisOptions& options) {
    if (options.sizes.empty()) throw input_error("no sizes are given", "--sizes");
    for (std::size_t i = 0; i < options.sizes.size(); ++i) {
        if (options.sizes[i].count < 0 || (i > 0 && options.sizes[i] <= options.sizes[i - 1]))
            throw input_error("sizes must be ascending", "--sizes");
    }
    if (options.tiles < 0 || options.tiles > 65536)
        throw input_error(fmt::format("{} tiles are out of range", options.tiles), "--tiles",
                          "use 0 to 65536");
    const StopScope scope(options.stop);
    Synthesis result;
    result.bound = bound(topology, collective);
    if (options.progress) options.progress("making candidates", 0);
    CandidateList list = make_candidates(topology, collective, options);
    result.candidates = std::move(list.candidates);
    result.refusals = std::move(list.refusals);
    result.out_of_time = list.stopped;
    Portfolio(topology, options, result).run();
    if (result.choices.empty()) throw nothing_serves(result, collective, options);
    return result;
}

ir::PlanSet Synthesis::plans(const Topology& topology,
                             const std::function<std::string(const Candidate&)>& schedule_file) const {
    ir::PlanSet set;
    const ir::Collective& collective = bound.collective;
    set.name = fmt::format("{} on {}", ir::to_string(collective.kind),
                           topology.name.empty() ? "a topology" : topology.name);
    set.topology_name = topology.name;
    set.topology_hash = topology.hash();
    set.ranks = collective.ranks;
    set.groups = collective.groups;
    set.model = "simulated: " + model;
    std::vector<std::variant<std::shared_ptr<const ir::Schedule>, std::string>> schedules(candidates.size());
    std::set<std::size_t> made;
    for (const Choice& choice : choices) {
        const Timing& best = choice.best();
        const auto c = static_cast<std::size_t>(best.candidate);
        if (made.insert(c).second) {
            const std::string file = schedule_file ? schedule_file(candidates[c]) : std::string();
            if (file.empty())
                schedules[c] = std::make_shared<const ir::Schedule>(*candidates[c].algorithm);
            else
                schedules[c] = file;
        }
        if (!set.plans.empty() && set.plans.back().tiles == best.tiles &&
            set.plans.back().schedule == schedules[c])
            continue;
        ir::Plan plan;
        plan.id = fmt::format("{}-{}", set.plans.size(), candidates[c].name);
        plan.kind = collective.kind;
        if (ir::has_root(collective.kind)) plan.root = collective.root;
        plan.from = set.plans.empty() ? Bytes{0} : choice.size;
        plan.schedule = schedules[c];
        plan.tiles = best.tiles;
        if (plan.from == choice.size) {
            plan.time = best.time;
            plan.bound = choice.bound;
        }
        if (!set.plans.empty()) set.plans.back().below = choice.size;
        set.plans.push_back(std::move(plan));
    }
    set.check();
    return set;
}

}  // namespace baton::synth
