// The portfolio: simulates candidates and keeps the best per size. The only part of this layer that
// simulates.
#include <baton/base/error.hpp>
#include <baton/base/parallel.hpp>
#include <baton/synth/candidates.hpp>
#include <baton/synth/portfolio_contender.hpp>
#include <baton/synth/synthesize.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

namespace baton::synth {
namespace {

using topologies::Topology;

constexpr int kFinalists = 4;  // simulated at every size; more where they are cheap
// A candidate is passed over when its estimate is this much above the best simulated time: the second number
// where a run takes more than 1/kCheap of what there is for the size.
constexpr double kHopeless = 1.5, kLikely = 1.1;
constexpr std::int64_t kCheap = 32;
constexpr std::int64_t kFewSteps = 200'000;        // screened while others are still made
constexpr std::int64_t kLastOperations = 100'000;  // of all runs after a stop: a tenth of a second
constexpr double kWorthMoreTiles = 0.997;          // what more tiles must leave of the time
constexpr double kWorthNearBound = 0.999;          // the same within 15% of the bound, not yet at it
// Estimates that differ by less count as equal: what is cheaper to simulate comes first, and where that is
// this near the bound already, nothing else is worth a long simulation.
constexpr double kEqualEstimates = 0.005, kAtTheBound = 1.001;

// Tells a person how far the work is, from any thread.
class Telling {
public:
    explicit Telling(const SynthesisOptions& options) : options_(options) {}
    void done(const std::string& what, std::size_t pieces) {
        const std::lock_guard lock(mutex_);
        if (!options_.progress) return;
        ++done_;
        options_.progress(what + best_,
                          pieces > 0 ? static_cast<double>(done_) / static_cast<double>(pieces) : -1);
    }
    void next_stage() {
        const std::lock_guard lock(mutex_);
        done_ = 0;
    }
    /// The best so far at the largest size that is known.
    void best(Bytes size, const std::string& label, Time time, Time bound) {
        const std::lock_guard lock(mutex_);
        if (size < best_size_) return;
        best_size_ = size;
        best_ = fmt::format("; best so far at {}: {} in {}", to_string(size), label, to_string(time));
        if (bound.picoseconds > 0)
            best_ += fmt::format(", +{:.1f}% on the bound", 100 * (time.seconds() / bound.seconds() - 1));
    }

private:
    const SynthesisOptions& options_;
    std::mutex mutex_;
    std::size_t done_ = 0;
    Bytes best_size_{-1};
    std::string best_;
};

// Largest first, then smallest, then what halves the gaps: an early end leaves answers at all scales.
std::vector<std::size_t> spread_out(std::size_t count) {
    std::vector<std::size_t> order;
    std::vector<char> taken(count, 0);
    const auto take = [&](std::size_t i) {
        if (!taken[i]) order.push_back(i);
        taken[i] = 1;
    };
    if (count == 0) return order;
    take(count - 1);
    for (std::size_t pieces = 1; order.size() < count; pieces *= 2) {
        for (std::size_t p = 0; p < pieces; ++p) take(p * (count - 1) / pieces);
    }
    return order;
}

class Portfolio {
public:
    Portfolio(const Topology& topology, const SynthesisOptions& options, Synthesis& result)
        : topology_(topology), options_(options), result_(result), telling_(options) {}

    void run() {
        make();
        enter();
        if (contenders_.empty()) return;
        const std::vector<std::size_t> order = spread_out(options_.sizes.size());
        std::vector<Choice> choices(options_.sizes.size());
        telling_.next_stage();
        parallel_for(order.size(), options_.threads, [&](std::size_t i) {
            const std::size_t s = order[i];
            choices[s] = choose(options_.sizes[s]);
            telling_.done("simulating sizes", order.size());
        });
        result_.stopped_early |= stopped_;
        if (stopped_) fill(choices);
        for (Choice& choice : choices) {
            if (!choice.timings.empty()) result_.choices.push_back(std::move(choice));
        }
        std::set<std::string> warnings;
        for (const auto& contender : contenders_) {
            result_.model = contender->model();
            warnings.insert(contender->warnings().begin(), contender->warnings().end());
        }
        result_.warnings.assign(warnings.begin(), warnings.end());
    }

