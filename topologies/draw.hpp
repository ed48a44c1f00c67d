// Pictures of a topology, by Graphviz.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::topologies {

/// The topology in Graphviz's DOT language: one box per host, nodes shaped by type and labeled with their
/// rank, one line per pair of nodes and kind of link, labeled with units and goodput of one direction ("2 x
/// 20GB/s"). A line has an arrow head only where the other direction is missing or differs. Deterministic; of
/// any size.
std::string to_dot(const Topology& topology);

/// Largest topology that is laid out; Graphviz needs minutes and gigabytes beyond.
inline constexpr int kMostDrawnNodes = 2000;

/// The same as an SVG picture. Runs the program `dot` of Graphviz: a missing-part error where it is not
/// installed, an input error for more than `kMostDrawnNodes` nodes or when the layout takes longer than two
/// minutes.
std::string to_svg(const Topology& topology);

}  // namespace baton::topologies
