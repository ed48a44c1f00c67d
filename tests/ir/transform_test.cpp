#include <baton/ir/transform.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>
#include <support/random_algorithm.hpp>
#include <support/small_algorithms.hpp>
#include <support/step_simulator.hpp>

#include <doctest/doctest.h>
#include <random>
#include <string>

using namespace baton;
using namespace baton::ir;
using Kind = CollectiveKind;

namespace {

/// "" when the algorithm is right by the verifier and, where that is small enough, by the simulator.
std::string fault(const Algorithm& algorithm) {
    try {
        verify(algorithm);
    } catch (const Error& error) {
        return std::string(error.what()) + "\n" + dump(algorithm);
    }
    if (algorithm.collective.ranks > 5) return {};
    const auto steps = expand(algorithm);
    return test::StepSimulator(algorithm.collective, steps).run_all().value_or("");
}

template <class Call>
std::string refusal(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
    if (text.find(part) != std::string::npos) return true;
    MESSAGE("\"" << part << "\" is not in: " << text);
    return false;
}

Algorithm make(Kind kind, int ranks, std::int64_t chunks, std::uint64_t seed, int root = 0) {
    std::mt19937_64 random(seed);
    return test::random_algorithm(test::collective(kind, ranks, chunks, root), random);
}

}  // namespace

TEST_CASE("the reverse of a right algorithm is right, for every kind, root, groups and weights") {
    std::mt19937_64 random(7);
    for (const Kind kind : standard_kinds()) {
        for (int trial = 0; trial < 80; ++trial) {
            Collective c = test::collective(kind, 1 + static_cast<int>(random() % 6),
                                            1 + static_cast<std::int64_t>(random() % 3));
            if (has_root(kind)) c.root = static_cast<int>(random() % static_cast<unsigned>(c.ranks));
            if (c.ranks >= 4 && trial % 3 == 0) {
                c.groups = {{3, 1}, {0, 2}};
                c.root = c.root % 2;
            }
            if (trial % 4 == 0) {
                for (int k = 0; k < c.chunks; ++k)
                    c.weights.push_back(1 + static_cast<std::int64_t>(random() % 5));
            }
            const Algorithm algorithm = test::random_algorithm(c, random);
            CAPTURE(describe(c));
            CAPTURE(trial);
            REQUIRE(fault(algorithm) == "");
            const Algorithm reversed = reverse(algorithm);
            CHECK(reversed.collective == reverse(c));
            CHECK(fault(reversed) == "");
            CHECK(fault(reverse(reversed)) == "");
            CHECK(reverse(reversed).collective.kind == kind);
        }
    }
}

TEST_CASE("reverses of hand-written algorithms are right") {
    for (int n = 1; n <= 9; ++n) {
        CAPTURE(n);
        CHECK(fault(reverse(test::ring_all_reduce(n))) == "");
        CHECK(fault(reverse(test::ring_all_gather(n))) == "");
        CHECK(fault(reverse(test::ring_all_gather(n, 3))) == "");
        CHECK(fault(reverse(test::one_shot_all_reduce(n))) == "");
        CHECK(fault(reverse(test::reduce_to_root(n, n / 2))) == "");
        CHECK(fault(reverse(test::chain_broadcast(n, n - 1, 4))) == "");
        CHECK(fault(reverse(test::direct_all_to_all(n, 2))) == "");
        CHECK(fault(reverse(test::scratch_reduce_scatter(n))) == "");
        if ((n & (n - 1)) == 0) CHECK(fault(reverse(test::recursive_doubling(n, 3))) == "");
    }
}

TEST_CASE(
    "a reversed ring all-gather moves as many messages as the ring, the other way, and only runs of chunks") {
    const Algorithm reversed = reverse(test::ring_all_gather(8, 1000));
    CHECK(reversed.collective.kind == Kind::reduce_scatter);
    int messages = 0;
    for (const Step& step : expand(reversed)) {
        CHECK(step.chunks == 1000);
        if (!step.crosses()) continue;
        ++messages;
        CHECK(step.op == StepOp::send_reduce);
        CHECK(step.dst_rank == (step.src_rank + 7) % 8);
    }
    CHECK(messages == 8 * 7);
    CHECK(reversed.step_count() ==
          8 * 7 * 2 + 8);  // each rank makes room for N-1 partial sums and stores one
}

