// Ranks of one process that make collective calls together: plans, the rules between calls, and errors.
#pragma once

#include <baton/runtime/backend.hpp>
#include <baton/runtime/bound_plan.hpp>
#include <baton/runtime/buffers.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace baton::runtime {

struct CommunicatorOptions {
    int ranks = 1;                        ///< 1..4096
    int slots = 4;                        ///< least FIFO depth of staged connections
    std::int64_t slot_bytes = 128 << 10;  ///< least bytes of a slot; rounded up to a power of two
    std::int64_t workspace = std::int64_t{1}
                             << 30;  ///< most scratch bytes of a rank; calls that need more run in segments
    std::chrono::nanoseconds timeout{30'000'000'000};  ///< longest single wait; 0 = for ever
};

/// Which collective a call makes. root and peer count only for kinds that have them; peer -1: the rank after
/// the root.
struct CollectiveCall {
    ir::CollectiveKind kind = ir::CollectiveKind::all_reduce;
    int root = 0, peer = -1;
    CallArguments arguments;
};

/// A module and the calls it is for.
struct Plan {
    std::shared_ptr<const Module> module;
    std::int64_t from = 0, below = INT64_MAX;  ///< half-open range of sizes in bytes (see `call_size`)
    std::int64_t tiles = 0;  ///< tiles of a chunk; 0 = the least with which messages fit their slots
    bool fallback = false;   ///< considered only when no other plan is eligible, whatever the size
};

/// nccl-tests size of a call: bytes of the larger of a rank's send and receive buffer.
std::int64_t call_size(const CollectiveCall& call, int ranks);

/// How a call was executed.
struct CallReport {
    std::int64_t tiles = 1;
    int segments = 1;
    std::int64_t slot_bytes = 0;
    std::int64_t scratch_bytes = 0;  ///< largest over ranks
};

/// A communicator of ranks of this process. Every rank makes the same calls in the same order: either all at
/// once
/// (`run`, from one thread), or each rank from a thread of its own (`run_rank`, `enqueue`).
///
/// Connections, tokens, entry records and epochs belong to the communicator and persist from call to call, so
/// calls with any plans may follow one another without a barrier. A call that fails on one rank (a wait past
/// its deadline, a call that differs from another rank's) fails on every rank that is in a call or makes one
/// later, with the same words; `recover` builds the state anew.
class Communicator {
public:
    /// Throws an input error when options are out of range.
    Communicator(std::shared_ptr<Backend> backend, const CommunicatorOptions& options);
    ~Communicator();
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    int ranks() const { return options_.ranks; }
    Backend& backend() const { return *backend_; }
    const CommunicatorOptions& options() const { return options_; }

    /// Adds a plan, before or between calls; the same on all ranks. The first eligible plan in the order of
    /// adding serves a call. Throws an input error when the plan is for another number of ranks.
    void add_plan(Plan plan);
    /// The plan for a call: depends only on what is equal on all ranks. Throws an input error that says for
    /// each plan why it is not eligible.
    const Plan& choose(const CollectiveCall& call) const;
    /// One line per plan: "NAME: eligible", or why not. For people.
    std::string explain(const CollectiveCall& call) const;

    /// Runs a call of all ranks from this thread, `iterations` times, to its end. No rank may be in another
    /// call. Throws input errors before anything runs, check errors (deadline, abort) afterwards.
    CallReport run(const Plan& plan, const CallArguments& arguments, std::span<const RankBuffers> buffers,
                   int iterations = 1);
    /// One rank's part, from the rank's thread: enqueue, then wait.
    CallReport run_rank(int rank, const Plan& plan, const CallArguments& arguments,
                        const RankBuffers& buffers);
    /// Starts one rank's part. Ranks of one device are launched together once all of them have called; they
    /// must name the same stream (an input error otherwise).
    /// Backends without streams return at the end of the call. Errors of the call itself come from `wait`, or
    /// from a later call.
    CallReport enqueue(int rank, const Plan& plan, const CallArguments& arguments, const RankBuffers& buffers,
                       void* stream = nullptr);
    /// Until the rank's calls on `stream` have ended. Throws the check error of a call that failed.
    void wait(int rank, void* stream = nullptr);

    /// Prepares for calls with this plan, type and operator and at most this count: tables, code and scratch
    /// of all ranks; such calls allocate nothing. Throws as `run`, and an input error while a rank is in a
    /// call.
    void reserve(const Plan& plan, const CallArguments& arguments);
    /// Scratch bytes that a rank holds for a call with this plan (the loader contract's workspace).
    std::int64_t workspace_bytes(const Plan& plan, int rank, const CallArguments& arguments) const;
    /// The failure that the communicator is in, "" when none.
    std::string failure() const;
    /// Makes every rank's running wait give up; the communicator is in failure until `recover`.
    void abort(const std::string& reason);
    /// After a failure: waits until no rank is in a call, then builds the state anew. From one thread.
    void recover();
    /// Number of the state: 1, one more after each `recover`.
    int generation() const { return generation_; }

private:
    struct Prepared;  // a call with everything that does not depend on the rank
    struct Scratch {
        void* memory = nullptr;
        std::int64_t bytes = 0;
        std::vector<void*> retired;  // peers may still read what the rank has left
    };
    /// A rank's counters, as they will be in its memory when its started calls have ended.
    struct Clock {
        std::uint64_t epoch = 0, tokens = 0;
    };
    struct Note {
        std::uint64_t epoch = 0, fingerprint = 0;
        int rank = 0;
    };

    BoundPlan& bind(const Plan& plan);
    Prepared prepare(const Plan& plan, const CallArguments& arguments);
    void fill(const Prepared& call, BoundPlan::Group& group, int index, const RankBuffers& buffers,
              int segment);
    void* scratch(int rank, std::int64_t bytes);
    void advance(int rank, const Prepared& call, int segment, int iterations, void* stream);
    void check_same_call(int rank, std::uint64_t fingerprint);
    void start_rank(int rank, const Prepared& call, const RankBuffers& buffers, int segment, void* stream,
                    std::unique_lock<std::mutex>& lock);
    void check_failure(std::unique_lock<std::mutex>& lock);
    std::string describe_failure() const;
    std::string refusal(const Plan& plan, const CollectiveCall& call) const;

    std::shared_ptr<Backend> backend_;
    CommunicatorOptions options_;
    std::vector<std::unique_ptr<const Plan>> plans_;
    int generation_ = 1;

    mutable std::mutex mutex_;  // guards what follows; not held while calls run
    std::condition_variable changed_;
    std::unique_ptr<SharedState> state_;
    std::vector<std::unique_ptr<BoundPlan>> bound_;
    std::vector<Note> notes_;  // of the latest calls, to compare ranks
    std::string failure_;
    int in_calls_ = 0;           // ranks inside a function of theirs
    bool all_running_ = false;   // inside `run`
    std::vector<char> waiting_;  // [rank]: has called, its launch waits for other ranks of the device
    std::vector<Clock> clocks_;
    std::vector<Scratch> scratch_;
};

}  // namespace baton::runtime
