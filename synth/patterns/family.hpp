// How a family of fixed patterns declares itself.
#pragma once

#include <baton/synth/fixed_patterns.hpp>
#include <baton/synth/template_writer.hpp>

#include <string>
#include <vector>

namespace baton::synth::patterns {

/// Writes the steps of a pattern over the positions of a group.
using Write = void (*)(TemplateWriter& writer, const Blocks& blocks);
/// Makes the algorithm as a whole, with all its groups.
using Make = ir::Algorithm (*)(const PatternOptions& options);
/// Why the options are not served, in words; "" when they are.
using Refuse = std::string (*)(const PatternOptions& options);

/// One kind of collective that a pattern serves.
struct Entry {
    ir::CollectiveKind kind;
    /// Blocks the buffer is cut into, over N; for kinds with shards the chunks of a shard.
    std::string blocks;
    Write write = nullptr;
};

/// A pattern: either templates per kind, or a function that makes explicit steps for a list of kinds.
struct Family {
    PatternInfo info;
    std::vector<Entry> entries;
    Make make = nullptr;
    Refuse refuse = nullptr;
};

Family ring();
Family chain();
Family double_binary_tree();
Family binomial();
Family recursive_doubling();
Family recursive_halving();
Family rabenseifner();
Family bruck();
Family all_pairs();
Family all_pairs_two_shot();
Family direct();
Family hierarchical();

}  // namespace baton::synth::patterns
