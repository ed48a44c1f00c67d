// The C interface: calls from C and C++, misuse, ranks that differ, failures and recovery.
#include "c_api_c99.h"

#include <baton/runtime/baton.h>
#include <baton/codegen/lower.hpp>
#include <baton/codegen/write_module.hpp>
#include <baton/synth/fixed_patterns.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <atomic>
#include <barrier>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

using namespace baton;

namespace {

/// A folder with a fixed pattern for a collective; written once.
std::string folder_of(const std::string& pattern, ir::CollectiveKind kind, int ranks, int root = 0,
                      int peer = -1) {
    const std::string folder =
        fmt::format("{}/c_api_modules/{}_{}_{}_{}", BATON_BINARY_DIR, pattern, to_string(kind), ranks, root);
    static std::vector<std::string> written;
    if (std::find(written.begin(), written.end(), folder) != written.end()) return folder;
    synth::PatternOptions options;
    options.collective.kind = kind;
    options.collective.ranks = ranks;
    options.collective.root = root;
    options.collective.peer = peer;
    codegen::ModuleOptions module;
    module.emit.entries = codegen::pair_entries({ir::DataType::f32, ir::DataType::i32}, {ir::ReduceOp::sum});
    codegen::write_module(folder, codegen::lower(synth::fixed_pattern(pattern, options)), module);
    written.push_back(folder);
    return folder;
}

struct Plan {
    explicit Plan(const std::string& folder) {
        REQUIRE(baton_plan_load(folder.c_str(), &handle) == BATON_SUCCESS);
    }
    ~Plan() { baton_plan_destroy(handle); }
    baton_plan handle = nullptr;
};

struct Comms {
    explicit Comms(int ranks, std::int64_t timeout_ns = 10'000'000'000)
        : handles(static_cast<std::size_t>(ranks)) {
        baton_options options = BATON_OPTIONS_INIT;
        options.timeout_ns = timeout_ns;
        REQUIRE(baton_comm_init_all(handles.data(), ranks, &options) == BATON_SUCCESS);
    }
    ~Comms() {
        for (const baton_comm comm : handles) baton_comm_destroy(comm);
    }
    baton_comm operator[](int rank) const { return handles[static_cast<std::size_t>(rank)]; }
    std::vector<baton_comm> handles;
};

struct Outcome {
    baton_result result = BATON_SUCCESS;
    std::string words;
};

/// Each rank's calls from a thread of its own.
template <typename Call>
std::vector<Outcome> on_threads(int ranks, Call call) {
    std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
        threads.emplace_back([&, r] {
            Outcome& mine = outcomes[static_cast<std::size_t>(r)];
            mine.result = call(r);
            if (mine.result != BATON_SUCCESS) mine.words = baton_last_error();
        });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
}

using Ints = std::vector<std::vector<std::int32_t>>;

Ints numbers(int ranks, std::int64_t count) {
    Ints all(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
        for (std::int64_t i = 0; i < count; ++i)
            all[static_cast<std::size_t>(r)].push_back(static_cast<std::int32_t>(1000 * r + i));
    }
    return all;
}

std::int32_t sum_at(int ranks, std::int64_t i) {
    return static_cast<std::int32_t>(1000 * ranks * (ranks - 1) / 2 + ranks * i);
}

const auto kAllReduce = ir::CollectiveKind::all_reduce;

}  // namespace

TEST_CASE("C99: all ranks of a communicator from one thread") {
    for (const long count : {0L, 1L, 1000L})
        CHECK(c99_all_reduce(folder_of("ring", kAllReduce, 3).c_str(), 3, count) == 0);
}

TEST_CASE("C99: misuse of every function is refused in words") {
    CHECK(c99_misuse(folder_of("ring", kAllReduce, 3).c_str()) == 0);
}

TEST_CASE("a plan is described, bound and launched by ranks on threads of their own, also in place") {
    const int ranks = 3;
    const Plan plan(folder_of("ring", kAllReduce, ranks));
    const Comms comms(ranks);
    baton_plan_description description;
    REQUIRE(baton_plan_info(plan.handle, &description) == BATON_SUCCESS);
    CHECK(description.kind == BATON_ALL_REDUCE);
    CHECK(description.ranks == ranks);
    CHECK(description.peer == -1);
    CHECK(description.entries == 2);
    std::int64_t bytes = -1;
    REQUIRE(baton_plan_workspace(plan.handle, 0, 1 << 20, BATON_I32, BATON_SUM, &bytes) == BATON_SUCCESS);
    CHECK(bytes >= 0);
    REQUIRE(baton_plan_bind(plan.handle, comms[1], 1000, BATON_I32, BATON_SUM) == BATON_SUCCESS);
    for (const std::int64_t count : {1000, 7, 0}) {
        Ints buffers = numbers(ranks, count);
        const auto outcomes = on_threads(ranks, [&](int r) {
            std::int32_t* own = buffers[static_cast<std::size_t>(r)].data();
            return baton_plan_launch(plan.handle, own, own, count, BATON_I32, BATON_SUM, comms[r], nullptr);
        });
        for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.result == BATON_SUCCESS, outcome.words);
        for (const auto& own : buffers) {
            for (std::int64_t i = 0; i < count; ++i)
                CHECK(own[static_cast<std::size_t>(i)] == sum_at(ranks, i));
        }
    }
}