    /// Whether any synthesizer made something, even if nothing of it could run.
    bool made_any() const { return made_any_; }

private:
    // Which candidates are simulated at all: those of few steps first, until half of `effort` is used up.
    std::vector<char> admitted() const {
        std::vector<std::size_t> order(result_.candidates.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return result_.candidates[a].steps < result_.candidates[b].steps;
        });
        std::vector<char> admitted(order.size(), 0);
        std::int64_t spent = 0;
        for (const std::size_t c : order) {
            spent += 2 * result_.candidates[c].steps;
            admitted[c] = c == order.front() || spent <= options_.effort / 2;
        }
        return admitted;
    }

    // Small candidates are screened at once, so that an early end finds some. With a time limit, half of it
    // is for making, and more where nothing was made by then.
    void make() {
        const StopToken making = options_.stop.child();
        const std::optional<double> left = options_.stop.seconds_left();
        std::atomic<bool> any = false, half_over = false;
        std::optional<StopWatch> half;
        if (left) {
            half.emplace(options_.stop.within(*left / 2), [&] {
                half_over = true;
                if (any) making.request_stop();
            });
        }
        const StopScope scope(making);
        CandidateList list =
            make_candidates(topology_, result_.bound.collective, options_, [&](const Candidate& candidate) {
                any = true;
                if (half_over) making.request_stop();
                if (candidate.steps > kFewSteps) return;
                try {
                    auto contender = std::make_unique<Contender>(topology_, candidate, options_);
                    contender->screen();
                    const std::lock_guard lock(mutex_);
                    early_[candidate.algorithm.get()] = std::move(contender);
                } catch (const Stopped&) {  // `enter` tries again
                }
            });
        result_.candidates = std::move(list.candidates);
        made_any_ = !result_.candidates.empty();
        result_.refusals = std::move(list.refusals);
        result_.stopped_early = list.stopped;
    }

    // Prepares and screens all candidates; those that cannot run leave.
    void enter() {
        std::vector<Candidate>& candidates = result_.candidates;
        std::vector<std::unique_ptr<Contender>> all(candidates.size());
        std::vector<std::string> why(candidates.size(), "the time ended before it was simulated");
        const std::vector<char> admit = admitted();
        parallel_for(all.size(), options_.threads, [&](std::size_t c) {
            if (!admit[c]) {
                why[c] =
                    fmt::format("{} steps are more than is simulated beside the others; choose it by name",
                                candidates[c].steps);
                return;
            }
            try {
                std::unique_ptr<Contender> contender;
                const auto early = early_.find(candidates[c].algorithm.get());
                if (early != early_.end()) {
                    contender = std::move(early->second);
                } else {
                    contender = std::make_unique<Contender>(topology_, candidates[c], options_);
                    contender->screen();
                }
                if (contender->reason().empty())
                    all[c] = std::move(contender);
                else
                    why[c] = contender->reason();
            } catch (const Stopped&) {
                stopped_ = true;
            }
            telling_.done("screening candidates", all.size());
        });
        if (stopped_ && std::none_of(all.begin(), all.end(), [](const auto& one) { return one != nullptr; }))
            enter_last(all);
        std::vector<Candidate> usable;
        for (std::size_t c = 0; c < all.size(); ++c) {
            if (all[c]) {
                usable.push_back(std::move(candidates[c]));
                contenders_.push_back(std::move(all[c]));
            } else {
                result_.refusals.push_back({candidates[c].label(), why[c]});
            }
        }
        candidates = std::move(usable);
        result_.stopped_early |= stopped_;
    }

    // The time ended with candidates, none of them screened: the smallest one is, if that is quick.
    void enter_last(std::vector<std::unique_ptr<Contender>>& all) const {
        const StopScope unlimited{StopToken()};
        const std::vector<Candidate>& candidates = result_.candidates;
        const auto least =
            std::min_element(candidates.begin(), candidates.end(),
                             [](const Candidate& a, const Candidate& b) { return a.steps < b.steps; });
        if (least == candidates.end() || least->steps > kFewSteps) return;
        auto contender = std::make_unique<Contender>(topology_, *least, options_);
        contender->screen();
        if (contender->reason().empty())
            all[static_cast<std::size_t>(least - candidates.begin())] = std::move(contender);
    }

