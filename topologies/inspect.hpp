// What a person wants to know of a topology: a summary, what looks wrong, and what is wrong.
#pragma once

#include <baton/topologies/topology.hpp>

#include <map>
#include <string>
#include <vector>

namespace baton::topologies {

/// Links that are alike: same kind, types of ends, units, rates and latency.
struct LinkGroup {
    LinkKind kind = LinkKind::custom;
    NodeType from = NodeType::gpu, to = NodeType::gpu;  ///< types of the ends, the smaller first
    int links = 0;                                      ///< directed links
    int oneway = 0;                                     ///< those among them without an equal link back
    int count = 1;                                      ///< units of each
    Rate bandwidth{};                                   ///< raw rate of one unit
    Rate goodput{};                                     ///< payload rate of one unit
    Time latency{};
    std::string source;  ///< of the first of them; empty when not said
    bool assumed = false;
};

/// One rank and how it is connected.
struct RankSummary {
    int rank = 0;
    std::string node, host;
    std::map<std::string, int> units;  ///< units of its outgoing links by kind
    Rate out{}, in{};                  ///< goodput of all its links together
    std::vector<std::string> nics;     ///< ids of the NICs its traffic to other hosts uses
};

/// A topology in a few lines.
struct Summary {
    std::string name, hash;
    int ranks = 0;
    int hosts = 0;                     ///< named hosts
    std::map<std::string, int> nodes;  ///< number of nodes by type
    int links = 0;                     ///< directed links
    std::vector<LinkGroup> groups;     ///< in order of first appearance
    std::vector<RankSummary> by_rank;
    int pairs_without_route =
        -1;  ///< ordered rank pairs that need a relay; -1 = not counted (over 128 ranks)
    std::vector<std::string> warnings;  ///< see `warnings`
};

/// Summarizes a finished topology.
Summary summarize(const Topology& topology);

/// Sentences on what is probably a mistake or a broken part, in a fixed order: a GPU whose links differ from
/// those of its peers (same model, or architecture), a PCIe rate below what the architecture has, GPUs
/// without a rank, NICs without a fabric, unknown locality, traffic spread for want of locality. At most 32,
/// the last counting the rest.
std::vector<std::string> warnings(const Topology& topology);

/// Sentences on what makes collectives impossible: no rank at all, ranks that cannot reach each other. Empty
/// = none.
std::vector<std::string> problems(const Topology& topology);

}  // namespace baton::topologies
