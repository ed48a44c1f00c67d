// Where the parts of a picture of a machine stand.
#pragma once

#include <baton/base/svg.hpp>
#include <baton/topologies/picture.hpp>

#include <string>
#include <vector>

namespace baton::topologies {

struct PictureBox {
    SvgPoint corner;
    double width = 0, height = 0;
    SvgPoint center() const { return {corner.x + width / 2, corner.y + height / 2}; }
};

/// A way of a line: straight through all points or, when `curved`, a quadratic curve of three.
struct PictureWay {
    std::vector<SvgPoint> points;
    bool curved = false;
};

struct PictureFrame {
    std::string host;
    PictureBox box;
};

struct PictureLayout {
    std::vector<PictureBox> boxes;  ///< of each node
    std::vector<PictureWay> ways;   ///< of each line
    std::vector<PictureFrame> hosts;
    double width = 0, height = 0;
};

/// Ranks alone: a grid where the links are those of a mesh or torus of up to three dimensions, else a circle.
/// All others: hosts side by side, in each its NICs, CPUs, PCIe bridges, GPUs and switches in rows; above
/// them the switches of the fabric by their distance from the hosts. Within a row nodes stand near what they
/// are linked to (barycenters, in the manner of Sugiyama et al. 1981); ways past a row lead between its
/// boxes, and links within a row are arcs.
PictureLayout lay_out(const Picture& picture);

}  // namespace baton::topologies
