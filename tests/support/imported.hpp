// Questions that tests ask of imported machines.
#pragma once

#include <baton/base/index.hpp>
#include <baton/topologies/topology.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace baton::test {

/// True when one of the lines (found, assumed, warned of) has the part.
inline bool says(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

/// The link between two nodes; its absence fails the test.
inline const topologies::Link& link_between(const topologies::Topology& topology, const std::string& from,
                                            const std::string& to) {
    const int index = topology.link_index(from + ">" + to);
    REQUIRE_MESSAGE(index >= 0, from, " > ", to);
    return topology.links[at(index)];
}

}  // namespace baton::test
