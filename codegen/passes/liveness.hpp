// Which stored values are read, by whom, and which last to the end.
#pragma once

#include <baton/codegen/passes/graph.hpp>

#include <cstdint>
#include <vector>

namespace baton::codegen {

/// What a node stores at one local destination.
struct StoredValue {
    struct Range {
        std::int32_t reader = -1;  ///< node; -1: the place holds the value at the end
        std::int64_t begin = 0, end = 0;
    };
    std::int32_t node = -1;
    Run run;
    std::vector<Range> uses;
    /// Whether some part stands in `output` at the end.
    bool lasts = false;
};

/// Values of a graph, with input and output apart: what in-place calls merge only adds order, never uses.
struct Liveness {
    std::vector<StoredValue> values;
    std::vector<std::vector<std::int32_t>> made;  ///< [node]: value of each destination, -1 for messages
    std::vector<std::vector<std::int32_t>> read;  ///< [node]: for each source the value that it reads exactly
                                                  ///< and wholly (same run), else -1
};
Liveness find_values(const Graph& graph, const std::vector<std::int32_t>& order);

}  // namespace baton::codegen
