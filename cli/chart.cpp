#include <baton/cli/chart.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>

namespace baton::cli {
namespace {

constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 70, kRight = 20, kTop = 44, kBottom = 48;
// Told apart by people with color blindness as well.
constexpr std::array<const char*, 6> kColors{"#0072b2", "#d55e00", "#009e73",
                                             "#cc79a7", "#e69f00", "#56b4e9"};

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '&')
            out += "&amp;";
        else
            out += c;
    }
    return out;
}

/// Logarithmic axis from value to pixel.
struct Axis {
    double low = 0, high = 1, begin = 0, end = 1;
    double at(double value) const {
        return begin + (std::log2(value) - low) / std::max(high - low, 1e-9) * (end - begin);
    }
};

struct Frame {
    Axis x, y;
    bool empty = true;
};

Frame frame_of(const std::vector<Series>& series) {
    Frame frame;
    double x_low = 1e300, x_high = 0, y_low = 1e300, y_high = 0;
    for (const Series& line : series) {
        for (const auto& [size, time] : line.points) {
            if (size.count <= 0 || time.picoseconds <= 0) continue;
            x_low = std::min(x_low, static_cast<double>(size.count));
            x_high = std::max(x_high, static_cast<double>(size.count));
            y_low = std::min(y_low, static_cast<double>(time.picoseconds));
            y_high = std::max(y_high, static_cast<double>(time.picoseconds));
        }
    }
    if (x_high == 0) return frame;
    frame.empty = false;
    frame.x = {std::log2(x_low), std::log2(x_high), kLeft, kWidth - kRight};
    // Whole decades at the left, so that grid lines close the frame.
    y_low = std::pow(10, std::floor(std::log10(y_low)));
    y_high = std::pow(10, std::ceil(std::log10(y_high * 1.001)));
    frame.y = {std::log2(y_low), std::log2(y_high), kHeight - kBottom, kTop};
    return frame;
}

std::string grid(const Frame& frame) {
    std::string out;
    const auto vertical = [&](double size) {
        out += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" class=\"grid\"/>"
            "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
            frame.x.at(size), kTop, kHeight - kBottom, kHeight - kBottom + 18,
            to_string(Bytes{static_cast<std::int64_t>(size)}));
    };
    const double span = frame.x.high - frame.x.low;
    const double step = span > 12 ? 4 : span > 5 ? 2 : 1;
    for (double power = std::ceil(frame.x.low); power <= frame.x.high + 1e-9; power += step)
        vertical(std::exp2(power));
    for (double time = std::exp2(frame.y.low); std::log2(time) <= frame.y.high + 1e-6; time *= 10) {
        const double y = frame.y.at(time);
        out += fmt::format(
            "<line x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\" class=\"grid\"/>"
            "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
            y, kLeft, kWidth - kRight, kLeft - 8, y + 4,
            to_string(Time{static_cast<std::int64_t>(std::llround(time))}));
    }
    return out;
}

std::string line_of(const Series& series, const Frame& frame, const char* color) {
    std::string points;
    for (const auto& [size, time] : series.points) {
        if (size.count <= 0 || time.picoseconds <= 0) continue;
        points += fmt::format("{:.1f},{:.1f} ", frame.x.at(static_cast<double>(size.count)),
                              frame.y.at(static_cast<double>(time.picoseconds)));
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
                       color, series.dashed ? " stroke-dasharray=\"6 4\"" : "");
}

}  // namespace

std::string time_chart(const std::string& title, const std::vector<Series>& series) {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
        "<style>text{{font:12px "
        "sans-serif;fill:#333}}.grid{{stroke:#ddd}}.title{{font-size:14px;font-weight:bold}}</style>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n<text x=\"{2}\" y=\"24\" "
        "class=\"title\">{3}</text>\n",
        kWidth, kHeight, kLeft, escaped(title));
    const Frame frame = frame_of(series);
    if (!frame.empty) out += grid(frame);
    double legend = kTop + 16;
    for (std::size_t i = 0; i < series.size() && !frame.empty; ++i) {
        const char* color = kColors[i % kColors.size()];
        out += line_of(series[i], frame, color);
        out += fmt::format(
            "<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"{3}\" stroke-width=\"2\"{4}/>"
            "<text x=\"{5}\" y=\"{6}\">{7}</text>\n",
            kLeft + 16, legend, kLeft + 40, color, series[i].dashed ? " stroke-dasharray=\"6 4\"" : "",
            kLeft + 48, legend + 4, escaped(series[i].name));
        legend += 18;
    }
    return out + "</svg>\n";
}

}  // namespace baton::cli
