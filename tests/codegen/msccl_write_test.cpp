// Export to MSCCL's XML: reading it again gives the program that was written, for all kinds, families of
// schedules and modes; what the executor lacks is refused in words.
#include "support/example_programs.hpp"
#include "support/field.hpp"
#include "support/full.hpp"
#include "support/programs.hpp"
#include "support/round_trips.hpp"

#include <baton/base/error.hpp>
#include <baton/codegen/interchange/msccl.hpp>
#include <baton/codegen/lower.hpp>
#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/program_json.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace baton;
using namespace baton::codegen;
using test::example_algorithm;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string refusal(const ir::Program& program, const MscclOptions& options = {}) {
    try {
        write_msccl_xml(program, options);
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}

void check_round_trip(const ir::Program& program, const MscclOptions& options = {}) {
    CHECK(test::msccl_round_trip(program, options) == "");
}

}  // namespace

TEST_CASE("export to MSCCL and import give the same program, for all example algorithms") {
    int written = 0;
    test::for_each_example_program([&](const std::string& file, const ir::Program& program) {
        if (file == "send_recv.json") return;
        check_round_trip(program);
        ++written;
    });
    CHECK(written >= 40);
}

TEST_CASE("protocols, sizes and channels of an export are what was asked for") {
    LowerOptions lower_options;
    lower_options.channels = 2;
    const ir::Program program = lower(example_algorithm("ring_all_reduce.json", 4), lower_options);
    MscclOptions options;
    options.protocol = ir::Protocol::ll128;
    options.executor = MscclExecutor::rccl;
    options.min_bytes = 1024;
    options.max_bytes = 100'000'000'000;
    const std::string text = write_msccl_xml(program, options);
    CHECK(contains(text, R"(proto="LL128")"));
    CHECK(contains(text, R"(minBytes="1024" maxBytes="100000000000")"));
    CHECK(contains(text, R"(inplace="1" outofplace="1")"));
    const ir::Program again = read_msccl_xml(text, "a.xml").program;
    CHECK(again.connections[0].slots == 8);
    CHECK(again.in_place == std::nullopt);
    const ir::Program scatter = lower(example_algorithm("ring_reduce_scatter.json", 4));
    CHECK(contains(write_msccl_xml(scatter), R"(coll="reduce_scatter")"));
    CHECK(contains(write_msccl_xml(scatter, options), R"(coll="reducescatter")"));
}

TEST_CASE("a root is kept") {
    const ir::Algorithm algorithm = example_algorithm("binomial_broadcast.json", 4, 2);
    check_round_trip(lower(algorithm));
    CHECK(contains(write_msccl_xml(lower(algorithm)), R"(root="2")"));
}

TEST_CASE("what stands in the way of an export is named") {
    CHECK(contains(refusal(lower(example_algorithm("send_recv.json", 2))), "no counterpart of send_recv"));
    ir::Program program = lower(example_algorithm("ring_all_gather.json", 3));
    program.collective.weights = {1};
    CHECK(refusal(program) == "");
    MscclOptions rccl;
    rccl.executor = MscclExecutor::rccl;
    const ir::Program large = lower(example_algorithm("direct_all_to_all.json", 80));
    CHECK(contains(refusal(large, rccl), "RCCL's MSCCL executor takes 64 at most"));
    CHECK(contains(refusal(large, rccl), "threadblocks"));
    const ir::Program long_ring = lower(example_algorithm("ring_all_reduce.json", 64));
    CHECK(contains(refusal(long_ring, rccl), "steps; RCCL's MSCCL executor takes 63 at most"));
    CHECK(refusal(long_ring) == "");
}

TEST_CASE("what a message orders stays behind it when a reduction is taken apart") {
    // That scratch[0] is written before rank 0 reads it follows from messages only: rank 0 sends when it is,
    // rank 1 answers.
    ir::Program program = test::blank(ir::CollectiveKind::reduce, 3, 1, 4);
    program.ranks[0].scratch_classes = {0, 0};
    program.ranks[1].scratch_classes = {0};
    const int told = test::connect(program, 0, 1, ir::Mode::staged, 2, 1, 0);
    const int answer = test::connect(program, 1, 0, ir::Mode::staged, 2, 0, 2);
    const int third = test::connect(program, 2, 0, ir::Mode::staged, 2, 0, 3);
    auto& root = program.ranks[0].threadblocks;
    test::add(root[0], {test::input(0)}, {test::scratch(0)});
    test::add(root[1], {test::input(0)}, {test::message(told)}, {{0, 0, 0, ir::Event::completed}});
    test::add(root[3], {test::message(third)}, {test::scratch(1)});
    test::add(root[2], {test::scratch(1), test::message(answer), test::scratch(0)}, {test::output(0)},
              {{0, 3, 0, ir::Event::completed}}, true);
    test::add(program.ranks[1].threadblocks[0], {test::message(told)}, {test::scratch(0)});
    test::add(program.ranks[1].threadblocks[0], {test::input(0)}, {test::message(answer)});
    test::add(program.ranks[2].threadblocks[0], {test::input(0)}, {test::message(third)});
    ir::mark_posts(program);
    REQUIRE(ir::verify(program).assurance == ir::Assurance::proved);
    check_round_trip(program);
}

TEST_CASE("algorithms of the field are written again as they were") {
    if (!test::field_present()) return;
    for (const std::string& path : test::field_files("msccl")) {
        CAPTURE(path);
        const ir::Program program = read_msccl_xml(*test::field_file(path), path).program;
        CHECK(ir::to_json(msccl_form(program)) == ir::to_json(program));
        check_round_trip(program);
        // Every attribute of every element stands in the new text, with the same value.
        std::string was = *test::field_file(path), is = write_msccl_xml(program);
        const auto lines = [](const std::string& text) {
            std::vector<std::string> all;
            for (std::size_t begin = 0; begin < text.size();) {
                const std::size_t end = std::min(text.find('\n', begin), text.size());
                std::string line = text.substr(begin, end - begin);
                line.erase(0, line.find_first_not_of(" \t"));
                while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
                if (line.starts_with("<step ") || line.starts_with("<tb ") || line.starts_with("<gpu "))
                    all.push_back(line);
                begin = end + 1;
            }
            return all;
        };
        const auto a = lines(was), b = lines(is);
        REQUIRE(a.size() == b.size());
        int different = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i] != b[i] && ++different < 4) MESSAGE(a[i], " became ", b[i]);
        CHECK(different == 0);
    }
}