TEST_CASE("scatter and gather, broadcast and reduce are inverse") {
    for (int n = 1; n <= 5; ++n) {
        for (int root = 0; root < n; ++root) {
            CHECK(reverse(test::collective(Kind::scatter, n, 2, root)) ==
                  test::collective(Kind::gather, n, 2, root));
            CHECK(fault(reverse(make(Kind::scatter, n, 2, 3, root))) == "");
            CHECK(fault(reverse(make(Kind::gather, n, 2, 4, root))) == "");
            CHECK(fault(reverse(make(Kind::broadcast, n, 2, 5, root))) == "");
            CHECK(fault(reverse(make(Kind::reduce, n, 2, 6, root))) == "");
        }
    }
    Collective c = test::collective(Kind::send_recv, 5, 2, 3);
    CHECK(reverse(c).root == 4);
    CHECK(reverse(c).peer == 3);
}

TEST_CASE("what cannot be reversed is refused in words") {
    CHECK(contains(refusal([] { reverse(test::collective(Kind::custom, 2, 1)); }),
                   "a custom collective has no reverse"));
    AlgorithmBuilder b("a", test::collective(Kind::all_reduce, 2, 1));
    b.copy({0, Buffer::input, 0}, {0, Buffer::input, 0});
    CHECK(contains(refusal([&] { reverse(b.build()); }), "an input is written"));
    AlgorithmBuilder far("a", test::collective(Kind::all_reduce, 2, 1));
    far.copy({0, Buffer::input, 0}, {0, Buffer::output, 1});
    CHECK(contains(refusal([&] { reverse(far.build()); }), "output of rank 0 has 1 places"));
    const auto nvls = parse_algorithm(R"({"baton": "algorithm/1", "name": "m", "switch_groups": [[0, 1]],
        "collective": {"kind": "broadcast", "ranks": 2, "chunks": 1},
        "steps": [{"op": "multicast", "src": [0, "input", 0], "dst": [0, "output", 0]}]})");
    CHECK(contains(refusal([&] { reverse(nvls); }), "a switch step has no reverse"));
}

TEST_CASE("named pairs make the collective they should, and the algorithms one after the other are right") {
    std::mt19937_64 random(19);
    struct Pair {
        Kind first, second, result;
    };
    for (const Pair pair : {Pair{Kind::reduce, Kind::broadcast, Kind::all_reduce},
                            Pair{Kind::reduce_scatter, Kind::all_gather, Kind::all_reduce},
                            Pair{Kind::gather, Kind::broadcast, Kind::all_gather},
                            Pair{Kind::reduce, Kind::scatter, Kind::reduce_scatter},
                            Pair{Kind::scatter, Kind::all_gather, Kind::broadcast},
                            Pair{Kind::reduce_scatter, Kind::gather, Kind::reduce}}) {
        for (int trial = 0; trial < 60; ++trial) {
            const int n = 1 + static_cast<int>(random() % 6);
            const std::int64_t k = 1 + static_cast<std::int64_t>(random() % 3);
            const bool grouped = n >= 4 && trial % 3 == 0;
            const int root = static_cast<int>(random() % static_cast<unsigned>(grouped ? 2 : n));
            const bool sharded = has_shards(pair.first) || has_shards(pair.second);
            const auto one = [&](Kind kind) {
                const std::int64_t shards = sharded && !has_shards(kind) ? (grouped ? 2 : n) : 1;
                Collective c = test::collective(kind, n, k * shards, has_root(kind) ? root : 0);
                if (grouped) c.groups = {{3, 1}, {0, 2}};
                if (trial % 4 == 0) {
                    for (std::int64_t i = 0; i < c.chunks; ++i) c.weights.push_back(i % k + 1);
                }
                return c;
            };
            const Algorithm first = test::random_algorithm(one(pair.first), random),
                            second = test::random_algorithm(one(pair.second), random);
            CAPTURE(describe(first.collective));
            CAPTURE(describe(second.collective));
            const Algorithm whole = concatenate(first, second);
            CHECK(whole.collective.kind == pair.result);
            CHECK(whole.collective.groups == first.collective.groups);
            CHECK(fault(whole) == "");
        }
    }
}

