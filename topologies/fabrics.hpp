// Switched fabrics. Internal to the layer.
#pragma once

#include <baton/topologies/read.hpp>

namespace baton::topologies {

/// The same fabrics with ranks of their own on the ports, as generators by themselves.
void make_fat_tree_of_ranks(const JsonReader& entry, Topology& topology);
void make_rail_optimized_of_ranks(const JsonReader& entry, Topology& topology);
void make_dragonfly_of_ranks(const JsonReader& entry, Topology& topology);

}  // namespace baton::topologies
