// The standard patterns of collective communication, written for any number of ranks: ring, trees, recursive
// doubling and halving, Bruck, all pairs, direct, hierarchical. docs/synthesis.md lists steps and volume of
// each.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <string>
#include <vector>

namespace baton::synth {

/// One ring of `multi_ring`.
struct WeightedRing {
    std::vector<int> order;   ///< communicator ranks, as PatternOptions::rank_order
    std::int64_t weight = 1;  ///< of its share of the data, 1 and above
};

/// What a pattern is made for.
struct PatternOptions {
    /// Kind, ranks, root, peer and groups. `chunks` and `weights` are chosen by the pattern.
    ir::Collective collective;
    /// Communicator ranks in the order in which the pattern lines them up: a ring's neighbors, or positions
    /// 0, 1, 2, ... of trees and exchanges. Names every rank of every group once; empty = each group's own
    /// order.
    std::vector<int> rank_order;
    /// Host of each communicator rank, for `hierarchical`; empty = all on one. Hosts and the ranks of a host
    /// line up as `rank_order` meets them; the ranks of equal place on their hosts form a rail.
    std::vector<int> hosts;
    /// Patterns that `hierarchical` takes inside a host and between hosts ("" = all pairs or direct inside,
    /// ring or direct between). Where one does not serve the kind of a phase, the default does.
    std::string inside, between;
    /// For `multi_ring`: each ring carries its share of the data on a channel of its own.
    std::vector<WeightedRing> rings;
};

/// A pattern as help texts and documentation list it.
struct PatternInfo {
    std::string name, summary;
};

/// All patterns, in the order of the documentation.
const std::vector<PatternInfo>& fixed_patterns();

/// Whether the pattern is made for a kind at all. Throws an input error that lists the names for an unknown
/// name.
bool serves(const std::string& name, ir::CollectiveKind kind);
/// Whether it serves this very case; if not, `why` (unless null) says in words why not.
bool serves(const std::string& name, const PatternOptions& options, std::string* why = nullptr);

/// The pattern as an Algorithm. Loops are kept where positions are in their own order, so that a thousand
/// ranks take a handful of templates; another `rank_order` gives explicit steps. Any number of ranks from 1,
/// any root; several groups run at once, ranks outside them are idle. Throws an input error with the reason
/// when it does not serve.
ir::Algorithm fixed_pattern(const std::string& name, const PatternOptions& options);

}  // namespace baton::synth
