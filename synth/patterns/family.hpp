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

/// Chunks that a template pattern takes for one group of this many ranks.
std::int64_t natural_chunks(const std::string& name, ir::CollectiveKind kind, int ranks);
/// A template pattern on one group of all ranks with the chunks that `collective` states: at least the
/// natural ones, which then stand for nearly equal parts. Building block of composed patterns.
ir::Algorithm with_chunks(const std::string& name, const ir::Collective& collective);

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
