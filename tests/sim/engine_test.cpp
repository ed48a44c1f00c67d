// The parts of the engine: queue, bytes of steps, the graph of steps.
#include <baton/base/error.hpp>
#include <baton/sim/event_queue.hpp>
#include <baton/sim/step_bytes.hpp>
#include <baton/sim/step_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/small_algorithms.hpp"

using namespace baton;
using namespace baton::sim;
using namespace baton::test;

TEST_CASE("events come out by time, then by id, however they went in") {
    std::mt19937_64 dice(5);
    std::vector<Event> events;
    for (int i = 0; i < 3000; ++i) events.push_back({static_cast<std::int64_t>(dice() % 200), dice() % 1000});
    std::vector<Event> sorted = events;
    std::sort(sorted.begin(), sorted.end());
    for (int order = 0; order < 3; ++order) {
        std::shuffle(events.begin(), events.end(), dice);
        EventQueue queue;
        std::vector<Event> out;
        std::size_t pushed = 0;
        for (const Event& event : events) {
            queue.push(Time{event.picoseconds}, event.id);
            ++pushed;
            REQUIRE(queue.size() == pushed);
        }
        while (!queue.empty()) {
            CHECK(queue.top() == sorted[out.size()]);
            out.push_back(queue.pop());
        }
        CHECK(out == sorted);
    }
}

TEST_CASE("events pushed between pops keep their order") {
    EventQueue queue;
    std::vector<std::int64_t> out;
    std::mt19937_64 dice(6);
    queue.push(Time{0}, 0);
    std::int64_t last = 0;
    for (int i = 0; i < 2000; ++i) {
        const Event event = queue.pop();
        CHECK(event.picoseconds >= last);
        last = event.picoseconds;
        for (int n = static_cast<int>(dice() % 3) + (queue.size() < 3); n > 0; --n)
            queue.push(Time{last + static_cast<std::int64_t>(dice() % 50)}, dice() % 10);
    }
}

