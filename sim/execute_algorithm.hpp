// Runs an Algorithm on a network model: how long a schedule takes on a machine.
#pragma once

#include <baton/base/quantities.hpp>
#include <baton/ir/algorithm.hpp>
#include <baton/sim/network.hpp>
#include <baton/topologies/routes.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

struct SimulationOptions {
    Model model = Model::flow;
    Bytes size{};   ///< as nccl-tests counts: the larger of the send and receive buffer of a rank
    int tiles = 1;  ///< 0: of the powers of two up to 128, the smallest within 0.1% of the best
    topologies::RoutePolicy policy = topologies::RoutePolicy::spread;
    std::uint64_t seed = 0;  ///< for RoutePolicy::ecmp
    bool reductions =
        true;  ///< false: reductions cost nothing even where the machine states a reduction rate
    bool trace = false;
    std::int64_t trace_limit = 1'000'000;  ///< events kept; above it the trace ends early and says so
    std::int64_t operation_limit =
        40'000'000;                            ///< steps times tiles; above it the outcome is budget_exceeded
    std::int64_t work_limit = 20'000'000'000;  ///< visits of the engine and the model; above it the same
    std::int64_t tile_search_limit =
        2'000'000;  ///< with tiles = 0, larger T than this many operations are not tried
};

/// How a run ended. Every run ends in one of these.
enum class Outcome : std::uint8_t { finished, unreachable, budget_exceeded };
std::string_view to_string(Outcome outcome);

/// One tile of one step, as it ran.
struct TraceEvent {
    std::int64_t step = 0;  ///< program position
    std::int32_t tile = 0;
    std::int32_t source = 0, destination = 0;  ///< ranks; switch steps: destination is the switch group
    std::int32_t channel = 0;
    ir::StepOp op = ir::StepOp::send;
    std::int64_t bytes = 0;
    Time start{}, left{}, arrived{}, committed{};  ///< last byte out, last byte in, value in its place
};

struct SimulationResult {
    Outcome outcome = Outcome::finished;
    std::string reason;  ///< unless finished: which ranks, or which limit
    Time time{};         ///< the last commit; zero unless finished
    Bytes size{};
    int tiles = 1;  ///< T that was used or chosen
    Rate algbw{};   ///< size / time
    Rate busbw{};   ///< algbw times the factor of the kind (see bus_factor)
    std::string model_in_words;
    std::int64_t operations = 0, messages = 0, events = 0;
    std::int64_t work = 0;  ///< visits of the engine and the model, as `work_limit` counts them
    std::vector<ResourceUse> links, limits;  ///< by index in the topology
    std::vector<TraceEvent> trace;  ///< by time of start, then program position; empty unless asked for
    std::vector<BusyPeriod> busy_periods;  ///< of links and limits, the same
    bool trace_truncated = false;
};

/// An algorithm bound to a machine: dependencies, lanes and routes worked out once for any number of runs.
///
/// Lanes: one per (source rank, destination rank, channel); steps without a channel are on channel 0. A lane
/// has one step in flight. When it is free it takes, of its steps whose sources are complete, the one with
/// the lowest (tile, program position). It is free again when the last byte has left; the latency does not
/// occupy it. A step without bytes takes the latency all the same. Copies on one rank take no time. Where the
/// machine states a reduction rate, each rank reduces at that rate, one piece after another, after the last
/// byte has arrived; else reducing is free. multicast and switch_reduce cross each link of their routes once
/// and need a switch that can do it.
///
/// The topology must outlive it.
class PreparedAlgorithm {
public:
    /// Throws an input error when the algorithm has more ranks than the topology, and what StepGraph throws.
    PreparedAlgorithm(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                      topologies::RoutePolicy policy = topologies::RoutePolicy::spread,
                      std::uint64_t seed = 0);
    ~PreparedAlgorithm();
    PreparedAlgorithm(PreparedAlgorithm&&) noexcept;

    /// `policy` and `seed` of the options are those of the constructor. Throws an input error for tiles
    /// outside 0..65536 or a negative size, and Stopped when this thread's stop token ends it. Several
    /// threads may run at once.
    SimulationResult run(const SimulationOptions& options) const;
    /// Lets steps that symmetry makes equal run once, where that saves three quarters of them or more, and
    /// only at sizes that chunks divide to within a thousandth. Times stay the same where they divide the
    /// size evenly; elsewhere chunks count as equally long, rounded up (see sim/fold.hpp). Use of links is
    /// then reported for one link of those that carry the same, and traces show one step of each class.
    void fold();
    /// Steps that a run of this size executes.
    std::int64_t steps(Bytes size) const;
    /// What a user should read about the routes.
    const std::vector<std::string>& warnings() const;

    struct Data;

private:
    const Data& data(Bytes size) const;
    std::unique_ptr<Data> data_, folded_;
};

/// Prepares and runs once. The schedule is not verified here.
SimulationResult simulate(const topologies::Topology& topology, const ir::Algorithm& algorithm,
                          const SimulationOptions& options);

}  // namespace baton::sim
