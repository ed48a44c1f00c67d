#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

#include "support/shell.hpp"

using namespace baton;

TEST_CASE("the quickstart synthesizes, verifies, runs and compares") {
    const test::WorkFolder folder;
    const test::ShellResult result = test::shell("baton quickstart --json", folder.path());
    CAPTURE(result.output);
    REQUIRE(result.code == 0);
    const nlohmann::json report = nlohmann::json::parse(result.output);
    CHECK(report["right"] == true);
    CHECK(report["verified"] == "proved");
    REQUIRE(report["sizes"].size() >= 4);
    for (const auto& row : report["sizes"]) {
        CHECK(row["seconds"].get<double>() >= row["bound_seconds"].get<double>());
        CHECK(row["seconds"].get<double>() <= row["ring_seconds"].get<double>());
    }
}

TEST_CASE("the quickstart ends with six lines of what to try next") {
    const test::WorkFolder folder;
    const test::ShellResult result = test::shell("baton quickstart", folder.path());
    REQUIRE(result.code == 0);
    const std::size_t at = result.output.find("Try next:\n");
    REQUIRE(at != std::string::npos);
    int lines = 0;
    for (std::size_t i = at + 10; i < result.output.size(); ++i) lines += result.output[i] == '\n';
    CHECK(lines == 6);
}
