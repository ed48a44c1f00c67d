#include <baton/base/error.hpp>
#include <baton/base/xml_reader.hpp>

#include <doctest/doctest.h>

#include <string>

using baton::Error;
using baton::XmlDocument;
using baton::XmlReader;

namespace {

std::string error_of(const std::string& text) {
    try {
        XmlDocument::parse(text, "f.xml");
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("an element knows its line, attributes and children; comments are passed over") {
    const XmlDocument document = XmlDocument::parse(
        "<!-- first -->\n<system version=\"1\">\n  <cpu numaid=\"-1\" mask=\"0x1f\" empty=\"\"/> text\n"
        "  <!-- <cpu/> -->\n  <pci speed=\"936.25\"/>\n</system>\n",
        "f.xml");
    const XmlReader root = document.root();
    CHECK(root.name() == "system");
    CHECK(root.where() == "f.xml:2 <system>");
    REQUIRE(root.children().size() == 2);
    const XmlReader cpu = root.children("cpu").at(0);
    CHECK(cpu.line() == 3);
    CHECK(cpu.integer("numaid") == -1);
    CHECK(cpu.integer("mask") == 31);
    CHECK_FALSE(cpu.find_integer("empty"));
    CHECK_FALSE(cpu.find("absent"));
    CHECK(cpu.attributes().size() == 3);
    CHECK(root.children().at(1).find_number("speed") == 936.25);
    CHECK(root.text() == "text");
}

TEST_CASE("what an attribute must be is said with its place") {
    const XmlDocument document = XmlDocument::parse("<a>\n<b n=\"12x\" m=\"99\"/>\n</a>", "f.xml");
    const XmlReader b = document.root().children().at(0);
    CHECK_THROWS_WITH(b.integer("n"), "f.xml:2 <b>: n=\"12x\" is not an integer");
    CHECK_THROWS_WITH(b.integer("m", 0, 9), "f.xml:2 <b>: m=99 is outside 0 to 9");
    CHECK_THROWS_WITH(b.integer("k"), "f.xml:2 <b>: the attribute 'k' is missing");
    CHECK_THROWS_AS(b.integer("n"), Error);
}

TEST_CASE("text that is no document is refused with its line") {
    CHECK(error_of("<a>\n<b>\n</a>").find("f.xml:3: not well-formed XML") == 0);
    CHECK(error_of("") != "none");
    CHECK(error_of("   \n") != "none");
    CHECK(error_of("<!-- only a comment -->") != "none");
    CHECK(error_of("plain words") != "none");
}

TEST_CASE("deep nesting and entity bombs end at once") {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += "<a>";
    for (int i = 0; i < 100000; ++i) deep += "</a>";
    CHECK(error_of(deep).find("nest deeper than 200") != std::string::npos);
    const XmlDocument document = XmlDocument::parse(
        "<!DOCTYPE a [<!ENTITY x \"xxxxxxxxxx\"><!ENTITY y \"&x;&x;\">]><a b=\"&y;\"/>", "f.xml");
    CHECK(document.root().at("b") == "&y;");
}
