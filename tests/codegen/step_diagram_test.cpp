#include <baton/base/error.hpp>
#include <baton/base/xml_reader.hpp>
#include <baton/codegen/interchange/step_diagram.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <map>
#include <set>
#include <string>

using namespace baton;
using namespace baton::codegen;

namespace {

ir::Program example(const std::string& name, int ranks) {
    ir::LoadOptions options;
    options.ranks = ranks;
    const auto schedule =
        ir::load_schedule(std::string(BATON_SOURCE_DIR) + "/examples/algorithms/" + name + ".json", options);
    return lower(std::get<ir::Algorithm>(schedule), {});
}

std::map<std::string, int> shapes(const std::string& svg) {
    const XmlDocument document = XmlDocument::parse(svg, "picture");
    std::map<std::string, int> counts;
    for (const XmlReader& each : document.root().children())
        if (const auto kind = each.find("class")) ++counts[*kind];
    return counts;
}

}  // namespace

TEST_CASE("Steps of a ring all-reduce: each rank sends one chunk a step, and the first half reduces") {
    const StepDiagram diagram = step_diagram(example("ring_all_reduce", 5));
    CHECK(diagram.steps == 8);
    CHECK(diagram.arrows.size() == 40);
    for (const StepArrow& arrow : diagram.arrows) {
        CHECK(arrow.to == (arrow.from + 1) % 5);
        CHECK(arrow.values.size() == 1);
        CHECK(arrow.reduces == (arrow.step < 4));
    }
    // What a rank sends is what it was sent in the step before.
    for (const StepArrow& a : diagram.arrows)
        for (const StepArrow& b : diagram.arrows)
            if (b.step == a.step + 1 && b.from == a.to) CHECK(a.values == b.values);
}

TEST_CASE("Steps follow what travels through relays and scratch") {
    // Bruck: rank r gets shards r+1, then two, then the rest; each shard number comes from its owner.
    const StepDiagram bruck = step_diagram(example("bruck_all_gather", 8));
    CHECK(bruck.steps == 3);
    std::map<int, std::set<std::int64_t>> held;
    for (int rank = 0; rank < 8; ++rank) held[rank] = {rank};
    for (std::int64_t step = 0; step < bruck.steps; ++step) {
        const auto before = held;
        for (const StepArrow& arrow : bruck.arrows) {
            if (arrow.step != step) continue;
            CHECK_FALSE(arrow.reduces);
            for (const std::int64_t value : arrow.values) {
                CHECK(before.at(arrow.from).contains(value));
                held[arrow.to].insert(value);
            }
        }
    }
    for (const auto& [rank, values] : held) CHECK(values.size() == 8);

    const StepDiagram all = step_diagram(example("direct_all_to_all", 4));
    CHECK(all.steps == 1);
    CHECK(all.values == 16);
    CHECK(all.arrows.size() == 12);
    for (const StepArrow& arrow : all.arrows)
        CHECK(arrow.values == std::vector<std::int64_t>{arrow.from * 4 + arrow.to});
}

TEST_CASE("Steps of every kind and mode end with all that each rank must get") {
    for (const auto mode : {ModePreference::staged, ModePreference::put, ModePreference::get}) {
        for (const std::string name :
             {"rabenseifner_all_reduce", "recursive_halving_reduce_scatter", "binomial_broadcast",
              "binomial_reduce", "direct_gather", "direct_scatter", "two_shot_all_reduce", "send_recv"}) {
            CAPTURE(name);
            ir::LoadOptions options;
            options.ranks = 4;
            const auto schedule = ir::load_schedule(
                std::string(BATON_SOURCE_DIR) + "/examples/algorithms/" + name + ".json", options);
            LowerOptions lowering;
            lowering.mode = mode;
            const ir::Program program = lower(std::get<ir::Algorithm>(schedule), lowering);
            const StepDiagram diagram = step_diagram(program);
            CHECK(diagram.steps >= 1);
            bool reduces = false;
            for (const StepArrow& arrow : diagram.arrows) {
                reduces = reduces || arrow.reduces;
                CHECK(arrow.from != arrow.to);
                CHECK(!arrow.values.empty());
                CHECK(arrow.values.back() < diagram.values);
            }
            // Without slots, what arrives may be stored first and combined later.
            if (mode == ModePreference::staged || reduces)
                CHECK(reduces == ir::reduces(program.collective.kind));
        }
    }
}

TEST_CASE(
    "A picture of steps has a line for each rank, a column for each step and an arrow for each message") {
    for (const std::string name :
         {"ring_all_reduce", "bruck_all_gather", "direct_all_to_all", "two_shot_all_reduce"}) {
        CAPTURE(name);
        const ir::Program program = example(name, 6);
        const StepDiagram diagram = step_diagram(program);
        const std::string picture = write_step_svg(program);
        auto found = shapes(picture);
        CHECK(found["rank"] == 6);
        CHECK(found["column"] == (diagram.steps + 1) / 2);
        CHECK(found["arrow"] == static_cast<int>(diagram.arrows.size()));
        int reduces = 0;
        for (const StepArrow& arrow : diagram.arrows) reduces += arrow.reduces ? 1 : 0;
        CHECK(found["reduces"] == reduces);
        CHECK(found["legend"] >= 6);
        CHECK(picture == write_step_svg(program));
        const std::string dot = write_step_dot(program);
        std::size_t edges = 0;
        for (std::size_t place = dot.find(", color="); place != std::string::npos;
             place = dot.find(", color=", place + 1))
            ++edges;
        CHECK(edges == diagram.arrows.size());
    }
}

TEST_CASE("A picture of steps says what it leaves out, or that there are too many ranks") {
    const std::string picture = write_step_svg(example("ring_all_reduce", 64));  // 126 steps of 64 arrows
    CHECK(picture.find("steps 1 to 46 are drawn, 80 are not") != std::string::npos);
    CHECK(shapes(picture)["arrow"] == 46 * 64);
    CHECK_THROWS_WITH_AS(write_step_svg(example("binomial_broadcast", 200)),
                         doctest::Contains("too many for a picture of steps"), Error);
    CHECK(write_step_dot(example("binomial_broadcast", 200)).find("s0r0 -> s1r") != std::string::npos);
}

TEST_CASE("A diagram of steps ends, in words, when chunks by the billion move") {
    ir::Program program = example("direct_all_to_all", 4);
    program.collective.chunks = 2'000'000'000;
    for (ir::RankProgram& rank : program.ranks)
        for (ir::Threadblock& block : rank.threadblocks)
            for (ir::Operand& operand : block.operands) operand.chunks = 2'000'000'000;
    CHECK_THROWS_WITH_AS(step_diagram(program), doctest::Contains("too many for a diagram"), Error);
}
