// The rules between calls, on hand-written kernels.
#include <baton/base/error.hpp>
#include <baton/runtime/communicator.hpp>
#include <baton/runtime/cpu_backend.hpp>

#include "hand_modules.hpp"

#include <doctest/doctest.h>

#include <random>
#include <thread>

using namespace baton;
using namespace baton::runtime;

namespace {

using Buffers = std::vector<std::vector<std::int32_t>>;

struct Case {
    Buffers inputs, outputs;
    CallArguments arguments;
    std::vector<RankBuffers> buffers;

    Case(int ranks, std::int64_t count, std::uint32_t seed, bool in_place = false) {
        std::mt19937 random(seed);
        arguments = {count, ir::DataType::i32, ir::ReduceOp::sum};
        for (int r = 0; r < ranks; ++r) {
            inputs.emplace_back(count + 1);
            for (auto& value : inputs.back()) value = static_cast<std::int32_t>(random());
            outputs.push_back(in_place ? inputs.back() : std::vector<std::int32_t>(count + 1, -1));
            buffers.push_back({});
        }
        for (int r = 0; r < ranks; ++r)
            buffers[r] = {in_place ? outputs[r].data() : inputs[r].data(), outputs[r].data()};
    }
    void clear() {
        for (auto& output : outputs) std::fill(output.begin(), output.end(), -1);
    }
    bool right() const {
        for (std::int64_t i = 0; i < arguments.count; ++i) {
            std::uint32_t sum = 0;
            for (const auto& input : inputs) sum += static_cast<std::uint32_t>(input[i]);
            for (const auto& output : outputs) {
                if (output[i] != static_cast<std::int32_t>(sum)) return false;
            }
        }
        return true;
    }
};

Plan hand_plan(const std::string& name, int ranks, std::int64_t tiles = 0, const std::string& before = {}) {
    Plan plan;
    plan.module = Module::from_source(test::hand_ring(name, ranks), test::hand_source(before));
    plan.tiles = tiles;
    return plan;
}

std::string failure_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

/// Calls of all ranks, each from its own thread; what each threw.
std::vector<std::string> on_threads(int ranks, const std::function<void(int)>& call) {
    std::vector<std::string> failures(ranks);
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] { failures[r] = failure_of([&] { call(r); }); });
    for (auto& thread : threads) thread.join();
    return failures;
}

}  // namespace

TEST_CASE("plans of different modes follow one another on one communicator, with any counts") {
    for (const bool fibers : {true, false}) {
        for (const int ranks : {2, 3, 5}) {
            CpuOptions cpu;
            cpu.fibers = fibers;
            CommunicatorOptions options;
            options.ranks = ranks;
            options.slot_bytes = 1024;
            Communicator communicator(cpu_backend(cpu), options);
            const std::vector<Plan> plans = {hand_plan("ring_staged", ranks, 3), hand_plan("ring_put", ranks),
                                             hand_plan("ring_get", ranks, 2)};
            std::uint32_t seed = 0;
            for (const int count : {103, 0, 1, 5000, 64, 0, 7}) {
                for (const Plan& plan : plans) {
                    ++seed;
                    Case one(ranks, count, seed, seed % 2 == 0 && plan.module->name() == "ring_staged");
                    const CallReport report = communicator.run(plan, one.arguments, one.buffers);
                    CHECK(report.tiles >= plan.tiles);
                    CHECK(one.right());
                }
            }
        }
    }
}

TEST_CASE("repeated launches keep the epochs of a rank's threadblocks apart") {
    CommunicatorOptions options;
    options.ranks = 4;
    Communicator communicator(cpu_backend(), options);
    const Plan plan = hand_plan("ring_staged", 4);
    Case one(4, 1000, 3);
    communicator.run(plan, one.arguments, one.buffers, 50);
    CHECK(one.right());
}