TEST_CASE("every kind has its call, and buffers that a rank does not have are ignored") {
    const int ranks = 3, root = 1;
    const std::int64_t count = 5;
    const Comms comms(ranks);
    for (const auto& [pattern, kind] : std::initializer_list<std::pair<const char*, ir::CollectiveKind>>{
             {"ring", ir::CollectiveKind::all_gather},
             {"ring", ir::CollectiveKind::reduce_scatter},
             {"binomial", ir::CollectiveKind::broadcast},
             {"binomial", ir::CollectiveKind::reduce},
             {"direct", ir::CollectiveKind::all_to_all},
             {"direct", ir::CollectiveKind::gather},
             {"direct", ir::CollectiveKind::scatter},
             {"direct", ir::CollectiveKind::send_recv}}) {
        const Plan plan(folder_of(pattern, kind, ranks, ir::has_root(kind) ? root : 0,
                                  kind == ir::CollectiveKind::send_recv ? 0 : -1));
        REQUIRE(baton_comm_add_plan(comms[2], plan.handle, 0, INT64_MAX, 0) == BATON_SUCCESS);
    }
    const Ints in = numbers(ranks, ranks * count);
    Ints out;
    const auto group = [&](auto call) {
        out.assign(ranks, std::vector<std::int32_t>(static_cast<std::size_t>(ranks * count), -1));
        REQUIRE(baton_group_start() == BATON_SUCCESS);
        for (int r = 0; r < ranks; ++r) {
            CHECK(call(in[static_cast<std::size_t>(r)].data(), out[static_cast<std::size_t>(r)].data(),
                       comms[r]) == BATON_SUCCESS);
        }
        const baton_result result = baton_group_end();
        REQUIRE_MESSAGE(result == BATON_SUCCESS, baton_last_error());
    };
    const auto at = [](int rank, std::int64_t i) { return static_cast<std::int32_t>(1000 * rank + i); };
    const auto check = [&](const char* name, auto expected) {
        for (int r = 0; r < ranks; ++r) {
            for (std::int64_t i = 0; i < ranks * count; ++i) {
                INFO(name, " rank ", r, " element ", i);
                CHECK(out[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)] == expected(r, i));
            }
        }
    };
    group([&](const void* s, void* r, baton_comm c) {
        return baton_all_gather(s, r, count, BATON_I32, c, nullptr);
    });
    check("all_gather", [&](int, std::int64_t i) { return at(static_cast<int>(i / count), i % count); });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_reduce_scatter(s, r, count, BATON_I32, BATON_SUM, c, nullptr);
    });
    check("reduce_scatter",
          [&](int r, std::int64_t i) { return i < count ? sum_at(ranks, r * count + i) : -1; });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_broadcast(s, r, count, BATON_I32, root, c, nullptr);
    });
    check("broadcast", [&](int, std::int64_t i) { return i < count ? at(root, i) : -1; });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_reduce(s, r, count, BATON_I32, BATON_SUM, root, c, nullptr);
    });
    check("reduce", [&](int r, std::int64_t i) { return r == root && i < count ? sum_at(ranks, i) : -1; });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_all_to_all(s, r, count, BATON_I32, c, nullptr);
    });
    check("all_to_all",
          [&](int r, std::int64_t i) { return at(static_cast<int>(i / count), r * count + i % count); });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_gather(s, r, count, BATON_I32, root, c, nullptr);
    });
    check("gather",
          [&](int r, std::int64_t i) { return r == root ? at(static_cast<int>(i / count), i % count) : -1; });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_scatter(s, r, count, BATON_I32, root, c, nullptr);
    });
    check("scatter", [&](int r, std::int64_t i) { return i < count ? at(root, r * count + i) : -1; });
    group([&](const void* s, void* r, baton_comm c) {
        return baton_send_recv(s, r, count, BATON_I32, root, 0, c, nullptr);
    });
    check("send_recv", [&](int r, std::int64_t i) { return r == 0 && i < count ? at(root, i) : -1; });
    // What no plan serves is refused with the reason of each plan.
    std::int32_t word = 0;
    CHECK(baton_broadcast(&word, &word, 1, BATON_I32, 2, comms[0], nullptr) == BATON_INVALID_INPUT);
    CHECK(std::strstr(baton_last_error(), "is for root 1, not 2") != nullptr);
    CHECK(baton_broadcast(&word, &word, 1, BATON_I64, root, comms[0], nullptr) == BATON_INVALID_INPUT);
    CHECK(std::strstr(baton_last_error(), "no entry for elements of 8 bytes") != nullptr);
}

