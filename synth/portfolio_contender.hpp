// A candidate in the portfolio: what it does on the machine, estimated and simulated. Internal to the layer.
#pragma once

#include <baton/sim/execute_algorithm.hpp>
#include <baton/synth/synthesize.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::synth {

/// Two simulated runs tell enough about a schedule to guess all others: one without data (its latency), one
/// of the largest size in a single tile.
class Contender {
public:
    /// Works out routes and dependencies. The topology and the options must outlive it; the algorithm is not
    /// kept.
    Contender(const topologies::Topology& topology, const Candidate& candidate,
              const SynthesisOptions& options);

    /// Makes the two runs. `reason` then says which ranks that send cannot reach each other, or nothing.
    void screen();
    /// The run of the largest size.
    void screened(int& tiles, Time& time) const {
        tiles = screened_tiles_;
        time = screened_;
    }
    const std::string& reason() const { return reason_; }

    /// Seconds, by a closed form of a pipeline: latency + load + (the rest of the single tile's time) /
    /// tiles. Load is the time of the busiest link or limit, the rest what waits for other steps.
    double estimate(Bytes size, int tiles) const;
    /// No number of tiles is faster than the busiest link or limit allows.
    double at_least(Bytes size) const { return load_ * static_cast<double>(size.count); }
    /// The number of tiles, of those that are allowed, with the least estimate; of about equal ones the
    /// smallest.
    int estimated_tiles(Bytes size) const;
    /// Whether a number of tiles is tried: messages do not get too small nor simulations too long.
    bool worth_tiling(Bytes size, int tiles) const;
    /// The same with wider limits, for what is already within 15% of its bound (`ratio`: time over bound) and
    /// not yet within 0.8%.
    bool worth_more(Bytes size, int tiles, double ratio, double weight = 0) const;

    /// Simulates; Time::max() when the run did not finish. May be called from several threads at once.
    /// `weight` (optional) receives how many usual operations one of this run took, 1 or more.
    Time run(Bytes size, int tiles, double* weight = nullptr) const;
    /// Of one run: steps times tiles, and more where a step takes more work than usual. `weight`: of another
    /// run of many tiles; 0: what the run of one tile said, in which most flows are under way at once.
    std::int64_t operations(Bytes size, int tiles, double weight = 0) const;
    const std::string& model() const { return model_; }
    const std::vector<std::string>& warnings() const { return prepared_.warnings(); }

private:
    sim::SimulationResult simulate(Bytes size, int tiles) const;
    std::int64_t most_operations(std::int64_t usual) const;
    double weight_of(const sim::SimulationResult& run, Bytes size, int tiles) const;

    const topologies::Topology& topology_;
    const SynthesisOptions& options_;
    sim::PreparedAlgorithm prepared_;
    std::int64_t chunks_;  // chunks_: of a whole buffer
    int screened_tiles_ = 1;
    Time screened_ = Time::max();
    double weight_ = 1;           // of an operation
    double latency_ = 0;          // seconds
    double load_ = 0, rest_ = 0;  // seconds per byte of size
    std::string reason_, model_;
};

}  // namespace baton::synth
