// Line charts of time against size, as SVG text.
#pragma once

#include <baton/base/quantities.hpp>

#include <string>
#include <utility>
#include <vector>

namespace baton::cli {

/// One line of a chart: (size, time) points in ascending order of size. `dashed` is for bounds.
struct Series {
    std::string name;
    std::vector<std::pair<Bytes, Time>> points;
    bool dashed = false;
};

/// A chart with logarithmic axes as an SVG document of about 720 by 440 pixels: sizes below, times at the
/// left, a legend. Points with size or time 0 are left out. Readable on light and dark pages.
std::string time_chart(const std::string& title, const std::vector<Series>& series);

}  // namespace baton::cli
