// Runs emitted modules: ranks as teams of threads in one process, everything laid out as codegen/prelude/abi.h says.
// Usage: driver CASES THREADS; CASES is a text file (tests/support/module_cases.hpp writes it). The entries are linked
// in and found by name. Exit: 0 right, 3 a check failed (its words on stderr); the sanitizer's own code otherwise.

#include "abi.h"

#include <dlfcn.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;

std::string current;  // case and call, for messages

[[noreturn]] void fail(const std::string& what) {
    std::fprintf(stderr, "check failed: %s: %s\n", current.c_str(), what.c_str());
    std::_Exit(3);
}

struct Reader {
    std::ifstream in;
    long number() {
        long value = 0;
        if (!(in >> value)) fail("the case file ends early");
        return value;
    }
    std::string word() {
        std::string value;
        if (!(in >> value)) fail("the case file ends early");
        return value;
    }
    Bytes bytes() {
        const std::string text = word();  // "-" or hexadecimal
        Bytes out;
        for (std::size_t i = 0; text != "-" && i + 1 < text.size(); i += 2)
            out.push_back(static_cast<unsigned char>(std::stoi(text.substr(i, 2), nullptr, 16)));
        return out;
    }
};

baton_u64 now_ns(void*) { return static_cast<baton_u64>(std::chrono::steady_clock::now().time_since_epoch().count()); }
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

// Memory with guard bytes on both sides; begins at 16 bytes plus `shift`.
struct Memory {
    Bytes all;
    std::size_t begin = 0, size = 0;
    static constexpr std::size_t kGuard = 64;
    Memory(std::size_t size, std::size_t shift = 0) : all(size + 2 * kGuard + 32, 0xa5), size(size) {
        begin = kGuard + (16 - reinterpret_cast<std::size_t>(all.data() + kGuard) % 16) % 16 + shift;
    }
    unsigned char* data() { return all.data() + begin; }
    void check(const char* what) const {
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((i < begin || i >= begin + size) && all[i] != 0xa5) fail(std::string("written outside of ") + what);
    }
};

struct Connection {
    int src, dst, slots;  // 0 slots: put or get
    baton_u64 slot_bytes;
    Counter tail, head, sent, received;
    std::unique_ptr<Memory> data;
};

struct Rank {
    int threadblocks = 0;
    long scratch_places = 0;
    std::vector<std::pair<int, int>> ends;  // connection, sends
    std::vector<int> token_numbers, peer_list;
    std::vector<baton_connection> connections;
    std::vector<baton_peer> peers;
    std::vector<baton_u64*> tokens;
    std::vector<baton_error> errors;
    baton_rank_state state{};
    baton_u32 abort = 0;
    baton_rank abi{};
};

struct Communicator {
    int n = 0;
    std::vector<std::unique_ptr<Connection>> connections;
    std::vector<Counter> tokens;
    std::vector<std::unique_ptr<Rank>> ranks;
    std::vector<baton_entry> entries;               // [reader][writer][2]
    std::vector<std::array<baton_u64, 2>> told;     // [teller][peer]
    std::vector<Counter> acknowledged;              // [writer][reader]
    baton_u64 window = 0;

    explicit Communicator(Reader& in) {
        n = static_cast<int>(in.number());
        for (long c = in.number(); c > 0; --c) {
            auto& connection = *connections.emplace_back(std::make_unique<Connection>());
            connection.src = static_cast<int>(in.number());
            connection.dst = static_cast<int>(in.number());
            connection.slots = static_cast<int>(in.number());
            connection.slot_bytes = static_cast<baton_u64>(in.number());
            connection.data = std::make_unique<Memory>(connection.slots * connection.slot_bytes);
        }
        tokens = std::vector<Counter>(in.number());
        for (int r = 0; r < n; ++r) {
            Rank& rank = *ranks.emplace_back(std::make_unique<Rank>());
            rank.threadblocks = static_cast<int>(in.number());
            rank.scratch_places = in.number();
            for (long k = in.number(); k > 0; --k) {
                const int connection = static_cast<int>(in.number());
                rank.ends.emplace_back(connection, static_cast<int>(in.number()));
            }
            for (long k = in.number(); k > 0; --k) rank.token_numbers.push_back(static_cast<int>(in.number()));
            for (long k = in.number(); k > 0; --k) rank.peer_list.push_back(static_cast<int>(in.number()));
        }
        entries = std::vector<baton_entry>(n * n * 2);
        told = std::vector<std::array<baton_u64, 2>>(n * n);
        acknowledged = std::vector<Counter>(n * n);
        for (int r = 0; r < n; ++r) bind(r);
    }

