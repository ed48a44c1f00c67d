#include <baton/ir/verify.hpp>

#include <baton/base/error.hpp>

#include <doctest/doctest.h>
#include <random>
#include <string>

using namespace baton::ir;

namespace {

Collective make(CollectiveKind kind, int ranks, std::int64_t chunks, int root = 0) {
    Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.chunks = chunks;
    c.root = root;
    return c;
}

constexpr auto kInput = Buffer::input;
constexpr auto kOutput = Buffer::output;
constexpr auto kScratch = Buffer::scratch;

Expression e(const char* text) { return Expression::parse(text); }

StepTemplate step(StepOp op, const char* src, Buffer src_buffer, const char* src_index, const char* dst,
                  Buffer dst_buffer, const char* dst_index, const char* chunks = "1") {
    StepTemplate t;
    t.op = op;
    t.src_rank = e(src);
    t.src_buffer = src_buffer;
    t.src_index = e(src_index);
    t.dst_rank = e(dst);
    t.dst_buffer = dst_buffer;
    t.dst_index = e(dst_index);
    t.chunks = e(chunks);
    return t;
}

Item loop(const char* variable, const char* from, const char* to, StepTemplate body) {
    return {Loop{variable, e(from), e(to), 1, 0, std::make_shared<const Body>(Body{{std::move(body), 0}})},
            0};
}

Algorithm ring_all_reduce(int n) {
    Algorithm a;
    a.name = "ring";
    a.collective = make(CollectiveKind::all_reduce, n, n);
    a.body = {
        {step(StepOp::copy, "r", kInput, "0", "r", kOutput, "0", "N"), 0},
        loop("s", "0", "N-1",
             step(StepOp::send_reduce, "r", kOutput, "(r-s) mod N", "(r+1) mod N", kOutput, "(r-s) mod N")),
        loop("s", "0", "N-1",
             step(StepOp::send, "r", kOutput, "(r+1-s) mod N", "(r+1) mod N", kOutput, "(r+1-s) mod N"))};
    return a;
}

/// Runs of C chunks around a ring.
Algorithm ring_all_gather(int n, std::int64_t chunks) {
    Algorithm a;
    a.name = "ring";
    a.collective = make(CollectiveKind::all_gather, n, chunks);
    a.body = {{step(StepOp::copy, "r", kInput, "0", "r", kOutput, "r*C", "C"), 0},
              loop("s", "0", "N-1",
                   step(StepOp::send, "r", kOutput, "((r-s) mod N)*C", "(r+1) mod N", kOutput,
                        "((r-s) mod N)*C", "C"))};
    return a;
}

std::string message(const Algorithm& a, const VerifyOptions& options = {}) {
    try {
        verify(a, options);
    } catch (const baton::Error& error) {
        return error.what();
    }
    return "verified";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// The simplest algorithm of each kind, step by step.
Algorithm direct(const Collective& c) {
    AlgorithmBuilder b("direct", c);
    const std::int64_t k = c.chunks;
    for (int g = 0; g < c.group_count(); ++g) {
        const int n = c.group_size(g);
        const auto rank = [&](int p) { return c.rank_at(g, p); };
        const int root = rank(c.root);
        switch (c.kind) {
            case CollectiveKind::broadcast:
                for (int p = 0; p < n; ++p) b.send({root, kInput, 0}, {rank(p), kOutput, 0}, k);
                break;
            case CollectiveKind::scatter:
                for (int p = 0; p < n; ++p)
                    if (p != c.root) b.send({root, kInput, p * k}, {rank(p), kOutput, 0}, k);
                b.copy({root, kInput, c.root * k}, {root, kOutput, 0}, k);
                break;
            case CollectiveKind::gather:
                for (int p = 0; p < n; ++p) b.send({rank(p), kInput, 0}, {root, kOutput, p * k}, k);
                break;
            case CollectiveKind::all_gather:
                for (int p = 0; p < n; ++p)
                    for (int q = 0; q < n; ++q) b.send({rank(p), kInput, 0}, {rank(q), kOutput, p * k}, k);
                break;
            case CollectiveKind::reduce:
                b.copy({root, kInput, 0}, {root, kOutput, 0}, k);
                for (int p = 0; p < n; ++p)
                    if (p != c.root) b.send_reduce({rank(p), kInput, 0}, {root, kOutput, 0}, k);
                break;
            case CollectiveKind::reduce_scatter:
                for (int q = 0; q < n; ++q) b.copy({rank(q), kInput, q * k}, {rank(q), kOutput, 0}, k);
                for (int p = 0; p < n; ++p)
                    for (int q = 0; q < n; ++q)
                        if (p != q) b.send_reduce({rank(p), kInput, q * k}, {rank(q), kOutput, 0}, k);
                break;
            case CollectiveKind::all_reduce:
                b.begin_par();
                for (int q = 0; q < n; ++q) b.copy({rank(q), kInput, 0}, {rank(q), kOutput, 0}, k);
                for (int p = 0; p < n; ++p)
                    for (int q = 0; q < n; ++q)
                        if (p != q) b.send_reduce({rank(p), kInput, 0}, {rank(q), kOutput, 0}, k);
                b.end_par();
                break;
            case CollectiveKind::all_to_all:
                b.begin_par();
                for (int p = 0; p < n; ++p)
                    for (int q = 0; q < n; ++q)
                        b.send({rank(p), kInput, q * k}, {rank(q), kOutput, p * k}, k);
                b.end_par();
                break;
            case CollectiveKind::send_recv:
                b.send({root, kInput, 0}, {rank(c.receiver(g)), kOutput, 0}, k);
                break;
            case CollectiveKind::custom: break;
        }
    }
    return b.build();
}

}  // namespace

TEST_CASE("the direct algorithm of every kind verifies, for every root, with groups and weights") {
    for (const auto kind : standard_kinds())
        for (int n = 1; n <= 6; ++n)
            for (int root = 0; root < (has_root(kind) ? n : 1); ++root)
                for (const std::int64_t chunks : {1, 3}) {
                    CAPTURE(std::string(to_string(kind)));
                    CAPTURE(n);
                    CAPTURE(root);
                    auto c = make(kind, n, chunks, root);
                    CHECK(message(direct(c)) == "verified");
                    if (n < 4) continue;
                    c.groups = {{3, 1}, {2, 0}};  // of 4 to 6 ranks: the others relay
                    if (root > 1) continue;
                    CHECK(message(direct(c)) == "verified");
                    if (chunks == 3) c.weights = {3, 1, 2};
                    CHECK(message(direct(c)) == "verified");
                }
}

TEST_CASE("taking any one step away from a direct algorithm is found") {
    for (const auto kind : standard_kinds()) {
        const auto whole = direct(make(kind, 4, 2, has_root(kind) ? 1 : 0));
        const auto steps = expand(whole);
        for (std::size_t drop = 0; drop < steps.size(); ++drop) {
            auto kept = steps;
            // The copies that in place are no copies may be needed out of place only; both are checked.
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(drop));
            if (drop == 0 && !kept.empty()) kept[0].par = 0;
            auto broken = whole;
            broken.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(kept)}, 0}};
            CAPTURE(std::string(to_string(kind)));
            CAPTURE(drop);
            CHECK_THROWS_AS(verify(broken), baton::Error);
        }
    }
}

