// Lines and words of text files, with their places. Internal to the layer.
#pragma once

#include <baton/base/error.hpp>
#include <baton/topologies/import/importer.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// A line without its end, and its number from 1.
struct TextLine {
    int number = 0;
    std::string_view text;
    const std::string* file = nullptr;

    /// Words between blanks and tabs.
    std::vector<std::string_view> words() const;
    /// "FILE:12".
    std::string where() const;
    Error error(std::string what, std::string remedy = {}) const;
};

/// All lines; ends are "\n" or "\r\n". The source must outlive them.
std::vector<TextLine> text_lines(const ImportSource& source);

/// The whole text without escape sequences of terminals (colours, underlines).
std::string without_escapes(std::string_view text);

/// A whole word as a number; nothing when it is none, or not finite.
std::optional<double> number_in(std::string_view word);
std::optional<std::int64_t> integer_in(std::string_view word);

}  // namespace baton::topologies
