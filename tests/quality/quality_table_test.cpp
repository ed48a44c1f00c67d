#include <doctest/doctest.h>

#include "../../bench/quality/longest_chain.hpp"
#include "../../bench/quality/quality_table.hpp"
#include "support/small_algorithms.hpp"

using namespace baton;
using bench::QualityRow;
using bench::QualityTable;

namespace {

QualityTable three_machines() {
    QualityTable table;
    table.add({"a", "all_gather", "1KiB", "all_pairs", "1", "1us", "1us", 0.002, "1", "0.50"});
    table.add({"a", "all_gather", "1GiB", "forest (2 trees per root, depth 3)", "64", "2ms", "1.9ms", 0.0526,
               "3", ""});
    table.add({"a", "reduce", "1GiB", "greedy (by load)", "2", "3ms", "3ms", 0.0099, "4", "cut at 300"});
    table.add({"b", "all_gather", "1GiB", "ring", "1", "4ms", "2ms", 1.0, "7", "1.00"});
    table.add({"c", "all_gather", "", "no route from 0 to 1", "", "", "", {}, "", ""});
    table.add({"c", "reduce", "", "not run: over 900 CPU s on this machine", "", "", "", {}, "", ""});
    return table;
}

}  // namespace

TEST_CASE("tables of quality are read back as they were printed, with what stands before them") {
    const std::string text = "# Heading\n\nWords | and\n\n" + three_machines().text();
    const QualityTable again(text);
    CHECK(again.text() == text);
    REQUIRE(again.rows().size() == 6);
    CHECK(again.rows()[1].schedule == "forest (2 trees per root, depth 3)");
    CHECK(*again.rows()[1].gap == doctest::Approx(0.0526));
    CHECK_FALSE(again.rows()[4].gap);
    CHECK(again.has("b", "all_gather"));
    CHECK_FALSE(again.has("b", "reduce"));
}

TEST_CASE("a last line without its end is a row too") {
    std::string text = three_machines().text();
    text.pop_back();
    CHECK(QualityTable(text).rows().size() == 6);
}

TEST_CASE("the matrix has gap and family at the largest size, and empty cells where nothing was made") {
    CHECK(three_machines().matrix() ==
          "| machine | all_gather | reduce |\n"
          "|---|---|---|\n"
          "| a | 5.26% forest | 0.99% greedy |\n"
          "| b | 100% ring | |\n"
          "| c | | |\n");
}

TEST_CASE("the summary counts machines within one and five percent and names the worst") {
    const std::string summary = three_machines().summary();
    CHECK(summary.find("| all_gather | 2 | 0 | 0 | 100% | b |\n") != std::string::npos);
    CHECK(summary.find("| reduce | 1 | 1 | 1 | 0.99% | a |\n") != std::string::npos);
}

TEST_CASE("what a limit cut is named, what failed for another reason is not") {
    CHECK(three_machines().cut() ==
          "a reduce: cut at 300\nc reduce: not run: over 900 CPU s on this machine\n");
}

TEST_CASE("the longest chain of a ring has all its messages, of direct sends one") {
    CHECK(bench::longest_chain(test::ring_all_reduce(5)) == 8);
}