    void bind(int r) {
        Rank& rank = *ranks[r];
        for (const auto& [number, sends] : rank.ends) {
            Connection& c = *connections[number];
            if ((sends ? c.src : c.dst) != r) fail("the manifest gives a rank another's connection");
            rank.connections.push_back({c.slots > 0 ? c.data->data() : nullptr, &c.tail.value, &c.head.value,
                                        sends ? &c.sent.value : &c.received.value, c.slot_bytes,
                                        static_cast<baton_u32>(c.slots), static_cast<baton_u32>(sends ? c.dst : c.src)});
        }
        for (const int token : rank.token_numbers) rank.tokens.push_back(&tokens[token].value);
        rank.peers.resize(n);
        for (const int p : rank.peer_list)
            rank.peers[p] = {&entries[(r * n + p) * 2], &entries[(p * n + r) * 2], &acknowledged[r * n + p].value,
                             &acknowledged[p * n + r].value, &window, told[r * n + p].data()};
        rank.errors.resize(rank.threadblocks);
        rank.abi = {static_cast<baton_u32>(r), static_cast<baton_u32>(n), static_cast<baton_u32>(r),
                    static_cast<baton_u32>(rank.threadblocks), &rank.state, rank.connections.data(), rank.peers.data(),
                    rank.tokens.data(), &rank.abort, rank.errors.data(), {0, 0, 0, 0}};
    }
};

// The buffers of one rank in one call. In place, one of the two lies within the other at `offset`.
struct Buffers {
    Bytes input, expected;
    bool has_input = false, has_output = false;
    int place = 0;              // 0: apart; 1: input within output; 2: output within input
    long offset = 0;
    std::unique_ptr<Memory> first, second;  // second: only apart
    unsigned char *in = nullptr, *out = nullptr;

    void allocate(std::size_t shift_in, std::size_t shift_out) {
        if (place == 0) {
            if (has_input) first = std::make_unique<Memory>(input.size(), shift_in), in = first->data();
            if (has_output) second = std::make_unique<Memory>(expected.size(), shift_out), out = second->data();
        } else if (place == 1) {
            first = std::make_unique<Memory>(expected.size(), shift_out);
            out = first->data(), in = out + offset;
        } else {
            first = std::make_unique<Memory>(input.size(), shift_in);
            in = first->data(), out = in + offset;
        }
    }
    void fill() {
        if (out) std::memset(out, 0xee, expected.size());
        if (in) std::memcpy(in, input.data(), input.size());
    }
    void check(int r) {
        if (out && std::memcmp(out, expected.data(), expected.size()) != 0) {
            std::size_t at = 0;
            while (out[at] == expected[at]) ++at;
            fail("rank " + std::to_string(r) + ": byte " + std::to_string(at) + " of " + std::to_string(expected.size()) +
                 " is " + std::to_string(out[at]) + " instead of " + std::to_string(expected[at]));
        }
        if (place == 0 && in && std::memcmp(in, input.data(), input.size()) != 0) fail("rank " + std::to_string(r) + ": its input was written");
        if (first) first->check("input or output");
        if (second) second->check("output");
        if (in) std::memset(in, 0x55, input.size());  // a peer that still reads or writes races with this
        if (out) std::memset(out, 0x55, expected.size());
    }
};

