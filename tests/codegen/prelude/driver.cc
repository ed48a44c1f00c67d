// Runs the hand-written kernels: ranks as teams of threads in one process. Compiled once with the thread sanitizer and
// linked with each build of the kernels. Usage: driver MODE THREADS, where MODE is `results` or `failures`.
// Exit: 0 right, 3 a check failed; the sanitizer's own code otherwise.

#include "abi.h"

#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

extern "C" {
void ring_staged(const baton_arguments*, const baton_host_thread*);
void ring_put(const baton_arguments*, const baton_host_thread*);
void ring_get(const baton_arguments*, const baton_host_thread*);
void chain_staged(const baton_arguments*, const baton_host_thread*);
}

namespace {

[[noreturn]] void fail(const char* what, long a = 0, long b = 0, long c = 0) {
    std::fprintf(stderr, "check failed: %s (%ld, %ld, %ld)\n", what, a, b, c);
    std::_Exit(3);
}

baton_u64 now_ns(void*) {
    return static_cast<baton_u64>(std::chrono::steady_clock::now().time_since_epoch().count());
}
void yield(void*) { sched_yield(); }

// Barrier with a shared flag, by generations.
struct Team {
    explicit Team(int size) : size(size) {}
    int size;
    std::atomic<int> waiting{0}, flag[3] = {{0}, {0}, {0}};
    std::atomic<unsigned> generation{0};
    static int arrive(void* context, int mine) {
        Team& team = *static_cast<Team*>(context);
        const unsigned now = team.generation.load(std::memory_order_relaxed);
        if (mine) team.flag[now % 3].store(1, std::memory_order_relaxed);
        if (team.waiting.fetch_add(1, std::memory_order_acq_rel) + 1 == team.size) {
            team.waiting.store(0, std::memory_order_relaxed);
            team.flag[(now + 1) % 3].store(0, std::memory_order_relaxed);
            team.generation.store(now + 1, std::memory_order_release);
        } else {
            while (team.generation.load(std::memory_order_acquire) == now) sched_yield();
        }
        return team.flag[now % 3].load(std::memory_order_relaxed);
    }
};

struct alignas(128) Counter { baton_u64 value = 0; };
struct Link { int from, to; Counter tail, head, sent, received; std::vector<char> data; };

// A communicator of n ranks on a ring (or chain) of links r -> r+1, with its state.
struct Communicator {
    int n, blocks;
    baton_u32 slots;
    std::vector<std::unique_ptr<Link>> links;                  // links[r]: r -> r+1 mod n
    std::vector<Counter> tokens;                               // awaited by rank r
    std::vector<std::vector<baton_u64*>> token_table;
    std::vector<std::vector<baton_connection>> connections;
    std::vector<std::vector<baton_peer>> peers;
    std::vector<baton_entry> entries;                          // [reader][writer][2]
    std::vector<std::array<baton_u64, 2>> told;                // [teller][peer]
    std::vector<Counter> acknowledged;                         // [writer][reader]
    std::vector<baton_rank_state> states;
    std::vector<std::vector<baton_error>> errors;
    std::vector<baton_u32> aborts;
    std::vector<baton_rank> ranks;
    baton_u64 window = 0;