TEST_CASE("looped rings verify for every rank count") {
    for (int n = 1; n <= 33; ++n) {
        CHECK(message(ring_all_reduce(n)) == "verified");
        CHECK(message(ring_all_gather(n, 1)) == "verified");
        CHECK(message(ring_all_gather(n, 5)) == "verified");
    }
    const auto report = verify(ring_all_reduce(64));
    CHECK(report.assurance == Assurance::proved);
    CHECK(report.steps == 64 + 2 * 64 * 63);
    CHECK(report.warnings.empty());
}

TEST_CASE("a run of a million chunks is one interval") {
    const auto report = verify(ring_all_gather(64, 1'000'000));
    CHECK(report.assurance == Assurance::proved);
}

TEST_CASE("above the memory budget contributions are hashed, and faults are still found") {
    VerifyOptions options;
    options.memory_budget = 300'000;
    CHECK(verify(ring_all_reduce(96), options).assurance == Assurance::hashed);
    auto broken = expand(ring_all_reduce(96));
    std::swap(broken[5000].src_index, broken[5001].src_index);
    std::swap(broken[5000].dst_index, broken[5001].dst_index);
    auto a = ring_all_reduce(96);
    a.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(broken)}, 0}};
    CHECK_THROWS_AS(verify(a, options), baton::Error);
    auto doubled = expand(ring_all_reduce(96));
    doubled.insert(doubled.begin() + 9000, doubled[8999]);
    a.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(doubled)}, 0}};
    CHECK_THROWS_AS(verify(a, options), baton::Error);
}

