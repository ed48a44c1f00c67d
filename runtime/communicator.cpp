#include <baton/base/error.hpp>
#include <baton/runtime/communicator.hpp>

#include <fmt/format.h>
#include <bit>

namespace baton::runtime {

namespace {

constexpr std::size_t kNotes = 512;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
    return hash ^ hash >> 31;
}

std::string_view wait_words(baton_u32 wait) {
    switch (wait) {
        case BATON_WAIT_DATA: return "a message";
        case BATON_WAIT_CREDIT: return "a free slot or an acknowledgement";
        case BATON_WAIT_TOKEN: return "a token";
        case BATON_WAIT_ENTRY: return "the entry into the call";
        case BATON_WAIT_RECORD: return "room for the entry record";
        default: return "nothing known";
    }
}

/// The sooner in this order, the closer to the cause.
int distance_from_cause(const baton_error& error) {
    if (error.code == BATON_MISMATCH) return 0;
    if (error.code != BATON_TIMED_OUT) return 3;
    return error.wait == BATON_WAIT_ENTRY ? 1 : 2;
}

std::string describe(const baton_error& e, const std::string& plan) {
    const std::string place =
        fmt::format("rank {}, threadblock {}, instruction {}", e.rank, e.threadblock, e.instruction);
    const std::string peer = e.peer == ~0u ? std::string("no rank") : fmt::format("rank {}", e.peer);
    if (e.code == BATON_MISMATCH) {
        return fmt::format(
            "{}: {} found that {} makes another call (expected fingerprint {:016x}, seen {:016x})", plan,
            place, peer, e.expected, e.seen);
    }
    return fmt::format(
        "{}: {} {} {} of {}: expected {}, seen {} (call {})", plan, place,
        e.code == BATON_TIMED_OUT ? "ran past the deadline waiting for" : "gave up waiting for",
        wait_words(e.wait), peer, e.expected, e.seen, e.epoch);
}

}  // namespace

std::int64_t call_size(const CollectiveCall& call, int ranks) {
    std::int64_t elements = call.arguments.count;
    if (ir::has_shards(call.kind) && __builtin_mul_overflow(elements, ranks, &elements)) return INT64_MAX;
    std::int64_t bytes = 0;
    return __builtin_mul_overflow(elements, ir::size_of(call.arguments.type), &bytes) ? INT64_MAX : bytes;
}

/// A call with its tiles and segments.
struct Communicator::Prepared {
    BoundPlan* bound = nullptr;
    const codegen::ManifestEntry* entry = nullptr;
    CallArguments arguments;
    std::int64_t tiles = 1, tiles_per_segment = 1, scratch_stride = 0;
    int segments = 1;
    std::uint64_t fingerprint = 0;  // without the segment

    std::int64_t first_tile(int segment) const { return segment * tiles_per_segment; }
    std::int64_t last_tile(int segment) const {
        return std::min(tiles, first_tile(segment) + tiles_per_segment);
    }
    std::uint64_t fingerprint_of(int segment) const {
        return mix(fingerprint, static_cast<std::uint64_t>(segment)) | 1;
    }
};

Communicator::Communicator(std::shared_ptr<Backend> backend, const CommunicatorOptions& options)
    : backend_(std::move(backend)), options_(options), notes_(kNotes) {
    if (options_.ranks < 1 || options_.ranks > 4096)
        throw input_error(fmt::format("a communicator has 1 to 4096 ranks; got {}", options_.ranks));
    if (backend_->ranks() > 0 && backend_->ranks() != options_.ranks) {
        throw input_error(
            fmt::format("{} ranks on a backend made for {}", options_.ranks, backend_->ranks()));
    }
    if (options_.slots < 1 || options_.slots > 1024) throw input_error("slots must be within 1 and 1024");
    if (options_.slot_bytes < 16 || options_.slot_bytes > std::int64_t{1} << 32)
        throw input_error("slot bytes must be within 16 and 4 GiB");
    if (options_.workspace < 16) throw input_error("the workspace must hold at least 16 bytes");
    if (options_.timeout.count() < 0) throw input_error("a timeout must not be negative");
    options_.slots = static_cast<int>(std::bit_ceil(static_cast<unsigned>(options_.slots)));
    state_ = std::make_unique<SharedState>(*backend_, options_.ranks);
    waiting_.assign(options_.ranks, 0);
    clocks_.resize(options_.ranks);
    scratch_.resize(options_.ranks);
}

