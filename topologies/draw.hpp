// Pictures of a topology.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>

namespace baton::topologies {

/// The topology in Graphviz's DOT language: one box per host, nodes shaped by type and labeled with their
/// rank, one line per pair of nodes and kind of link, labeled with units and goodput of one direction ("2 x
/// 20GB/s"). A line has an arrow head only where the other direction is missing or differs. Deterministic; of
/// any size.
std::string to_dot(const Topology& topology);

/// Most boxes and lines of an SVG picture, and the width in pixels above which less is drawn.
inline constexpr int kMostDrawnNodes = 400, kMostDrawnLines = 4000, kWidestDrawing = 4000;

/// The same as an SVG picture, laid out as `lay_out` says, with a legend of the links; a line's color tells
/// its kind, its width the rate. Switches that are alike, more than 64 lines together, are one box. A machine
/// that is larger than the limits is drawn with each host as one box, then with nodes that are alike as one
/// box, and the picture says so; an input error when even that is too much. Deterministic.
std::string to_svg(const Topology& topology);

}  // namespace baton::topologies