TEST_CASE("faults are named with the step, in words") {
    const auto c = make(CollectiveKind::all_reduce, 2, 2);
    SUBCASE("reading nothing") {
        AlgorithmBuilder b("a", c);
        b.send({0, kOutput, 1}, {1, kOutput, 1});
        CHECK(message(b.build()) ==
              "a: step 0: send [0, output, 1] -> [1, output, 1]: reads nothing: output 1 of rank 0 holds no "
              "value yet");
    }
    SUBCASE("reducing into nothing") {
        AlgorithmBuilder b("a", c);
        b.copy({0, kInput, 0}, {0, kOutput, 0}, 2).send_reduce({0, kOutput, 0}, {1, kOutput, 0}, 2);
        CHECK(contains(message(b.build()),
                       "step 1: send_reduce [0, output, 0] -> [1, output, 0] x2: reduces into nothing: "
                       "output 0 of rank 1"));
    }
    SUBCASE("reducing twice") {
        AlgorithmBuilder b("a", c);
        b.copy({0, kInput, 0}, {0, kOutput, 0}, 2).copy({1, kInput, 0}, {1, kOutput, 0}, 2);
        b.send_reduce({0, kOutput, 0}, {1, kOutput, 0}, 2).send_reduce({0, kOutput, 1}, {1, kOutput, 1});
        CHECK(contains(message(b.build()),
                       "step 3: send_reduce [0, output, 1] -> [1, output, 1]: the input of rank 0 (class 1) "
                       "is reduced twice, at index 1"));
    }
    SUBCASE("class mismatch") {
        AlgorithmBuilder b("a", c);
        b.copy({0, kInput, 0}, {0, kOutput, 1});
        CHECK(contains(message(b.build()),
                       "a chunk of class 0 does not fit output 1 of rank 0, which is of class 1"));
        AlgorithmBuilder s("a", c);
        s.copy({0, kInput, 0}, {0, kScratch, 0}).reduce({0, kInput, 1}, {0, kScratch, 0});
        CHECK(contains(message(s.build()), "reduces chunks of different classes, 1 and 0"));
    }
    SUBCASE("writing input") {
        AlgorithmBuilder b("a", c);
        b.send({0, kInput, 0}, {1, kInput, 0});
        CHECK(contains(message(b.build()), "writes the input of rank 1"));
    }
    SUBCASE("out of range") {
        AlgorithmBuilder b("a", c);
        b.send({0, kInput, 1}, {1, kOutput, 0}, 2);
        CHECK(contains(message(b.build()), "input 2 of rank 0 is out of range: it has 2 places"));
        AlgorithmBuilder r("a", make(CollectiveKind::reduce, 2, 2));
        r.send({0, kInput, 0}, {1, kOutput, 0});
        CHECK(contains(message(r.build()), "rank 1 has no output"));
        AlgorithmBuilder far("a", c);
        far.send({0, kInput, 0}, {1, kOutput, 2'000'000'000});
        CHECK(contains(message(far.build()), "out of range"));
    }
    SUBCASE("two plain writes in one par block") {
        AlgorithmBuilder b("a", c);
        b.begin_par()
            .copy({1, kInput, 0}, {1, kOutput, 0}, 2)
            .send({0, kInput, 1}, {1, kOutput, 1})
            .end_par();
        CHECK(contains(message(b.build()),
                       "step 1: send [0, input, 1] -> [1, output, 1]: writes output 1 of rank 1, which step "
                       "0 of the same par block writes too"));
    }
    SUBCASE("a missing contribution") {
        AlgorithmBuilder b("a", c);
        b.copy({0, kInput, 0}, {0, kOutput, 0}, 2).copy({1, kInput, 0}, {1, kOutput, 0}, 2);
        b.send_reduce({0, kOutput, 0}, {1, kOutput, 0}, 2).send({1, kOutput, 0}, {0, kOutput, 0});
        CHECK(message(b.build()) == "a: at the end: output 1 of rank 0 lacks the input of rank 1 (class 1)");
    }
    SUBCASE("a contribution too many") {
        AlgorithmBuilder b("a", make(CollectiveKind::broadcast, 2, 1));
        b.copy({0, kInput, 0}, {0, kOutput, 0});
        CHECK(message(b.build()) == "a: at the end: output 0 of rank 1 is never written");
        AlgorithmBuilder g("a", make(CollectiveKind::all_gather, 2, 1));
        g.send({0, kInput, 0}, {0, kOutput, 0}).send({0, kInput, 0}, {1, kOutput, 0});
        g.send({1, kInput, 0}, {1, kOutput, 1}).send({0, kInput, 0}, {0, kOutput, 1});
        CHECK(message(g.build()) ==
              "a: at the end: output 1 of rank 0 lacks the input of rank 1 and holds the input of rank 0, "
              "which it must not");
    }
    SUBCASE("overlap in part") {
        AlgorithmBuilder b("a", make(CollectiveKind::all_reduce, 1, 4));
        b.copy({0, kInput, 0}, {0, kScratch, 0}, 4).copy({0, kScratch, 0}, {0, kScratch, 1}, 3);
        CHECK(contains(message(b.build()), "overlap in part"));
    }
}

TEST_CASE("an algorithm that is right only out of place is found") {
    // Without a par block the second send reads what the first wrote over the input.
    AlgorithmBuilder b("a", make(CollectiveKind::all_to_all, 2, 1));
    b.copy({0, kInput, 0}, {0, kOutput, 0}).copy({1, kInput, 1}, {1, kOutput, 1});
    b.send({0, kInput, 1}, {1, kOutput, 0}).send({1, kInput, 0}, {0, kOutput, 1});
    CHECK(contains(message(b.build()),
                   "step 3: send [1, input, 0] -> [0, output, 1]: the message differs in place: chunk 0 of "
                   "it holds shard 0 of rank 1 "
                   "out of place, but holds shard 1 of rank 0 in place"));
    // And one that is right only in place.
    AlgorithmBuilder c("a", make(CollectiveKind::all_reduce, 1, 1));
    CHECK(contains(message(c.build()), "output 0 of rank 0 is never written"));
}

TEST_CASE("scratch that is written and never read is a warning") {
    auto c = make(CollectiveKind::broadcast, 2, 1);
    AlgorithmBuilder b("a", c);
    b.copy({0, kInput, 0}, {0, kOutput, 0}).send({0, kInput, 0}, {1, kOutput, 0});
    b.copy({0, kInput, 0}, {0, kScratch, 3})
        .copy({1, kOutput, 0}, {1, kScratch, 0})
        .copy({0, kScratch, 3}, {0, kScratch, 5});
    const auto report = verify(b.build());
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings[0] ==
          "scratch 5 of rank 0 is written and never read; so are places of 1 more ranks");
}

TEST_CASE("scratch at the far end of the index range takes no memory") {
    AlgorithmBuilder b("a", make(CollectiveKind::broadcast, 2, 1));
    for (int i = 0; i < 400; ++i) b.copy({0, kInput, 0}, {0, kScratch, i});
    b.copy({0, kScratch, 3}, {0, kScratch, INT32_MAX})
        .send({0, kScratch, INT32_MAX}, {1, kOutput, 0})
        .copy({0, kInput, 0}, {0, kOutput, 0});
    CHECK(message(b.build()) == "verified");
}

TEST_CASE("custom collectives follow their places") {
    // A gather of unequal parts: rank 0 takes two classes of rank 1 in swapped order, and their own reduction
    // with rank 2.
    Collective c = make(CollectiveKind::custom, 3, 2);
    c.weights = {1, 4};
    auto places = std::make_shared<CustomPlaces>();
    places->inputs = {{}, {{7, 1}, {7, 0}}, {{2, 0}}};
    places->outputs = {{{1, {{1, 7}}}, {0, {{1, 7}}}, {0, {{1, 7}, {2, 2}}}}, {}, {}};
    c.custom = places;
    AlgorithmBuilder b("custom", c);
    b.send({1, kInput, 0}, {0, kOutput, 0}, 2)
        .send({1, kInput, 1}, {0, kOutput, 2})
        .send_reduce({2, kInput, 0}, {0, kOutput, 2});
    const auto good = b.build();
    CHECK(message(good) == "verified");
    AlgorithmBuilder w("custom", c);
    w.send({1, kInput, 0}, {0, kOutput, 1});
    CHECK(contains(message(w.build()),
                   "a chunk of class 1 does not fit output 1 of rank 0, which is of class 0"));
    AlgorithmBuilder m("custom", c);
    m.send({1, kInput, 0}, {0, kOutput, 0}, 2).send({1, kInput, 1}, {0, kOutput, 2});
    CHECK(contains(message(m.build()), "output 2 of rank 0 lacks shard 2 of rank 2 (class 0)"));
}

TEST_CASE("switches copy to and reduce over their group") {
    const auto c = make(CollectiveKind::all_reduce, 3, 3);
    AlgorithmBuilder b("nvls", c);
    for (int r = 0; r < 3; ++r) b.copy({r, kInput, 0}, {r, kScratch, 0}, 3);
    auto a = b.build();
    a.switch_groups = {{0, 1, 2}};
    auto steps = expand(a);
    for (int r = 0; r < 3; ++r) {
        Step s;
        s.op = StepOp::switch_reduce;
        s.src_rank = r;
        s.src_buffer = kScratch;
        s.dst_buffer = kScratch;
        s.src_index = r;
        s.dst_index = 3;
        steps.push_back(s);
        s.op = StepOp::multicast;
        s.src_index = 3;
        s.dst_buffer = kOutput;
        s.dst_index = r;
        steps.push_back(s);
    }
    const auto with = [&](const std::vector<Step>& list) {
        auto copy = a;
        copy.body = {{ExplicitSteps{std::make_shared<const std::vector<Step>>(list)}, 0}};
        return copy;
    };
    CHECK(message(with(steps)) == "verified");
    auto missing = steps;
    missing.pop_back();
    CHECK(contains(message(with(missing)), "output 2 of rank 0 is never written"));
    auto undeclared = steps;
    undeclared.back().dst_rank = 1;
    CHECK_THROWS_AS(verify(with(undeclared)), baton::Error);
}

TEST_CASE("too many steps are not proven, in words") {
    auto a = ring_all_reduce(8);
    VerifyOptions options;
    options.step_limit = 100;
    const auto report = verify(a, options);
    CHECK(report.assurance == Assurance::not_proven);
    REQUIRE(report.warnings.size() == 1);
    CHECK(contains(report.warnings[0], "120 steps are too many"));
}

TEST_CASE("the reverse of an all_gather, copies turned to reductions, is a reduce_scatter") {
    std::mt19937 random(11);
    for (int trial = 0; trial < 60; ++trial) {
        // A random all_gather: each shard spreads from its owner along a random tree.
        const int n = 1 + static_cast<int>(random() % 7);
        const std::int64_t chunks = 1 + static_cast<std::int64_t>(random() % 3);
        struct Move {
            int from, to, shard;
        };
        std::vector<Move> moves;
        for (int shard = 0; shard < n; ++shard) {
            std::vector<int> reached{shard}, rest;
            for (int r = 0; r < n; ++r)
                if (r != shard) rest.push_back(r);
            std::shuffle(rest.begin(), rest.end(), random);
            for (const int r : rest) {
                moves.push_back({reached[random() % reached.size()], r, shard});
                reached.push_back(r);
            }
        }
        AlgorithmBuilder forward("forward", make(CollectiveKind::all_gather, n, chunks));
        for (int r = 0; r < n; ++r) forward.copy({r, kInput, 0}, {r, kOutput, r * chunks}, chunks);
        for (const auto& m : moves)
            forward.send({m.from, kOutput, m.shard * chunks}, {m.to, kOutput, m.shard * chunks}, chunks);
        CHECK(message(forward.build()) == "verified");
        AlgorithmBuilder backward("backward", make(CollectiveKind::reduce_scatter, n, chunks));
        for (int r = 0; r < n; ++r) backward.copy({r, kInput, 0}, {r, kScratch, 0}, n * chunks);
        for (auto m = moves.rbegin(); m != moves.rend(); ++m)
            backward.send_reduce({m->to, kScratch, m->shard * chunks}, {m->from, kScratch, m->shard * chunks},
                                 chunks);
        for (int r = 0; r < n; ++r) backward.copy({r, kScratch, r * chunks}, {r, kOutput, 0}, chunks);
        CHECK(message(backward.build()) == "verified");
    }
}
