// One run: events, lanes, and the order that the step graph asks for.
#include <baton/sim/execute_algorithm.hpp>

#include <baton/base/error.hpp>
#include <baton/base/index.hpp>
#include <baton/base/stop.hpp>
#include <baton/sim/event_queue.hpp>
#include <baton/sim/prepared_algorithm.hpp>
#include <baton/sim/step_bytes.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace baton::sim {
namespace {

/// What happens to an operation (a tile of a step); the low bits of an event's id.
enum class Happens : std::uint8_t { left = 0, arrived = 1, reduced = 2 };

constexpr std::int64_t kWorkBetweenStops = 10'000;

class Execution {
public:
    Execution(const PreparedAlgorithm::Data& prepared, const SimulationOptions& options, int tiles)
        : prepared_(prepared),
          graph_(prepared.graph),
          options_(options),
          tiles_(tiles),
          steps_(graph_.size()),
          operations_(steps_ * tiles),
          bytes_(prepared.collective, shard_bytes(prepared.collective, options.size), tiles, prepared.even),
          network_(make_network(options.model, *prepared.topology, queue_,
                                options.trace ? options.trace_limit : 0)),
          reduction_(options.reductions ? prepared.topology->machine.reduction.value() * 1e-12 : 0) {}

    SimulationResult run() {
        SimulationResult result;
        result.size = options_.size;
        result.tiles = tiles_;
        result.model_in_words = words();
        if (!prepared_.unreachable.empty())
            return ended(std::move(result), Outcome::unreachable, prepared_.unreachable);
        if (!graph_.refused().empty())
            return ended(std::move(result), Outcome::budget_exceeded, graph_.refused());
        if (operations_ > options_.operation_limit)
            return ended(std::move(result), Outcome::budget_exceeded,
                         fmt::format("{} steps in {} tiles are more than the limit of {} operations", steps_,
                                     tiles_, options_.operation_limit));
        begin();
        std::int64_t next_stop = 0;
        while (advance()) {
            if (const std::int64_t work = events_ + network_->work(); work > next_stop) {
                stop_point();
                next_stop = work + kWorkBetweenStops;
            }
            if (events_ + network_->work() > options_.work_limit)
                return ended(std::move(result), Outcome::budget_exceeded,
                             fmt::format("more work than the limit of {}, at {} of simulated time",
                                         options_.work_limit, to_string(now_)));
        }
        if (committed_ < operations_)
            return ended(std::move(result), Outcome::budget_exceeded,
                         "the schedule takes more than 106 days");
        return finish(std::move(result));
    }

private:
    static SimulationResult ended(SimulationResult result, Outcome outcome, std::string reason) {
        result.outcome = outcome;
        result.reason = std::move(reason);
        return result;
    }

    std::int64_t step_of(std::int64_t operation) const { return operation % steps_; }
    // Operations are numbered by (tile, program position), the order in which a lane takes them.
    std::int64_t same_tile(std::int64_t operation, std::int64_t step) const {
        return operation - operation % steps_ + step;
    }
    static std::uint64_t event(std::int64_t operation, Happens what) {
        return static_cast<std::uint64_t>(operation) << 2 | static_cast<std::uint64_t>(what);
    }
    std::int64_t bytes_of(std::int64_t operation) const {
        return bytes_(graph_.runs(step_of(operation)), operation / steps_);
    }

    void begin() {
        start_waits_.resize(at(operations_));
        commit_waits_.resize(at(operations_));
        lane_ready_.resize(at(prepared_.lanes));
        lane_takes_.assign(at(prepared_.lanes), -1);
        lane_sends_.assign(at(prepared_.lanes), 0);
        lane_listed_.assign(at(prepared_.lanes), 0);
        if (reduction_ > 0) reducing_until_.resize(at(prepared_.collective.ranks));
        if (options_.trace) {
            traced_ = std::min(operations_, options_.trace_limit);
            trace_index_.assign(at(operations_), -1);
        }
        for (std::int64_t operation = 0; operation < operations_; ++operation) {
            const StepNode& step = graph_.step(step_of(operation));
            start_waits_[at(operation)] = step.start_waits;
            commit_waits_[at(operation)] = step.commit_waits + 1;  // one for its own arrival
        }
        for (std::int64_t operation = 0; operation < operations_; ++operation) {
            if (start_waits_[at(operation)] == 0) ready(operation);
        }
        start_lanes();
        network_->settle(now_);
    }