TEST_CASE("all_to_all twice is the identity") {
    for (int n = 1; n <= 5; ++n) {
        for (const std::int64_t chunks : {1, 2}) {
            const Algorithm twice = concatenate(test::direct_all_to_all(n, static_cast<int>(chunks)),
                                                make(Kind::all_to_all, n, chunks, 23));
            REQUIRE(twice.collective.kind == Kind::custom);
            for (int rank = 0; rank < n; ++rank) {
                REQUIRE(twice.collective.places(rank, Buffer::output) == n * chunks);
                for (std::int64_t i = 0; i < n * chunks; ++i) {
                    const auto output = twice.collective.output(rank, i);
                    const auto input = twice.collective.input(rank, i);
                    CHECK(output.chunk_class == input.chunk_class);
                    CHECK(output.contributions == std::vector<Contribution>{{rank, input.shard}});
                }
            }
            CHECK(fault(twice) == "");
        }
    }
}

TEST_CASE("an algorithm and its reverse make an all_reduce") {
    for (int n = 1; n <= 6; ++n) {
        const Algorithm gather = test::ring_all_gather(n, 2);
        const Algorithm whole = concatenate(reverse(gather), gather);
        CHECK(whole.collective.kind == Kind::all_reduce);
        CHECK(whole.collective.chunks == 2 * n);
        CHECK(fault(whole) == "");
        const Algorithm spread = test::chain_broadcast(n, n - 1, 3);
        CHECK(fault(concatenate(reverse(spread), spread)) == "");
    }
}

TEST_CASE("pairs that do not fit are refused in words") {
    const auto words = [](const Collective& a, const Collective& b) {
        return refusal([&] { concatenate(a, b); });
    };
    CHECK(contains(words(test::collective(Kind::reduce, 4, 1), test::collective(Kind::broadcast, 5, 1)),
                   "different numbers of ranks"));
    CHECK(contains(words(test::collective(Kind::reduce, 4, 1, 1), test::collective(Kind::broadcast, 4, 1, 2)),
                   "the first ends at root 1, the second starts at root 2"));
    CHECK(contains(words(test::collective(Kind::reduce, 4, 1), test::collective(Kind::broadcast, 4, 2)),
                   "the first leaves 1 chunks, the second takes 2"));
    CHECK(contains(words(test::collective(Kind::gather, 4, 2), test::collective(Kind::broadcast, 4, 2)),
                   "the first leaves 8 chunks, the second takes 2"));
    CHECK(contains(words(test::collective(Kind::broadcast, 4, 1), test::collective(Kind::reduce, 4, 1)),
                   "an input would be added to output 0 of rank 0 twice"));
    CHECK(
        contains(words(test::collective(Kind::broadcast, 4, 1), test::collective(Kind::reduce_scatter, 4, 1)),
                 "the first leaves 1 places at rank 0, the second takes 4"));
    Collective heavy = test::collective(Kind::reduce, 4, 2);
    heavy.weights = {1, 3};
    CHECK(contains(words(heavy, test::collective(Kind::broadcast, 4, 2)), "weights differ"));
    heavy.weights = {1, 1};
    CHECK(words(heavy, test::collective(Kind::broadcast, 4, 2)) == "accepted");
    Collective grouped = test::collective(Kind::reduce, 4, 1);
    grouped.groups = {{0, 1}};
    CHECK(contains(words(grouped, test::collective(Kind::broadcast, 4, 1)), "different groups"));
    Algorithm a = test::reduce_to_root(2, 0), b = test::chain_broadcast(2, 0, 2);
    a.topology_hash = "11";
    b.topology_hash = "22";
    CHECK(contains(refusal([&] { concatenate(a, b); }), "different topologies"));
}
