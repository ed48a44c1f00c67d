// Bytes, time and rates as types, with one parser and one printer each.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

/// A number of bytes.
struct Bytes {
    std::int64_t count = 0;
    auto operator<=>(const Bytes&) const = default;
};

/// A span or point of time, held in integer picoseconds (64 bits: 106 days).
struct Time {
    std::int64_t picoseconds = 0;
    double seconds() const { return static_cast<double>(picoseconds) * 1e-12; }
    /// Rounds up to the next picosecond; saturates at `Time::max()`.
    static Time from_seconds(double seconds);
    static Time max() { return {INT64_MAX}; }
    auto operator<=>(const Time&) const = default;
};
inline Time operator+(Time a, Time b) { return {a.picoseconds + b.picoseconds}; }
inline Time operator-(Time a, Time b) { return {a.picoseconds - b.picoseconds}; }

/// A rate in bytes per second (decimal: 1 GB/s = 1e9).
struct Rate {
    std::int64_t bytes_per_second = 0;
    double value() const { return static_cast<double>(bytes_per_second); }
    auto operator<=>(const Rate&) const = default;
};

/// "64KiB", "1GiB", "1500", "2MB", "512B". Decimal (kB, MB, GB) and binary (KiB, MiB, GiB) suffixes.
/// Throws an input error at `where` that lists the accepted units, also for a part of a byte.
Bytes parse_bytes(std::string_view text, const std::string& where = {});
/// "700ns", "1.5us", "2ms", "3s", "10ps"; a bare number is seconds. Never negative.
Time parse_time(std::string_view text, const std::string& where = {});
/// "400Gb/s", "50GB/s", "25GiB/s", "12.5e9"; `b` is bits and `B` bytes; a bare number is bytes per second.
Rate parse_rate(std::string_view text, const std::string& where = {});

/// Shortest exact form with a binary suffix where it divides ("64KiB", "1000003B").
std::string to_string(Bytes bytes);
/// Three to four significant digits with ps, ns, us, ms or s ("12.35us").
std::string to_string(Time time);
/// "50GB/s", "46.48GB/s": decimal, up to four significant digits.
std::string to_string(Rate rate);

/// A range of sizes as the command line takes it: "1KiB..1GiB" doubles, "1KiB..1GiB*4" steps by 4,
/// "1KiB,4KiB,1MiB" lists. Never empty; at most 4096 sizes.
std::vector<Bytes> parse_sizes(std::string_view text);

}  // namespace baton