    /// Everything that happens at the next point of time; false when nothing is left.
    bool advance() {
        if (queue_.empty()) return false;
        now_ = Time{queue_.top().picoseconds};
        // Zero latencies and empty steps make further events of the same time.
        while (!queue_.empty() && queue_.top().picoseconds == now_.picoseconds) {
            while (!queue_.empty() && queue_.top().picoseconds == now_.picoseconds) happen(queue_.pop());
            start_lanes();
        }
        network_->settle(now_);
        return true;
    }

    void happen(const Event& what) {
        ++events_;
        const auto operation = static_cast<std::int64_t>(what.id >> 2);
        switch (static_cast<Happens>(what.id & 3)) {
            case Happens::left: return left(operation);
            case Happens::arrived: return arrived(operation);
            case Happens::reduced: return commit(operation);
        }
    }

    void ready(std::int64_t operation) {
        const std::int32_t lane = prepared_.lane_of[at(step_of(operation))];
        if (lane < 0) {
            trace_start(operation, 0);
            queue_.push(now_, event(operation, Happens::left));
            return;
        }
        std::vector<std::int64_t>& waiting = lane_ready_[at(lane)];
        waiting.push_back(operation);
        std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
        list(lane);
    }

    void list(std::int32_t lane) {
        if (lane_takes_[at(lane)] >= 0 || lane_listed_[at(lane)]) return;
        lane_listed_[at(lane)] = 1;
        listed_.push_back(lane);
    }

    /// Free lanes take their next steps, once everything that becomes ready at this time is known.
    void start_lanes() {
        for (const std::int32_t lane : listed_) {
            lane_listed_[at(lane)] = 0;
            std::vector<std::int64_t>& waiting = lane_ready_[at(lane)];
            if (waiting.empty()) continue;
            std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
            const std::int64_t operation = waiting.back();
            waiting.pop_back();
            lane_takes_[at(lane)] = operation;
            const Path& path = prepared_.paths[at(prepared_.path_of[at(step_of(operation))])];
            const std::int64_t bytes = bytes_of(operation);
            trace_start(operation, bytes);
            ++messages_;
            lane_sends_[at(lane)] = bytes > 0 && !path.uses.empty();
            if (!lane_sends_[at(lane)]) {
                queue_.push(now_, event(operation, Happens::left));
            } else {
                network_->start(lane, path, bytes, event(operation, Happens::left), now_);
            }
        }
        listed_.clear();
    }

    void left(std::int64_t operation) {
        const std::int64_t step = step_of(operation);
        const std::int32_t lane = prepared_.lane_of[at(step)];
        Time latency{};
        if (lane >= 0) {
            if (lane_takes_[at(lane)] != operation) return;  // an event out of date
            const Path& path = prepared_.paths[at(prepared_.path_of[at(step)])];
            if (lane_sends_[at(lane)] && !network_->left(lane, now_)) return;
            latency = path.latency;
            lane_takes_[at(lane)] = -1;
            list(lane);
        }
        if (TraceEvent* traced = trace_of(operation)) traced->left = now_;
        for (const Successor& next : graph_.successors(step)) {
            if (next.wait == Wait::commit_after_left) release_commit(same_tile(operation, next.step));
        }
        queue_.push(now_ + latency, event(operation, Happens::arrived));
    }

    void arrived(std::int64_t operation) {
        if (TraceEvent* traced = trace_of(operation)) traced->arrived = now_;
        release_commit(operation);
    }

    void release_commit(std::int64_t operation) {
        if (--commit_waits_[at(operation)] > 0) return;
        const StepNode& step = graph_.step(step_of(operation));
        const bool reduces = step.op == ir::StepOp::reduce || step.op == ir::StepOp::send_reduce;
        const std::int64_t bytes = reduction_ > 0 && reduces ? bytes_of(operation) : 0;
        if (bytes == 0) return commit_soon(operation);
        Time& busy = reducing_until_[at(step.destination)];
        busy = std::max(busy, now_) + Time::from_seconds(static_cast<double>(bytes) / reduction_ * 1e-12);
        queue_.push(busy, event(operation, Happens::reduced));
    }

    // Commits follow one another in chains of any length: not by recursion.
    void commit_soon(std::int64_t operation) {
        committing_.push_back(operation);
        if (committing_.size() > 1) return;
        for (std::size_t next = 0; next < committing_.size(); ++next) commit(committing_[next]);
        committing_.clear();
    }