Communicator::~Communicator() {
    for (std::size_t r = 0; r < scratch_.size(); ++r) {
        backend_->release(static_cast<int>(r), scratch_[r].memory);
        for (void* old : scratch_[r].retired) backend_->release(static_cast<int>(r), old);
    }
}

// ---- plans
// -----------------------------------------------------------------------------------------------------------

void Communicator::add_plan(Plan plan) {
    const ir::Collective& collective = plan.module->manifest().collective;
    if (collective.ranks != options_.ranks) {
        throw input_error(
            fmt::format("a plan for {} ranks in a communicator of {}", collective.ranks, options_.ranks),
            plan.module->name());
    }
    plans_.push_back(std::make_unique<const Plan>(std::move(plan)));
}

std::string Communicator::refusal(const Plan& plan, const CollectiveCall& call) const {
    const codegen::Manifest& m = plan.module->manifest();
    const ir::Collective& c = m.collective;
    if (c.kind != call.kind) return fmt::format("is for {}", to_string(c.kind));
    if (ir::has_root(c.kind) && c.root != call.root)
        return fmt::format("is for root {}, not {}", c.root, call.root);
    if (c.kind == ir::CollectiveKind::send_recv) {
        const int peer = call.peer < 0 ? (call.root + 1) % c.group_size() : call.peer;
        if (c.receiver() != peer) return fmt::format("is for receiver {}, not {}", c.receiver(), peer);
    }
    const std::int64_t size = call_size(call, options_.ranks);
    if (!plan.fallback && (size < plan.from || size >= plan.below)) {
        return fmt::format("is for {} to {} bytes, not {}", plan.from, plan.below, size);
    }
    const CallArguments& a = call.arguments;
    if (m.find_entry(a.type, a.op, a.nan) == nullptr) {
        return ir::reduces(c.kind)
                   ? fmt::format("has no entry for {} of {} (nan: {})", to_string(a.op), to_string(a.type),
                                 to_string(a.nan))
                   : fmt::format("has no entry for elements of {} bytes", ir::size_of(a.type));
    }
    return {};
}

const Plan& Communicator::choose(const CollectiveCall& call) const {
    for (const bool fallback : {false, true}) {
        for (const auto& plan : plans_) {
            if (plan->fallback == fallback && refusal(*plan, call).empty()) return *plan;
        }
    }
    throw input_error(fmt::format("no plan serves {} of {} {} elements", to_string(call.kind),
                                  call.arguments.count, to_string(call.arguments.type)),
                      {}, plans_.empty() ? "load a plan" : explain(call));
}

std::string Communicator::explain(const CollectiveCall& call) const {
    std::string text;
    for (const auto& plan : plans_) {
        const std::string why = refusal(*plan, call);
        text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", plan->module->name(),
                            !why.empty()     ? why
                            : plan->fallback ? "eligible as fallback"
                                             : "eligible");
    }
    return text;
}

// ---- preparing a call
// ------------------------------------------------------------------------------------------------

BoundPlan& Communicator::bind(const Plan& plan) {
    for (const auto& bound : bound_) {
        if (&bound->module() == plan.module.get()) return *bound;
    }
    if (plan.module->manifest().collective.ranks != options_.ranks) {
        throw input_error(fmt::format("a plan for {} ranks in a communicator of {}",
                                      plan.module->manifest().collective.ranks, options_.ranks),
                          plan.module->name());
    }
    bound_.push_back(
        std::make_unique<BoundPlan>(*backend_, *state_, plan.module, options_.slots, options_.slot_bytes));
    return *bound_.back();
}

