// Programs and schedules as JSON and CBOR: round trips, and errors that name the place.
#include "support/programs.hpp"

#include <baton/base/error.hpp>
#include <baton/base/files.hpp>
#include <baton/ir/schedule.hpp>
#include <baton/ir/verify.hpp>

#include <doctest/doctest.h>
#include <random>

using namespace baton;
using namespace baton::ir;

namespace {

void check_same(const Program& a, const Program& b) {
    CHECK(dump(a) == dump(b));
    CHECK(a.name == b.name);
    CHECK(a.collective == b.collective);
    CHECK(a.connections == b.connections);
    CHECK(a.switch_groups == b.switch_groups);
    CHECK(a.clobbers_input == b.clobbers_input);
    CHECK(a.wide == b.wide);
    CHECK(a.topology_hash == b.topology_hash);
    REQUIRE(a.ranks.size() == b.ranks.size());
    for (std::size_t r = 0; r < a.ranks.size(); ++r) {
        CHECK(a.ranks[r].scratch_classes == b.ranks[r].scratch_classes);
        REQUIRE(a.ranks[r].threadblocks.size() == b.ranks[r].threadblocks.size());
        for (std::size_t t = 0; t < a.ranks[r].threadblocks.size(); ++t) {
            const Threadblock &x = a.ranks[r].threadblocks[t], &y = b.ranks[r].threadblocks[t];
            CHECK(x.sends == y.sends);
            CHECK(x.receives == y.receives);
            CHECK(x.operands == y.operands);
            CHECK(x.needs == y.needs);
            REQUIRE(x.instructions.size() == y.instructions.size());
            for (std::size_t i = 0; i < x.instructions.size(); ++i) {
                CHECK(x.instructions[i].step == y.instructions[i].step);
                CHECK(x.instructions[i].finalize == y.instructions[i].finalize);
                CHECK(x.instructions[i].post == y.instructions[i].post);
                CHECK(x.instructions[i].sources == y.instructions[i].sources);
            }
            REQUIRE(x.repeats.size() == y.repeats.size());
            for (std::size_t i = 0; i < x.repeats.size(); ++i)
                CHECK(x.repeats[i].times == y.repeats[i].times);
        }
    }
}

void check_round_trip(const Program& program) {
    check_same(program, parse_program(to_json(program)));
    check_same(program, parse_program(to_cbor(program)));
    CHECK(to_json(parse_program(to_json(program))) == to_json(program));
}

std::string error_of(const std::string& text) {
    try {
        parse_program(text, "p.json");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "";
}

/// A program of two ranks with `instructions` in the one threadblock of rank 0.
std::string with(const std::string& instructions, const std::string& more = "") {
    return R"({"baton": "program/1", "collective": {"kind": "all_gather", "ranks": 2, "chunks": 1},
        "connections": [{"src": 0, "dst": 1}], )" +
           more + R"("ranks": [{"threadblocks": [{"instructions": [)" + instructions +
           R"(]}]}, {"threadblocks": []}]})";
}

}  // namespace

TEST_CASE("programs survive JSON and CBOR") {
    check_round_trip(test::ring_all_reduce_program(4));
    check_round_trip(test::one_shot_all_reduce_program(3));
    for (const auto mode : {Mode::staged, Mode::put, Mode::get})
        check_round_trip(test::direct_all_gather(3, mode, 2));
}

TEST_CASE("everything that a program can hold survives") {
    Program p = test::blank(CollectiveKind::all_reduce, 3, 2, 2);
    p.name = "a \"name\"\n";
    p.wide = p.clobbers_input = true;
    p.topology_hash = "00ff";
    p.switch_groups = {{0, 1, 2}, {2, 0}};
    p.collective.weights = {3, 1};
    const int c = test::connect(p, 2, 1, Mode::get);
    p.connections[c].slots = 2;
    auto& block = p.ranks[1].threadblocks[0];
    p.ranks[1].scratch_classes = {1, 0, 1};
    test::add(block,
              {test::message(c, 2),
               test::remote(0, Buffer::scratch, 5, 2),
               {OperandKind::switch_group, Buffer::input, 1, 0, 2}},
              {test::output(0, 2)}, {{0, 1, 3, Event::source_free}, {1, 1, 0, Event::completed}}, true, 17);
    test::add(block, {}, {}, {{2, 0, 0, Event::completed}});
    test::add(p.ranks[1].threadblocks[1], {test::scratch(0)}, {test::scratch(2)});
    test::add(p.ranks[1].threadblocks[1], {test::scratch(0)}, {test::scratch(2)});
    p.ranks[1].threadblocks[1].repeats = {{0, 1, 2}};
    mark_posts(p);
    check_round_trip(p);
}

TEST_CASE("a program written by hand: defaults, and connections owned by who uses them") {
    const Program p = parse_program(R"({
      "baton": "program/1", "name": "send", // comments are accepted
      "collective": {"kind": "broadcast", "ranks": 2, "chunks": 1},
      "connections": [{"src": 0, "dst": 1}],
      "ranks": [
        {"threadblocks": [{"instructions": [{"from": [["input", 0]], "to": [["message", 0], ["output", 0]]}]}]},
        {"threadblocks": [{"instructions": [{"from": [["message", 0]], "to": [["output", 0]]}]}]}]})");
    CHECK(p.ranks[0].threadblocks[0].sends == std::vector{0});
    CHECK(p.ranks[1].threadblocks[0].receives == std::vector{0});
    CHECK(p.connections[0] == Connection{0, 1, 0, Mode::staged, Protocol::simple, 2});
    CHECK(verify(p).assurance == Assurance::proved);
}

