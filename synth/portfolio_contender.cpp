#include <baton/synth/portfolio_contender.hpp>

#include <baton/base/index.hpp>
#include <baton/synth/participants.hpp>

#include <algorithm>
#include <cmath>

namespace baton::synth {
namespace {

constexpr std::int64_t kMostOperations = 2'500'000;  // steps times tiles of one simulation
// Up to so many operations a long pipeline may have kDeepTiles times the usual most tiles.
constexpr std::int64_t kFewOperations = 130'000;
constexpr int kDeepTiles = 8;
// What is near the bound, yet not at it, may have more: filling a deep pipeline is all that it still loses.
constexpr std::int64_t kNearOperations = 5'000'000;
constexpr int kNearTiles = 64;
constexpr double kNear = 1.15, kAtBound = 1.008;
// Above so many ranks there are few candidates (see `make_candidates`): each may have more.
constexpr int kManyRanks = 2048;
constexpr std::int64_t kMoreOperations = 5'000'000;
// Bytes; smaller messages cost more than they gain on any real machine.
constexpr std::int64_t kLeastTile = 4096;
// From so many steps on those that symmetry makes equal run once.
constexpr std::int64_t kFoldedSteps = 20'000;
// Visits of the network model that an operation usually takes at most. Hundreds of flows that all end at
// times of their own take many more: they count as so many operations.
constexpr double kUsualVisits = 300;
constexpr double kWorthTiles = 0.997;  // what twice the tiles must leave of the estimate

}  // namespace

Contender::Contender(const topologies::Topology& topology, const Candidate& candidate,
                     const SynthesisOptions& options)
    : topology_(topology),
      options_(options),
      prepared_(topology, *candidate.algorithm, options.policy, options.seed),
      chunks_(candidate.algorithm->collective.chunks * units_per_buffer(candidate.algorithm->collective)) {
    if (candidate.steps >= kFoldedSteps) prepared_.fold();
}

sim::SimulationResult Contender::simulate(Bytes size, int tiles) const {
    sim::SimulationOptions options;
    options.size = size;
    options.tiles = tiles;
    options.policy = options_.policy;
    options.seed = options_.seed;
    options.operation_limit = std::max(most_operations(kNearOperations), prepared_.steps(size));
    return prepared_.run(options);
}

double Contender::weight_of(const sim::SimulationResult& run, Bytes size, int tiles) const {
    const std::int64_t operations = std::max<std::int64_t>(1, prepared_.steps(size)) * tiles;
    return std::max(1.0, static_cast<double>(run.work) / static_cast<double>(operations) / kUsualVisits);
}

Time Contender::run(Bytes size, int tiles, double* weight) const {
    const sim::SimulationResult result = simulate(size, tiles);
    if (weight != nullptr) *weight = weight_of(result, size, tiles);
    return result.outcome == sim::Outcome::finished ? result.time : Time::max();
}

void Contender::screen() {
    const int tiles = std::max(1, options_.tiles);
    const sim::SimulationResult empty = simulate(Bytes{0}, 1);
    if (empty.outcome != sim::Outcome::finished) {
        reason_ = empty.reason;
        return;
    }
    model_ = empty.model_in_words;
    latency_ = empty.time.seconds();
    const Bytes size = options_.sizes.back();
    if (size.count == 0) screened_ = empty.time;
    if (size.count == 0) return;
    const sim::SimulationResult full = simulate(size, tiles);
    if (full.outcome != sim::Outcome::finished) {
        reason_ = full.reason;
        return;
    }
    screened_ = full.time;
    screened_tiles_ = tiles;
    weight_ = weight_of(full, size, tiles);
    const auto per_byte = [&](double seconds) { return seconds / static_cast<double>(size.count); };
    for (std::size_t l = 0; l < full.links.size(); ++l) {
        const double rate = static_cast<double>(topology_.links[l].capacity().bytes_per_second);
        if (full.links[l].bytes > 0 && rate > 0) load_ = std::max(load_, full.links[l].bytes / rate);
    }
    for (std::size_t l = 0; l < full.limits.size(); ++l) {
        const double rate = static_cast<double>(topology_.limits[l].bandwidth.bytes_per_second);
        if (full.limits[l].bytes > 0 && rate > 0) load_ = std::max(load_, full.limits[l].bytes / rate);
    }
    rest_ = tiles * per_byte(std::max(0.0, full.time.seconds() - latency_ - load_));
    load_ = per_byte(load_);
}

std::int64_t Contender::operations(Bytes size, int tiles, double weight) const {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, prepared_.steps(size)));
    return static_cast<std::int64_t>(std::min(steps * tiles * (weight > 0 ? weight : weight_), 1e18));
}

std::int64_t Contender::most_operations(std::int64_t usual) const {
    return topology_.rank_count() > kManyRanks ? std::max(usual, kMoreOperations) : usual;
}

double Contender::estimate(Bytes size, int tiles) const {
    return latency_ + static_cast<double>(size.count) * (load_ + rest_ / tiles);
}

bool Contender::worth_tiling(Bytes size, int tiles) const {
    const bool few = operations(size, tiles) <= kFewOperations && tiles / kDeepTiles <= options_.most_tiles;
    return (tiles <= options_.most_tiles || few) && size.count / chunks_ / tiles >= kLeastTile &&
           operations(size, tiles) <= most_operations(kMostOperations);
}

bool Contender::worth_more(Bytes size, int tiles, double ratio, double weight) const {
    return ratio > kAtBound && ratio < kNear && tiles / kNearTiles <= options_.most_tiles &&
           size.count / chunks_ / tiles >= kLeastTile &&
           operations(size, tiles, weight) <= most_operations(kNearOperations);
}

int Contender::estimated_tiles(Bytes size) const {
    if (options_.tiles > 0) return options_.tiles;
    int tiles = 1;
    while (worth_tiling(size, tiles * 2) && estimate(size, tiles * 2) < estimate(size, tiles) * kWorthTiles)
        tiles *= 2;
    return tiles;
}

}  // namespace baton::synth
