// Reading YAML input with precise places: every value knows its file and line.
#pragma once

#include <baton/base/error.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton {

class YamlDocument;

/// A value of a document, together with its place. Cheap to copy; valid while the document lives.
/// All accessors that can fail throw an input error that names file, line and path.
class YamlReader {
public:
    bool is_map() const;
    bool is_list() const;
    bool is_scalar() const;
    /// An empty value, "~" or "null".
    bool is_null() const;

    /// Line of the value's start, from 1.
    int line() const;
    /// "FILE:12 switches.core".
    std::string where() const;

    /// Member of a map, or nothing when it is absent.
    std::optional<YamlReader> find(std::string_view key) const;
    /// Member of a map; an error names the missing key.
    YamlReader at(std::string_view key) const;
    /// Keys and values of a map in file order.
    std::vector<std::pair<std::string, YamlReader>> members() const;
    /// Elements of a list.
    std::vector<YamlReader> elements() const;

    /// A scalar's text.
    std::string text() const;
    /// A scalar as a finite number.
    double number() const;
    /// A scalar as an integer within [low, high].
    std::int64_t integer(std::int64_t low = INT64_MIN, std::int64_t high = INT64_MAX) const;

    /// An input error at this place.
    Error error(std::string what, std::string remedy = {}) const;

private:
    friend class YamlDocument;
    struct Value;
    struct Data;
    friend struct YamlBuilder;
    YamlReader(const Value* value, const Data* data) : value_(value), data_(data) {}
    const Value* value_;
    const Data* data_;
};

/// The one document of a YAML text. Anchors and aliases are refused, so that no text grows when it is read;
/// keys must be scalars and come once. Limits: 64 levels of nesting, 64 MiB of text, 2^22 values.
class YamlDocument {
public:
    /// Parses text; `name` stands for the file in messages.
    static YamlDocument parse(std::string_view text, std::string name = "<text>");

    YamlReader root() const;

    YamlDocument(YamlDocument&&) noexcept;
    YamlDocument& operator=(YamlDocument&&) noexcept;
    ~YamlDocument();

private:
    YamlDocument();
    std::unique_ptr<YamlReader::Data> data_;
};

}  // namespace baton
