// The "collective" member of algorithms and programs.
#pragma once

#include <baton/base/json_reader.hpp>
#include <baton/ir/collective.hpp>
#include <baton/ir/expression.hpp>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace baton::ir {

/// Reads {kind, ranks, chunks, root, peer, weights, groups, inputs, outputs} into `collective` and checks it.
/// `ranks` and `root`, where given, replace the file's. `chunks` and `root` may be expressions over N, root
/// and params; an expression for `chunks` is kept in `chunks`. Returns the ranks that the file names; 0 when
/// it names none.
int read_collective(const JsonReader& value, std::optional<int> ranks, std::optional<int> root,
                    const std::map<std::string, std::int64_t>& params, Collective& collective,
                    Expression& chunks);
/// The same without replacements and expressions.
Collective read_collective(const JsonReader& value);
/// What `read_collective` reads; members at their defaults are left out.
nlohmann::ordered_json collective_json(const Collective& collective);

}  // namespace baton::ir
