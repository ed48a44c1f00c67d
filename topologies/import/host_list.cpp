#include <baton/topologies/import/host_list.hpp>

#include <baton/base/error.hpp>
#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <algorithm>

namespace baton::topologies {
namespace {

Error list_error(std::string_view list, const std::string& why, const std::string& where) {
    return input_error(fmt::format("'{}' is no list of hosts: {}", list.substr(0, 60), why), where,
                       "as node[1-4,7]");
}

// "1-4,7" of one pair of brackets.
std::vector<std::string> bracket_numbers(std::string_view text, std::string_view list,
                                         const std::string& where, std::size_t most) {
    std::vector<std::string> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view range = text.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t dash = range.find('-');
        const std::string_view low_text = range.substr(0, dash),
                               high_text = dash == std::string_view::npos ? low_text : range.substr(dash + 1);
        const auto digits = [](std::string_view word) {
            return !word.empty() && word.size() <= 18 &&
                   word.find_first_not_of("0123456789") == std::string_view::npos;
        };
        if (!digits(low_text) || !digits(high_text))
            throw list_error(list, fmt::format("'{}' is no range of numbers", range.substr(0, 40)), where);
        const std::int64_t low = *integer_in(low_text), high = *integer_in(high_text);
        if (high < low)
            throw list_error(list, fmt::format("the range {}-{} runs backwards", low, high), where);
        if (high - low >= static_cast<std::int64_t>(most) || numbers.size() > most)
            throw list_error(list, fmt::format("more than {} names", most), where);
        for (std::int64_t number = low; number <= high; ++number)
            numbers.push_back(fmt::format("{:0{}}", number, low_text.size()));
    }
    return numbers;
}

// One name with its brackets.
std::vector<std::string> expand_name(std::string_view name, std::string_view list, const std::string& where,
                                     std::size_t most) {
    std::vector<std::string> names = {""};
    while (!name.empty()) {
        const std::size_t open = std::min(name.find('['), name.size());
        std::vector<std::string> numbers = {""};
        const std::string_view plain = name.substr(0, open);
        if (plain.find(']') != std::string_view::npos) throw list_error(list, "']' without '['", where);
        name.remove_prefix(open);
        if (!name.empty()) {
            const std::size_t close = name.find(']');
            if (close == std::string_view::npos) throw list_error(list, "'[' without ']'", where);
            numbers = bracket_numbers(name.substr(1, close - 1), list, where, most);
            name.remove_prefix(close + 1);
        }
        if (names.size() * numbers.size() > most)
            throw list_error(list, fmt::format("more than {} names", most), where);
        std::vector<std::string> longer;
        for (const std::string& start : names)
            for (const std::string& number : numbers) longer.push_back(start + std::string(plain) + number);
        names = std::move(longer);
    }
    return names;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list, const std::string& where, std::size_t most) {
    std::vector<std::string> all;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
        const char c = i < list.size() ? list[i] : ',';
        depth += c == '[' ? 1 : c == ']' ? -1 : 0;
        if (c != ',' || (depth > 0 && i < list.size())) continue;
        std::string_view name = list.substr(begin, i - begin);
        begin = i + 1;
        const std::size_t first = name.find_first_not_of(" \t\"");
        if (first == std::string_view::npos) continue;
        name = name.substr(first, name.find_last_not_of(" \t\"") - first + 1);
        for (std::string& one : expand_name(name, list, where, most)) {
            if (all.size() >= most) throw list_error(list, fmt::format("more than {} names", most), where);
            all.push_back(std::move(one));
        }
    }
    return all;
}

std::vector<std::string> HostLists::expand(std::string_view list, const std::string& where) {
    std::vector<std::string> names = expand_host_list(list, where, left_);
    left_ -= names.size();
    return names;
}

}  // namespace baton::topologies
