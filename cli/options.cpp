#include <baton/cli/options.hpp>

#include <baton/base/error.hpp>

#include <fmt/format.h>
#include <charconv>
#include <optional>
#include <string_view>

namespace baton::cli {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::map<std::string, std::int64_t> parse_params(const std::vector<std::string>& texts) {
    std::map<std::string, std::int64_t> params;
    for (const std::string& text : texts) {
        const auto equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (equals == std::string::npos || name.empty())
            throw input_error(fmt::format("\"{}\" is not NAME=INTEGER", text.substr(0, 60)), "--param");
        const auto value = number<std::int64_t>(std::string_view(text).substr(equals + 1));
        if (!value)
            throw input_error(
                fmt::format("the value of {} is not an integer: \"{}\"", name, text.substr(equals + 1, 60)),
                "--param");
        if (!params.emplace(name, *value).second)
            throw input_error(fmt::format("{} is given twice", name), "--param");
    }
    return params;
}

std::pair<int, int> parse_count_range(const std::string& text, const std::string& option, int low, int high) {
    const auto dots = text.find("..");
    const std::string_view all = text;
    const auto from = number<int>(all.substr(0, dots));
    const auto to = dots == std::string::npos ? from : number<int>(all.substr(dots + 2));
    if (!from || !to) throw input_error(fmt::format("\"{}\" is not A..B", text.substr(0, 60)), option);
    if (*from < low || *to > high)
        throw input_error(fmt::format("{} leaves {}..{}", text, low, high), option);
    if (*from > *to) throw input_error(fmt::format("{} is empty", text), option);
    return {*from, *to};
}

std::string shell_word(const std::string& path) {
    const std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-+:=@%,";
    if (!path.empty() && path.find_first_not_of(plain) == std::string::npos) return path;
    std::string quoted = "'";
    for (const char c : path) {
        if (c == '\'')
            quoted += "'\\''";
        else
            quoted += c;
    }
    return quoted + "'";
}

}  // namespace baton::cli