TEST_CASE("counts that differ between ranks fail on every rank, and the communicator recovers") {
    const int ranks = 3;
    const Plan plan(folder_of("ring", kAllReduce, ranks));
    const Comms comms(ranks);
    REQUIRE(baton_comm_add_plan(comms[0], plan.handle, 0, INT64_MAX, 0) == BATON_SUCCESS);
    Ints in = numbers(ranks, 101), out = in;
    const auto call = [&](int r, std::int64_t count) {
        return baton_all_reduce(in[static_cast<std::size_t>(r)].data(),
                                out[static_cast<std::size_t>(r)].data(), count, BATON_I32, BATON_SUM,
                                comms[r], nullptr);
    };
    for (const bool grouped : {false, true}) {
        if (grouped) {
            REQUIRE(baton_group_start() == BATON_SUCCESS);
            for (int r = 0; r < ranks; ++r) CHECK(call(r, r == 1 ? 101 : 100) == BATON_SUCCESS);
            CHECK(baton_group_end() == BATON_CHECK_FAILED);
        } else {
            const auto outcomes = on_threads(ranks, [&](int r) { return call(r, r == 1 ? 101 : 100); });
            for (const Outcome& outcome : outcomes) {
                INFO(outcome.words);
                CHECK(outcome.result == BATON_CHECK_FAILED);
                CHECK((outcome.words.find("differs") != std::string::npos ||
                       outcome.words.find("another call") != std::string::npos));
            }
        }
        CHECK(baton_comm_async_error(comms[2]) == BATON_CHECK_FAILED);
        CHECK(call(0, 100) == BATON_CHECK_FAILED);
        REQUIRE(baton_comm_recover(comms[0]) == BATON_SUCCESS);
        CHECK(baton_comm_async_error(comms[2]) == BATON_SUCCESS);
        const auto outcomes = on_threads(ranks, [&](int r) { return call(r, 100); });
        for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.result == BATON_SUCCESS, outcome.words);
        for (int i = 0; i < 100; ++i) CHECK(out[2][static_cast<std::size_t>(i)] == sum_at(ranks, i));
    }
}

