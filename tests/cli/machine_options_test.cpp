// Failed and slow parts, and groups of ranks, on the command line.
#include <doctest/doctest.h>

#include <string>

#include "support/shell.hpp"

using namespace baton;

namespace {

test::ShellResult typed(const std::string& line) { return test::shell(line, "."); }

bool has(const test::ShellResult& result, const std::string& text) {
    return result.output.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a schedule is made around a failed or slow link, and bound and simulation see the same machine") {
    const std::string rest =
        " ring:4 --collective all_gather --without 'gpu0>gpu1' --degrade 'gpu1>gpu2=0.5'";
    const auto bound = typed("baton bound" + rest + " --sizes 1MiB");
    CHECK(bound.code == 0);
    CHECK(has(bound, "ring:4 without gpu0>gpu1 with gpu1>gpu2=0.5"));
    const auto made = typed("baton synth" + rest + " --size 1MiB");
    CHECK(made.code == 0);
    CHECK(has(made, "next: baton synth ring:4 --without 'gpu0>gpu1' --degrade 'gpu1>gpu2=0.5'"));
    CHECK(typed("baton sim" + rest + " --sizes 1MiB").code == 0);
}

TEST_CASE("a machine that falls apart names the ranks that cannot reach each other") {
    const auto apart = typed("baton synth ring:4 --without 'gpu0>gpu1' --without 'gpu0>gpu3' --size 1MiB");
    CHECK(apart.code == 2);
    CHECK(has(apart, "rank 0 (gpu0) cannot reach ranks 1 (gpu1), 2 (gpu2), 3 (gpu3)"));
    CHECK(typed("baton synth ring:4 --without nothing").code == 2);
    CHECK(typed("baton synth ring:4 --degrade 'gpu0>gpu1=2'").code == 2);
    CHECK(typed("baton synth ring:4 --degrade 'gpu0>gpu1'").code == 2);
}

TEST_CASE("groups of ranks are lists and ranges; the rest relays") {
    const auto groups =
        typed("baton synth fully_connected:6 --collective all_gather --group 0-1,5 --group 2,3 --size 1MiB");
    CHECK(groups.code == 0);
    CHECK(has(groups, "all_gather of 6 ranks in 2 groups"));
    for (const char* bad : {"0-9", "3-1", "0,,1", "a", "", "0-", "0,0", "0-5,3-5"}) {
        CAPTURE(bad);
        const auto refused = typed("baton bound fully_connected:6 --group '" + std::string(bad) + "'");
        CHECK(refused.code == 2);
    }
    const auto root = typed("baton bound fully_connected:6 --collective broadcast --root 2 --group 4,5");
    CHECK(root.code == 2);
    CHECK(has(root, "root 2 is not in every group"));
}

TEST_CASE("an old schedule is mended for a machine that lost a link, and refused where it does not fit") {
    const test::WorkFolder folder;
    const auto at_work = [&](const std::string& line) { return test::shell(line, folder.path()); };
    REQUIRE(
        at_work("baton synth torus:3x3 --collective all_gather --algorithm forest --size 1MiB -o old.json")
            .code == 0);
    const auto mended = at_work(
        "baton synth torus:3x3 --collective all_gather --without 'gpu0<>gpu1' --repair old.json --size 1MiB "
        "-o new.json && baton verify new.json");
    CHECK(mended.code == 0);
    CHECK(has(mended, "had lost their link"));
    for (const char* wrong :
         {"torus:3x3 --repair old.json", "ring:4 --collective all_gather --repair old.json",
          "torus:3x3 --collective all_gather --repair none.json",
          "torus:3x3 --collective all_gather --algorithm ring --repair old.json"}) {
        CAPTURE(wrong);
        CHECK(at_work("baton synth " + std::string(wrong) + " --size 1MiB").code == 2);
    }
}
