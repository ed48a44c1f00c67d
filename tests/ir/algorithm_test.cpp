#include <baton/ir/algorithm.hpp>

#include <baton/base/error.hpp>
#include <baton/ir/program.hpp>

#include <doctest/doctest.h>
#include <random>

using namespace baton::ir;

namespace {

Expression e(const char* text) { return Expression::parse(text); }

Collective all_reduce(int ranks, std::int64_t chunks) {
    Collective c;
    c.ranks = ranks;
    c.chunks = chunks;
    return c;
}

StepTemplate step(StepOp op, Expression src, Buffer src_buffer, Expression src_index, Expression dst,
                  Buffer dst_buffer, Expression dst_index) {
    StepTemplate t;
    t.op = op;
    t.src_rank = src;
    t.src_buffer = src_buffer;
    t.src_index = src_index;
    t.dst_rank = dst;
    t.dst_buffer = dst_buffer;
    t.dst_index = dst_index;
    return t;
}

std::shared_ptr<const Body> body(
    std::vector<std::variant<StepTemplate, Loop, Let, Branch, Parallel, ExplicitSteps>> items) {
    auto list = std::make_shared<Body>();
    for (auto& item : items) list->push_back({std::move(item), static_cast<int>(list->size())});
    return list;
}

Algorithm algorithm(int ranks, std::shared_ptr<const Body> items) {
    Algorithm a;
    a.name = "test";
    a.collective = all_reduce(ranks, ranks);
    a.body = *items;
    return a;
}

Algorithm ring(int ranks) {
    const auto move = [](StepOp op, const char* index) {
        return step(op, e("r"), Buffer::output, e(index), e("(r+1) mod N"), Buffer::output, e(index));
    };
    auto copy = step(StepOp::copy, e("r"), Buffer::input, e("0"), e("r"), Buffer::output, e("0"));
    copy.chunks = e("N");
    return algorithm(
        ranks,
        body({copy, Loop{"s", e("0"), e("N-1"), 1, 0, body({move(StepOp::send_reduce, "(r-s) mod N")})},
              Loop{"s", e("0"), e("N-1"), 1, 0, body({move(StepOp::send, "(r+1-s) mod N")})}}));
}

/// steps_of(rank) must be steps() filtered, positions included.
void check_cursors(const Algorithm& a) {
    const int ranks = a.collective.ranks;
    std::vector<std::vector<std::pair<std::int64_t, Step>>> expected(static_cast<std::size_t>(ranks));
    std::vector<std::int64_t> block(static_cast<std::size_t>(ranks),
                                    -1);  // par block of the last step of each rank
    auto all = a.steps();
    std::int64_t count = 0, blocks = 0;
    for (Step s; all.next(s); ++count) {
        CHECK(all.position() == count);
        if (!s.par) ++blocks;
        for (const int rank : {s.src_rank, s.dst_rank}) {
            const auto at = static_cast<std::size_t>(rank);
            if (rank == s.dst_rank && s.src_rank == s.dst_rank && !expected[at].empty() &&
                expected[at].back().first == count)
                continue;
            Step own = s;
            own.par = s.in_par && block[at] == blocks;
            block[at] = blocks;
            expected[at].emplace_back(count, own);
        }
    }
    CHECK(a.step_count() == count);
    for (int rank = 0; rank < ranks; ++rank) {
        auto cursor = a.steps_of(rank);
        std::size_t i = 0;
        const auto& list = expected[static_cast<std::size_t>(rank)];
        for (Step s; cursor.next(s); ++i) {
            REQUIRE(i < list.size());
            CHECK(cursor.position() == list[i].first);
            CHECK(s == list[i].second);
        }
        CHECK(i == list.size());
    }
}

std::string message(const Algorithm& a) {
    try {
        auto cursor = a.steps();
        for (Step s; cursor.next(s);) {
        }
    } catch (const baton::Error& error) {
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a ring written as two loops expands to its steps") {
    const auto a = ring(3);
    CHECK(a.step_count() == 3 + 2 * 2 * 3);
    CHECK(dump(a) ==
          "algorithm \"test\"\n"
          "all_reduce of 3 ranks, 3 chunks\n"
          "15 steps\n"
          "     0   copy [0, input, 0] -> [0, output, 0] x3\n"
          "     1   copy [1, input, 0] -> [1, output, 0] x3\n"
          "     2   copy [2, input, 0] -> [2, output, 0] x3\n"
          "     3   send_reduce [0, output, 0] -> [1, output, 0]\n"
          "     4   send_reduce [1, output, 1] -> [2, output, 1]\n"
          "     5   send_reduce [2, output, 2] -> [0, output, 2]\n"
          "     6   send_reduce [0, output, 2] -> [1, output, 2]\n"
          "     7   send_reduce [1, output, 0] -> [2, output, 0]\n"
          "     8   send_reduce [2, output, 1] -> [0, output, 1]\n"
          "     9   send [0, output, 1] -> [1, output, 1]\n"
          "    10   send [1, output, 2] -> [2, output, 2]\n"
          "    11   send [2, output, 0] -> [0, output, 0]\n"
          "    12   send [0, output, 0] -> [1, output, 0]\n"
          "    13   send [1, output, 1] -> [2, output, 1]\n"
          "    14   send [2, output, 2] -> [0, output, 2]\n");
    CHECK(ring(1).step_count() == 1);
    for (int n = 1; n <= 9; ++n) check_cursors(ring(n));
}

TEST_CASE("the steps of one rank are the steps in which it takes part") {
    const auto send = [](const char* from, const char* to) {
        return step(StepOp::send, e(from), Buffer::output, e("0"), e(to), Buffer::output, e("0"));
    };
    for (const int n : {1, 2, 5, 8}) {
        check_cursors(algorithm(n, body({send("(2-r) mod N", "(r+3) mod N")})));
        check_cursors(algorithm(
            n, body({send("r", "(r*r+1) mod N"), send("0", "r"), send("r", "N-1"), send("N-1-r", "r")})));
        check_cursors(algorithm(
            n, body({Parallel{body({send("r", "(r+1) mod N"), send("r", "(r-1) mod N"), send("0", "N/2")})},
                     Parallel{body({send("r", "0")})}, send("0", "0")})));
        check_cursors(algorithm(
            n, body({Branch{e("r mod 2 == 0"), body({send("r", "(r+1) mod N")}), body({send("r", "0")})}})));
        check_cursors(
            algorithm(n, body({Let{"half", e("N/2")}, Let{"p", e("(r+half) mod N")}, Let{"q", e("p")},
                               Loop{"i", e("0"), e("half"), 1, 0,
                                    body({send("r", "q"), Let{"p", e("i")}, send("p", "r")})}})));
        check_cursors(algorithm(
            n, body({Loop{"d", e("1"), e("N"), 1, 2,
                          body({Branch{e("(r xor d) < N"), body({send("r", "r xor d")}), nullptr}})},
                     Loop{"d", e("N-1"), e("0"), -1, 0,
                          body({Loop{"i", e("0"), e("d"), 1, 0, body({send("i", "d")})}})}})));
    }
    check_cursors(algorithm(8, body({Loop{"d", e("1"), e("N"), 1, 2, body({send("r", "r xor d")})}})));
}

TEST_CASE("chunks that come to nothing make no step") {
    auto t = step(StepOp::send, e("r"), Buffer::output, e("0"), e("(r+1) mod N"), Buffer::output, e("0"));
    t.chunks = e("r");
    check_cursors(algorithm(4, body({t})));
    CHECK(algorithm(4, body({t})).step_count() == 3);
    t.chunks = e("0-1");
    CHECK(contains(message(algorithm(4, body({t}))), "-1 chunks"));
}

TEST_CASE("templates stand for the positions of every group, explicit steps for ranks") {
    auto a = ring(3);
    a.collective = all_reduce(7, 3);
    a.collective.groups = {{4, 2, 0}, {6, 5, 1}};
    CHECK(a.step_count() == 30);
    auto cursor = a.steps();
    Step s;
    cursor.next(s);
    CHECK(s.src_rank == 4);
    check_cursors(a);
    a.collective.groups = {{4, 2, 0}, {6, 5}};
    CHECK(a.step_count() == 15 + 6);
    check_cursors(a);
    Step relay;
    relay.dst_rank = 3;
    a.body.push_back({ExplicitSteps{std::make_shared<const std::vector<Step>>(1, relay)}, 9});
    CHECK(a.step_count() == 15 + 6 + 1);
    check_cursors(a);
}

TEST_CASE("faults while walking name the step") {
    const auto send = [](const char* from, const char* to, const char* index = "0") {
        return step(StepOp::send, e(from), Buffer::output, e(index), e(to), Buffer::output, e("0"));
    };
    CHECK(contains(message(algorithm(4, body({send("0", "1"), send("r", "r+1")}))),
                   "test#/steps/1 at r = 3: the destination is rank 4"));
    CHECK(contains(message(algorithm(4, body({send("0", "1", "1 << 40")}))), "outside 0..2^31-1"));
    CHECK(contains(message(algorithm(4, body({send("0", "q")}))), "known here: r, N, C, root"));
    CHECK(
        contains(message(algorithm(4, body({Loop{"i", e("0"), e("r"), 1, 0, body({})}}))), "may not use r"));
    CHECK(contains(message(algorithm(4, body({Loop{"N", e("0"), e("1"), 1, 0, body({})}}))),
                   "taken by the format"));
    CHECK(contains(message(algorithm(4, body({Loop{"i", e("0"), e("4"), 1, 2, body({})}}))), "never ends"));
    CHECK(contains(message(algorithm(4, body({Loop{"i", e("0"), e("4"), 0, 0, body({})}}))), "must move"));
    CHECK(
        contains(message(algorithm(4, body({Parallel{body({Parallel{body({})}})}}))), "inside a par block"));
    CHECK(contains(
        message(algorithm(4, body({Loop{"i", e("0"), e("2"), 1, 0, body({send("0", "1", "i / (i - 1)")})}}))),
        "division by zero"));
    CHECK(contains(message(algorithm(4, body({step(StepOp::copy, e("0"), Buffer::input, e("0"), e("1"),
                                                   Buffer::output, e("0"))}))),
                   "copy between ranks 0 and 1"));
}

TEST_CASE("loops without end are refused in bounded time") {
    const auto empty = algorithm(4, body({Loop{"i", e("0"), e("1 << 60"), 1, 0, body({})}}));
    CHECK(contains(message(empty), "without a step"));
    CHECK(empty.step_count() == 0);
    const auto send = step(StepOp::send, e("0"), Buffer::output, e("0"), e("1"), Buffer::output, e("0"));
    const auto huge = algorithm(4, body({Loop{"i", e("0"), e("1 << 60"), 1, 0,
                                              body({Loop{"j", e("0"), e("1 << 60"), 1, 0, body({send})}})}}));
    CHECK(huge.step_count() == INT64_MAX);
    CHECK_THROWS_AS(expand(huge), baton::Error);
    const auto triangle = algorithm(
        4,
        body({Loop{"i", e("0"), e("1 << 60"), 1, 0, body({Loop{"j", e("0"), e("i"), 1, 0, body({send})}})}}));
    CHECK_THROWS_AS(triangle.step_count(), baton::Error);
}

TEST_CASE("the builder writes steps, blocks and hints") {
    AlgorithmBuilder b("built", all_reduce(3, 2));
    b.copy({0, Buffer::input, 0}, {0, Buffer::output, 0}, 2)
        .send({1, Buffer::input, 1}, {1, Buffer::scratch, 4});
    b.begin_par()
        .channel(3)
        .send({0, Buffer::output, 0}, {1, Buffer::output, 0})
        .protocol(Protocol::ll)
        .via("a>b,b>c");
    b.send_reduce({1, Buffer::output, 1}, {2, Buffer::output, 1}).end_par();
    const auto a = b.build();
    CHECK(dump(a) ==
          "algorithm \"built\"\n"
          "all_reduce of 3 ranks, 2 chunks\n"
          "4 steps\n"
          "     0   copy [0, input, 0] -> [0, output, 0] x2\n"
          "     1   copy [1, input, 1] -> [1, scratch, 4]\n"
          "     2 { send [0, output, 0] -> [1, output, 0] channel 3\n"
          "     3 | send_reduce [1, output, 1] -> [2, output, 1] channel 3 ll via a>b,b>c\n");
    CHECK(a.scratch_places() == std::vector<std::int64_t>{0, 5, 0});
    check_cursors(a);
    AlgorithmBuilder bad("bad", all_reduce(3, 2));
    CHECK_THROWS_AS(bad.copy({0, Buffer::input, 0}, {1, Buffer::output, 0}), baton::Error);
    CHECK_THROWS_AS(bad.send({0, Buffer::input, 0}, {3, Buffer::output, 0}), baton::Error);
    CHECK_THROWS_AS(bad.send({0, Buffer::input, 0}, {1, Buffer::output, 0}, 0), baton::Error);
    CHECK_THROWS_AS(bad.send({0, Buffer::input, -1}, {1, Buffer::output, 0}), baton::Error);
    bad.begin_par();
    CHECK_THROWS_AS(bad.build(), baton::Error);
}

TEST_CASE("explicit steps with par blocks look the same to each rank") {
    std::mt19937 random(5);
    for (int trial = 0; trial < 50; ++trial) {
        AlgorithmBuilder b("random", all_reduce(4, 4));
        for (int i = 0; i < 20; ++i) {
            const bool par = random() % 2;
            if (par) b.begin_par();
            for (unsigned k = 0; k < 1 + random() % 3; ++k)
                b.send({static_cast<int>(random() % 4), Buffer::output, 0},
                       {static_cast<int>(random() % 4), Buffer::output, 1});
            if (par) b.end_par();
        }
        check_cursors(b.build());
    }
}
