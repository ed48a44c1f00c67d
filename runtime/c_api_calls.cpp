// Plans, collective calls and groups of the C interface.
#include <baton/runtime/c_handles.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <thread>
#include <vector>

namespace baton::runtime::c_api {

namespace {

/// One rank's part of a call, checked and with its plan.
struct PreparedCall {
    CommunicatorRank at;
    Plan plan;
    CallArguments arguments;
    RankBuffers buffers;
    void* stream = nullptr;
};

/// What this thread has collected since the start of its group.
struct Group {
    int depth = 0;
    std::vector<PreparedCall> calls;
    baton_result failed = BATON_SUCCESS;
    std::string words;
};
Group& group() {
    thread_local Group mine;
    return mine;
}

void start(const PreparedCall& call) {
    Communicator& communicator = call.at.shared->communicator;
    communicator.enqueue(call.at.rank, call.plan, call.arguments, call.buffers, call.stream);
    // Without streams the call has ended; it says here how.
    if (communicator.backend().host_memory()) communicator.wait(call.at.rank);
}

void submit(PreparedCall call) {
    const ir::Collective& collective = call.plan.module->manifest().collective;
    const int rank = call.at.rank;
    // Callers may hand over what the rank does not have.
    if (collective.places(rank, ir::Buffer::input) == 0) call.buffers.input = nullptr;
    if (collective.places(rank, ir::Buffer::output) == 0) call.buffers.output = nullptr;
    if (call.stream != nullptr && call.at.shared->communicator.backend().host_memory())
        throw input_error("the backend cpu has no streams", {}, "give a null stream");
    if (group().depth == 0) return start(call);
    check_rank_buffers(collective, call.arguments, rank, call.buffers);
    group().calls.push_back(std::move(call));
}

/// As `guarded`, and a failure inside a group is kept for its end.
template <typename Function>
baton_result guarded_call(Function&& function) noexcept {
    const baton_result result = guarded(function);
    Group& mine = group();
    if (result != BATON_SUCCESS && mine.depth > 0 && mine.failed == BATON_SUCCESS) {
        mine.failed = result;
        guarded([&] { mine.words = baton_last_error(); });
    }
    return result;
}

using CallsOfRank = std::vector<const PreparedCall*>;
using CallsOfRanks = std::map<int, CallsOfRank>;

bool same_call(const PreparedCall& a, const PreparedCall& b) {
    return a.plan.module == b.plan.module && a.plan.tiles == b.plan.tiles &&
           a.arguments.count == b.arguments.count && a.arguments.type == b.arguments.type &&
           a.arguments.op == b.arguments.op;
}

/// Whether the group holds the same calls of every rank, on a backend where this thread can run them.
bool runs_whole(SharedCommunicator& shared, const CallsOfRanks& ranks) {
    if (!shared.communicator.backend().host_memory()) return false;
    if (ranks.size() != static_cast<std::size_t>(shared.communicator.ranks())) return false;
    const CallsOfRank& first = ranks.begin()->second;
    return std::all_of(ranks.begin(), ranks.end(), [&](const auto& each) {
        return std::equal(each.second.begin(), each.second.end(), first.begin(), first.end(),
                          [](const auto* a, const auto* b) { return same_call(*a, *b); });
    });
}

void run_whole(SharedCommunicator& shared, const CallsOfRanks& ranks) {
    const CallsOfRank& first = ranks.begin()->second;
    std::vector<RankBuffers> buffers(ranks.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        for (const auto& [rank, calls] : ranks) buffers[static_cast<std::size_t>(rank)] = calls[i]->buffers;
        shared.communicator.run(first[i]->plan, first[i]->arguments, buffers);
    }
}

/// The failure that a thread met.
struct Outcome {
    baton_result result = BATON_SUCCESS;
    std::string words;
};

Outcome start_all(const CallsOfRank& calls) noexcept {
    Outcome outcome;
    outcome.result = guarded([&] {
        for (const PreparedCall* call : calls) start(*call);
    });
    if (outcome.result != BATON_SUCCESS) guarded([&] { outcome.words = baton_last_error(); });
    return outcome;
}

/// Each rank's calls in a thread of its own: they may wait for one another.
Outcome run_apart(const std::vector<const CallsOfRank*>& ranks) {
    if (ranks.size() == 1) return start_all(*ranks.front());
    std::vector<Outcome> outcomes(ranks.size());
    std::vector<std::thread> threads;
    std::string failure;
    try {
        threads.reserve(ranks.size());
        for (std::size_t i = 0; i < ranks.size(); ++i)
            threads.emplace_back([&, i] { outcomes[i] = start_all(*ranks[i]); });
    } catch (const std::system_error& error) {
        failure = fmt::format("no more threads for the ranks of a group: {}", error.what());
        for (const CallsOfRank* calls : ranks) calls->front()->at.shared->communicator.abort(failure);
    }
    for (std::thread& thread : threads) thread.join();
    if (!failure.empty()) return {BATON_MISSING_PART, failure};
    const auto worst = std::find_if(outcomes.begin(), outcomes.end(),
                                    [](const Outcome& each) { return each.result != BATON_SUCCESS; });
    return worst == outcomes.end() ? Outcome{} : *worst;
}

Outcome run_group(const std::vector<PreparedCall>& calls) {
    std::vector<SharedCommunicator*> order;
    std::map<SharedCommunicator*, CallsOfRanks> sorted;
    for (const PreparedCall& call : calls) {
        SharedCommunicator* shared = call.at.shared.get();
        if (!sorted.contains(shared)) order.push_back(shared);
        sorted[shared][call.at.rank].push_back(&call);
    }
    std::vector<const CallsOfRank*> apart;
    for (SharedCommunicator* shared : order) {
        const CallsOfRanks& ranks = sorted[shared];
        if (runs_whole(*shared, ranks)) {
            run_whole(*shared, ranks);
        } else {
            for (const auto& [rank, mine] : ranks) apart.push_back(&mine);
        }
    }
    return apart.empty() ? Outcome{} : run_apart(apart);
}

CallArguments arguments_of(int64_t count, baton_type type, baton_op op, ir::NanMode nan) {
    CallArguments arguments;
    arguments.count = count;
    arguments.type = data_type(type);
    arguments.op = reduce_op(op);
    arguments.nan = nan;
    if (count < 0) throw input_error(fmt::format("a count must not be negative; got {}", count));
    return arguments;
}

/// A call of a kind: the communicator chooses the plan.
baton_result collective(ir::CollectiveKind kind, int root, int peer, const void* sendbuff, void* recvbuff,
                        int64_t count, baton_type type, baton_op op, baton_comm comm, void* stream) {
    return guarded_call([&] {
        PreparedCall call;
        call.at = find_handle(comm);
        SharedCommunicator& shared = *call.at.shared;
        const int ranks = shared.communicator.ranks();
        for (const int rank : {root, peer < 0 && kind != ir::CollectiveKind::send_recv ? 0 : peer}) {
            if (rank < 0 || rank >= ranks)
                throw input_error(fmt::format("rank {} in a communicator of {}", rank, ranks));
        }
        CollectiveCall wanted;
        wanted.kind = kind;
        wanted.root = root;
        wanted.peer = peer;
        wanted.arguments = arguments_of(count, type, op, shared.nan);
        if (ir::reduces(kind)) ir::check_valid(wanted.arguments.op, wanted.arguments.type);
        {
            const std::shared_lock lock(shared.plans);
            call.plan = shared.communicator.choose(wanted);
        }
        call.arguments = wanted.arguments;
        call.buffers = {sendbuff, recvbuff};
        call.stream = stream;
        submit(std::move(call));
    });
}

}  // namespace

}  // namespace baton::runtime::c_api

