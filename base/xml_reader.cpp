#include <baton/base/xml_reader.hpp>

#include <baton/base/files.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <pugixml.hpp>

namespace baton {
namespace {

constexpr int kMaxXmlDepth = 200;

pugi::xml_node node_of(const void* pointer) {
    return pugi::xml_node(static_cast<pugi::xml_node_struct*>(const_cast<void*>(pointer)));
}

std::string_view trimmed(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && blank(text.back())) text.remove_suffix(1);
    return text;
}

// The deepest nesting, found without recursion.
bool deeper_than(const pugi::xml_node& top, int limit) {
    int depth = 0;
    for (pugi::xml_node node = top; node;) {
        if (node.first_child()) {
            node = node.first_child();
            if (++depth > limit) return true;
            continue;
        }
        while (node != top && !node.next_sibling()) {
            node = node.parent();
            --depth;
        }
        if (node == top) break;
        node = node.next_sibling();
    }
    return false;
}

}  // namespace

std::string_view xml_root_name(std::string_view text) {
    if (text.rfind("\xef\xbb\xbf", 0) == 0) text.remove_prefix(3);
    const auto skip_past = [&](std::string_view mark) {
        const std::size_t end = text.find(mark);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + mark.size());
    };
    for (;;) {
        text = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        if (text.rfind("<?", 0) == 0) {
            skip_past("?>");
        } else if (text.rfind("<!--", 0) == 0) {
            skip_past("-->");
        } else if (text.rfind("<!DOCTYPE", 0) == 0) {
            const std::size_t subset = text.find('['), end = text.find('>');
            skip_past(subset < end ? "]" : ">");
            if (subset < end) skip_past(">");
        } else {
            break;
        }
    }
    if (text.empty() || text.front() != '<') return {};
    return text.substr(1, text.substr(1).find_first_of(" \t\r\n/>"));
}

struct XmlDocument::Data {
    std::string file;
    std::vector<std::size_t> line_starts;
    pugi::xml_document document;

    int line(std::ptrdiff_t offset) const {
        if (offset < 0) return 0;
        const auto after =
            std::upper_bound(line_starts.begin(), line_starts.end(), static_cast<std::size_t>(offset));
        return static_cast<int>(after - line_starts.begin());
    }
};

XmlDocument::XmlDocument() : data_(std::make_unique<Data>()) {}
XmlDocument::XmlDocument(XmlDocument&&) noexcept = default;
XmlDocument& XmlDocument::operator=(XmlDocument&&) noexcept = default;
XmlDocument::~XmlDocument() = default;

XmlDocument XmlDocument::load(const std::string& path) { return parse(read_file(path), path); }

XmlDocument XmlDocument::parse(std::string_view text, std::string name) {
    XmlDocument result;
    Data& data = *result.data_;
    data.file = std::move(name);
    data.line_starts.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') data.line_starts.push_back(i + 1);
    }
    if (text.rfind("\xff\xfe", 0) == 0 || text.rfind("\xfe\xff", 0) == 0)
        throw input_error("the file is in UTF-16", data.file,
                          "convert it to UTF-8: iconv -f UTF-16 -t UTF-8");
    const pugi::xml_parse_result parsed =
        data.document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
    if (!parsed) {
        throw input_error(fmt::format("not well-formed XML: {}", parsed.description()),
                          fmt::format("{}:{}", data.file, std::max(1, data.line(parsed.offset))));
    }
    if (deeper_than(data.document, kMaxXmlDepth + 1))
        throw input_error(fmt::format("elements nest deeper than {}", kMaxXmlDepth), data.file);
    if (!data.document.document_element()) throw input_error("there is no XML element in it", data.file);
    return result;
}

XmlReader XmlDocument::root() const {
    return {data_->document.document_element().internal_object(), data_.get()};
}

std::string XmlReader::name() const { return node_of(node_).name(); }

int XmlReader::line() const {
    return static_cast<const XmlDocument::Data*>(document_)->line(node_of(node_).offset_debug());
}

std::string XmlReader::where() const {
    return fmt::format("{}:{} <{}>", static_cast<const XmlDocument::Data*>(document_)->file, line(),
                       name().substr(0, 40));
}

Error XmlReader::error(std::string what, std::string remedy) const {
    return input_error(std::move(what), where(), std::move(remedy));
}

std::optional<std::string> XmlReader::find(std::string_view attribute) const {
    for (const pugi::xml_attribute& found : node_of(node_).attributes()) {
        if (attribute == found.name()) return std::string(found.value());
    }
    return std::nullopt;
}

std::string XmlReader::at(std::string_view attribute) const {
    if (auto found = find(attribute)) return *std::move(found);
    throw error(fmt::format("the attribute '{}' is missing", attribute));
}

std::optional<std::int64_t> XmlReader::find_integer(std::string_view attribute, std::int64_t low,
                                                    std::int64_t high) const {
    const std::optional<std::string> found = find(attribute);
    std::string_view text = found ? trimmed(*found) : std::string_view();
    if (text.empty()) return std::nullopt;
    const std::string_view given = text;
    const bool negative = text.front() == '-',
               hexadecimal = text.rfind("0x", negative ? 1 : 0) == (negative ? 1U : 0U);
    std::int64_t value = 0;
    if (hexadecimal) text.remove_prefix(negative ? 3 : 2);
    const auto [end, status] =
        std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (status != std::errc() || end != text.data() + text.size() || (hexadecimal && value < 0))
        throw error(fmt::format("{}=\"{}\" is not an integer", attribute, given.substr(0, 60)));
    if (hexadecimal && negative) value = -value;
    if (value < low || value > high)
        throw error(fmt::format("{}={} is outside {} to {}", attribute, value, low, high));
    return value;
}

std::int64_t XmlReader::integer(std::string_view attribute, std::int64_t low, std::int64_t high) const {
    if (const auto found = find_integer(attribute, low, high)) return *found;
    if (find(attribute)) throw error(fmt::format("the attribute '{}' is empty", attribute));
    throw error(fmt::format("the attribute '{}' is missing", attribute));
}

std::optional<double> XmlReader::find_number(std::string_view attribute) const {
    const std::optional<std::string> found = find(attribute);
    const std::string_view text = found ? trimmed(*found) : std::string_view();
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        throw error(fmt::format("{}=\"{}\" is not a number", attribute, text.substr(0, 60)));
    return value;
}

std::vector<std::pair<std::string, std::string>> XmlReader::attributes() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const pugi::xml_attribute& attribute : node_of(node_).attributes())
        all.emplace_back(attribute.name(), attribute.value());
    return all;
}

std::vector<XmlReader> XmlReader::children() const {
    std::vector<XmlReader> all;
    for (const pugi::xml_node& child : node_of(node_).children()) {
        if (child.type() == pugi::node_element) all.push_back({child.internal_object(), document_});
    }
    return all;
}

std::vector<XmlReader> XmlReader::children(std::string_view name) const {
    std::vector<XmlReader> some;
    for (const pugi::xml_node& child : node_of(node_).children()) {
        if (child.type() == pugi::node_element && name == child.name())
            some.push_back({child.internal_object(), document_});
    }
    return some;
}

std::string XmlReader::text() const { return std::string(trimmed(node_of(node_).child_value())); }

}  // namespace baton