    void commit(std::int64_t operation) {
        ++committed_;
        last_commit_ = now_;
        if (TraceEvent* traced = trace_of(operation)) traced->committed = now_;
        for (const Successor& next : graph_.successors(step_of(operation))) {
            const std::int64_t waiting = same_tile(operation, next.step);
            if (next.wait == Wait::start_after_commit) {
                if (--start_waits_[at(waiting)] == 0) ready(waiting);
            } else if (next.wait == Wait::commit_after_commit) {
                release_commit(waiting);
            }
        }
    }

    // ---- results

    TraceEvent* trace_of(std::int64_t operation) {
        if (!options_.trace || trace_index_[at(operation)] < 0) return nullptr;
        return &trace_[at(trace_index_[at(operation)])];
    }
    void trace_start(std::int64_t operation, std::int64_t bytes) {
        if (!options_.trace || static_cast<std::int64_t>(trace_.size()) >= traced_) return;
        const std::int64_t s = step_of(operation);
        const StepNode& step = graph_.step(s);
        trace_index_[at(operation)] = static_cast<std::int64_t>(trace_.size());
        trace_.push_back({s, static_cast<std::int32_t>(operation / steps_), step.source, step.destination,
                          step.channel, step.op, prepared_.lane_of[at(s)] >= 0 ? bytes : bytes_of(operation),
                          now_, now_, now_, now_});
    }

    SimulationResult finish(SimulationResult result) {
        result.time = last_commit_;
        result.operations = operations_;
        result.messages = messages_;
        result.events = events_;
        result.work = events_ + network_->work();
        if (result.time.picoseconds > 0) {
            const double rate = static_cast<double>(options_.size.count) / result.time.seconds();
            const auto whole = [](double value) {
                return Rate{value < 9e18 ? static_cast<std::int64_t>(value) : INT64_MAX};
            };
            result.algbw = whole(rate);
            result.busbw = whole(rate * bus_factor(prepared_.collective));
        }
        const auto links = static_cast<std::ptrdiff_t>(prepared_.topology->links.size());
        const std::vector<ResourceUse>& uses = network_->uses();
        result.links.assign(uses.begin(), uses.begin() + links);
        result.limits.assign(uses.begin() + links, uses.end());
        result.trace_truncated = options_.trace && traced_ < operations_;
        result.trace = std::move(trace_);
        if (options_.trace) result.busy_periods = network_->busy_periods();
        return result;
    }

    std::string words() const {
        std::string text = network_->in_words() +
                           "; one message in flight per (source, destination, channel), lowest tile and "
                           "program position first; " +
                           prepared_.policy_in_words;
        text += reduction_ > 0 ? fmt::format("; each rank reduces at {}, one piece after another",
                                             to_string(prepared_.topology->machine.reduction))
                               : "; reductions cost no time";
        return text +
               "; copies on one rank, launch and per-step overheads cost no time; slots for early messages "
               "are unlimited";
    }

    const PreparedAlgorithm::Data& prepared_;
    const StepGraph& graph_;
    const SimulationOptions& options_;
    const std::int64_t tiles_, steps_, operations_;
    StepBytes bytes_;
    EventQueue queue_;
    std::unique_ptr<Network> network_;
    double reduction_;  // bytes per picosecond; 0 = free
    Time now_{}, last_commit_{};
    std::int64_t events_ = 0, messages_ = 0, committed_ = 0, traced_ = 0;
    std::vector<std::int32_t> start_waits_, commit_waits_;  // per operation
    std::vector<std::vector<std::int64_t>> lane_ready_;     // heaps
    std::vector<std::int64_t> lane_takes_;                  // the operation in flight; -1 = free
    std::vector<char> lane_sends_, lane_listed_;            // whether that operation is with the network
    std::vector<std::int32_t> listed_;
    std::vector<Time> reducing_until_;  // per rank
    std::vector<std::int64_t> committing_;
    std::vector<TraceEvent> trace_;
    std::vector<std::int64_t> trace_index_;
};

}  // namespace

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::finished: return "finished";
        case Outcome::unreachable: return "unreachable";
        default: return "budget exceeded";
    }
}

SimulationResult execute(const PreparedAlgorithm::Data& prepared, const SimulationOptions& options,
                         int tiles) {
    return Execution(prepared, options, tiles).run();
}

}  // namespace baton::sim
