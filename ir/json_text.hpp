// How documents of this layer are printed: one item a line, blanks after commas and colons.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace baton::ir {

/// A value on one line with a blank after "," and ":" outside of strings. What is not UTF-8 is replaced.
std::string spaced_json(const nlohmann::ordered_json& value);
/// The document in CBOR, with tag 55799 in front.
std::string cbor_bytes(const nlohmann::ordered_json& document);

}  // namespace baton::ir
