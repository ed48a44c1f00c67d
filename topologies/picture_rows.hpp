// What the layouts of pictures share: measures, and the layout of machines of ranks alone.
#pragma once

#include <baton/topologies/picture_layout.hpp>

namespace baton::topologies {

inline constexpr double kPictureMargin = 24, kPictureTop = 64, kPictureBoxHeight = 36;

/// Most lines that each get their rate beside them.
inline constexpr std::size_t kMostPictureLabels = 80;

/// Width that the text of a box needs.
double picture_box_width(const PictureNode& node);

/// A grid or a circle; false, and nothing done, when the machine has more than ranks of one host.
bool lay_out_ranks(const Picture& picture, PictureLayout& layout);

}  // namespace baton::topologies
