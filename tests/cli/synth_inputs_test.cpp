// Wrong and extreme inputs of `baton synth` and `baton bound`: each ends at once with one line that names the
// cause, or with a result.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "support/shell.hpp"

using namespace baton;

namespace {

test::ShellResult at_prompt(const std::string& line) { return test::shell("baton " + line, "."); }

struct Wrong {
    const char* line;
    const char* cause;  // stands in the message
};

void check_refused(const Wrong& wrong) {
    CAPTURE(wrong.line);
    const test::ShellResult result = at_prompt(wrong.line);
    CAPTURE(result.output);
    CHECK(result.code == 2);
    CHECK(result.output.find(wrong.cause) != std::string::npos);
    CHECK(std::count(result.output.begin(), result.output.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("values that are empty, negative or out of range are refused by name") {
    for (const Wrong& wrong : {Wrong{"synth ring:4 --root ''", "--root: the value is empty"},
                               {"bound ring:4 --root ''", "--root: the value is empty"},
                               {"synth ring:4 --size 1MiB -o ''", "--output: the value is empty"},
                               {"synth ring:4 --size 1MiB --plans ''", "--plans: the value is empty"},
                               {"synth ring:4 --repair ''", "--repair: the value is empty"},
                               {"synth ring:4 --size ''", "--size: the value is empty"},
                               {"synth ring:4 --time-limit ''", "--time-limit: the value is empty"},
                               {"synth ring:4 --seed -1", "the seed must be 0 to"},
                               {"synth ring:4 --seed 18446744073709551616", "the seed must be 0 to"},
                               {"synth ring:4 --chunks 0", "--chunks"},
                               {"synth ring:4 --trees -1", "the number of trees must be 0 to 1024"},
                               {"synth ring:4 --trees 1025", "the number of trees must be 0 to 1024"},
                               {"synth ring:4 --max-depth -1", "the depth must not be negative"},
                               {"synth ring:4 --tiles -1", "tiles are out of range"},
                               {"synth ring:4 --tiles 65537", "tiles are out of range"},
                               {"synth ring:4 --threads -1", "the number of threads must be 0 to 64"},
                               {"synth ring:4 --threads 100000", "the number of threads must be 0 to 64"},
                               {"synth ring:4 --time-limit nan", "--time-limit"},
                               {"synth ring:4 --policy ecmp:-1", "unknown routing policy"}})
        check_refused(wrong);
}

TEST_CASE("a root or receiver is refused where the collective has none") {
    for (const Wrong& wrong :
         {Wrong{"synth ring:4 --root 2 --size 1KiB", "--root: all_reduce has no root"},
          {"synth ring:4 --root 0 --size 1KiB", "--root: all_reduce has no root"},
          {"bound ring:4 --collective all_gather --root 2", "--root: all_gather has no root"},
          {"bound ring:4 --collective broadcast --peer 2", "--peer: broadcast has no receiver"},
          {"sim ring:4 --collective all_to_all --peer 1", "--peer: all_to_all has no receiver"},
          {"whatif ring:4 --root 1", "--root: all_reduce has no root"}})
        check_refused(wrong);
    CHECK(at_prompt("bound ring:4 --collective send_recv --root 2 --peer 0").code == 0);
}

TEST_CASE("options that contradict the schedule are refused") {
    const test::WorkFolder folder;
    const auto run = [&](const std::string& line) { return test::shell("baton " + line, folder.path()); };
    REQUIRE(
        run("synth ring:4 --collective broadcast --root 2 --algorithm chain --size 1KiB -o made.json").code ==
        0);
    for (const Wrong& wrong : {Wrong{"--collective reduce", "not reduce"},
                               {"--peer 1", "broadcast has no receiver"},
                               {"--group 0,1,2", "not for these groups"}}) {
        for (const char* command : {"sim", "whatif"}) {
            const auto refused =
                run(std::string(command) + " ring:4 --schedule made.json " + std::string(wrong.line));
            CAPTURE(refused.output);
            CHECK(refused.code == 2);
            CHECK(refused.output.find(wrong.cause) != std::string::npos);
        }
    }
    CHECK(run("whatif ring:4 --schedule made.json --root 1").output.find("not of root 1") !=
          std::string::npos);
    CHECK(run("whatif ring:4 --schedule made.json --root 2 --sizes 1MiB").code == 0);
}

TEST_CASE("results that cannot be printed end with exit code 2") {
    for (const char* line : {"synth ring:4 --size 1KiB > /dev/full", "synth ring:4 --json > /dev/full",
                             "bound ring:4 > /dev/full"}) {
        CAPTURE(line);
        const auto refused = at_prompt(line);
        CHECK(refused.code == 2);
        CHECK(refused.output == "baton: cannot write to standard output\n");
    }
}

TEST_CASE("ranges of sizes that are empty, open or endless are refused") {
    for (const Wrong& wrong : {Wrong{"synth ring:4 --sizes 1GiB..1KiB", "is empty"},
                               {"bound ring:4 --sizes 1GiB..1KiB", "is empty"},
                               {"synth ring:4 --sizes 1KiB..", "is not a size"},
                               {"synth ring:4 --sizes ..1KiB", "is not a size"},
                               {"synth ring:4 --sizes 0..0", "is empty"},
                               {"synth ring:4 --sizes '1KiB..1GiB*1'", "the step of a size range must be 2"},
                               {"synth ring:4 --sizes 1KiB,,2KiB", "a size is missing"},
                               {"synth ring:4 --sizes 99999999999999999999", "out of range"},
                               {"synth ring:4 --size -5", "is negative"},
                               {"synth ring:4 --size 1.5B", "no whole number of bytes"},
                               {"synth ring:4 --sizes 1KiB..1MiB*2.5", "no whole number of bytes"},
                               {"synth ring:4 --size 9000000TiB", "out of range"},
                               {"synth ring:4 --size 1KiB --sizes 1KiB", "excludes"}})
        check_refused(wrong);
}

TEST_CASE("no byte, one byte and numbers that mean the default give a result") {
    for (const char* line :
         {"synth ring:3 --size 0", "synth ring:3 --size 1", "synth ring:3 --size 1 --trees 0 --max-depth 0",
          "synth ring:3 --size 1 --threads 0 --tiles 0", "synth ring:3 --size 1 --time-limit 1e300",
          "bound ring:3 --sizes 0", "synth ring:3 --size 1 --seed 9223372036854775806"}) {
        CAPTURE(line);
        CHECK(at_prompt(line).code == 0);
    }
}

TEST_CASE("one rank has nothing to wait for, whatever the collective") {
    for (const char* kind : {"broadcast", "scatter", "gather", "all_gather", "reduce", "reduce_scatter",
                             "all_reduce", "all_to_all", "send_recv"}) {
        CAPTURE(kind);
        for (const char* machine : {" ring:1", " ring:3 --group 2"}) {
            const auto made = at_prompt(std::string("synth") + machine + " --size 1KiB --collective " + kind);
            CAPTURE(made.output);
            CHECK(made.code == 0);
            CHECK(made.output.find("nothing has to travel") != std::string::npos);
            CHECK(at_prompt(std::string("bound") + machine + " --collective " + kind).code == 0);
        }
    }
}

TEST_CASE("groups that are no groups are refused") {
    for (const Wrong& wrong :
         {Wrong{"synth ring:4 --group 0-9", "there are ranks 0 to 3"},
          {"synth ring:4 --group 0,0", "a rank stands there twice"},
          {"synth ring:4 --group ''", "--group: the value is empty"},
          {"synth ring:4 --group 3-1", "a range runs upward"},
          {"synth ring:4 --group 0,1 --group 1,2", "rank 1 is in two groups"},
          {"synth ring:4 --collective broadcast --root 3 --group 0,1", "root 3 is not in every group"},
          {"synth ring:4 --collective broadcast --root -1", "root -1 is no rank"},
          {"synth ring:4 --collective send_recv --peer 9", "peer 9 is no rank"}})
        check_refused(wrong);
}

TEST_CASE("outputs that cannot be written are refused before the search") {
    const test::WorkFolder folder;
    std::ofstream(folder.path() + "/file") << "no folder";
    for (const char* target : {"-o .", "-o new/", "-o file/made.json", "--plans file/deep/made.json",
                               "-o same.json --plans same.json"}) {
        CAPTURE(target);
        // Without the check this search would run for minutes.
        const auto refused =
            test::shell("timeout 20 baton synth dgx_h100:hosts=16 " + std::string(target), folder.path());
        CHECK(refused.code == 2);
        CHECK(std::count(refused.output.begin(), refused.output.end(), '\n') == 1);
    }
    CHECK(test::shell("test ! -e new && test ! -e same.json", folder.path()).code == 0);
}

TEST_CASE("machines that are too large end with one line, and their bound with a result") {
    check_refused({"synth ring:70000", "up to 65536 ranks, not for 70000"});
    CHECK(at_prompt("bound ring:5000").output.find("searched sources") != std::string::npos);
}

TEST_CASE("links without capacity are refused, and the slowest beside the fastest serve") {
    const test::WorkFolder folder;
    const auto machine = [&](const std::string& rate) {
        std::ofstream(folder.path() + "/machine.json")
            << R"({"baton": "topology/1", "name": "pair", "nodes": [{"id": "a", "type": "gpu", "rank": 0},)"
            << R"({"id": "b", "type": "gpu", "rank": 1}, {"id": "c", "type": "gpu", "rank": 2}], "links": [)"
            << R"({"from": "a", "to": "b", "bandwidth": ")" << rate << R"("},)"
            << R"({"from": "b", "to": "c", "bandwidth": "1TB/s"}]})";
    };
    for (const char* rate : {"0B/s", "-1B/s", "0.1B/s"}) {
        machine(rate);
        CAPTURE(rate);
        for (const char* command : {"bound", "synth"}) {
            const auto refused =
                test::shell(std::string("baton ") + command + " machine.json", folder.path());
            CAPTURE(refused.output);
            CHECK(refused.code == 2);
            CHECK(refused.output.find("#/links/0/bandwidth") != std::string::npos);
        }
    }
    machine("1B/s");
    for (const char* kind : {"all_gather", "all_reduce", "all_to_all", "broadcast", "reduce"}) {
        CAPTURE(kind);
        const auto made = test::shell(
            std::string("baton synth machine.json --size 1KiB --json --collective ") + kind, folder.path());
        CAPTURE(made.output.substr(0, 300));
        CHECK(made.code == 0);
        const std::string key = "\"gap\": ";
        const std::size_t gap = made.output.find(key);
        REQUIRE(gap != std::string::npos);
        // A quarter of an hour in picoseconds is at the end of what floating point tells apart.
        CHECK(std::stod(made.output.substr(gap + key.size())) > -1e-12);
    }
}
