#include <baton/base/quantities.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

namespace baton {
namespace {

struct Unit {
    std::string_view name;
    long double factor;
};

constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12},
                               {"KiB", 1024},
                               {"MiB", 1048576},
                               {"GiB", 1073741824},
                               {"TiB", 1099511627776.0L}};
constexpr Unit kTimeUnits[] = {{"", 1e12L},  {"s", 1e12L}, {"ms", 1e9L},
                               {"us", 1e6L}, {"ns", 1e3L}, {"ps", 1}};
constexpr Unit kRateUnits[] = {
    {"", 1},        {"B/s", 1},       {"kB/s", 1e3},      {"MB/s", 1e6},         {"GB/s", 1e9},
    {"TB/s", 1e12}, {"KiB/s", 1024},  {"MiB/s", 1048576}, {"GiB/s", 1073741824}, {"b/s", 0.125L},
    {"kb/s", 125},  {"Mb/s", 125e3L}, {"Gb/s", 125e6L},   {"Tb/s", 125e9L}};

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

// Value in base units, rounded to the nearest integer; the number is read in full precision. `whole`: names
// the base unit where a fraction of it has no meaning, "" where it may be rounded.
template <std::size_t N>
std::int64_t parse(std::string_view text, const Unit (&units)[N], const char* what, const char* example,
                   const std::string& where, std::string_view whole = {}) {
    const auto bad = [&](const std::string& why) {
        std::string names;
        for (const Unit& unit : units) {
            if (!unit.name.empty()) names += (names.empty() ? "" : " ") + std::string(unit.name);
        }
        const std::string shown(text.substr(0, 40));
        return input_error(fmt::format("'{}' is not {}: {}", shown, what, why), where,
                           fmt::format("write a number with one of {}, for example {}", names, example));
    };
    std::string_view rest = trimmed(text);
    // "inf" and "nan" are no quantities; libstdc++ 12 would look for their end beyond that of the text.
    const std::size_t first = rest.find_first_not_of('-');
    if (first == rest.npos || !(rest[first] == '.' || (rest[first] >= '0' && rest[first] <= '9')))
        throw bad("it does not begin with a number");
    long double number = 0;  // 64 bits of mantissa: any byte count is exact
    const auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (status == std::errc::result_out_of_range) throw bad("the number is out of range");
    if (status != std::errc() || !std::isfinite(number)) throw bad("it does not begin with a number");
    if (std::signbit(number) && number != 0) throw bad("it is negative");
    rest = trimmed(rest.substr(static_cast<std::size_t>(end - rest.data())));
    for (const Unit& unit : units) {
        if (unit.name != rest) continue;
        const long double exact = number * unit.factor, value = std::roundl(exact);
        if (value >= 9.2e18L) throw bad("the value is out of range");
        // "0.1GB" is a whole number of bytes: what it is off comes from reading it.
        if (!whole.empty() &&
            std::fabs(exact - value) > 4 * std::numeric_limits<long double>::epsilon() * exact)
            throw bad(fmt::format("it is no whole number of {}", whole));
        return static_cast<std::int64_t>(value);
    }
    throw bad(fmt::format("unknown unit '{}'", rest.substr(0, 20)));
}

// Up to four significant digits without trailing zeros.
std::string short_number(double value) {
    std::string text = fmt::format("{:.4g}", value);
    if (text.find('e') != std::string::npos) text = fmt::format("{:.0f}", value);
    return text;
}

}  // namespace

Time Time::from_seconds(double seconds) {
    const double scaled = std::ceil(seconds * 1e12);
    if (!(scaled < 9.2e18)) return max();
    return {scaled <= 0 ? 0 : static_cast<std::int64_t>(scaled)};
}

Bytes parse_bytes(std::string_view text, const std::string& where) {
    return {parse(text, kByteUnits, "a size", "64KiB", where, "bytes")};
}
Time parse_time(std::string_view text, const std::string& where) {
    return {parse(text, kTimeUnits, "a time", "700ns", where)};
}
Rate parse_rate(std::string_view text, const std::string& where) {
    return {parse(text, kRateUnits, "a rate", "400Gb/s or 50GB/s", where)};
}

std::string to_string(Bytes bytes) {
    constexpr std::string_view kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    std::int64_t value = bytes.count;
    std::size_t power = 0;
    while (power + 1 < std::size(kNames) && value != 0 && value % 1024 == 0) {
        value /= 1024;
        ++power;
    }
    return fmt::format("{}{}", value, kNames[power]);
}

std::string to_string(Time time) {
    if (time == Time::max()) return "never";
    const double ps = static_cast<double>(time.picoseconds);
    if (time.picoseconds == 0) return "0s";
    if (ps < 1e3) return fmt::format("{}ps", time.picoseconds);
    if (ps < 999.95e3) return short_number(ps * 1e-3) + "ns";
    if (ps < 999.95e6) return short_number(ps * 1e-6) + "us";
    if (ps < 999.95e9) return short_number(ps * 1e-9) + "ms";
    return short_number(ps * 1e-12) + "s";
}

std::string to_string(Rate rate) {
    const double value = rate.value();
    if (value < 1e3) return fmt::format("{}B/s", rate.bytes_per_second);
    if (value < 999.95e3) return short_number(value * 1e-3) + "kB/s";
    if (value < 999.95e6) return short_number(value * 1e-6) + "MB/s";
    if (value < 999.95e9) return short_number(value * 1e-9) + "GB/s";
    return short_number(value * 1e-12) + "TB/s";
}

std::vector<Bytes> parse_sizes(std::string_view text) {
    constexpr std::size_t kMost = 4096;
    std::vector<Bytes> sizes;
    const std::size_t dots = text.find("..");
    if (dots != std::string_view::npos) {
        std::string_view high_text = text.substr(dots + 2);
        std::int64_t factor = 2;
        if (const std::size_t star = high_text.find('*'); star != std::string_view::npos) {
            factor = parse_bytes(high_text.substr(star + 1), "sizes").count;
            high_text = high_text.substr(0, star);
        }
        const std::int64_t low = parse_bytes(text.substr(0, dots), "sizes").count;
        const std::int64_t high = parse_bytes(high_text, "sizes").count;
        if (factor < 2)
            throw input_error("the step of a size range must be 2 or more", "sizes", "write 1KiB..1GiB*4");
        if (low < 1 || high < low) {
            throw input_error(fmt::format("the size range '{}' is empty", text.substr(0, 60)), "sizes",
                              "write the smaller size first, from 1B on: 1KiB..1GiB");
        }
        for (std::int64_t size = low; size <= high; size *= factor) {
            sizes.push_back({size});
            if (size > high / factor) break;
        }
        return sizes;
    }
    std::string_view rest = text;
    while (true) {
        const std::size_t comma = rest.find(',');
        if (trimmed(rest.substr(0, comma)).empty()) {
            throw input_error("a size is missing", "sizes", "write 1KiB..1GiB or 1KiB,4KiB,1MiB");
        }
        sizes.push_back(parse_bytes(rest.substr(0, comma), "sizes"));
        if (sizes.size() > kMost) throw input_error("more than 4096 sizes", "sizes");
        if (comma == std::string_view::npos) return sizes;
        rest = rest.substr(comma + 1);
    }
}

}  // namespace baton