using namespace baton;
using namespace baton::runtime;
using namespace baton::runtime::c_api;

extern "C" {

// ---- plans

baton_result baton_plan_load(const char* path, baton_plan* plan) {
    return guarded([&] {
        require(path, "path");
        require(plan, "plan");
        *plan = add_handle(LoadedPlan{Module::load(path)});
    });
}

baton_result baton_plan_destroy(baton_plan plan) {
    return guarded([&] {
        if (plan != nullptr) take_handle(plan);
    });
}

baton_result baton_plan_info(baton_plan plan, baton_plan_description* description) {
    return guarded([&] {
        require(description, "description");
        const LoadedPlan loaded = find_handle(plan);
        const codegen::Manifest& m = loaded.module->manifest();
        const bool sends = m.collective.kind == ir::CollectiveKind::send_recv;
        *description = {static_cast<baton_kind>(m.collective.kind), m.collective.ranks, m.collective.root,
                        sends ? m.collective.receiver() : -1, static_cast<int>(m.entries.size())};
    });
}

baton_result baton_plan_buffers(baton_plan plan, int rank, int64_t count, int64_t* send, int64_t* receive) {
    return guarded([&] {
        const LoadedPlan loaded = find_handle(plan);
        const ir::Collective& c = loaded.module->manifest().collective;
        if (rank < 0 || rank >= c.ranks)
            throw input_error(fmt::format("rank {} of a plan for {}", rank, c.ranks));
        const int64_t in = buffer_elements(c, rank, ir::Buffer::input, count);
        const int64_t out = buffer_elements(c, rank, ir::Buffer::output, count);
        if (send != nullptr) *send = in;
        if (receive != nullptr) *receive = out;
    });
}

baton_result baton_plan_workspace(baton_plan plan, int rank, int64_t count, baton_type type, baton_op op,
                                  int64_t* bytes) {
    return guarded([&] {
        require(bytes, "bytes");
        const LoadedPlan loaded = find_handle(plan);
        const codegen::Manifest& m = loaded.module->manifest();
        if (rank < 0 || rank >= m.collective.ranks)
            throw input_error(fmt::format("rank {} of a plan for {}", rank, m.collective.ranks));
        const CallArguments a = arguments_of(count, type, op, ir::NanMode::propagate);
        buffer_bytes(m.collective, rank, ir::Buffer::input, a.count, a.type);
        const codegen::ManifestEntry* entry = m.find_entry(a.type, a.op, a.nan);
        if (entry == nullptr) entry = m.find_entry(a.type, a.op, ir::NanMode::ignore);
        if (entry == nullptr) {
            throw input_error(
                fmt::format("the plan has no entry for {} of {}", to_string(a.op), to_string(a.type)),
                loaded.module->name(), "emit it with this type and operator");
        }
        *bytes = m.workspace_bytes(rank, *entry, a.count);
    });
}

baton_result baton_plan_bind(baton_plan plan, baton_comm comm, int64_t count, baton_type type, baton_op op) {
    return guarded([&] {
        const LoadedPlan loaded = find_handle(plan);
        SharedCommunicator& shared = *find_handle(comm).shared;
        Plan bound;
        bound.module = loaded.module;
        shared.communicator.reserve(bound, arguments_of(count, type, op, shared.nan));
    });
}

baton_result baton_plan_launch(baton_plan plan, const void* sendbuff, void* recvbuff, int64_t count,
                               baton_type type, baton_op op, baton_comm comm, void* stream) {
    return guarded_call([&] {
        PreparedCall call;
        call.plan.module = find_handle(plan).module;
        call.at = find_handle(comm);
        const int wanted = call.plan.module->manifest().collective.ranks;
        if (wanted != call.at.shared->communicator.ranks()) {
            throw input_error(fmt::format("a plan for {} ranks in a communicator of {}", wanted,
                                          call.at.shared->communicator.ranks()),
                              call.plan.module->name());
        }
        call.arguments = arguments_of(count, type, op, call.at.shared->nan);
        call.buffers = {sendbuff, recvbuff};
        call.stream = stream;
        submit(std::move(call));
    });
}

baton_result baton_comm_add_plan(baton_comm comm, baton_plan plan, int64_t from, int64_t below,
                                 int fallback) {
    return guarded([&] {
        const LoadedPlan loaded = find_handle(plan);
        const CommunicatorRank mine = find_handle(comm);
        if (from < 0 || below < from)
            throw input_error(fmt::format("a plan for sizes from {} to below {} bytes", from, below));
        const std::lock_guard lock(mine.shared->plans);
        Plan added;
        added.module = loaded.module;
        added.from = from, added.below = below;
        added.fallback = fallback != 0;
        mine.shared->communicator.add_plan(added);
    });
}

// ---- calls

baton_result baton_all_reduce(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                              baton_op op, baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::all_reduce, 0, -1, sendbuff, recvbuff, count, type, op, comm,
                      stream);
}

