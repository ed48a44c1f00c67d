#include <baton/topologies/import/written_units.hpp>

#include <charconv>
#include <cmath>
#include <utility>

namespace baton::topologies {
namespace {

constexpr std::string_view kUnitBlanks = " \t\r\n";

std::string_view without_blanks(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(kUnitBlanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kUnitBlanks) - begin + 1);
}

bool take_start(std::string_view& text, std::string_view start) {
    if (text.rfind(start, 0) != 0) return false;
    text.remove_prefix(start.size());
    return true;
}

// The number at the start, and the text behind it.
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
    text = without_blanks(text);
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status != std::errc() || !std::isfinite(number)) return std::nullopt;
    return std::pair{number, without_blanks(text.substr(static_cast<std::size_t>(end - text.data())))};
}

std::optional<double> in_unit(std::string_view text, double bare,
                              std::optional<double> (*unit)(std::string_view)) {
    const auto parts = split_number(text);
    if (!parts || (parts->second.empty() && bare == 0)) return std::nullopt;
    const std::optional<double> factor = parts->second.empty() ? bare : unit(parts->second);
    if (!factor) return std::nullopt;
    return parts->first * *factor;
}

}  // namespace

std::optional<double> rate_unit(std::string_view name) {
    constexpr std::string_view kPrefixes = "kmgtp";
    int power = 0;
    bool binary = false;
    // "b/s" starts with no prefix; a prefix is followed by "i", "b" or "B".
    if (name.size() > 1 && name[0] != 'b' && name[0] != 'B') {
        const char small =
            name[0] >= 'A' && name[0] <= 'Z' ? static_cast<char>(name[0] - 'A' + 'a') : name[0];
        const std::size_t place = kPrefixes.find(small);
        if (place == std::string_view::npos) return std::nullopt;
        power = static_cast<int>(place) + 1;
        name.remove_prefix(1);
        binary = take_start(name, "i");
    }
    double bytes = 0;
    for (const auto& [word, size] : {std::pair{"bits", 0.125},
                                     {"bit", 0.125},
                                     {"Bytes", 1.0},
                                     {"bytes", 1.0},
                                     {"Byte", 1.0},
                                     {"byte", 1.0},
                                     {"b", 0.125},
                                     {"B", 1.0}}) {
        if (!take_start(name, word)) continue;
        bytes = size;
        break;
    }
    if (bytes == 0 || (name != "ps" && name != "/s" && name != "/sec")) return std::nullopt;
    return bytes * std::pow(binary ? 1024.0 : 1000.0, power);
}

std::optional<double> time_unit(std::string_view name) {
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"ps", 1e-12},       {"ns", 1e-9},        {"nsec", 1e-9}, {"us", 1e-6},   {"usec", 1e-6},
        {"\xc2\xb5s", 1e-6}, {"\xce\xbcs", 1e-6}, {"ms", 1e-3},   {"msec", 1e-3}, {"s", 1},
        {"sec", 1},          {"m", 60},           {"h", 3600},    {"d", 86400},   {"w", 604800}};
    for (const auto& [word, seconds] : kUnits) {
        if (name == word) return seconds;
    }
    return std::nullopt;
}

std::optional<double> written_rate(std::string_view text, double bare) {
    return in_unit(text, bare, rate_unit);
}

std::optional<double> written_time(std::string_view text, double bare) {
    return in_unit(text, bare, time_unit);
}

}  // namespace baton::topologies
