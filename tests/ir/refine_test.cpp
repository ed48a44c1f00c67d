// Classes cut finer: the same algorithm, and common divisions of several.
#include <baton/base/error.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/refine.hpp>
#include <baton/ir/verify.hpp>
#include <support/random_algorithm.hpp>
#include <support/small_algorithms.hpp>

#include <doctest/doctest.h>
#include <numeric>
#include <random>

using namespace baton;
using namespace baton::ir;

TEST_CASE("an algorithm with its classes cut finer is right and moves as much, for every kind") {
    std::mt19937_64 random(11);
    for (const CollectiveKind kind : standard_kinds()) {
        for (int trial = 0; trial < 60; ++trial) {
            const int ranks = 1 + static_cast<int>(random() % 5);
            const auto chunks = static_cast<std::int64_t>(1 + random() % 4);
            Collective c = test::collective(kind, ranks, chunks,
                                            has_root(kind) ? static_cast<int>(random() % ranks) : 0);
            const Algorithm whole = test::random_algorithm(c, random);
            CAPTURE(dump(whole));
            std::vector<std::vector<std::int64_t>> pieces;
            for (std::int64_t k = 0; k < chunks; ++k)
                pieces.emplace_back(1 + random() % 3, static_cast<std::int64_t>(1 + random() % 4));
            const Algorithm fine = refine(whole, pieces);
            CHECK(verify(fine).assurance == Assurance::proved);
            std::int64_t before = 0, after = 0;
            Step step;
            for (auto cursor = whole.steps(); cursor.next(step);) before += step.crosses() ? 1 : 0;
            for (auto cursor = fine.steps(); cursor.next(step);) after += step.crosses() ? 1 : 0;
            CHECK(after >= before);
        }
    }
}

TEST_CASE("a common division has the boundaries of all, and every class keeps its share") {
    const CommonDivision made = common_division({{1, 1}, {1, 1, 1}, {4, 2}});
    using Pieces = std::vector<std::vector<std::int64_t>>;
    CHECK(made.pieces[0] == Pieces{{2, 1}, {1, 2}});
    CHECK(made.pieces[1] == Pieces{{2}, {1, 1}, {2}});
    CHECK(made.pieces[2] == Pieces{{2, 1, 1}, {2}});
    CHECK_THROWS_AS(common_division({{1, (std::int64_t{1} << 39) - 2}, {1, (std::int64_t{1} << 39) - 4}}),
                    Error);
    CHECK_THROWS_AS(common_division({{0}}), Error);
    CHECK_THROWS_AS(common_division({{}}), Error);
}

TEST_CASE("a list of pieces that does not fit the classes is refused") {
    const Algorithm ring = test::random_algorithm(test::collective(CollectiveKind::all_gather, 3, 2),
                                                  *std::make_unique<std::mt19937_64>(1));
    CHECK_THROWS_AS(refine(ring, {{1}}), Error);
    CHECK_THROWS_AS(refine(ring, {{1}, {}}), Error);
    CHECK_THROWS_AS(refine(ring, {{1}, {0}}), Error);
}