Communicator::Prepared Communicator::prepare(const Plan& plan, const CallArguments& arguments) {
    const codegen::Manifest& m = plan.module->manifest();
    Prepared call;
    call.bound = &bind(plan);
    call.arguments = arguments;
    if (arguments.count < 0)
        throw input_error(fmt::format("a count must not be negative; got {}", arguments.count));
    if (ir::reduces(m.collective.kind)) ir::check_valid(arguments.op, arguments.type);
    call.entry = m.find_entry(arguments.type, arguments.op, arguments.nan);
    if (call.entry == nullptr) {
        throw input_error(fmt::format("the plan has no entry for {} of {}", to_string(arguments.op),
                                      to_string(arguments.type)),
                          plan.module->name(), "emit it with this type and operator");
    }
    call.tiles = m.fitting_tiles(*call.entry, arguments.count, call.bound->slot_bytes(),
                                 std::max<std::int64_t>(plan.tiles, 1));
    call.scratch_stride = m.scratch_stride(*call.entry, arguments.count);
    std::int64_t places = 0;
    for (const codegen::ManifestRank& rank : m.ranks) places = std::max(places, rank.scratch_places);

    // Above the workspace a call runs slice by slice: each segment executes some of the tiles, and scratch
    // places hold one slice of their chunk.
    const std::int64_t unit = 16 / call.entry->element_size() * call.entry->wire_size();
    const std::int64_t units = call.scratch_stride / unit;
    const std::int64_t fit = places == 0 ? units : options_.workspace / unit / places;  // units of a place
    call.tiles_per_segment = call.tiles;
    if (units > fit) {
        if (fit == 0) {
            throw input_error(fmt::format("{} scratch places do not fit a workspace of {} bytes", places,
                                          options_.workspace),
                              plan.module->name(), fmt::format("allow at least {} bytes", places * unit));
        }
        call.tiles = std::max(call.tiles, (units + fit - 1) / fit);
        const std::int64_t tile = (units + call.tiles - 1) / call.tiles;
        call.tiles_per_segment = std::max<std::int64_t>(1, fit / tile);
        call.scratch_stride = call.tiles_per_segment * tile * unit;
    }
    call.segments = static_cast<int>((call.tiles + call.tiles_per_segment - 1) / call.tiles_per_segment);
    if (call.tiles > UINT32_MAX)
        throw input_error("the call needs too many tiles", plan.module->name(), "use larger slots");

    std::uint64_t hash = 1;
    for (const std::int64_t value :
         {static_cast<std::int64_t>(m.collective.kind), std::int64_t{m.collective.root},
          std::int64_t{m.collective.peer}, arguments.count, static_cast<std::int64_t>(arguments.type),
          static_cast<std::int64_t>(arguments.op), static_cast<std::int64_t>(arguments.nan), call.tiles,
          call.tiles_per_segment}) {
        hash = mix(hash, static_cast<std::uint64_t>(value));
    }
    for (const char letter : m.hash) hash = mix(hash, static_cast<unsigned char>(letter));
    call.fingerprint = hash;
    return call;
}

void* Communicator::scratch(int rank, std::int64_t bytes) {
    Scratch& mine = scratch_[rank];
    if (bytes > mine.bytes) {
        const std::int64_t grown = std::max(bytes, std::min(2 * mine.bytes, options_.workspace));
        void* memory = backend_->allocate(rank, grown);
        if (mine.memory != nullptr) mine.retired.push_back(mine.memory);
        mine.memory = memory, mine.bytes = grown;
    }
    return bytes == 0 ? nullptr : mine.memory;
}