    // After the stop nothing asks for more time, yet each size gets one run if anything was verified: of the
    // likely best contender that is quick, else of the quickest.
    void fill(std::vector<Choice>& choices) {
        const StopScope unlimited{StopToken()};
        const auto missing = std::count_if(choices.begin(), choices.end(),
                                           [](const Choice& choice) { return choice.timings.empty(); });
        for (Choice& choice : choices) {
            if (!choice.timings.empty()) continue;
            const auto operations = [&](std::size_t c) {
                return contenders_[c]->operations(choice.size, std::max(1, options_.tiles));
            };
            std::size_t taken = 0;
            const auto rank = [&](std::size_t c) {
                const bool quick = operations(c) <= kLastOperations / missing;
                return std::pair(!quick,
                                 quick ? contenders_[c]->estimate(choice.size, std::max(1, options_.tiles))
                                       : static_cast<double>(operations(c)));
            };
            for (std::size_t c = 1; c < contenders_.size(); ++c) {
                if (rank(c) < rank(taken)) taken = c;
            }
            Timing timing{static_cast<int>(taken), std::max(1, options_.tiles), {}};
            timing.time = contenders_[taken]->run(choice.size, timing.tiles);
            if (timing.time < Time::max()) choice.timings.push_back(timing);
        }
    }

    // Climbs over powers of two from the estimated number of tiles while it gets better and `effort` lasts.
    // `best` has the best known at any time.
    void climb(const Contender& contender, Bytes size, std::int64_t& effort, Timing& best) const {
        double weight = 0;  // of an operation, as the last run says
        const auto better = [&](int tiles, double worth) {
            effort -= contender.operations(size, tiles, weight);
            const Time time = contender.run(size, tiles, &weight);
            const bool taken = best.tiles == tiles || time.seconds() < best.time.seconds() * worth;
            if (taken) best.tiles = tiles, best.time = time;
            return taken;
        };
        const int start = contender.estimated_tiles(size);
        if (best.tiles != start || best.time == Time::max()) {
            best.tiles = start;
            better(start, 1);
        }
        if (options_.tiles > 0) return;
        const double bound = result_.bound.at(size).seconds();
        const auto affordable = [&](int tiles) {
            const double ratio = best.time.seconds() / std::max(bound, 1e-12);
            return (contender.worth_tiling(size, tiles) ||
                    contender.worth_more(size, tiles, ratio, weight)) &&
                   effort >= contender.operations(size, tiles, weight);
        };
        const auto worth = [&](int tiles) {
            const double ratio = best.time.seconds() / std::max(bound, 1e-12);
            return contender.worth_more(size, tiles, ratio, weight) ? kWorthNearBound : kWorthMoreTiles;
        };
        while (affordable(best.tiles * 2) && better(best.tiles * 2, worth(best.tiles * 2))) {
        }
        // Fewer tiles are taken when they cost next to nothing.
        while (best.tiles <= start && best.tiles > 1 &&
               effort >= contender.operations(size, best.tiles / 2) &&
               better(best.tiles / 2, 1 / kWorthMoreTiles)) {
        }
    }

    // Effort for one size: larger ones are worth more tiles.
    std::int64_t share_of(Bytes size) const {
        const auto place = std::lower_bound(options_.sizes.begin(), options_.sizes.end(), size);
        const std::int64_t rank = place - options_.sizes.begin() + 1, count = std::ssize(options_.sizes);
        return 2 * options_.effort / (count * (count + 1)) * rank;
    }