TEST_CASE("a rank that stays away runs the others into the deadline, and abort ends waits at once") {
    const int ranks = 3;
    const Plan plan(folder_of("ring", kAllReduce, ranks));
    Ints in = numbers(ranks, 10), out = in;
    for (const bool abort : {false, true}) {
        const Comms comms(ranks, abort ? 0 : 100'000'000);
        const auto outcomes = on_threads(ranks, [&](int r) {
            if (r != 1) {
                return baton_plan_launch(plan.handle, in[static_cast<std::size_t>(r)].data(),
                                         out[static_cast<std::size_t>(r)].data(), 10, BATON_I32, BATON_SUM,
                                         comms[r], nullptr);
            }
            if (!abort) return BATON_SUCCESS;
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            return baton_comm_abort(comms[1], "rank 1 has no data");
        });
        CHECK(outcomes[1].result == BATON_SUCCESS);
        for (const int r : {0, 2}) {
            const Outcome& mine = outcomes[static_cast<std::size_t>(r)];
            INFO(mine.words);
            CHECK(mine.result == BATON_CHECK_FAILED);
            CHECK(mine.words.find(abort ? "rank 1 has no data" : "deadline") != std::string::npos);
        }
        CHECK(baton_plan_launch(plan.handle, in[0].data(), out[0].data(), 10, BATON_I32, BATON_SUM, comms[0],
                                nullptr) == BATON_CHECK_FAILED);
    }
}

TEST_CASE("a group with a wrong call starts nothing, and its end says what was wrong") {
    const Plan plan(folder_of("ring", kAllReduce, 3));
    const Comms comms(3), two(2);
    Ints in = numbers(3, 10), out = in;
    REQUIRE(baton_group_start() == BATON_SUCCESS);
    REQUIRE(baton_group_start() == BATON_SUCCESS);
    for (int r = 0; r < 3; ++r) {
        const baton_result result =
            baton_plan_launch(plan.handle, in[0].data(), r == 1 ? nullptr : out[0].data(), 10, BATON_I32,
                              BATON_SUM, comms[r], nullptr);
        CHECK(result == (r == 1 ? BATON_INVALID_INPUT : BATON_SUCCESS));
    }
    CHECK(baton_group_end() == BATON_SUCCESS);
    CHECK(baton_group_end() == BATON_INVALID_INPUT);
    CHECK(std::string(baton_last_error()).find("rank 1: the output of 40 bytes is null") !=
          std::string::npos);
    CHECK(out == in);
    CHECK(baton_plan_launch(plan.handle, in[0].data(), out[0].data(), 10, BATON_I32, BATON_SUM, two[0],
                            nullptr) == BATON_INVALID_INPUT);
    CHECK(std::string(baton_last_error()).find("a plan for 3 ranks in a communicator of 2") !=
          std::string::npos);
    CHECK(baton_plan_launch(plan.handle, in[0].data(), out[0].data(), 10, BATON_I32, BATON_SUM, comms[0],
                            &in) == BATON_INVALID_INPUT);
    CHECK(baton_comm_async_error(comms[0]) == BATON_SUCCESS);
    // An empty group is none.
    REQUIRE(baton_group_start() == BATON_SUCCESS);
    CHECK(baton_group_end() == BATON_SUCCESS);
}

TEST_CASE("several calls and communicators in one group, complete and in part") {
    const Plan plan(folder_of("ring", kAllReduce, 3));
    const Comms a(3), b(3);
    Ints in = numbers(3, 64), first = in, second = in, third = in;
    const auto call = [&](const Comms& comms, Ints& out, int r) {
        return baton_plan_launch(plan.handle, in[static_cast<std::size_t>(r)].data(),
                                 out[static_cast<std::size_t>(r)].data(), 64, BATON_I32, BATON_SUM, comms[r],
                                 nullptr);
    };
    // One thread makes the calls of ranks 0 and 1 of b, another those of rank 2.
    const auto outcomes = on_threads(2, [&](int thread) {
        if (thread == 1) return call(b, third, 2);
        baton_group_start();
        for (int r = 0; r < 3; ++r) {
            call(a, first, r);
            call(a, second, r);
            if (r < 2) call(b, third, r);
        }
        return baton_group_end();
    });
    for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.result == BATON_SUCCESS, outcome.words);
    for (const Ints* out : {&first, &second, &third}) {
        for (const auto& own : *out) {
            for (int i = 0; i < 64; ++i) CHECK(own[static_cast<std::size_t>(i)] == sum_at(3, i));
        }
    }
}