void Communicator::fill(const Prepared& call, BoundPlan::Group& group, int index, const RankBuffers& buffers,
                        int segment) {
    const int rank = group.ranks[index];
    const ir::Collective& collective = call.bound->manifest().collective;
    baton_arguments& a = group.arguments;
    a.count = static_cast<baton_u64>(call.arguments.count);
    a.fingerprint = call.fingerprint_of(segment);
    a.timeout_ns = static_cast<baton_u64>(options_.timeout.count());
    a.scratch_stride = static_cast<baton_u64>(call.scratch_stride);
    a.tiles = static_cast<baton_u32>(call.tiles);
    a.first_tile = static_cast<baton_u32>(call.first_tile(segment));
    a.last_tile = static_cast<baton_u32>(call.last_tile(segment));
    a.root = static_cast<baton_u32>(collective.root);
    const bool has_output = collective.places(rank, ir::Buffer::output) > 0;
    const auto contributions =
        static_cast<baton_u32>(has_output ? contributions_of(collective, rank, 0) : collective.group_size());
    if (index > 0 && a.contributions != contributions && call.arguments.op == ir::ReduceOp::avg) {
        throw input_error("groups of different sizes on one device cannot average",
                          call.bound->module().name());
    }
    a.contributions = contributions;
    baton_call& mine = a.calls[index];
    mine.input = buffers.input;
    mine.output = buffers.output;
    mine.scratch = scratch(rank, call.bound->manifest().ranks[rank].scratch_places * call.scratch_stride);
    mine.input_offset = reinterpret_cast<baton_u64>(mine.input);
    mine.output_offset = reinterpret_cast<baton_u64>(mine.output);
    mine.scratch_offset = reinterpret_cast<baton_u64>(mine.scratch);
}

void Communicator::advance(int rank, const Prepared& call, int segment, int iterations, void* stream) {
    Clock& clock = clocks_[rank];
    const std::int64_t tiles = call.last_tile(segment) - call.first_tile(segment);
    clock.epoch += static_cast<std::uint64_t>(iterations);
    clock.tokens += static_cast<std::uint64_t>(tiles * call.bound->manifest().advance) *
                    static_cast<std::uint64_t>(iterations);
    if (call.bound->manifest().ranks[rank].threadblocks > 0) return;
    // No kernel keeps the counters of a rank that has nothing to do.
    const baton_rank_state state{clock.epoch, clock.tokens, 0, 0};
    backend_->write_in_order(rank, state_->rank_state(rank), &state, sizeof state, stream);
}

// ---- calls
// -----------------------------------------------------------------------------------------------------------

CallReport Communicator::run(const Plan& plan, const CallArguments& arguments,
                             std::span<const RankBuffers> buffers, int iterations) {
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw check_error(failure_, {}, "recover the communicator");
    if (in_calls_ > 0) throw input_error("a call of all ranks while a rank is in a call of its own");
    check_buffers(plan.module->manifest().collective, arguments, buffers, plan.module->manifest().in_place);
    const Prepared call = prepare(plan, arguments);
    for (int r = 0; r < options_.ranks; ++r) {
        if (waiting_[r]) throw input_error("a call of all ranks while a rank is in a call of its own");
        for (void* old : scratch_[r].retired) backend_->release(r, old);
        scratch_[r].retired.clear();
    }
    in_calls_ = 1;
    all_running_ = true;
    CallReport report{call.tiles, call.segments, call.bound->slot_bytes(), 0};
    std::vector<Launch> launches;
    const int repeats = call.segments == 1 ? 1 : iterations, together = call.segments == 1 ? iterations : 1;
    try {
        for (int i = 0; i < repeats * call.segments; ++i) {
            const int segment = i % call.segments;
            launches.clear();
            for (BoundPlan::Group& group : call.bound->groups()) {
                for (std::size_t k = 0; k < group.ranks.size(); ++k)
                    fill(call, group, static_cast<int>(k), buffers[group.ranks[k]], segment);
                launches.push_back({call.bound->code(*backend_, group, *call.entry), group.place,
                                    group.blocks, call.bound->manifest().threads, &group.arguments});
            }
            for (int r = 0; r < options_.ranks; ++r) advance(r, call, segment, together, nullptr);
            lock.unlock();
            backend_->start(launches, together, nullptr);
            for (const Launch& launch : launches) backend_->wait(launch.place, nullptr);
            lock.lock();
            if (__atomic_load_n(state_->abort_word(), __ATOMIC_ACQUIRE) != 0) {
                in_calls_ = 0;
                check_failure(lock);
            }
        }
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        in_calls_ = 0;
        all_running_ = false;
        throw;
    }
    in_calls_ = 0;
    all_running_ = false;
    changed_.notify_all();
    for (const Scratch& each : scratch_) report.scratch_bytes = std::max(report.scratch_bytes, each.bytes);
    return report;
}