TEST_CASE("errors of program files name the file, the place and the remedy") {
    const std::string copy = R"({"from": [["input", 0]], "to": [["output", 0]]})";
    CHECK(error_of(with(copy)) == "");
    CHECK(error_of(with(R"({"from": [["message", 1]], "to": [["output", 0]]})"))
              .find("p.json#/ranks/0/threadblocks/0/instructions/0/from/0/1") == 0);
    CHECK(error_of(with(R"({"from": [["inptu", 0]], "to": [["output", 0]]})")) ==
          "p.json#/ranks/0/threadblocks/0/instructions/0/from/0/0: unknown operand \"inptu\"; known: input, "
          "output, scratch, message, remote, switch");
    CHECK(error_of(with(R"({"from": [["input", -1]], "to": [["output", 0]]})")).find("/from/0/1") !=
          std::string::npos);
    CHECK(error_of(with(R"({"from": [["input", 2147483647]], "to": [["output", 0]], "chunks": 2})"))
              .find("/from/0/1") != std::string::npos);
    CHECK(error_of(with(R"({"from": [["input", 0]]})")).find("has sources (from) and no destination (to)") !=
          std::string::npos);
    CHECK(error_of(with(R"({"from": ["input", 0], "to": [["output", 0]]})"))
              .find("expected an operand, got \"input\"") != std::string::npos);
    CHECK(
        error_of(with(R"({"from": [["switch", 0, "input", 0]], "to": [["output", 0]]})")).find("has none") !=
        std::string::npos);
    CHECK(error_of(with(R"({"need": [[0, 0]], "from": [["input", 0]], "to": [["output", 0]]})"))
              .find("/need/0: expected [rank, threadblock, instruction]") != std::string::npos);
    CHECK(error_of(with(R"({"need": [[2, 0, 0]], "from": [["input", 0]], "to": [["output", 0]]})"))
              .find("/need/0/0") != std::string::npos);
    CHECK(error_of(with(R"({"form": [["input", 0]]})")).find("from") != std::string::npos);
    CHECK(error_of(R"({"baton": "program/2"})") ==
          "p.json#/baton: expected \"program/1\", got \"program/2\"");
    CHECK(
        error_of(
            R"({"baton": "program/1", "collective": {"kind": "all_gather", "ranks": 1000000}, "ranks": []})")
            .find("expected a list of 1000000 ranks") != std::string::npos);
    CHECK(
        error_of(
            R"({"baton": "program/1", "collective": {"kind": "all_gather", "ranks": 2}, "connections": [{"src": 0, "dst": 0}], "ranks": []})")
            .find("p.json#/connections/0: joins rank 0 with itself") == 0);
    CHECK(
        error_of(
            R"({"baton": "program/1", "collective": {"kind": "all_gather", "ranks": 2}, "connections": [{"src": 0, "dst": 1, "mode": "put", "slots": 3}], "ranks": []})")
            .find("a connection of mode put has no slots") != std::string::npos);
}

TEST_CASE("broken program files give errors, never a crash") {
    const std::string good = to_json(test::direct_all_gather(3, Mode::get, 2));
    std::mt19937 random(5);
    for (int i = 0; i < 2000; ++i) {
        std::string text = good;
        for (int k = 0; k < 1 + i % 3; ++k) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0: text[at] = static_cast<char>(random() % 128); break;
                case 1: text.erase(at, 1 + random() % 20); break;
                default: text.insert(at, std::to_string(random() % 100000)); break;
            }
        }
        try {
            verify(parse_program(text));
        } catch (const Error& error) {
            CHECK(error.kind() != ErrorKind::internal);
        }
    }
}

TEST_CASE("a schedule file holds an algorithm or a program") {
    const Schedule a = parse_schedule(
        R"({"baton": "algorithm/1", "name": "pair", "collective": {"kind": "broadcast", "ranks": 2, "chunks": 1},
        "steps": [{"op": "send", "src": [0, "input", 0], "dst": [1, "output", 0]}]})");
    REQUIRE(std::holds_alternative<Algorithm>(a));
    CHECK(name_of(a) == "pair");
    const std::string text = to_json(test::ring_all_reduce_program(4));
    const Schedule p = parse_schedule(text);
    REQUIRE(std::holds_alternative<Program>(p));
    CHECK(collective_of(p).ranks == 4);
    CHECK(to_json(p) == text);
    LoadOptions options;
    options.ranks = 4;
    CHECK_NOTHROW(parse_schedule(text, "p.json", options));
    options.ranks = 5;
    CHECK_THROWS_WITH_AS(parse_schedule(text, "p.json", options),
                         doctest::Contains("this program is for 4 ranks; got 5"), Error);
    options = {};
    options.params["L"] = 2;
    CHECK_THROWS_WITH_AS(parse_schedule(text, "p.json", options), doctest::Contains("no param \"L\""), Error);
    CHECK_THROWS_WITH_AS(parse_schedule(R"({"baton": "plans/1"})"),
                         doctest::Contains("expected \"algorithm/1\" or \"program/1\""), Error);
}

TEST_CASE("the program in the documentation is proved") {
    const std::string text = read_file(BATON_SOURCE_DIR "/docs/programs.md");
    const std::string open = "```json\n";
    int found = 0;
    for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at + 1)) {
        const std::size_t begin = at + open.size();
        const Program program =
            parse_program(text.substr(begin, text.find("```", begin) - begin), "docs/programs.md");
        CHECK(verify(program).assurance == Assurance::proved);
        ++found;
    }
    CHECK(found == 1);
}
