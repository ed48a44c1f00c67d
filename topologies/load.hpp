// From what a user names to a topology: a file, a preset with parameters, or a generator.
#pragma once

#include <baton/topologies/topology.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace baton::topologies {

/// Resolves TOPO of the command line: an existing file path (or "-"), a preset with parameters
/// ("dgx_h100:hosts=2,fabric=ndr-rail"), or a generator ("torus:4x4", "ring:8", "fat_tree:..."). Throws an
/// input error that lists near names.
Topology load(const std::string& spec);

/// Parses a topology document; `folder` resolves relative "use" paths. See docs/topology.md for the format.
Topology parse_topology(std::string_view text, const std::string& name = "<text>",
                        const std::string& folder = ".");

/// The topology as a topology/1 JSON document (nodes and links spelled out).
std::string to_json(const Topology& topology);

/// What can be named: presets and generators, each with one line of help and its parameters.
struct Nameable {
    std::string name, summary, parameters;
    bool generator = false;
};
std::vector<Nameable> nameables();

/// Changes for what-if studies, as in a file's `overrides`: link or node ids, "a<>b" for both directions,
/// globs with '*', "ID*2" (the last star followed by a number) for a number of units. `fail` removes units or
/// whole nodes; `degrade` scales goodput by factor in (0, 1].
void fail(Topology& topology, const std::string& pattern);
void degrade(Topology& topology, const std::string& pattern, double factor);

}  // namespace baton::topologies