void Communicator::check_same_call(int rank, std::uint64_t fingerprint) {
    const std::uint64_t epoch = clocks_[rank].epoch + 1;
    Note& note = notes_[epoch % kNotes];
    if (note.epoch > epoch) return;  // everybody else is far ahead
    if (note.epoch < epoch) {
        note = {epoch, fingerprint, rank};
        return;
    }
    if (note.fingerprint == fingerprint) return;
    failure_ = fmt::format(
        "call {} of rank {} differs from that of rank {} in kind, count, type, operator, root or plan", epoch,
        rank, note.rank);
    __atomic_store_n(state_->abort_word(), 1u, __ATOMIC_RELAXED);
    changed_.notify_all();
    throw check_error(failure_, {},
                      "make the same calls in the same order on all ranks, then recover the communicator");
}

void Communicator::start_rank(int rank, const Prepared& call, const RankBuffers& buffers, int segment,
                              void* stream, std::unique_lock<std::mutex>& lock) {
    const auto [group, index] = call.bound->group_of(rank);
    if (group == nullptr) return advance(rank, call, segment, 1, stream);
    // The previous call of this plan may still wait for other ranks of the device.
    changed_.wait(lock, [&] { return !waiting_[rank] || !failure_.empty(); });
    if (!failure_.empty()) throw check_error(failure_, {}, "recover the communicator");
    if (group->pending > 0 && group->stream != stream) {
        throw input_error(fmt::format("rank {} names another stream than a rank that shares its GPU", rank),
                          {}, "ranks of one GPU are launched together, on one stream");
    }
    group->stream = stream;
    fill(call, *group, index, buffers, segment);
    const Launch launch{call.bound->code(*backend_, *group, *call.entry), group->place, group->blocks,
                        call.bound->manifest().threads, &group->arguments};
    advance(rank, call, segment, 1, stream);
    if (group->ranks.size() == 1) {
        lock.unlock();
        backend_->start({&launch, 1}, 1, stream);
        lock.lock();
        return;
    }
    waiting_[rank] = 1;
    if (++group->pending < static_cast<int>(group->ranks.size())) return;
    group->pending = 0;
    for (const int each : group->ranks) waiting_[each] = 0;
    backend_->start({&launch, 1}, 1, stream);
    changed_.notify_all();
}

CallReport Communicator::enqueue(int rank, const Plan& plan, const CallArguments& arguments,
                                 const RankBuffers& buffers, void* stream) {
    if (rank < 0 || rank >= options_.ranks)
        throw input_error(fmt::format("rank {} in a communicator of {}", rank, options_.ranks));
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw check_error(failure_, {}, "recover the communicator");
    if (all_running_) throw input_error("a call of a rank while all ranks are in a call");
    check_rank_buffers(plan.module->manifest().collective, arguments, rank, buffers,
                       plan.module->manifest().in_place);
    const Prepared call = prepare(plan, arguments);
    ++in_calls_;
    try {
        for (int segment = 0; segment < call.segments; ++segment) {
            check_same_call(rank, call.fingerprint_of(segment));
            start_rank(rank, call, buffers, segment, stream, lock);
        }
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        --in_calls_;
        changed_.notify_all();
        throw;
    }
    --in_calls_;
    changed_.notify_all();
    return {call.tiles, call.segments, call.bound->slot_bytes(), scratch_[rank].bytes};
}

void Communicator::wait(int rank, void* stream) {
    {
        std::unique_lock lock(mutex_);
        const auto launched = [&] { return !waiting_[rank] || !failure_.empty(); };
        if (options_.timeout.count() == 0) {
            changed_.wait(lock, launched);
        } else if (!changed_.wait_for(lock, options_.timeout, launched)) {
            failure_ = fmt::format(
                "rank {} waits for other ranks of its device, which did not make the call before the "
                "deadline",
                rank);
            __atomic_store_n(state_->abort_word(), 1u, __ATOMIC_RELAXED);
            changed_.notify_all();
        }
    }
    backend_->wait(backend_->place_of(rank), stream);
    std::unique_lock lock(mutex_);
    check_failure(lock);
}

