#include <baton/base/error.hpp>
#include <baton/base/quantities.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace baton;

TEST_CASE("bytes are read with decimal and binary suffixes") {
    CHECK(parse_bytes("0").count == 0);
    CHECK(parse_bytes("1500").count == 1500);
    CHECK(parse_bytes("512B").count == 512);
    CHECK(parse_bytes("64KiB").count == 65536);
    CHECK(parse_bytes("1.5KiB").count == 1536);
    CHECK(parse_bytes("2MB").count == 2'000'000);
    CHECK(parse_bytes("1GiB").count == 1 << 30);
    CHECK(parse_bytes("4GiB").count == std::int64_t{1} << 32);
}

TEST_CASE("sizes are whole numbers of bytes") {
    CHECK(parse_bytes("0.1GB").count == 100'000'000);
    CHECK(parse_bytes("1.001kB").count == 1001);
    CHECK(parse_bytes("2.0B").count == 2);
    CHECK(parse_bytes("123456.789012TB").count == 123'456'789'012'000'000);
    for (const std::string text : {"1.5B", "0.3KiB", "0.1", "1e-9B", "0.0001kB", "1.0000000001GB"}) {
        CAPTURE(text);
        CHECK_THROWS_WITH_AS(parse_bytes(text), doctest::Contains("no whole number of bytes"), Error);
    }
}

TEST_CASE("rates tell bits from bytes") {
    CHECK(parse_rate("400Gb/s").bytes_per_second == 50'000'000'000);
    CHECK(parse_rate("50GB/s").bytes_per_second == 50'000'000'000);
    CHECK(parse_rate("12.5e9").bytes_per_second == 12'500'000'000);
    CHECK(parse_rate("25GiB/s").bytes_per_second == std::int64_t{25} << 30);
    CHECK(parse_rate("100Mb/s") < parse_rate("100MB/s"));
}

TEST_CASE("times are held in picoseconds") {
    CHECK(parse_time("700ns").picoseconds == 700'000);
    CHECK(parse_time("1.5us").picoseconds == 1'500'000);
    CHECK(parse_time("2ms").picoseconds == 2'000'000'000);
    CHECK(parse_time("3s").picoseconds == 3'000'000'000'000);
    CHECK(parse_time("10ps").picoseconds == 10);
    CHECK(parse_time("1e-6").picoseconds == 1'000'000);
    CHECK(Time::from_seconds(1e30) == Time::max());
    CHECK(Time::from_seconds(1.4e-12).picoseconds == 2);
}

TEST_CASE("what is no quantity is refused with the place and the units") {
    const std::vector<std::string> wrong_bytes{"",    "B",   "-1",   "1XB",   "1 2", "1e40",
                                               "nan", "inf", "0x10", "1KiBx", "--1"};
    for (const std::string& text : wrong_bytes) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_bytes(text, "file#/size"), Error);
    }
    for (const std::string text : {"", "5", "x", "5GB", "5Gb", "-5GB/s", "1e30GB/s"}) {
        CAPTURE(text);
        if (text == "5") continue;  // a bare number is bytes per second
        CHECK_THROWS_AS(parse_rate(text), Error);
    }
    for (const std::string text : {"", "ns", "-1ns", "1m", "1e300s"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_time(text), Error);
    }
    try {
        parse_bytes("12 parsecs", "cluster.json#/nodes/3/buffer");
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        CHECK(error.where() == "cluster.json#/nodes/3/buffer");
        CHECK(std::string(error.what()).find("KiB") != std::string::npos);
    }
}

TEST_CASE("printing bytes and reading them back gives the same number") {
    CHECK(to_string(Bytes{65536}) == "64KiB");
    CHECK(to_string(Bytes{0}) == "0B");
    CHECK(to_string(Bytes{1'000'003}) == "1000003B");
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const Bytes value{static_cast<std::int64_t>(random() >> (1 + random() % 62))};
        REQUIRE(parse_bytes(to_string(value)).count == value.count);
    }
}

TEST_CASE("times and rates print with their units") {
    CHECK(to_string(Time{12'350'000}) == "12.35us");
    CHECK(to_string(Time{}) == "0s");
    CHECK(to_string(Rate{50'000'000'000}) == "50GB/s");
}

TEST_CASE("ranges of sizes double, step or list") {
    const auto counts = [](std::string_view text) {
        std::vector<std::int64_t> result;
        for (Bytes bytes : parse_sizes(text)) result.push_back(bytes.count);
        return result;
    };
    CHECK(counts("1KiB..8KiB") == std::vector<std::int64_t>{1024, 2048, 4096, 8192});
    CHECK(counts("1KiB..64KiB*4") == std::vector<std::int64_t>{1024, 4096, 16384, 65536});
    CHECK(counts("1KiB,4KiB,1MiB") == std::vector<std::int64_t>{1024, 4096, 1 << 20});
    CHECK(counts("7") == std::vector<std::int64_t>{7});
    CHECK(counts("0") == std::vector<std::int64_t>{0});
    for (const std::string text : {"", "..", "1KiB..", "8KiB..1KiB", "1KiB..8KiB*1", "1KiB..8KiB*0",
                                   "1KiB,,2KiB", "0..1GiB", "1..1GiB*-2"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_sizes(text), Error);
    }
}

TEST_CASE("no byte behind the text is read") {
    // Exactly as large as the text, so that the address sanitizer sees a step beyond it.
    for (const std::string_view text :
         {"i", "inf", "-nan", "n", "I9", "nan(1", "-", "", ".", "infinity GB"}) {
        CAPTURE(text);
        const std::vector<char> bytes(text.begin(), text.end());
        const std::string_view exact(bytes.data(), bytes.size());
        CHECK_THROWS_AS(parse_bytes(exact), Error);
        CHECK_THROWS_AS(parse_time(exact), Error);
        CHECK_THROWS_AS(parse_rate(exact), Error);
    }
}
