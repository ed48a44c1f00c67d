// A schedule: a file that holds either an Algorithm or a Program.
#pragma once

#include <baton/ir/algorithm_json.hpp>
#include <baton/ir/program_json.hpp>

#include <string>
#include <string_view>
#include <variant>

namespace baton::ir {

using Schedule = std::variant<Algorithm, Program>;

/// Reads a file, JSON or CBOR, of format algorithm/1 or program/1. A Program is written for its ranks and its
/// root: options that ask for others, or for params, are an input error. Throws an input error with file and
/// JSON pointer.
Schedule load_schedule(const std::string& path, const LoadOptions& options = {});
/// The same from text; `name` stands for the file in messages.
Schedule parse_schedule(std::string_view text, const std::string& name = "<text>",
                        const LoadOptions& options = {});
/// The same from a document that is already open (a plan set holds schedules inline).
Schedule read_schedule(const JsonReader& root, const LoadOptions& options = {});

/// What both forms have.
const Collective& collective_of(const Schedule& schedule);
const std::string& name_of(const Schedule& schedule);
std::string to_json(const Schedule& schedule);

}  // namespace baton::ir
