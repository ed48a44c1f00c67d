// Algorithms as JSON and CBOR ("baton": "algorithm/1"); docs/ir.md describes the format.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace baton {
class JsonReader;
}

namespace baton::ir {

/// What the reader of a file sets instead of the file.
struct LoadOptions {
    std::optional<int> ranks;                    ///< instead of collective.ranks
    std::optional<int> root;                     ///< instead of collective.root
    std::map<std::string, std::int64_t> params;  ///< instead of the file's params of these names
};

/// Reads a file, JSON or CBOR. Checks form, names, ranges of literal operands, the collective and `requires`;
/// whether the algorithm is right is verify's part. Throws an input error with file and JSON pointer.
Algorithm load_algorithm(const std::string& path, const LoadOptions& options = {});
/// The same from text; `name` stands for the file in messages.
Algorithm parse_algorithm(std::string_view text, const std::string& name = "<text>",
                          const LoadOptions& options = {});

/// The same from a document that is already open.
Algorithm read_algorithm(const JsonReader& root, const LoadOptions& options = {});

/// One step, loop or block a line; loops, lets and params are kept. Parses back to the same algorithm.
/// Throws an input error when explicit steps of ranks and templates of positions are mixed on groups.
std::string to_json(const Algorithm& algorithm);
/// The same document in CBOR, with tag 55799 in front.
std::string to_cbor(const Algorithm& algorithm);

}  // namespace baton::ir
