#include <baton/base/svg.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

namespace baton {
namespace {

// Length of the well-formed UTF-8 sequence at the start, 0 when there is none.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    std::size_t length = 0;
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) length = 2;
    if (first >= 0xe0 && first < 0xf0) length = 3;
    if (first >= 0xf0 && first < 0xf5) length = 4;
    if (length == 0 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const unsigned char second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool beyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
    // U+FFFE and U+FFFF are no characters of XML.
    const bool none = first == 0xef && second == 0xbf && byte(2) >= 0xbe;
    return overlong || beyond || none ? 0 : length;
}

// Never "-0.0", which a rounding that differs in the last bit would turn into "0.0".
std::string number(double value) {
    const double tenths = std::round(value * 10);
    return fmt::format("{:.1f}", tenths == 0 ? 0.0 : tenths / 10);
}

}  // namespace

std::string xml_escaped(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text.front();
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            case '\'': out += "&#39;"; break;
            default:
                if (length == 0 || static_cast<unsigned char>(c) < ' ' || c == 0x7f)
                    out += '?';
                else
                    out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

double svg_text_width(std::string_view words, double size) {
    std::size_t letters = 0;
    for (const char c : words) letters += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return static_cast<double>(letters) * size * 0.58;
}

std::string Svg::marker(const std::string& color) {
    const auto found = std::find(markers_.begin(), markers_.end(), color);
    const auto index = found - markers_.begin();
    if (found == markers_.end()) markers_.push_back(color);
    return fmt::format("url(#arrow{})", index);
}

void Svg::shape(const std::string& element, const std::string& attributes, const SvgStyle& style) {
    body_ += "<" + element;
    if (!style.kind.empty()) body_ += " class=\"" + xml_escaped(style.kind) + "\"";
    body_ += attributes;
    body_ += " fill=\"" + (style.fill.empty() ? "none" : xml_escaped(style.fill)) + "\"";
    if (!style.stroke.empty()) body_ += " stroke=\"" + xml_escaped(style.stroke) + "\"";
    if (style.width > 0) body_ += " stroke-width=\"" + number(style.width) + "\"";
    if (!style.dashes.empty()) body_ += " stroke-dasharray=\"" + xml_escaped(style.dashes) + "\"";
    if (style.arrow_start) body_ += " marker-start=\"" + marker(style.stroke) + "\"";
    if (style.arrow_end) body_ += " marker-end=\"" + marker(style.stroke) + "\"";
    if (style.title.empty())
        body_ += "/>\n";
    else
        body_ += "><title>" + xml_escaped(style.title) + "</title></" + element + ">\n";
}

void Svg::rect(SvgPoint corner, double width, double height, const SvgStyle& style, double radius) {
    std::string attributes = fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(corner.x),
                                         number(corner.y), number(width), number(height));
    if (radius > 0) attributes += " rx=\"" + number(radius) + "\"";
    shape("rect", attributes, style);
}

void Svg::circle(SvgPoint center, double radius, const SvgStyle& style) {
    shape("circle",
          fmt::format(" cx=\"{}\" cy=\"{}\" r=\"{}\"", number(center.x), number(center.y), number(radius)),
          style);
}

void Svg::path(const std::vector<SvgPoint>& points, const SvgStyle& style) {
    std::string way;
    for (const SvgPoint& each : points)
        way += fmt::format("{}{} {}", way.empty() ? "M" : " L", number(each.x), number(each.y));
    shape("path", " d=\"" + way + "\"", style);
}

void Svg::curve(SvgPoint from, SvgPoint control, SvgPoint to, const SvgStyle& style) {
    shape("path",
          fmt::format(" d=\"M{} {} Q{} {} {} {}\"", number(from.x), number(from.y), number(control.x),
                      number(control.y), number(to.x), number(to.y)),
          style);
}

void Svg::text(SvgPoint at, std::string_view words, double size, SvgAnchor anchor, std::string_view color,
               bool bold, bool halo) {
    static constexpr const char* kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}{}{}>{}</text>\n",
                         number(at.x), number(at.y), number(size), xml_escaped(color),
                         kAnchors[static_cast<std::size_t>(anchor)], bold ? " font-weight=\"bold\"" : "",
                         halo ? " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"" : "",
                         xml_escaped(words));
}

std::string Svg::document(double width, double height, std::string_view title) const {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n<title>{2}</title>\n",
        number(width), number(height), xml_escaped(title));
    if (!markers_.empty()) {
        text += "<defs>\n";
        for (std::size_t i = 0; i < markers_.size(); ++i)
            text += fmt::format(
                "<marker id=\"arrow{}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" "
                "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\">"
                "<path d=\"M0 1 L10 5 L0 9 z\" fill=\"{}\"/></marker>\n",
                i, xml_escaped(markers_[i]));
        text += "</defs>\n";
    }
    text +=
        fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", number(width), number(height));
    return text + body_ + "</svg>\n";
}

}  // namespace baton