TEST_CASE("ranks on threads of their own, one of them late") {
    for (const std::string name : {"ring_staged", "ring_put", "ring_get"}) {
        CommunicatorOptions options;
        options.ranks = 3;
        Communicator communicator(cpu_backend(), options);
        const Plan plan = hand_plan(name, 3, 2);
        for (int late = 0; late < 3; ++late) {
            Case one(3, 500 + late, 9 + static_cast<std::uint32_t>(late));
            const auto failures = on_threads(3, [&](int r) {
                if (r == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
                // What a peer writes before this rank has entered is lost here.
                std::fill(one.outputs[r].begin(), one.outputs[r].end(), -1);
                communicator.run_rank(r, plan, one.arguments, one.buffers[r]);
            });
            for (const auto& failure : failures) CHECK(failure == "");
            CHECK(one.right());
        }
    }
}

TEST_CASE("a kernel that does not wait for entry loses what it writes to a late rank") {
    CommunicatorOptions options;
    options.ranks = 3;
    const Plan plan = hand_plan("ring_put", 3, 1, "#define BATON_MUTATE_NO_ENTRY_WAIT\n");
    Communicator communicator(cpu_backend(), options);
    bool caught = false;
    for (int round = 0; round < 3 && !caught; ++round) {
        Case warm(3, 300, 5);
        // A first call tells everybody where the buffers are.
        caught = !failure_of([&] { communicator.run(plan, warm.arguments, warm.buffers); }).empty();
        if (caught) break;
        const auto failures = on_threads(3, [&](int r) {
            if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
            std::fill(warm.outputs[r].begin(), warm.outputs[r].end(), -1);
            communicator.run_rank(r, plan, warm.arguments, warm.buffers[r]);
        });
        for (const auto& failure : failures) caught |= !failure.empty();
        caught |= !warm.right();
    }
    CHECK(caught);
}

TEST_CASE("different calls on two ranks are an error on every rank, and the communicator recovers") {
    CommunicatorOptions options;
    options.ranks = 3;
    Communicator communicator(cpu_backend(), options);
    const Plan plan = hand_plan("ring_staged", 3), other = hand_plan("ring_put", 3);
    Case one(3, 100, 1), two(3, 101, 1);
    for (int kind = 0; kind < 2; ++kind) {
        const auto failures = on_threads(3, [&](int r) {
            const bool odd = r == 1;
            const Case& mine = odd && kind == 0 ? two : one;
            communicator.run_rank(r, odd && kind == 1 ? other : plan, mine.arguments, mine.buffers[r]);
            communicator.wait(r);
        });
        for (const auto& failure : failures) {
            INFO(failure);
            CHECK((failure.find("differs") != std::string::npos ||
                   failure.find("another call") != std::string::npos));
        }
        CHECK(communicator.failure() != "");
        CHECK(failure_of([&] { communicator.run(plan, one.arguments, one.buffers); }) != "");
        communicator.recover();
        one.clear();
        communicator.run(plan, one.arguments, one.buffers);
        CHECK(one.right());
    }
}

TEST_CASE("a rank that never calls runs the others into the deadline, with who waited for whom") {
    CommunicatorOptions options;
    options.ranks = 3;
    options.timeout = std::chrono::milliseconds(200);
    Communicator communicator(cpu_backend(), options);
    const Plan plan = hand_plan("ring_staged", 3);
    Case one(3, 100, 1);
    communicator.run(plan, one.arguments, one.buffers);
    const auto failures = on_threads(3, [&](int r) {
        if (r != 1) communicator.run_rank(r, plan, one.arguments, one.buffers[r]);
    });
    CHECK(failures[1] == "");
    for (const int r : {0, 2}) {
        INFO(failures[r]);
        // Rank 2 waits for rank 1, rank 0 for rank 2; either may be the first to reach its deadline.
        const bool entry =
            failures[r].find(
                "rank 2, threadblock 0, instruction 0 ran past the deadline waiting for the entry "
                "into the call of rank 1: expected 2, seen 0") != std::string::npos;
        const bool message =
            failures[r].find(
                "rank 0, threadblock 0, instruction 1 ran past the deadline waiting for a message "
                "of rank 2: expected 5, seen 4") != std::string::npos;
        CHECK((entry || message));
    }
    communicator.recover();
    CHECK(communicator.generation() == 2);
    one.clear();
    communicator.run(plan, one.arguments, one.buffers);
    CHECK(one.right());
}

TEST_CASE("abort ends waits without a deadline") {
    CommunicatorOptions options;
    options.ranks = 3;
    options.timeout = std::chrono::nanoseconds(0);
    Communicator communicator(cpu_backend(), options);
    const Plan plan = hand_plan("ring_staged", 3);
    Case one(3, 100, 1);
    const auto failures = on_threads(3, [&](int r) {
        if (r == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            communicator.abort("rank 1 has lost its data");
        } else {
            communicator.run_rank(r, plan, one.arguments, one.buffers[r]);
        }
    });
    CHECK(failures[0].find("rank 1 has lost its data") != std::string::npos);
    CHECK(failures[2].find("rank 1 has lost its data") != std::string::npos);
}

TEST_CASE("plans are chosen by kind, size and entries, with a fallback, and refusals say why") {
    CommunicatorOptions options;
    options.ranks = 2;
    Communicator communicator(cpu_backend(), options);
    Plan small = hand_plan("ring_staged", 2), fallback = hand_plan("ring_get", 2);
    small.from = 64, small.below = 4096;
    fallback.fallback = true;
    communicator.add_plan(fallback);
    communicator.add_plan(small);
    CollectiveCall call;
    call.arguments = {16, ir::DataType::i32, ir::ReduceOp::sum};
    CHECK(call_size(call, 2) == 64);
    CHECK(communicator.choose(call).module->name() == "ring_staged");
    call.arguments.count = 15;
    CHECK(communicator.choose(call).module->name() == "ring_get");
    CHECK(communicator.explain(call) ==
          "ring_get: eligible as fallback\nring_staged: is for 64 to 4096 bytes, not 60");
    call.arguments.type = ir::DataType::f32;
    CHECK_THROWS_WITH_AS(communicator.choose(call),
                         doctest::Contains("ring_staged: is for 64 to 4096 bytes, not 60"), Error);
    CHECK_THROWS_WITH_AS(communicator.choose(call), doctest::Contains("has no entry for sum of f32"), Error);
    call.kind = ir::CollectiveKind::broadcast;
    CHECK_THROWS_WITH_AS(communicator.choose(call), doctest::Contains("is for all_reduce"), Error);
    CHECK_THROWS_WITH_AS(communicator.add_plan(hand_plan("ring_get", 3)),
                         doctest::Contains("a plan for 3 ranks in a communicator of 2"), Error);
}

TEST_CASE("buffers that cannot be are refused before anything runs") {
    CommunicatorOptions options;
    options.ranks = 2;
    Communicator communicator(cpu_backend(), options);
    const Plan plan = hand_plan("ring_staged", 2);
    Case one(2, 100, 1);
    auto buffers = one.buffers;
    buffers[1].input = nullptr;
    CHECK_THROWS_WITH_AS(communicator.run(plan, one.arguments, buffers),
                         doctest::Contains("rank 1: the input of 400 bytes is null"), Error);
    buffers = one.buffers;
    buffers[0].input = one.outputs[0].data() + 1;
    CHECK_THROWS_WITH_AS(communicator.run(plan, one.arguments, buffers), doctest::Contains("overlap in part"),
                         Error);
    buffers = one.buffers;
    buffers[0].output = reinterpret_cast<char*>(one.outputs[0].data()) + 2;
    CHECK_THROWS_WITH_AS(communicator.run(plan, one.arguments, buffers),
                         doctest::Contains("not aligned to 4 bytes"), Error);
    CallArguments negative = one.arguments;
    negative.count = -1;
    CHECK_THROWS_AS(communicator.run(plan, negative, one.buffers), Error);
    communicator.run(plan, one.arguments, one.buffers);
    CHECK(one.right());
}
