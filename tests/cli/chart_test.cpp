#include <baton/cli/chart.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace baton;

TEST_CASE("a chart has a line and a legend entry for each series") {
    cli::Series fast{
        "fast & small", {{Bytes{1024}, Time{2'000'000}}, {Bytes{1 << 20}, Time{30'000'000}}}, false};
    cli::Series bound{"bound", {{Bytes{1024}, Time{1'000'000}}, {Bytes{1 << 20}, Time{20'000'000}}}, true};
    const std::string svg = cli::time_chart("two lines", {fast, bound});
    CHECK(svg.find("fast &amp; small") != std::string::npos);
    CHECK(svg.find("stroke-dasharray") != std::string::npos);
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = svg.find("<polyline", at)) != std::string::npos; ++at) ++lines;
    CHECK(lines == 2);
    CHECK(svg.find("nan") == std::string::npos);
}

TEST_CASE("a chart of nothing, of zeros and of one point is still a document") {
    CHECK(cli::time_chart("nothing", {}).find("</svg>") != std::string::npos);
    const cli::Series zero{"zero", {{Bytes{0}, Time{5}}, {Bytes{5}, Time{0}}}, false};
    CHECK(cli::time_chart("zeros", {zero}).find("</svg>") != std::string::npos);
    const cli::Series one{"one", {{Bytes{4096}, Time{5'000'000}}}, false};
    const std::string svg = cli::time_chart("one", {one});
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
}
