#include <baton/base/json_reader.hpp>

#include <baton/base/files.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace baton {

using Json = nlohmann::ordered_json;

struct JsonDocument::Data {
    std::string file;
    Json root;
};

namespace {

constexpr std::size_t kMostLevels = 128;

// "line 3, column 7" of a byte offset.
std::string line_column(std::string_view text, std::size_t offset) {
    offset = std::min(offset, text.size());
    const std::string_view before = text.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.rfind('\n');
    const std::size_t column = start == std::string_view::npos ? offset + 1 : offset - start;
    return fmt::format("line {}, column {}", line, column);
}

// Builds the tree; refuses deep nesting before it is built and keys that come twice.
class TreeBuilder : public nlohmann::json_sax<Json> {
public:
    explicit TreeBuilder(Json& root) : root_(root) {}

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(number_integer_t value) override { return put(value); }
    bool number_unsigned(number_unsigned_t value) override { return put(value); }
    bool number_float(number_float_t value, const string_t&) override {
        if (!std::isfinite(value)) return refuse("a number is out of range");
        return put(value);
    }
    bool string(string_t& value) override { return put(std::move(value)); }
    bool binary(binary_t& value) override { return put(Json::binary(std::move(value))); }
    bool start_object(std::size_t) override { return open(Json::object()); }
    bool start_array(std::size_t) override { return open(Json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        if (!levels_.back().keys.insert(name).second) {
            return refuse(fmt::format("the key '{}' comes twice in one object", name.substr(0, 60)));
        }
        levels_.back().key = std::move(name);
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
        position_ = position;
        fault_ = error.what();
        // The library's text begins with its own tag and place; ours is given apart.
        if (const std::size_t colon = fault_.find(": "); colon != std::string::npos)
            fault_ = fault_.substr(colon + 2);
        return false;
    }

    const std::string& fault() const { return fault_; }
    std::size_t position() const { return position_; }

private:
    struct Level {
        Json* value;
        std::string key;
        std::unordered_set<std::string> keys;
    };

    bool refuse(std::string why) {
        fault_ = std::move(why);
        return false;
    }
    Json* place(Json value) {
        if (levels_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        Level& level = levels_.back();
        if (level.value->is_array()) {
            level.value->get_ref<Json::array_t&>().push_back(std::move(value));
            return &level.value->get_ref<Json::array_t&>().back();
        }
        auto& members = level.value->get_ref<Json::object_t&>();
        // push_back on the vector beneath: keys are known to be new, and a search per key would be quadratic.
        static_cast<Json::object_t::Container&>(members).emplace_back(std::move(level.key), std::move(value));
        return &members.back().second;
    }
    bool put(Json value) {
        place(std::move(value));
        return true;
    }
    bool open(Json value) {
        if (levels_.size() >= kMostLevels)
            return refuse(fmt::format("nested deeper than {} levels", kMostLevels));
        levels_.push_back({place(std::move(value)), {}, {}});
        return true;
    }
    bool close() {
        levels_.pop_back();
        return true;
    }

    Json& root_;
    std::vector<Level> levels_;
    std::string fault_;
    std::size_t position_ = std::string::npos;
};

// A CBOR document: the self-described tag, or a map header (which no JSON text can begin with).
bool looks_like_cbor(std::string_view text) {
    if (text.empty()) return false;
    const auto first = static_cast<unsigned char>(text[0]);
    return text.substr(0, 3) == "\xd9\xd9\xf7" || (first >= 0xa0 && first <= 0xbf);
}

// Byte offset of a chunk of a string that is no string of known length (RFC 8949, 3.2.3, forbids it), or
// npos. The library would follow such chunks in one another, a stack frame each.
std::size_t find_nested_chunk(std::string_view text) {
    bool in_chunks = false;
    unsigned kind = 0;  // major type of the string whose chunks these are
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const unsigned major = first >> 5, low = first & 31;
        const std::size_t bytes = low < 24 ? 0 : low < 28 ? std::size_t{1} << (low - 24) : 0;
        if (in_chunks && first == 0xff) {
            in_chunks = false;
        } else if (in_chunks && (major != kind || low >= 28)) {
            return i;
        } else if (major == 2 || major == 3) {
            if (low == 31) {
                in_chunks = true;
                kind = major;
            } else {
                if (low >= 28 || bytes > text.size() - i - 1) break;  // the library says what is wrong
                std::uint64_t length = low < 24 ? low : 0;
                for (std::size_t j = 0; j < bytes; ++j)
                    length = length << 8 | static_cast<unsigned char>(text[i + 1 + j]);
                if (length > text.size() - i - 1 - bytes) break;
                i += length;
            }
        }
        i += 1 + bytes;
    }
    return std::string_view::npos;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t above = row[j];
            row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

// Escapes a key for a JSON pointer (RFC 6901).
std::string pointer_token(std::string_view key) {
    std::string out;
    for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

const char* kind_of(const Json& value) {
    switch (value.type()) {
        case Json::value_t::object: return "an object";
        case Json::value_t::array: return "an array";
        case Json::value_t::string: return "a string";
        case Json::value_t::boolean: return "a boolean";
        case Json::value_t::null: return "null";
        case Json::value_t::binary: return "binary data";
        default: return "a number";
    }
}

}  // namespace

JsonDocument::JsonDocument() : data_(std::make_unique<Data>()) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

JsonDocument JsonDocument::load(const std::string& path) {
    return parse(read_file(path), path == "-" ? "standard input" : path);
}

JsonDocument JsonDocument::parse(std::string_view text, std::string name) {
    JsonDocument document;
    document.data_->file = std::move(name);
    TreeBuilder builder(document.data_->root);
    const bool cbor = looks_like_cbor(text);
    if (cbor && text.substr(0, 3) == "\xd9\xd9\xf7") text.remove_prefix(3);
    if (cbor) {
        if (const std::size_t place = find_nested_chunk(text); place != std::string_view::npos)
            throw input_error("not valid CBOR: a chunk of a string is no string of known length",
                              fmt::format("{}: byte {}", document.data_->file, place));
    }
    const bool good = cbor ? Json::sax_parse(text, &builder, Json::input_format_t::cbor)
                           : Json::sax_parse(text, &builder, Json::input_format_t::json, true, true);
    if (good) return document;
    const bool has_place = builder.position() != std::string::npos;
    std::string where = document.data_->file;
    if (has_place) {
        const std::size_t offset = builder.position() == 0 ? 0 : builder.position() - 1;
        where += ": " + (cbor ? fmt::format("byte {}", offset) : line_column(text, offset));
    }
    std::string remedy;
    if (builder.fault().find("unexpected ']'") != std::string::npos ||
        builder.fault().find("unexpected '}'") != std::string::npos) {
        remedy = "remove the comma before it, if there is one";
    }
    throw input_error(fmt::format("not valid {}: {}", cbor ? "CBOR" : "JSON", builder.fault()), where,
                      remedy);
}

JsonReader JsonDocument::root() const { return {&data_->root, &data_->file, ""}; }

bool JsonReader::is_object() const { return value_->is_object(); }
bool JsonReader::is_array() const { return value_->is_array(); }
bool JsonReader::is_string() const { return value_->is_string(); }
bool JsonReader::is_integer() const { return value_->is_number_integer(); }
bool JsonReader::is_number() const { return value_->is_number(); }
bool JsonReader::is_boolean() const { return value_->is_boolean(); }
bool JsonReader::is_null() const { return value_->is_null(); }

std::string JsonReader::where() const { return *file_ + "#" + pointer_; }

Error JsonReader::error(std::string what, std::string remedy) const {
    return input_error(std::move(what), where(), std::move(remedy));
}

std::string JsonReader::text(std::size_t limit) const {
    // Large values are not printed in full just to be cut.
    if (value_->is_structured() && value_->size() > limit) return value_->is_array() ? "[...]" : "{...}";
    std::string out = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (out.size() > limit) out = out.substr(0, limit) + "...";
    return out;
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
    if (!is_object()) throw error(fmt::format("expected an object, found {}", kind_of(*value_)));
    const auto& members = value_->get_ref<const Json::object_t&>();
    for (const auto& [name, value] : members) {
        if (name == key) return JsonReader(&value, file_, pointer_ + "/" + pointer_token(key));
    }
    return std::nullopt;
}

JsonReader JsonReader::at(std::string_view key) const {
    if (auto member = find(key)) return *member;
    throw error(fmt::format("the key '{}' is missing", key));
}

JsonReader JsonReader::at(std::size_t index) const {
    if (!is_array()) throw error(fmt::format("expected an array, found {}", kind_of(*value_)));
    if (index >= value_->size())
        throw error(fmt::format("expected at least {} elements, found {}", index + 1, value_->size()));
    return {&(*value_)[index], file_, fmt::format("{}/{}", pointer_, index)};
}

std::vector<JsonReader> JsonReader::elements() const {
    if (!is_array()) throw error(fmt::format("expected an array, found {}", kind_of(*value_)));
    std::vector<JsonReader> out;
    out.reserve(value_->size());
    for (std::size_t i = 0; i < value_->size(); ++i) out.push_back(at(i));
    return out;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
    if (!is_object()) throw error(fmt::format("expected an object, found {}", kind_of(*value_)));
    std::vector<std::pair<std::string, JsonReader>> out;
    for (const auto& [name, value] : value_->get_ref<const Json::object_t&>()) {
        out.emplace_back(name, JsonReader(&value, file_, pointer_ + "/" + pointer_token(name)));
    }
    return out;
}

std::size_t JsonReader::size() const {
    if (!value_->is_structured())
        throw error(fmt::format("expected an array or an object, found {}", kind_of(*value_)));
    return value_->size();
}

std::string JsonReader::string() const {
    if (!is_string()) throw error(fmt::format("expected a string, found {} ({})", kind_of(*value_), text()));
    return value_->get<std::string>();
}

bool JsonReader::boolean() const {
    if (!is_boolean())
        throw error(fmt::format("expected true or false, found {} ({})", kind_of(*value_), text()));
    return value_->get<bool>();
}

double JsonReader::number() const {
    if (!is_number()) throw error(fmt::format("expected a number, found {} ({})", kind_of(*value_), text()));
    return value_->get<double>();
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
    if (!is_integer())
        throw error(fmt::format("expected an integer, found {} ({})", kind_of(*value_), text()));
    const bool too_large = value_->is_number_unsigned() && value_->get<std::uint64_t>() > INT64_MAX;
    const std::int64_t value = too_large ? INT64_MAX : value_->get<std::int64_t>();
    if (too_large || value < low || value > high) {
        throw error(fmt::format("{} is out of range", text()), fmt::format("use {} to {}", low, high));
    }
    return value;
}

namespace {

// The value itself, or the `value` of {value, source, assumed}.
JsonReader quantity(const JsonReader& reader) {
    if (!reader.is_object()) return reader;
    reader.only_keys({"value", "source", "assumed"});
    return reader.at("value");
}

template <class Parse>
auto parse_quantity(const JsonReader& given, const char* what, double factor, Parse parse) {
    const JsonReader reader = quantity(given);
    if (reader.is_string()) return parse(reader.string(), reader.where());
    if (!reader.is_number()) throw reader.error(fmt::format("expected {}, found {}", what, reader.text()));
    const double value = reader.number() * factor;
    if (value < 0) throw reader.error(fmt::format("{} is negative", reader.text()));
    if (value >= 9.2e18) throw reader.error(fmt::format("{} is out of range", reader.text()));
    return decltype(parse(std::string(), std::string())){static_cast<std::int64_t>(std::llround(value))};
}

}  // namespace

Bytes JsonReader::bytes() const {
    if (const JsonReader given = quantity(*this);
        given.is_number() && given.number() != std::floor(given.number()))
        throw given.error(fmt::format("{} is no whole number of bytes", given.text()));
    return parse_quantity(
        *this, "a size such as \"64KiB\"", 1,
        [](const std::string& text, const std::string& where) { return parse_bytes(text, where); });
}
Time JsonReader::time() const {
    return parse_quantity(
        *this, "a time such as \"700ns\"", 1e12,
        [](const std::string& text, const std::string& where) { return parse_time(text, where); });
}
Rate JsonReader::rate() const {
    return parse_quantity(
        *this, "a rate such as \"400Gb/s\"", 1,
        [](const std::string& text, const std::string& where) { return parse_rate(text, where); });
}

void JsonReader::only_keys(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : members()) {
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        std::string list;
        std::string_view nearest;
        std::size_t least = 3;
        for (const std::string_view key : known) {
            list += (list.empty() ? "" : ", ") + std::string(key);
            const std::size_t distance = name.size() > 64 ? 99 : edit_distance(name, key);
            if (distance < least) {
                least = distance;
                nearest = key;
            }
        }
        throw value.error("unknown key", nearest.empty() ? "known here: " + list
                                                         : fmt::format("did you mean '{}'?", nearest));
    }
}

}  // namespace baton
