// Reading JSON (and CBOR) input with precise places: every value knows its file and JSON pointer.
#pragma once

#include <baton/base/error.hpp>
#include <baton/base/quantities.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

class JsonDocument;

/// A value inside a document, together with its place. Cheap to copy; valid while the document lives.
/// All accessors throw an input error that names file, JSON pointer and what was expected.
class JsonReader {
public:
    bool is_object() const;
    bool is_array() const;
    bool is_string() const;
    bool is_integer() const;
    bool is_number() const;
    bool is_boolean() const;
    bool is_null() const;

    /// Member of an object; an error names the missing key.
    JsonReader at(std::string_view key) const;
    /// Member of an object, or nothing when absent.
    std::optional<JsonReader> find(std::string_view key) const;
    /// Element of an array.
    JsonReader at(std::size_t index) const;
    /// Elements of an array; the value must be an array.
    std::vector<JsonReader> elements() const;
    /// Keys and values of an object in file order.
    std::vector<std::pair<std::string, JsonReader>> members() const;
    /// Number of elements or members.
    std::size_t size() const;

    std::string string() const;
    bool boolean() const;
    double number() const;
    /// An integer within [low, high].
    std::int64_t integer(std::int64_t low = INT64_MIN, std::int64_t high = INT64_MAX) const;
    /// A quantity: a string with a unit, a number in SI base units, or {value, source, assumed}.
    Bytes bytes() const;
    Time time() const;
    Rate rate() const;

    /// Error when the object has a key outside the list (misspelled keys never pass silently);
    /// the message names the nearest known key.
    void only_keys(std::initializer_list<std::string_view> known) const;

    /// "FILE#/nodes/3/latency".
    std::string where() const;
    /// An input error at this place.
    Error error(std::string what, std::string remedy = {}) const;
    /// The value as compact JSON text, cut after `limit` characters.
    std::string text(std::size_t limit = 60) const;
    /// The underlying value (include <nlohmann/json.hpp> to use it).
    const nlohmann::ordered_json& raw() const { return *value_; }

private:
    friend class JsonDocument;
    JsonReader(const nlohmann::ordered_json* value, const std::string* file, std::string pointer)
        : value_(value), file_(file), pointer_(std::move(pointer)) {}
    const nlohmann::ordered_json* value_;
    const std::string* file_;
    std::string pointer_;
};

/// A parsed document. Comments are accepted; a trailing comma is an error with line and column.
/// Nesting is limited to 128 levels, so that no input exhausts the stack. Duplicate keys are an error.
class JsonDocument {
public:
    /// Reads and parses a file; CBOR is recognized by its first bytes (tag 55799, or a map header).
    static JsonDocument load(const std::string& path);
    /// Parses text; `name` stands for the file in messages.
    static JsonDocument parse(std::string_view text, std::string name = "<text>");

    JsonReader root() const;

    JsonDocument(JsonDocument&&) noexcept;
    JsonDocument& operator=(JsonDocument&&) noexcept;
    ~JsonDocument();

private:
    JsonDocument();
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace baton