TEST_CASE("ranks meet by a unique id or through the caller's all-gather") {
    const int ranks = 4;
    const Plan plan(folder_of("ring", kAllReduce, ranks));
    struct Store {
        std::barrier<> barrier{ranks};
        std::vector<char> bytes = std::vector<char>(64 * ranks);
        bool forge = false;
    } store;
    struct Context {
        Store* store;
        int rank;
    };
    const baton_all_gather_bytes gather = [](const void* mine, void* all, size_t bytes, void* context) {
        const auto& [own, rank] = *static_cast<Context*>(context);
        std::memcpy(own->bytes.data() + bytes * static_cast<std::size_t>(rank), mine, bytes);
        // The process number of an id lies behind its magic word and its random words.
        if (own->forge && rank == 3) own->bytes[bytes * 3 + 24] ^= 1;
        own->barrier.arrive_and_wait();
        std::memcpy(all, own->bytes.data(), own->bytes.size());
        return 0;
    };
    for (const bool callback : {false, true}) {
        baton_unique_id id;
        REQUIRE(baton_get_unique_id(&id) == BATON_SUCCESS);
        std::vector<baton_comm> comms(ranks);
        Ints in = numbers(ranks, 9), out = in;
        const auto outcomes = on_threads(ranks, [&](int r) {
            const std::size_t at = static_cast<std::size_t>(r);
            Context context{&store, r};
            baton_result result =
                callback ? baton_comm_init_gather(&comms[at], ranks, r, gather, &context, nullptr)
                         : baton_comm_init_rank(&comms[at], ranks, id, r, nullptr);
            if (result != BATON_SUCCESS) return result;
            result = baton_plan_launch(plan.handle, in[at].data(), out[at].data(), 9, BATON_I32, BATON_SUM,
                                       comms[at], nullptr);
            int count = 0, rank = -1, device = 0;
            if (baton_comm_count(comms[at], &count) != BATON_SUCCESS || count != ranks) return BATON_INTERNAL;
            if (baton_comm_rank(comms[at], &rank) != BATON_SUCCESS || rank != r) return BATON_INTERNAL;
            if (baton_comm_device(comms[at], &device) != BATON_SUCCESS || device != -1) return BATON_INTERNAL;
            return result;
        });
        for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.result == BATON_SUCCESS, outcome.words);
        for (const auto& own : out) CHECK(own[8] == sum_at(ranks, 8));
        for (const baton_comm comm : comms) CHECK(baton_comm_destroy(comm) == BATON_SUCCESS);
    }
    store.forge = true;
    const auto outcomes = on_threads(ranks, [&](int r) {
        Context context{&store, r};
        baton_comm comm = nullptr;
        return baton_comm_init_gather(&comm, ranks, r, gather, &context, nullptr);
    });
    for (const Outcome& outcome : outcomes) {
        CHECK(outcome.result == BATON_INVALID_INPUT);
        CHECK(outcome.words.find("threads of one process") != std::string::npos);
    }
}

TEST_CASE("ranks that cannot meet are told why, all of them") {
    baton_options options = BATON_OPTIONS_INIT;
    options.timeout_ns = 100'000'000;
    for (int fault = 0; fault < 4; ++fault) {
        baton_unique_id id;
        REQUIRE(baton_get_unique_id(&id) == BATON_SUCCESS);
        const auto outcomes = on_threads(3, [&](int r) {
            baton_options mine = options;
            baton_comm comm = nullptr;
            if (fault == 0 && r == 1) return BATON_CHECK_FAILED;  // stays away
            if (fault == 1 && r == 1) mine.slots = 8;
            return baton_comm_init_rank(&comm, fault == 2 && r == 1 ? 4 : 3, id, fault == 3 && r == 1 ? 0 : r,
                                        &mine);
        });
        const char* const words[] = {"rank 1 did not join before the deadline",
                                     "has other options than the others", "joins a communicator of",
                                     "two threads join as rank 0"};
        for (int r = 0; r < 3; ++r) {
            if (fault == 0 && r == 1) continue;
            const Outcome& mine = outcomes[static_cast<std::size_t>(r)];
            INFO(mine.words);
            CHECK(mine.result == BATON_CHECK_FAILED);
            CHECK(mine.words.find(words[fault]) != std::string::npos);
        }
    }
}

TEST_CASE("the header has the version of the project") {
    CHECK(fmt::format("{}.{}.{}", BATON_VERSION_MAJOR, BATON_VERSION_MINOR, BATON_VERSION_PATCH) ==
          BATON_PROJECT_VERSION);
}
