// Reading XML input with precise places: every element knows its file and line.
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

class XmlDocument;

/// An element of a document, together with its place. Cheap to copy; valid while the document lives.
/// All accessors that can fail throw an input error that names file, line and element.
class XmlReader {
public:
    std::string name() const;
    /// Line of the element's start, from 1.
    int line() const;
    /// "FILE:12 <gpu>".
    std::string where() const;

    /// An attribute's text, or nothing when it is absent.
    std::optional<std::string> find(std::string_view attribute) const;
    /// An attribute's text; an error names the missing attribute.
    std::string at(std::string_view attribute) const;
    /// An attribute as an integer in decimal, or in hexadecimal after "0x", within [low, high].
    std::int64_t integer(std::string_view attribute, std::int64_t low = INT64_MIN,
                         std::int64_t high = INT64_MAX) const;
    /// The same; nothing when the attribute is absent or its text is empty.
    std::optional<std::int64_t> find_integer(std::string_view attribute, std::int64_t low = INT64_MIN,
                                             std::int64_t high = INT64_MAX) const;
    /// An attribute as a finite number; nothing when the attribute is absent or its text is empty.
    std::optional<double> find_number(std::string_view attribute) const;
    /// All attributes in file order.
    std::vector<std::pair<std::string, std::string>> attributes() const;

    /// Child elements in file order (comments and text are left out): all, or those of one name.
    std::vector<XmlReader> children() const;
    std::vector<XmlReader> children(std::string_view name) const;
    /// The text directly inside the element, without blanks around it.
    std::string text() const;

    /// An input error at this place.
    Error error(std::string what, std::string remedy = {}) const;

private:
    friend class XmlDocument;
    struct Place;
    XmlReader(const void* node, const void* document) : node_(node), document_(document) {}
    const void *node_, *document_;  // pugixml's node and the document's data, kept out of this header
};

/// Name of the outermost element, found without parsing the rest; empty when the text does not start as XML
/// (after a byte order mark, declarations, comments and a document type).
std::string_view xml_root_name(std::string_view text);

/// A parsed document. Document type declarations are passed over, so that no entity is ever expanded from
/// outside or grows. Nesting is limited to 200 levels, so that readers may recurse.
class XmlDocument {
public:
    /// Reads and parses a file; "-" is standard input.
    static XmlDocument load(const std::string& path);
    /// Parses text; `name` stands for the file in messages.
    static XmlDocument parse(std::string_view text, std::string name = "<text>");

    /// The one element at the top; a document without one is an error when it is parsed.
    XmlReader root() const;

    XmlDocument(XmlDocument&&) noexcept;
    XmlDocument& operator=(XmlDocument&&) noexcept;
    ~XmlDocument();

private:
    friend class XmlReader;
    XmlDocument();
    struct Data;
    std::unique_ptr<Data> data_;
};

}  // namespace baton
