// Programs as JSON and CBOR ("baton": "program/1"); docs/programs.md describes the format.
#pragma once

#include <baton/ir/program.hpp>

#include <string>
#include <string_view>

namespace baton {
class JsonReader;
}

namespace baton::ir {

/// Reads a file, JSON or CBOR. Checks form, names, and that ranks, connections and switch groups named exist;
/// pairing of messages, needs and order are verify's part. Posts are set where they are needed
/// (`mark_posts`); a threadblock that does not list its connections owns those that its instructions name.
/// Throws an input error with file and JSON pointer.
Program load_program(const std::string& path);
/// The same from text; `name` stands for the file in messages.
Program parse_program(std::string_view text, const std::string& name = "<text>");
/// The same from a document that is already open.
Program read_program(const JsonReader& root);

/// One instruction a line. Parses back to the same program.
std::string to_json(const Program& program);
/// The same document in CBOR, with tag 55799 in front.
std::string to_cbor(const Program& program);

}  // namespace baton::ir
