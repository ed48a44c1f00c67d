// Export to MSCCL++'s execution plans: reading a plan again gives the program that was written, for all
// kinds, families of schedules and modes; what the executor lacks is refused in words.
#include "support/example_programs.hpp"
#include "support/field.hpp"
#include "support/full.hpp"
#include "support/programs.hpp"
#include "support/round_trips.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::codegen;
using test::example_algorithm;
using test::mscclpp_round_trip;

namespace {

bool includes(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("export to MSCCL++ and import give the same program, for all example algorithms") {
    int written = 0;
    test::for_each_example_program([&](const std::string&, const ir::Program& program) {
        const ir::Program formed = mscclpp_form(program);
        CHECK(ir::to_json(mscclpp_form(formed)) == ir::to_json(formed));
        const std::string refused = mscclpp_round_trip(program);
        INFO(refused);
        CHECK((refused.empty() || includes(refused, "MSCCL++'s executor takes")));
        written += refused.empty() ? 1 : 0;
    });
    MESSAGE(written, " plans");
    CHECK(written >= 40);
}

TEST_CASE("a plan says what the format has no words for beside it, and sizes are what was asked for") {
    const ir::Program broadcast = lower(example_algorithm("binomial_broadcast.json", 4, 2));
    MscclppOptions options;
    options.min_bytes = 1024, options.max_bytes = 1 << 20;
    const std::string text = write_mscclpp_json(broadcast, options);
    CHECK(includes(text, "\"collective\": \"broadcast\""));
    CHECK(includes(text, "\"min_message_size\": 1024"));
    CHECK(includes(text, "\"max_message_size\": 1048576"));
    const ir::Program again = read_mscclpp_json(text, "a.json").program;
    CHECK(again.collective.root == 2);
    CHECK(again.in_place == std::nullopt);
    CHECK(again.connections.empty());
}

TEST_CASE("what stands in the way of a plan is named, and long threadblocks are cut") {
    ir::Program program = lower(example_algorithm("ring_all_gather.json", 3));
    program.collective.weights = {1};
    CHECK(mscclpp_round_trip(program).empty());
    ir::Algorithm weighted = example_algorithm("ring_all_reduce.json", 3);
    weighted.collective.weights = {1, 2, 1};
    CHECK_THROWS_WITH_AS(mscclpp_form(lower(weighted)), doctest::Contains("chunks of unequal weights"),
                         Error);
    LowerOptions one;
    one.threadblocks = 1;
    // More peers than a threadblock has channels: cut too.
    CHECK(mscclpp_round_trip(lower(example_algorithm("direct_all_to_all.json", 20), one)).empty());
    const ir::Program ring = lower(example_algorithm("ring_all_reduce.json", 32));
    CHECK(mscclpp_round_trip(ring).empty());
    CHECK(mscclpp_form(ring).ranks[0].threadblocks.size() > ring.ranks[0].threadblocks.size());
}

TEST_CASE("an instruction with more peers than the executor has channels meets them through others") {
    // Rank 0 tells each of 40 ranks that it is done, and then waits for all of them.
    constexpr int kRanks = 41;
    ir::Program program = test::blank(ir::CollectiveKind::broadcast, kRanks, 1);
    ir::Threadblock& root = program.ranks[0].threadblocks[0];
    test::add(root, {test::input(0)}, {test::output(0)});
    std::vector<ir::Need> all;
    for (int r = 1; r < kRanks; ++r) {
        test::add(program.ranks[static_cast<std::size_t>(r)].threadblocks[0],
                  {test::remote(0, ir::Buffer::output, 0)}, {test::output(0)},
                  {{0, 0, 0, ir::Event::completed}});
        all.push_back({r, 0, 0, ir::Event::completed});
    }
    test::add(root, {}, {}, all);
    ir::mark_posts(program);
    CHECK(ir::verify(program).assurance == ir::Assurance::proved);
    CHECK(mscclpp_round_trip(program).empty());
    CHECK(mscclpp_form(program).ranks[0].threadblocks.size() > 1);
}

TEST_CASE("plans and algorithms of the field are written again and read as they were") {
    if (!test::field_present()) return;
    for (const std::string& path : test::field_files("mscclpp")) {
        CAPTURE(path);
        CHECK(mscclpp_round_trip(read_mscclpp_json(*test::field_file(path), path).program).empty());
    }
    for (const std::string& path : test::field_files("msccl")) {
        CAPTURE(path);
        CHECK(mscclpp_round_trip(read_msccl_xml(*test::field_file(path), path).program) == "");
    }
}