    Communicator(int n, int blocks, baton_u32 slots, baton_u64 slot_bytes, bool local_token)
        : n(n), blocks(blocks), slots(slots), tokens(n), token_table(n), connections(n), peers(n), entries(n * n * 2),
          told(n * n), acknowledged(n * n), states(n), errors(n, std::vector<baton_error>(blocks)), aborts(n), ranks(n) {
        for (int r = 0; r < n; ++r) {
            links.push_back(std::make_unique<Link>());
            Link& link = *links[r];
            link.from = r, link.to = (r + 1) % n;
            link.data.resize(slots * slot_bytes + 16);
        }
        for (int r = 0; r < n; ++r) {
            Link &out = *links[r], &in = *links[(r + n - 1) % n];
            const auto end = [&](Link& link, baton_u64* position, int peer) {
                auto base = (reinterpret_cast<baton_u64>(link.data.data()) + 15) & ~15ull;
                return baton_connection{reinterpret_cast<void*>(base), &link.tail.value, &link.head.value, position,
                                        slot_bytes, slots, static_cast<baton_u32>(peer)};
            };
            connections[r] = {end(out, &out.sent.value, out.to), end(in, &in.received.value, in.from)};
            const int left = (r + n - 1) % n;
            token_table[r] = local_token ? std::vector<baton_u64*>{&tokens[r].value}
                                         : std::vector<baton_u64*>{&tokens[left].value, &tokens[r].value};
            for (int p = 0; p < n; ++p)
                peers[r].push_back(p == r ? baton_peer{}
                                          : baton_peer{&entries[(r * n + p) * 2], &entries[(p * n + r) * 2],
                                                       &acknowledged[r * n + p].value, &acknowledged[p * n + r].value,
                                                       &window, told[r * n + p].data()});
            ranks[r] = {static_cast<baton_u32>(r), static_cast<baton_u32>(n), static_cast<baton_u32>(r),
                        static_cast<baton_u32>(blocks), &states[r], connections[r].data(), peers[r].data(),
                        token_table[r].data(), &aborts[r], errors[r].data(), {0, 0, 0, 0}};
        }
    }
};

struct Call {
    baton_u64 count;
    baton_u32 tiles;
    int late = -1;              // rank that enters late
    int absent = -1;            // rank that never enters
    int other = -1;             // rank that enters another call
    baton_u64 timeout_ns = 20'000'000'000ull;
    int aborted_by = -1;        // rank whose abort word is raised during the call
    bool stop_all = false;      // the launcher raises all abort words when a rank ends with an error
};

using Buffers = std::vector<std::vector<int>>;

void run(baton_host_entry entry, Communicator& c, const Call& call, const Buffers& inputs, Buffers& outputs, int threads) {
    std::vector<baton_block> blocks;
    std::vector<baton_arguments> arguments(c.n);
    Buffers scratch(c.n);
    const baton_u64 stride = (call.count * 4 + 15) / 16 * 16 + 16;
    for (int r = 0; r < c.n; ++r)
        for (int b = 0; b < c.blocks; ++b)
            blocks.push_back({static_cast<baton_u32>(r), static_cast<baton_u32>(b)});
    baton_arguments base{};
    base.count = call.count, base.fingerprint = 1000 + call.count, base.timeout_ns = call.timeout_ns;
    base.scratch_stride = stride, base.tiles = call.tiles, base.last_tile = call.tiles;
    base.contributions = c.n, base.local_ranks = c.n, base.blocks = blocks.data();
    for (int r = 0; r < c.n; ++r) {
        scratch[r].resize(2 * stride / 4);
        baton_call& mine = base.calls[r];
        mine.rank = &c.ranks[r], mine.input = inputs[r].data(), mine.output = outputs[r].data();
        mine.scratch = scratch[r].data();
        mine.input_offset = reinterpret_cast<baton_u64>(mine.input);
        mine.output_offset = reinterpret_cast<baton_u64>(mine.output);
        mine.scratch_offset = reinterpret_cast<baton_u64>(mine.scratch);
    }
    std::vector<std::unique_ptr<Team>> teams;
    std::vector<std::thread> pool;
    for (int r = 0; r < c.n; ++r) {
        arguments[r] = base;
        if (call.other == r) arguments[r].fingerprint += 1;
        if (call.absent == r) continue;
        // Each rank is started by a thread of its own, which clears the output first: a peer that writes before the
        // rank has entered races with it.
        std::vector<Team*> mine;
        for (int b = 0; b < c.blocks; ++b) mine.push_back(teams.emplace_back(std::make_unique<Team>(threads)).get());
        pool.emplace_back([&, r, mine] {
            if (call.late == r) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            std::fill(outputs[r].begin(), outputs[r].end(), -1);
            std::vector<std::thread> team;
            for (int b = 0; b < c.blocks; ++b)
                for (int t = 0; t < threads; ++t)
                    team.emplace_back([&, r, b, t] {
                        const baton_host_thread host{static_cast<baton_u32>(r * c.blocks + b), static_cast<baton_u32>(t),
                                                     static_cast<baton_u32>(threads), 0, mine[b], &Team::arrive, &yield,
                                                     &now_ns};
                        entry(&arguments[r], &host);
                    });
            for (std::thread& each : team) each.join();
            if (call.stop_all && c.errors[r][0].code != BATON_OK)
                for (baton_u32& word : c.aborts) __atomic_store_n(&word, 1u, __ATOMIC_RELAXED);
        });
    }
    if (call.aborted_by >= 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        __atomic_store_n(&c.aborts[call.aborted_by], 1u, __ATOMIC_RELAXED);
    }
    for (std::thread& each : pool) each.join();
}

void fill(Buffers& buffers, std::mt19937& random) {
    for (auto& each : buffers)
        for (int& value : each) value = static_cast<int>(random());
}

void results(int threads) {
    struct Case { const char* name; baton_host_entry entry; bool chain; };
    const Case cases[] = {{"ring_staged", ring_staged, false}, {"ring_put", ring_put, false},
                          {"ring_get", ring_get, false}, {"chain_staged", chain_staged, true}};
    const std::vector<Call> calls = {{103, 3, 0}, {0, 1}, {5, 2, 1}, {260, 7}, {64, 1, 1}};
    std::mt19937 random(7);
    for (int n : {2, 3, 4})
        for (const Case& each : cases) {
            Communicator c(n, each.chain ? 2 : 1, 2, 1024, each.chain);
            for (const Call& call : calls) {
                Buffers inputs(n, std::vector<int>(call.count)), outputs(n, std::vector<int>(call.count));
                fill(inputs, random);
                run(each.entry, c, call, inputs, outputs, threads);
                for (int r = 0; r < n; ++r)
                    for (int b = 0; b < c.blocks; ++b)
                        if (c.errors[r][b].code != 0) {
                            std::fprintf(stderr, "%s: error %u, wait %u, rank %d, threadblock %d, instruction %u\n",
                                         each.name, c.errors[r][b].code, c.errors[r][b].wait, r, b,
                                         c.errors[r][b].instruction);
                            fail("a wait failed", n, r, b);
                        }
                for (int r = each.chain ? 1 : 0; r < n; ++r)
                    for (baton_u64 i = 0; i < call.count; ++i) {
                        unsigned expected = 0;
                        for (int p = 0; p < n; ++p)
                            if (!each.chain || p == 0) expected += static_cast<unsigned>(inputs[p][i]);
                        if (outputs[r][i] != static_cast<int>(expected)) {
                            std::fprintf(stderr, "%s: ", each.name);
                            fail("wrong element", n, r, static_cast<long>(i));
                        }
                    }
            }
            for (int r = 0; r < n; ++r)
                if (c.states[r].epoch != calls.size() || c.states[r].finished != 0) fail("state", n, r);
        }
}

void failures(int threads) {
    const int n = 3;
    const auto run_once = [&](Call call, int warm) {
        auto c = std::make_unique<Communicator>(n, 1, 2, 1024, false);
        Buffers inputs(n, std::vector<int>(64, 1)), outputs(n, std::vector<int>(64));
        for (int i = 0; i < warm; ++i) run(ring_staged, *c, {64, 2}, inputs, outputs, threads);
        call.count = 64, call.tiles = 2;
        run(ring_staged, *c, call, inputs, outputs, threads);
        return c;
    };
    {   // Rank 1 never enters: rank 2 misses its record, the others end too.
        Call call{};
        call.absent = 1, call.timeout_ns = 200'000'000;
        auto c = run_once(call, 2);
        const baton_error& error = c->errors[2][0];
        if (error.code != BATON_TIMED_OUT || error.wait != BATON_WAIT_ENTRY) fail("absent", error.code, error.wait);
        if (error.rank != 2 || error.threadblock != 0 || error.peer != 1) fail("absent: place", error.rank, error.peer);
        if (error.expected != 3 || error.seen != 1 || error.epoch != 3)
            fail("absent: values", static_cast<long>(error.expected), static_cast<long>(error.seen));
        if (c->errors[0][0].code == BATON_OK) fail("absent: rank 0 did not notice");
        if (c->aborts[2] != 1) fail("absent: abort word");
        if (c->states[2].epoch != 2) fail("absent: epoch moved on");
    }
    {   // Rank 0 makes another call.
        Call call{};
        call.other = 0, call.stop_all = true;
        auto c = run_once(call, 0);
        const baton_error &one = c->errors[1][0], &zero = c->errors[0][0];
        if (one.code != BATON_MISMATCH || one.peer != 0 || one.expected != 1064 || one.seen != 1065)
            fail("mismatch at rank 1", one.code, one.peer, static_cast<long>(one.seen));
        // Rank 0 may have been stopped before it saw the record of rank 2.
        if (zero.code != BATON_ABORTED && (zero.code != BATON_MISMATCH || zero.peer != 2))
            fail("mismatch at rank 0", zero.code, zero.peer);
    }
    {   // The launcher gives up while rank 0 waits for an absent peer without a deadline.
        Call call{};
        call.absent = 2, call.timeout_ns = 0, call.aborted_by = 0;
        auto c = std::make_unique<Communicator>(n, 1, 2, 1024, false);
        Buffers inputs(n, std::vector<int>(64, 1)), outputs(n, std::vector<int>(64));
        call.count = 64, call.tiles = 2;
        // Rank 1 waits for rank 0's data: its own word is raised as a launcher raises all words of its ranks.
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(40));
            __atomic_store_n(&c->aborts[1], 1u, __ATOMIC_RELAXED);
        });
        run(ring_staged, *c, call, inputs, outputs, threads);
        other.join();
        if (c->errors[0][0].code != BATON_ABORTED) fail("abort", c->errors[0][0].code);
        if (c->errors[1][0].code != BATON_ABORTED) fail("abort at rank 1", c->errors[1][0].code, c->errors[1][0].wait);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) fail("usage: driver results|failures THREADS");
    const int threads = std::atoi(words[2]);
    if (std::strcmp(words[1], "results") == 0) results(threads);
    else failures(threads);
    return 0;
}
