// Writing pictures: the few shapes of SVG that diagrams need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton {

/// Text as it may stand in an element or an attribute of XML: markup is escaped, control characters and bytes
/// that are no UTF-8 become '?'.
std::string xml_escaped(std::string_view text);

/// A point in pixels.
struct SvgPoint {
    double x = 0, y = 0;
};

/// How a shape looks. Empty strings and zeros leave the attribute out.
struct SvgStyle {
    std::string fill = {}, stroke = {};
    double width = 0;         ///< of the stroke
    std::string dashes = {};  ///< "4 3"
    bool arrow_start = false, arrow_end = false;
    std::string title = {};  ///< what a browser shows when the pointer rests on the shape
    std::string kind = {};   ///< class of the element, for style sheets and tests
};

enum class SvgAnchor : std::uint8_t { start, middle, end };

/// Collects shapes in the order in which they are drawn. Coordinates are written with one decimal place, so
/// that the same drawing gives the same bytes everywhere.
class Svg {
public:
    void rect(SvgPoint corner, double width, double height, const SvgStyle& style, double radius = 0);
    void circle(SvgPoint center, double radius, const SvgStyle& style);
    void line(SvgPoint from, SvgPoint to, const SvgStyle& style) { path({from, to}, style); }
    /// A line through all points.
    void path(const std::vector<SvgPoint>& points, const SvgStyle& style);
    /// A quadratic curve.
    void curve(SvgPoint from, SvgPoint control, SvgPoint to, const SvgStyle& style);
    /// One line of text. `halo`: a white rim that keeps it readable on top of lines.
    void text(SvgPoint at, std::string_view words, double size, SvgAnchor anchor = SvgAnchor::start,
              std::string_view color = "#222222", bool bold = false, bool halo = false);

    /// The document: a white page of that size with the shapes.
    std::string document(double width, double height, std::string_view title) const;

private:
    void shape(const std::string& element, const std::string& attributes, const SvgStyle& style);
    std::string marker(const std::string& color);
    std::string body_;
    std::vector<std::string> markers_;  // colors of arrow heads
};

/// Width of a line of text of that size in pixels, near enough to lay out boxes: fonts differ.
double svg_text_width(std::string_view words, double size);

}  // namespace baton
