// Matrices of bandwidth between devices in hwloc's XML. Internal to the layer.
#pragma once

#include <baton/base/xml_reader.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baton::topologies {

/// An object that a matrix names: a GPU by its part, or a switch by its name.
struct MatrixEnd {
    int gpu = -1;
    std::string through;
};

/// A cell that is not zero, with both ends known and different.
struct MatrixCell {
    MatrixEnd from, to;
    std::int64_t megabytes = 0;  ///< 1e6 bytes per second, of all links from one to the other
};

struct BandwidthMatrix {
    std::vector<MatrixCell> cells;
    int unknown_ends = 0;  ///< objects that are neither a GPU nor a switch
};

/// Reads `<distances2>` or `<distances2hetero>`; `ends` by gp_index. Throws an input error where the numbers
/// are not as many as the element says.
BandwidthMatrix read_matrix(const XmlReader& element, const std::map<std::int64_t, MatrixEnd>& ends);

}  // namespace baton::topologies
