#include <baton/base/yaml_reader.hpp>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <cmath>
#include <deque>
#include <set>
#include <sstream>

namespace baton {

struct YamlReader::Value {
    enum class Kind : std::uint8_t { null, scalar, list, map } kind = Kind::null;
    int line = 0;
    std::string path;                                         // "switches.core", "topology[2]"
    std::string text;                                         // scalars
    std::vector<std::pair<std::string, const Value*>> items;  // of lists without keys
};

struct YamlReader::Data {
    std::string name;
    std::deque<Value> values;
    const Value* root = nullptr;
};

namespace {

constexpr std::size_t kMaxYamlBytes = std::size_t{64} << 20, kMaxYamlValues = std::size_t{1} << 22;
constexpr std::size_t kMaxYamlDepth = 64;

}  // namespace

// Makes values of the parser's events. It throws out of the parser when a limit is passed.
struct YamlBuilder : public YAML::EventHandler {
    using Value = YamlReader::Value;
    struct Open {
        Value* value;
        std::set<std::string> keys;
        std::string key;
        bool has_key = false;
    };

    explicit YamlBuilder(YamlReader::Data& target) : data(target) {}

    Error error(const YAML::Mark& mark, std::string what, std::string remedy = {}) const {
        return input_error(std::move(what), fmt::format("{}:{}", data.name, mark.line + 1),
                           std::move(remedy));
    }

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(mark, anchor, Value::Kind::null, {});
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        throw error(mark, "aliases (*name) are not read", "write the value out");
    }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  const std::string& value) override {
        add(mark, anchor, Value::Kind::scalar, value);
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open.push_back({add(mark, anchor, Value::Kind::list, {}), {}, {}});
    }
    void OnSequenceEnd() override { open.pop_back(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open.push_back({add(mark, anchor, Value::Kind::map, {}), {}, {}});
    }
    void OnMapEnd() override { open.pop_back(); }
    // `anchor` of the events is enough to refuse them; names are not needed.
    void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
        throw error(mark, fmt::format("anchors (&{}) are not read", name.substr(0, 40)),
                    "write the value out");
    }

    Value* add(const YAML::Mark& mark, YAML::anchor_t anchor, Value::Kind kind, const std::string& text) {
        if (anchor != 0) throw error(mark, "anchors (&name) are not read", "write the value out");
        if (data.values.size() >= kMaxYamlValues)
            throw error(mark, fmt::format("more than {} values", kMaxYamlValues));
        if (open.size() >= kMaxYamlDepth)
            throw error(mark, fmt::format("nested more than {} levels deep", kMaxYamlDepth));
        Open* in = open.empty() ? nullptr : &open.back();
        if (in && in->value->kind == Value::Kind::map && !in->has_key) {
            if (kind == Value::Kind::list || kind == Value::Kind::map)
                throw error(mark, "a key that is no scalar");
            in->key = text;
            in->has_key = true;
            if (!in->keys.insert(text).second)
                throw error(mark, fmt::format("the key '{}' comes twice", text.substr(0, 60)));
            return nullptr;
        }
        Value value;
        value.kind = kind;
        value.line = mark.line + 1;
        value.text = text;
        if (kind == Value::Kind::scalar && (text == "~" || text == "null")) value.kind = Value::Kind::null;
        if (in) value.path = path_of(*in);
        data.values.push_back(std::move(value));
        Value* made = &data.values.back();
        if (in) {
            in->value->items.emplace_back(in->value->kind == Value::Kind::map ? in->key : std::string(),
                                          made);
            in->has_key = false;
        } else if (data.root == nullptr) {
            data.root = made;
        }
        return made;
    }

    static std::string path_of(const Open& in) {
        const std::string& above = in.value->path;
        if (in.value->kind == Value::Kind::list) return fmt::format("{}[{}]", above, in.value->items.size());
        return (above.empty() ? "" : above + ".") + in.key.substr(0, 60);
    }

    YamlReader::Data& data;
    std::vector<Open> open;
};