baton_result baton_broadcast(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                             baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::broadcast, root, -1, sendbuff, recvbuff, count, type, BATON_SUM,
                      comm, stream);
}

baton_result baton_reduce(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, baton_op op,
                          int root, baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::reduce, root, -1, sendbuff, recvbuff, count, type, op, comm,
                      stream);
}

baton_result baton_all_gather(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                              baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::all_gather, 0, -1, sendbuff, recvbuff, count, type, BATON_SUM, comm,
                      stream);
}

baton_result baton_reduce_scatter(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                                  baton_op op, baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::reduce_scatter, 0, -1, sendbuff, recvbuff, count, type, op, comm,
                      stream);
}

baton_result baton_all_to_all(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                              baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::all_to_all, 0, -1, sendbuff, recvbuff, count, type, BATON_SUM, comm,
                      stream);
}

baton_result baton_gather(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                          baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::gather, root, -1, sendbuff, recvbuff, count, type, BATON_SUM, comm,
                      stream);
}

baton_result baton_scatter(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                           baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::scatter, root, -1, sendbuff, recvbuff, count, type, BATON_SUM, comm,
                      stream);
}

baton_result baton_send_recv(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int from,
                             int to, baton_comm comm, void* stream) {
    return collective(ir::CollectiveKind::send_recv, from, to, sendbuff, recvbuff, count, type, BATON_SUM,
                      comm, stream);
}

// ---- groups

baton_result baton_group_start(void) {
    return guarded([&] {
        if (group().depth >= 1000) throw input_error("groups nest 1000 deep at most");
        ++group().depth;
    });
}

baton_result baton_group_end(void) {
    return guarded([&] {
        Group& mine = group();
        if (mine.depth == 0) throw input_error("the end of a group that was not started");
        if (--mine.depth > 0) return;
        const std::vector<PreparedCall> calls = std::exchange(mine.calls, {});
        Outcome outcome{std::exchange(mine.failed, BATON_SUCCESS), std::exchange(mine.words, {})};
        if (outcome.result == BATON_SUCCESS) outcome = run_group(calls);
        if (outcome.result == BATON_SUCCESS) return;
        const ErrorKind kind = outcome.result == BATON_CHECK_FAILED    ? ErrorKind::check_failed
                               : outcome.result == BATON_INVALID_INPUT ? ErrorKind::input
                               : outcome.result == BATON_MISSING_PART  ? ErrorKind::missing_part
                                                                       : ErrorKind::internal;
        throw Error(kind, outcome.words);
    });
}

}  // extern "C"
