// Chunks of one size from chunks of unequal weights.
#include "support/example_programs.hpp"
#include "support/round_trips.hpp"

#include <baton/codegen/interchange/equal_chunks.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>

using namespace baton;
using namespace baton::codegen;

namespace {

ir::Algorithm weighted_ring(const std::vector<std::int64_t>& weights) {
    ir::Algorithm ring = test::example_algorithm("ring_all_reduce.json", 3);
    REQUIRE(ring.collective.chunks == 3);
    ring.collective.weights = weights;
    return ring;
}

}  // namespace

TEST_CASE("chunks of unequal weights become more chunks of one size, exactly where few do") {
    const EqualChunks equal = equal_chunks(weighted_ring({4, 8, 6}));
    CHECK(equal.note == "3 chunks of unequal weights became 9 of one size");
    CHECK(equal.algorithm.collective.chunks == 9);
    CHECK(equal.algorithm.collective.weights.empty());
    CHECK(ir::verify(equal.algorithm).assurance == ir::Assurance::proved);
    CHECK(test::msccl_round_trip(lower(equal.algorithm)) == "");
    CHECK(test::mscclpp_round_trip(lower(equal.algorithm)) == "");
}

TEST_CASE("weights that take too many chunks are rounded, and the note says how much moves") {
    const EqualChunks equal = equal_chunks(weighted_ring({10'000, 10'001, 1}));
    CHECK(equal.algorithm.collective.chunks == 2049);
    CHECK(equal.note.find("20002 would be exact") != std::string::npos);
    CHECK(equal.note.find("% of the data lie in other chunks") != std::string::npos);
    CHECK(ir::verify(equal.algorithm).assurance == ir::Assurance::proved);
}

TEST_CASE("chunks of one size stay as they are") {
    const ir::Algorithm same = weighted_ring({2, 2, 2});
    const EqualChunks equal = equal_chunks(same);
    CHECK(equal.note.empty());
    CHECK(ir::to_json(equal.algorithm) == ir::to_json(same));
}