void call(baton_host_entry entry, Communicator& c, Reader& in, int threads) {
    baton_arguments base{};
    base.count = in.number(), base.tiles = in.number(), base.scratch_stride = in.number(), base.contributions = in.number();
    const int segments = static_cast<int>(in.number());
    const std::size_t shift_in = in.number(), shift_out = in.number();
    base.fingerprint = 77 + base.count, base.timeout_ns = 120'000'000'000ull, base.local_ranks = c.n;
    std::vector<Buffers> buffers(c.n);
    std::vector<std::unique_ptr<Memory>> scratch;
    std::vector<baton_block> blocks;
    std::vector<int> first_block;
    for (int r = 0; r < c.n; ++r) {
        Buffers& mine = buffers[r];
        mine.has_input = in.number(), mine.has_output = in.number(), mine.place = in.number(), mine.offset = in.number();
        mine.input = in.bytes(), mine.expected = in.bytes();
        mine.allocate(shift_in, shift_out);
        scratch.push_back(std::make_unique<Memory>(c.ranks[r]->scratch_places * base.scratch_stride));
        first_block.push_back(static_cast<int>(blocks.size()));
        for (int b = 0; b < c.ranks[r]->threadblocks; ++b) blocks.push_back({static_cast<baton_u32>(r), static_cast<baton_u32>(b)});
        baton_call& abi = base.calls[r];
        abi.rank = &c.ranks[r]->abi, abi.input = mine.in, abi.output = mine.out, abi.scratch = scratch[r]->data();
        abi.input_offset = reinterpret_cast<baton_u64>(abi.input), abi.output_offset = reinterpret_cast<baton_u64>(abi.output);
        abi.scratch_offset = reinterpret_cast<baton_u64>(abi.scratch);
    }
    base.blocks = blocks.data();
    std::vector<std::thread> starters;
    for (int r = 0; r < c.n; ++r)
        // Each rank is started by a thread of its own, which fills its buffers first and looks at them right after: a
        // peer that touches them before the rank entered, or after it left, races with it.
        starters.emplace_back([&, r] {
            if (c.n > 1 && r == static_cast<int>(base.count) % c.n) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            buffers[r].fill();
            for (int segment = 0; segment < segments; ++segment) {
                baton_arguments arguments = base;
                arguments.first_tile = base.tiles * segment / segments, arguments.last_tile = base.tiles * (segment + 1) / segments;
                std::vector<std::unique_ptr<Team>> teams;
                std::vector<std::thread> pool;
                for (int b = 0; b < c.ranks[r]->threadblocks; ++b) {
                    Team* team = teams.emplace_back(std::make_unique<Team>(threads)).get();
                    for (int t = 0; t < threads; ++t)
                        pool.emplace_back([&, b, t, team] {
                            const baton_host_thread host{static_cast<baton_u32>(first_block[r] + b), static_cast<baton_u32>(t),
                                                         static_cast<baton_u32>(threads), 0, team, &Team::arrive, &yield, &now_ns};
                            entry(&arguments, &host);
                        });
                }
                for (std::thread& each : pool) each.join();
                for (std::size_t b = 0; b < c.ranks[r]->errors.size(); ++b) {
                    const baton_error& error = c.ranks[r]->errors[b];
                    if (error.code != BATON_OK)
                        fail("rank " + std::to_string(r) + ", threadblock " + std::to_string(b) + ", instruction " +
                             std::to_string(error.instruction) + ": code " + std::to_string(error.code) + ", wait " +
                             std::to_string(error.wait) + ", peer " + std::to_string(error.peer) + ", expected " +
                             std::to_string(error.expected) + ", seen " + std::to_string(error.seen));
                }
            }
            buffers[r].check(r);
        });
    for (std::thread& each : starters) each.join();
    for (auto& each : scratch) each->check("scratch");
    for (auto& each : c.connections) each->data->check("a slot");
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) fail("usage: driver CASES THREADS");
    const int threads = std::atoi(words[2]);
    Reader in{std::ifstream(words[1])};
    for (long cases = in.number(); cases > 0; --cases) {
        const std::string name = in.word();
        current = name;
        const auto entry = reinterpret_cast<baton_host_entry>(dlsym(RTLD_DEFAULT, in.word().c_str()));
        if (entry == nullptr) fail("no such entry");
        Communicator communicator(in);
        const long calls = in.number();
        for (long i = 0; i < calls; ++i) {
            current = name + ", call " + std::to_string(i);
            call(entry, communicator, in, threads);
        }
    }
    return 0;
}