TEST_CASE("bytes of runs are what the partition says, tile by tile") {
    std::mt19937_64 dice(7);
    const auto between = [&](std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(dice() % static_cast<std::uint64_t>(high - low + 1));
    };
    for (int round = 0; round < 400; ++round) {
        ir::Collective c = collective(ir::CollectiveKind::all_gather, 4, between(1, 9));
        if (between(0, 1))
            for (std::int64_t k = 0; k < c.chunks; ++k) c.weights.push_back(between(1, 5));
        const Bytes shard{between(0, 1) ? between(0, 200) : between(0, 100'000)};
        const std::int64_t tiles = between(1, 12);
        const ir::Partition partition(c, shard.count, 16);
        const StepBytes bytes(c, shard, tiles);
        CAPTURE(shard.count);
        CAPTURE(c.chunks);
        CAPTURE(tiles);
        const std::vector<ClassRun> runs{{between(0, c.chunks - 1), between(1, 30)},
                                         {between(0, c.chunks - 1), between(1, 3)}};
        std::int64_t total = 0;
        for (std::int64_t tile = 0; tile < tiles; ++tile) {
            std::int64_t expected = 0;
            for (const ClassRun& run : runs)
                for (std::int64_t i = 0; i < run.count; ++i)
                    expected += partition.tile_range((run.first + i) % c.chunks, tile, tiles).size();
            CHECK(bytes(runs, tile) == expected);
            total += expected;
        }
        CHECK(StepBytes(c, shard, 1)(runs, 0) == total);
    }
}

TEST_CASE("sizes are those of nccl-tests") {
    using Kind = ir::CollectiveKind;
    CHECK(shard_bytes(collective(Kind::all_reduce, 8, 8), {1000}) == Bytes{1000});
    CHECK(shard_bytes(collective(Kind::all_gather, 8, 1), {1000}) == Bytes{125});
    CHECK(shard_bytes(collective(Kind::all_to_all, 8, 1), {1001}) == Bytes{125});
    CHECK(shard_bytes(collective(Kind::broadcast, 8, 4), {1001}) == Bytes{1001});
    CHECK(bus_factor(collective(Kind::all_reduce, 8, 1)) == doctest::Approx(1.75));
    CHECK(bus_factor(collective(Kind::all_gather, 8, 1)) == doctest::Approx(0.875));
    CHECK(bus_factor(collective(Kind::broadcast, 8, 1)) == 1);
    CHECK(bus_factor(collective(Kind::all_reduce, 1, 1)) == 1);
}

namespace {

/// All waits as "step after step", with the kind.
std::vector<std::tuple<int, int, Wait>> waits(const StepGraph& graph) {
    std::vector<std::tuple<int, int, Wait>> all;
    for (std::int64_t s = 0; s < graph.size(); ++s)
        for (const Successor& next : graph.successors(s))
            all.emplace_back(static_cast<int>(s), next.step, next.wait);
    return all;
}

}  // namespace

TEST_CASE("reads wait for writes, writes for reads and writes, of overlapping runs only") {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("waits", collective(ir::CollectiveKind::broadcast, 3, 4));
    b.copy({0, input, 0}, {0, output, 0}, 4);   // 0
    b.send({0, output, 0}, {1, output, 0}, 2);  // 1 reads 0
    b.send({0, output, 2}, {1, output, 2}, 2);  // 2 reads 0
    b.send({1, output, 1}, {2, output, 1}, 2);  // 3 reads 1 and 2
    b.send({0, output, 3}, {1, output, 1});     // 4 reads 0, overwrites what 3 reads and 1 wrote
    const StepGraph graph(b.build());
    const std::vector<std::tuple<int, int, Wait>> expected{
        {0, 1, Wait::start_after_commit}, {0, 2, Wait::start_after_commit},  {0, 4, Wait::start_after_commit},
        {1, 3, Wait::start_after_commit}, {1, 4, Wait::commit_after_commit}, {2, 3, Wait::start_after_commit},
        {3, 4, Wait::commit_after_left}};
    CHECK(waits(graph) == expected);
    CHECK(graph.step(3).start_waits == 2);
    CHECK(graph.step(4).commit_waits == 2);
}

TEST_CASE("a par block reads everything before it writes anything") {
    const StepGraph graph(recursive_doubling(2));
    // Copies 0 and 1; the exchange 2 and 3: each overwrites what the other reads.
    const std::vector<std::tuple<int, int, Wait>> expected{
        {0, 2, Wait::start_after_commit},  {0, 3, Wait::commit_after_commit},
        {1, 2, Wait::commit_after_commit}, {1, 3, Wait::start_after_commit},
        {2, 3, Wait::commit_after_left},   {3, 2, Wait::commit_after_left}};
    CHECK(waits(graph) == expected);
}

TEST_CASE("scratch remembers which classes it holds") {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("classes", collective(ir::CollectiveKind::all_gather, 2, 3));
    b.send({0, input, 1}, {1, scratch, 10}, 2);
    b.send({1, input, 0}, {0, scratch, 0});
    b.send({0, input, 0}, {1, scratch, 12});
    b.copy({1, scratch, 11}, {1, scratch, 20}, 2);
    const StepGraph graph(b.build());
    REQUIRE(graph.runs(3).size() == 1);  // classes 2 and 0 follow one another
    CHECK(graph.runs(3)[0].first == 2);
    CHECK(graph.runs(3)[0].count == 2);
}

TEST_CASE("places that do not exist are errors that name the step") {
    using enum ir::Buffer;
    const auto fails = [](ir::AlgorithmBuilder& b) {
        try {
            const StepGraph graph(b.build());
        } catch (const Error& error) {
            return error.kind() == ErrorKind::check_failed &&
                   std::string(error.what()).find("step 0") != std::string::npos;
        }
        return false;
    };
    ir::AlgorithmBuilder nothing("a", collective(ir::CollectiveKind::all_reduce, 2, 2));
    nothing.send({0, scratch, 0}, {1, output, 0});
    CHECK(fails(nothing));
    ir::AlgorithmBuilder outside("b", collective(ir::CollectiveKind::all_reduce, 2, 2));
    outside.send({0, input, 1}, {1, output, 1}, 2);
    CHECK(fails(outside));
    ir::AlgorithmBuilder writes("c", collective(ir::CollectiveKind::all_reduce, 2, 2));
    writes.send({0, input, 1}, {1, input, 1});
    CHECK(fails(writes));
}

TEST_CASE("too many steps are refused in words") {
    const StepGraph graph(ring_all_gather(8), {.steps = 20, .waits = 1000});
    CHECK(graph.size() == 0);
    CHECK(graph.refused().find("more than 20 steps") != std::string::npos);
}