CallReport Communicator::run_rank(int rank, const Plan& plan, const CallArguments& arguments,
                                  const RankBuffers& buffers) {
    const CallReport report = enqueue(rank, plan, arguments, buffers);
    wait(rank);
    return report;
}

void Communicator::reserve(const Plan& plan, const CallArguments& arguments) {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw check_error(failure_, {}, "recover the communicator");
    if (in_calls_ > 0) throw input_error("a plan is bound while a rank is in a call");
    const Prepared call = prepare(plan, arguments);
    for (BoundPlan::Group& group : call.bound->groups()) call.bound->code(*backend_, group, *call.entry);
    for (int r = 0; r < options_.ranks; ++r)
        scratch(r, call.bound->manifest().ranks[r].scratch_places * call.scratch_stride);
}

std::int64_t Communicator::workspace_bytes(const Plan& plan, int rank, const CallArguments& arguments) const {
    const codegen::Manifest& m = plan.module->manifest();
    if (rank < 0 || rank >= m.collective.ranks)
        throw input_error(fmt::format("rank {} of a plan for {}", rank, m.collective.ranks));
    const codegen::ManifestEntry* entry = m.find_entry(arguments.type, arguments.op, arguments.nan);
    if (entry == nullptr) throw input_error("the plan has no such entry", plan.module->name());
    return std::min(options_.workspace, m.workspace_bytes(rank, *entry, arguments.count));
}

// ---- failures
// --------------------------------------------------------------------------------------------------------

std::string Communicator::describe_failure() const {
    const baton_error* cause = nullptr;
    std::string plan;
    std::vector<std::vector<baton_error>> records;
    int gave_up = 0;
    for (const auto& bound : bound_) {
        for (int r = 0; r < options_.ranks; ++r) {
            records.push_back(bound->errors(*backend_, r));
            for (const baton_error& error : records.back()) {
                if (error.code == BATON_OK) continue;
                ++gave_up;
                if (cause == nullptr || distance_from_cause(error) < distance_from_cause(*cause))
                    cause = &error, plan = bound->module().name();
            }
        }
    }
    if (cause == nullptr) return "a call was aborted";
    std::string text = describe(*cause, plan);
    if (gave_up > 1) text += fmt::format("; {} more threadblocks gave up", gave_up - 1);
    return text;
}

void Communicator::check_failure(std::unique_lock<std::mutex>& lock) {
    if (failure_.empty() && __atomic_load_n(state_->abort_word(), __ATOMIC_ACQUIRE) == 0) return;
    // The ranks that have seen the abort word are about to write where they stood; one of them may stand at
    // the cause.
    if (failure_.empty())
        changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return in_calls_ == 0; });
    if (failure_.empty()) {
        failure_ = describe_failure();
        changed_.notify_all();
    }
    throw check_error(failure_, {}, "recover the communicator");
}

std::string Communicator::failure() const {
    const std::lock_guard lock(mutex_);
    if (failure_.empty() && __atomic_load_n(state_->abort_word(), __ATOMIC_ACQUIRE) != 0)
        return describe_failure();
    return failure_;
}

void Communicator::abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason.empty() ? "aborted" : reason;
    __atomic_store_n(state_->abort_word(), 1u, __ATOMIC_RELAXED);
    changed_.notify_all();
}

void Communicator::recover() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return in_calls_ == 0; });
    for (int r = 0; r < options_.ranks; ++r) backend_->wait(backend_->place_of(r), nullptr);
    bound_.clear();
    state_.reset();
    state_ = std::make_unique<SharedState>(*backend_, options_.ranks);
    clocks_.assign(options_.ranks, {});
    waiting_.assign(options_.ranks, 0);
    notes_.assign(kNotes, {});
    failure_.clear();
    ++generation_;
    lock.unlock();
    changed_.notify_all();
}

}  // namespace baton::runtime
