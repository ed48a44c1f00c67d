#include <baton/topologies/import/text_lines.hpp>

#include <fmt/format.h>
#include <charconv>
#include <cmath>

namespace baton::topologies {
namespace {

template <typename Number>
std::optional<Number> whole_word(std::string_view word) {
    Number value{};
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return value;
}

}  // namespace

std::vector<std::string_view> TextLine::words() const {
    constexpr std::string_view kBlanks = " \t\v\f";
    std::vector<std::string_view> all;
    for (std::size_t begin = text.find_first_not_of(kBlanks); begin < text.size();) {
        const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
        all.push_back(text.substr(begin, end - begin));
        begin = std::min(text.find_first_not_of(kBlanks, end), text.size());
    }
    return all;
}

std::string TextLine::where() const { return fmt::format("{}:{}", file ? *file : "", number); }

Error TextLine::error(std::string what, std::string remedy) const {
    return input_error(std::move(what), where(), std::move(remedy));
}

std::vector<TextLine> text_lines(const ImportSource& source) {
    std::vector<TextLine> lines;
    for (std::size_t begin = 0; begin < source.text.size();) {
        const std::size_t end = std::min(source.text.find('\n', begin), source.text.size());
        std::string_view line = source.text.substr(begin, end - begin);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        lines.push_back({static_cast<int>(lines.size()) + 1, line, &source.name});
        begin = end + 1;
    }
    return lines;
}

std::string without_escapes(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b') {
            plain += text[i];
            continue;
        }
        if (i + 1 >= text.size() || text[i + 1] != '[') continue;
        // A control sequence ends with its first byte from '@' to '~'.
        i += 2;
        while (i < text.size() && (text[i] < '@' || text[i] > '~') && text[i] != '\n') ++i;
        if (i < text.size() && text[i] == '\n') plain += '\n';
    }
    return plain;
}

std::optional<double> number_in(std::string_view word) {
    const std::optional<double> value = whole_word<double>(word);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> integer_in(std::string_view word) { return whole_word<std::int64_t>(word); }

}  // namespace baton::topologies
