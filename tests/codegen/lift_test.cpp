// Lifting programs to algorithms: what lowering made of an algorithm, and imported files, give algorithms
// that are right again and move as much.
#include "support/field.hpp"
#include "support/full.hpp"
#include "support/module_sampler.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/lift.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/interchange/mscclpp.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>

using namespace baton;
using namespace baton::codegen;

namespace {

/// Chunks that go from rank to rank.
std::int64_t moved(const ir::Algorithm& algorithm) {
    std::int64_t chunks = 0;
    for (const ir::Step& step : ir::expand(algorithm))
        if (step.crosses()) chunks += step.chunks;
    return chunks;
}
std::int64_t sent(const ir::Program& program) {
    std::int64_t chunks = 0;
    for (const ir::RankProgram& rank : program.ranks)
        for (const ir::Threadblock& block : rank.threadblocks)
            for (const ir::Instruction& i : block.instructions)
                for (const ir::Operand& to : block.destinations(i))
                    if (to.kind == ir::OperandKind::message) chunks += to.chunks;
    return chunks;
}

}  // namespace

TEST_CASE("a program that was lowered is lifted to an algorithm that is right and moves as much") {
    int lifted = 0;
    const int most = test::full() ? 9 : 5;
    for (int n = 2; n <= most; ++n)
        for (const test::NamedAlgorithm& each : test::all_algorithms(n))
            for (const auto mode : {ModePreference::staged, ModePreference::put, ModePreference::get}) {
                if (!test::full() && mode != static_cast<ModePreference>(lifted % 3 + 1)) {
                    ++lifted;
                    continue;
                }
                CAPTURE(each.name);
                CAPTURE(n);
                CAPTURE(to_string(mode));
                LowerOptions options;
                options.mode = mode;
                const ir::Program program = lower(each.algorithm, options);
                const ir::Algorithm algorithm = lift(program);
                CHECK(ir::verify(algorithm).assurance == ir::Assurance::proved);
                CHECK(moved(algorithm) == sent(program));
                CHECK(ir::verify(lower(algorithm)).assurance == ir::Assurance::proved);
                ++lifted;
            }
    CHECK(lifted >= 100);
}

TEST_CASE("an exchange in one place is lifted through scratch, as each overwrites what the other sends") {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("exchange", test::collective(ir::CollectiveKind::all_to_all, 2, 1));
    for (int r = 0; r < 2; ++r) b.copy({r, input, 0}, {r, output, 0}, 2);
    b.begin_par();
    b.send({0, output, 1}, {1, output, 0});
    b.send({1, output, 0}, {0, output, 1});
    b.end_par();
    ir::Program program = lower(b.build());
    program.in_place = true;  // so that reads of the input are reads of what is overwritten
    const ir::Algorithm algorithm = lift(program);
    CHECK(ir::verify(algorithm).assurance == ir::Assurance::proved);
    CHECK(moved(algorithm) == 2);
    const auto places = algorithm.scratch_places();
    CHECK(places[0] + places[1] >= 1);
}

TEST_CASE("what cannot be lifted says why") {
    ir::Program program = lower(test::ring_all_reduce(3));
    program.clobbers_input = true;
    CHECK_THROWS_WITH_AS(lift(program), doctest::Contains("writes its input"), Error);
}

TEST_CASE("algorithms and plans of the field are lifted, lowered again and proved") {
    if (!test::field_present()) return;
    for (const std::string& path : test::field_files("msccl")) {
        CAPTURE(path);
        const ir::Program program = read_msccl_xml(*test::field_file(path), path).program;
        const ir::Algorithm algorithm = lift(program);
        CHECK(moved(algorithm) == sent(program));
        CHECK(ir::verify(lower(algorithm)).assurance == ir::Assurance::proved);
    }
    for (const std::string& path : test::field_files("mscclpp")) {
        CAPTURE(path);
        const ir::Algorithm algorithm = lift(read_mscclpp_json(*test::field_file(path), path).program);
        CHECK(ir::verify(lower(algorithm)).assurance == ir::Assurance::proved);
    }
}
