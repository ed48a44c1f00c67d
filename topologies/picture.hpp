// What a picture of a machine shows: its nodes and, for every two of them and kind of link, one line.
#pragma once

#include <baton/topologies/topology.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::topologies {

/// A box: one node, or several that are drawn as one.
struct PictureNode {
    NodeType type = NodeType::gpu;
    std::string host;  ///< empty: outside of all hosts
    std::string name;
    int ranks = 0;                        ///< ranks inside
    int first_rank = -1, last_rank = -1;  ///< the lowest and the highest of them; -1: none
    std::int64_t nodes = 1;               ///< nodes it stands for
    std::string note;                     ///< second line of text, what is inside
};

/// All links of one kind between two boxes.
struct PictureLine {
    int from = 0, to = 0;  ///< `from` < `to` where both directions are alike
    LinkKind kind = LinkKind::custom;
    bool both = false;       ///< the other direction is the same; else it is absent or a line of its own
    std::int64_t units = 0;  ///< one direction
    bool even = true;        ///< all units have the same rate
    Rate unit{};             ///< goodput of a unit
    Rate all{};              ///< goodput of all units, one direction
};

struct Picture {
    std::vector<PictureNode> nodes;
    std::vector<PictureLine> lines;  ///< by (from, to, kind)
    /// Whether parts were drawn as one because the machine is large.
    bool summary = false;
};

/// Every node and line of the machine. Only nodes of hosts lose the host's name in front of theirs.
Picture picture_of(const Topology& topology);

/// The same with all nodes of a host as one box.
Picture hosts_as_boxes(const Picture& picture);

/// Nodes with the same type, host and lines to the same others become one box; switches only, or all.
Picture alike_as_one(const Picture& picture, bool switches_only);

/// "2 x 25GB/s", "25GB/s" or, where rates differ, "3 links, 60GB/s".
std::string label(const PictureLine& line);

/// "rank 3", "ranks 0-7", "4 ranks of 0-7" or nothing.
std::string ranks_of(const PictureNode& node);

}  // namespace baton::topologies
