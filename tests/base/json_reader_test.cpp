#include <baton/base/error.hpp>
#include <baton/base/json_reader.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <vector>

using namespace baton;

namespace {

std::string error_of(const std::function<void()>& run) {
    try {
        run();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::input);
        return error.what();
    }
    return "no error";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("values know their place in the file") {
    const JsonDocument document = JsonDocument::parse(R"({
        // a comment
        "nodes": [{"id": "a"}, {"id": "b", "latency": "700ns"}]
    })",
                                                      "cluster.json");
    const JsonReader node = document.root().at("nodes").at(1);
    CHECK(node.where() == "cluster.json#/nodes/1");
    CHECK(node.at("latency").time().picoseconds == 700'000);
    const std::string missing = error_of([&] { node.at("bandwidth"); });
    CHECK(contains(missing, "cluster.json#/nodes/1"));
    CHECK(contains(missing, "bandwidth"));
    const std::string wrong = error_of([&] { node.at("id").integer(); });
    CHECK(contains(wrong, "cluster.json#/nodes/1/id"));
}

TEST_CASE("keys with slashes and tildes are escaped in pointers") {
    const JsonDocument document = JsonDocument::parse(R"({"a/b": {"c~d": 1}})", "f");
    CHECK(document.root().at("a/b").at("c~d").where() == "f#/a~1b/c~0d");
}

TEST_CASE("a misspelled key is named together with the nearest known one") {
    const JsonDocument document = JsonDocument::parse(R"({"bandwith": 1})");
    const std::string text = error_of([&] { document.root().only_keys({"bandwidth", "latency"}); });
    CHECK(contains(text, "bandwith"));
    CHECK(contains(text, "bandwidth"));
}

TEST_CASE("integers outside their range are refused, also as fractions and exponents") {
    const JsonDocument document =
        JsonDocument::parse(R"([5, 5.5, 1e3, 99999999999999999999, -1, true, "5"])");
    const JsonReader root = document.root();
    CHECK(root.at(0).integer(0, 10) == 5);
    CHECK_THROWS_AS(root.at(0).integer(6, 10), Error);
    CHECK_THROWS_AS(root.at(1).integer(), Error);
    CHECK_THROWS_AS(root.at(3).integer(), Error);
    CHECK_THROWS_AS(root.at(4).integer(0), Error);
    CHECK_THROWS_AS(root.at(5).integer(), Error);
    CHECK_THROWS_AS(root.at(6).integer(), Error);
    CHECK_THROWS_AS(root.at(7), Error);
}

TEST_CASE("quantities come as strings, numbers or objects with their source") {
    const JsonDocument document = JsonDocument::parse(
        R"(["50GB/s", 5e10, {"value": "400Gb/s", "source": "data sheet", "assumed": false}])");
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(document.root().at(i).rate().bytes_per_second == 50'000'000'000);
}

TEST_CASE("broken text is refused with line and column") {
    CHECK(contains(error_of([] { JsonDocument::parse("{\n  \"a\": 1,\n}", "x.json"); }), "x.json"));
    const std::vector<std::string> broken{
        "",           "{",           "[1,2",    "{\"a\":}",          "nul",
        "{\"a\":1}}", "\"\\ud800\"", "[1e999]", "{\"a\":1,\"a\":2}", "\xff\xfe",
        "[01]",       "/* open"};
    for (const std::string& text : broken) {
        CAPTURE(text);
        CHECK_THROWS_AS(JsonDocument::parse(text), Error);
    }
}

TEST_CASE("a trailing comma is refused with line, column and what to do; comments are read") {
    for (const char* text : {"{\n  \"a\": 1,\n}", "[\n  1, 2,\n]"}) {
        const std::string error = error_of([&] { JsonDocument::parse(text, "x.json"); });
        CAPTURE(error);
        CHECK(contains(error, "x.json: line 3, column 1"));
        CHECK(contains(error, "comma"));
    }
    const JsonDocument document = JsonDocument::parse("{ // of a line\n /* of\n lines */ \"a\": 7}");
    CHECK(document.root().at("a").integer() == 7);
}

TEST_CASE("nesting deeper than 128 levels is refused before the stack suffers") {
    const std::string deep = std::string(128, '[') + std::string(128, ']');
    CHECK_NOTHROW(JsonDocument::parse(deep));
    const std::string deeper = std::string(129, '[') + std::string(129, ']');
    CHECK_THROWS_AS(JsonDocument::parse(deeper), Error);
    CHECK_THROWS_AS(JsonDocument::parse(std::string(5'000'000, '[')), Error);
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    CHECK_THROWS_AS(JsonDocument::parse(objects), Error);
}

TEST_CASE("chunks within chunks of a CBOR string are refused before they fill the stack") {
    for (const char open : {'\x5f', '\x7f'}) {
        for (const std::size_t depth : {std::size_t{2}, std::size_t{1} << 22}) {
            const std::string text = "\xa1\x61k" + std::string(depth, open);
            CHECK_THROWS_WITH_AS(JsonDocument::parse(text, "x.cbor"),
                                 doctest::Contains("byte 4: not valid CBOR"), Error);
        }
    }
    const std::string chunked = std::string("\xa1\x61k\x7f\x62") + "ab\x61" + "c\xff";
    CHECK(JsonDocument::parse(chunked, "x.cbor").root().at("k").string() == "abc");
    const std::string other_kind = std::string("\xa1\x61k\x7f\x42") + "ab\xff";
    CHECK_THROWS_AS(JsonDocument::parse(other_kind, "x.cbor"), Error);
}

TEST_CASE("CBOR is recognized by its tag and its lies about length cost no memory") {
    const nlohmann::json value = {{"a", {1, 2, 3}}};
    const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(value);
    const std::string tagged = std::string("\xd9\xd9\xf7") + std::string(bytes.begin(), bytes.end());
    const JsonDocument document = JsonDocument::parse(tagged, "x.cbor");
    CHECK(document.root().at("a").at(2).integer() == 3);
    for (std::size_t cut = 3; cut + 1 < tagged.size(); ++cut) {
        CHECK_THROWS_AS(JsonDocument::parse(tagged.substr(0, cut), "x.cbor"), Error);
    }
    // An array, and a text, that claim 2^60 elements.
    const std::string array = std::string("\xd9\xd9\xf7\x9b\x10", 5) + std::string(7, '\0');
    const std::string text = std::string("\xd9\xd9\xf7\x7b\x10", 5) + std::string(7, '\0');
    CHECK_THROWS_AS(JsonDocument::parse(array, "x.cbor"), Error);
    CHECK_THROWS_AS(JsonDocument::parse(text, "x.cbor"), Error);
}