bool YamlReader::is_map() const { return value_->kind == Value::Kind::map; }
bool YamlReader::is_list() const { return value_->kind == Value::Kind::list; }
bool YamlReader::is_scalar() const { return value_->kind == Value::Kind::scalar; }
bool YamlReader::is_null() const { return value_->kind == Value::Kind::null; }
int YamlReader::line() const { return value_->line; }

std::string YamlReader::where() const {
    return fmt::format("{}:{}{}{}", data_->name, value_->line, value_->path.empty() ? "" : " ", value_->path);
}

Error YamlReader::error(std::string what, std::string remedy) const {
    return input_error(std::move(what), where(), std::move(remedy));
}

std::optional<YamlReader> YamlReader::find(std::string_view key) const {
    if (is_null()) return std::nullopt;
    if (!is_map()) throw error("a map was expected");
    for (const auto& [name, value] : value_->items) {
        if (name == key) return YamlReader(value, data_);
    }
    return std::nullopt;
}

YamlReader YamlReader::at(std::string_view key) const {
    if (const auto found = find(key)) return *found;
    throw error(fmt::format("'{}' is missing", key));
}

std::vector<std::pair<std::string, YamlReader>> YamlReader::members() const {
    std::vector<std::pair<std::string, YamlReader>> all;
    if (is_null()) return all;
    if (!is_map()) throw error("a map was expected");
    for (const auto& [name, value] : value_->items) all.emplace_back(name, YamlReader(value, data_));
    return all;
}

std::vector<YamlReader> YamlReader::elements() const {
    std::vector<YamlReader> all;
    if (is_null()) return all;
    if (!is_list()) throw error("a list was expected");
    for (const auto& [name, value] : value_->items) all.push_back(YamlReader(value, data_));
    return all;
}

std::string YamlReader::text() const {
    if (!is_scalar()) throw error("a text was expected");
    return value_->text;
}

double YamlReader::number() const {
    const std::string word = text();
    double value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc() || end != word.data() + word.size() || !std::isfinite(value))
        throw error(fmt::format("'{}' is no number", word.substr(0, 60)));
    return value;
}

std::int64_t YamlReader::integer(std::int64_t low, std::int64_t high) const {
    const std::string word = text();
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc() || end != word.data() + word.size())
        throw error(fmt::format("'{}' is no integer", word.substr(0, 60)));
    if (value < low || value > high) throw error(fmt::format("{} is outside {} to {}", value, low, high));
    return value;
}

YamlDocument::YamlDocument() : data_(std::make_unique<YamlReader::Data>()) {}
YamlDocument::YamlDocument(YamlDocument&&) noexcept = default;
YamlDocument& YamlDocument::operator=(YamlDocument&&) noexcept = default;
YamlDocument::~YamlDocument() = default;

YamlReader YamlDocument::root() const { return YamlReader(data_->root, data_.get()); }

YamlDocument YamlDocument::parse(std::string_view text, std::string name) {
    if (text.size() > kMaxYamlBytes)
        throw input_error(fmt::format("more than {} MiB of YAML", kMaxYamlBytes >> 20), name);
    YamlDocument document;
    document.data_->name = std::move(name);
    YamlBuilder builder(*document.data_);
    std::istringstream stream{std::string(text)};
    try {
        YAML::Parser parser(stream);
        parser.HandleNextDocument(builder);
        YamlReader::Data rest;
        rest.name = document.data_->name;
        YamlBuilder more(rest);
        if (parser.HandleNextDocument(more) && rest.root != nullptr &&
            rest.root->kind != YamlReader::Value::Kind::null)
            throw input_error("a second document", fmt::format("{}:{}", rest.name, rest.root->line),
                              "keep one of them");
    } catch (const YAML::Exception& failed) {
        throw input_error("not YAML: " + failed.msg,
                          fmt::format("{}:{}", document.data_->name, failed.mark.line + 1));
    }
    if (document.data_->root == nullptr) throw input_error("an empty document", document.data_->name);
    return document;
}

}  // namespace baton
