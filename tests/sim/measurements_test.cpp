// Logs of nccl-tests: small ones of their own for each way in which they are met, and the real ones where
// they are at hand.
#include "support/field.hpp"

#include <baton/base/error.hpp>
#include <baton/sim/measurements.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace baton;
using namespace baton::sim;

namespace {

const std::string kHead =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
    "busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
    "(GB/s)\n";

std::string devices(int ranks) {
    std::string text = "# Using devices\n";
    for (int r = 0; r < ranks; ++r)
        text += fmt::format("#  Rank {:2} Group  0 Pid 7 on node{} device {:2} [0x{:02x}] Some GPU\n", r,
                            r / 4, r % 4, r);
    return text;
}

std::string tag(const std::string& text, const std::string& front) {
    std::string out;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        out += front + text.substr(begin, end - begin) + "\n";
        begin = end + 1;
    }
    return out;
}

const std::string kRows =
    "     1048576        262144     float     sum      -1    100.0   10.49   15.73      0    50.00   20.97   "
    "31.46      0\n"
    "  4294967296    1073741824     float     sum      -1   400000   10.74   16.11      0   200000   21.47   "
    "32.21      0\n";

}  // namespace

TEST_CASE("a table of nccl-tests gives ranks, hosts, rows and the collective") {
    const std::string text =
        devices(4) + kHead + kRows + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 23.8775\n#\n";
    CHECK(recognizes_measurements(text));
    const Measurements log = read_measurements(text, "log");
    CHECK(log.kind == ir::CollectiveKind::all_reduce);
    CHECK(log.ranks == 4);
    CHECK(log.hosts == std::vector<std::string>{"node0"});
    CHECK(log.gpus == std::vector<std::string>{"Some GPU"});
    REQUIRE(log.rows.size() == 2);
    CHECK(log.rows[1].size == 4'294'967'296);
    CHECK(log.rows[1].count == 1'073'741'824);
    CHECK(log.rows[0].out_of_place->microseconds == 100);
    CHECK(log.rows[0].in_place->busbw == doctest::Approx(31.46));
    CHECK(log.rows[0].in_place->wrong == 0);
    CHECK(log.average_busbw == doctest::Approx(23.8775));
    CHECK(log.broken.empty());
    CHECK(log.warnings.empty());
    CHECK(measurements_csv(log).find("\n1048576,262144,float,sum,-1,100,10.49,15.73,0,50,20.97,31.46,0\n") !=
          std::string::npos);
}

TEST_CASE("tags of launchers, quoting and colors in front of a log say nothing") {
    const std::string text = devices(4) + kHead + kRows;
    for (const char* front : {"[1,0]<stdout>:", "0: ", "> ", "\x1b[0m"}) {
        CAPTURE(front);
        const Measurements log = read_measurements(tag(text, front), "log");
        CHECK(measurements_csv(log) == measurements_csv(read_measurements(text, "log")));
        CHECK(log.ranks == 4);
    }
}

TEST_CASE("rows that other output broke are counted, and sizes of 0 too") {
    const std::string text =
        devices(4) + kHead +
        "           0             0     float     sum      -1node0:7:8 [0] NCCL INFO a line\n"
        "    13.41    0.00    0.00      0     9.95    0.00    0.00      0\n"
        "           0             0     float     sum      -1    10.10    0.00    0.00      0    10.11    "
        "0.00    0.00      0\n" +
        kRows + "     8388608       2097152     float     sum      -1    100.0   10.49\n";
    const Measurements log = read_measurements(text, "log");
    CHECK(log.rows.size() == 3);
    CHECK(log.broken == std::vector<int>{8, 13});
    CHECK(log.without_size == 2);
}

TEST_CASE("the collective follows from its name, or from operator, root and bandwidths") {
    const auto kind = [](const std::string& row) {
        return read_measurements(devices(4) + kHead + row, "log").kind;
    };
    const std::string shares = "    1000   10.00    7.50      0     1000   10.00    7.50 ";
    CHECK(kind("1048576 65536 float none -1" + shares + "0\n") == ir::CollectiveKind::all_gather);
    CHECK(kind("1048576 65536 float none -1 1000 10.00 7.50 0 1000 10.00 7.50 N/A\n") ==
          ir::CollectiveKind::all_to_all);
    CHECK(kind("1048576 65536 float sum -1" + shares + "0\n") == ir::CollectiveKind::reduce_scatter);
    CHECK(kind("1048576 65536 float none 0 1000 10.00 10.00 0 1000 10.00 10.00 0\n") ==
          ir::CollectiveKind::broadcast);
    CHECK(kind("1048576 65536 float sum 0 1000 10.00 10.00 0 1000 10.00 10.00 0\n") ==
          ir::CollectiveKind::reduce);
    CHECK_FALSE(kind("1048576 65536 float none 0" + shares + "0\n"));  // gather or scatter
    const Measurements named = read_measurements(
        "$ ./build/gather_perf -g 4\n" + devices(4) + kHead + "1048576 65536 float none 0" + shares + "0\n",
        "log");
    CHECK(named.kind == ir::CollectiveKind::gather);
}

TEST_CASE("tables of older tests have fewer columns, and none in place") {
    const std::string text =
        "# nRanks: 2\n#  size  count  type  time  algbw  busbw  error\n 1048576 262144 float 100.0 10.49 "
        "10.49 0e+00\n";
    const Measurements log = read_measurements(text, "log");
    CHECK(log.ranks == 2);
    REQUIRE(log.rows.size() == 1);
    CHECK(log.rows[0].out_of_place->wrong == 0);
    CHECK_FALSE(log.rows[0].in_place);
}

TEST_CASE("what is no log, or no use, is refused or warned of") {
    CHECK_FALSE(recognizes_measurements("busbw is a word"));
    CHECK_THROWS_WITH(read_measurements("nothing\n", "log"), "log: there is no table of nccl-tests in it");
    CHECK_THROWS_WITH(read_measurements(kHead + "1 1 float sum\n", "log"), "log: the table has no whole row");
    CHECK_THROWS_AS(read_measurements(kHead + kRows + "1048576 262144 half sum -1 1 1 1 0 1 1 1 0\n", "log"),
                    Error);
    const Measurements wrong = read_measurements(devices(4) + kHead +
                                                     "1048576 262144 float sum -1 1000 10.00 15.00 7 1000 "
                                                     "10.00 15.00 0\n# Out of bounds values : 1 FAILED\n",
                                                 "log");
    REQUIRE(wrong.warnings.size() == 2);
    CHECK(wrong.warnings[0].find("the test itself failed") != std::string::npos);
    CHECK(wrong.warnings[1] == "1 results were wrong (column #wrong)");
}

TEST_CASE("the real logs are read as they are meant") {
    if (const auto text = test::field_file("logs/nccl-tests-h200-16ranks.txt")) {
        const Measurements log = read_measurements(*text, "log");
        CHECK(log.ranks == 16);
        CHECK(log.kind == ir::CollectiveKind::all_reduce);
        REQUIRE(log.rows.size() == 3);
        CHECK(log.rows[2].size == 9'663'676'416);
        CHECK(log.rows[2].count == 2'415'919'104);
        CHECK(log.rows[2].out_of_place->algbw == doctest::Approx(260.70));
        for (const MeasuredRow& row : log.rows)
            CHECK(row.out_of_place->busbw / row.out_of_place->algbw == doctest::Approx(1.875).epsilon(0.001));
    }
    if (const auto text = test::field_file("logs/rccl-tests-32ranks-interleaved.txt")) {
        const Measurements log = read_measurements(*text, "log");
        CHECK(log.ranks == 32);
        CHECK(log.hosts.size() == 2);
        CHECK(log.kind == ir::CollectiveKind::all_gather);
        CHECK(log.broken.size() == 2);
        CHECK(log.without_size == 6);
        REQUIRE(log.rows.back().size == 1 << 30);
        CHECK(log.rows.back().out_of_place->algbw == doctest::Approx(8.40));
        CHECK(log.rows.back().in_place->algbw == doctest::Approx(17.02));
    }
}