    // Estimate and number of each contender, the most promising first.
    std::vector<std::pair<double, std::size_t>> by_promise(Bytes size) const {
        std::vector<std::pair<double, std::size_t>> order;
        std::vector<std::int64_t> cost;
        double least = INFINITY;
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            const Contender& contender = *contenders_[c];
            const int tiles = contender.estimated_tiles(size);
            order.push_back({contender.estimate(size, tiles), c});
            cost.push_back(contender.operations(size, tiles));
            least = std::min(least, order.back().first);
        }
        const auto grade = [&](double estimate) {
            return std::floor((estimate / std::max(least, 1e-12) - 1) / kEqualEstimates);
        };
        std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
            const double first = grade(a.first), second = grade(b.first);
            return first != second ? first < second : cost[a.second] < cost[b.second];
        });
        return order;
    }

    // The best candidates at one size, by simulation; what is known when the time ends.
    Choice choose(Bytes size) {
        Choice choice;
        choice.size = size;
        choice.bound = result_.bound.at(size);
        const std::vector<std::pair<double, std::size_t>> order = by_promise(size);
        std::vector<Timing> timings(contenders_.size());
        for (std::size_t c = 0; c < contenders_.size(); ++c) {
            timings[c].candidate = static_cast<int>(c);
            timings[c].time = Time::max();
            if (size == options_.sizes.back()) contenders_[c]->screened(timings[c].tiles, timings[c].time);
        }
        const std::int64_t share = share_of(size);
        std::int64_t effort = share;
        double best = INFINITY;
        try {
            for (std::size_t i = 0; i < order.size(); ++i) {
                if (i >= kFinalists && effort < share / 2) break;
                const auto [estimate, c] = order[i];
                const bool cheap =
                    contenders_[c]->operations(size, contenders_[c]->estimated_tiles(size)) <= share / kCheap;
                if (i > 0 && (estimate > best * (cheap ? kHopeless : kLikely) ||
                              contenders_[c]->at_least(size) > best))
                    continue;
                if (!cheap && best <= choice.bound.seconds() * kAtTheBound) continue;
                climb(*contenders_[c], size, effort, timings[c]);
                if (timings[c].time.seconds() >= best) continue;
                best = timings[c].time.seconds();
                telling_.best(size, result_.candidates[c].label(), timings[c].time, choice.bound);
            }
        } catch (const Stopped&) {
            stopped_ = true;
        }
        for (const Timing& timing : timings) {
            if (timing.time < Time::max()) choice.timings.push_back(timing);
        }
        std::stable_sort(choice.timings.begin(), choice.timings.end(),
                         [](const Timing& a, const Timing& b) { return a.time < b.time; });
        return choice;
    }

    const Topology& topology_;
    const SynthesisOptions& options_;
    Synthesis& result_;
    Telling telling_;
    std::vector<std::unique_ptr<Contender>> contenders_;
    std::mutex mutex_;
    std::map<const ir::Algorithm*, std::unique_ptr<Contender>> early_;  // guarded while candidates are made
    std::atomic<bool> stopped_ = false;
    bool made_any_ = false;
};

Error nothing_serves(const Synthesis& result, const ir::Collective& collective,
                     const SynthesisOptions& options, bool made) {
    // One reason keeps the line readable; each synthesizer asked for by name tells its own.
    const bool any = options.algorithm == "auto";
    std::string what =
        any ? fmt::format("no algorithm serves {} on this topology", ir::to_string(collective.kind))
            : fmt::format("{} does not serve {} on this topology", options.algorithm,
                          ir::to_string(collective.kind));
    if (!result.refusals.empty()) {
        // What was made and could not run tells more than what is not made for the kind; it stands last.
        const Refusal& one = made ? result.refusals.back() : result.refusals.front();
        what += any ? fmt::format(" ({}: {})", one.name, one.why) : fmt::format(" ({})", one.why);
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
    collective.check();
    std::int64_t members = 0;
    for (int g = 0; g < collective.group_count(); ++g) members += collective.group_size(g);
    if (members > kMostMembers)
        throw input_error(
            fmt::format("schedules are made for up to {} ranks, not for {}", kMostMembers, members),
            topology.name, "take fewer hosts or a --group; the bound is there for more");
    const StopScope scope(options.stop);
    Synthesis result;
    bool made = false;
    try {
        stop_point();
        result.bound = bound(topology, collective);
        Portfolio portfolio(topology, options, result);
        portfolio.run();
        made = portfolio.made_any();
    } catch (const Stopped&) {
        result.stopped_early = true;
    }
    if (result.choices.empty() && result.stopped_early)
        throw check_error("stopped before any schedule was verified and simulated", {}, "give it more time");
    if (result.choices.empty()) throw nothing_serves(result, collective, options, made);
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
