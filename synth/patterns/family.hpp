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

/// One of several patterns that share the chunks: `index` of `count`, each with an equal number of chunks in
/// a row.
struct Lane {
    std::int64_t index = 0, count = 1;
    int channel = -1;          ///< hint for its steps; -1 = none
    std::int64_t scratch = 0;  ///< first scratch place it may use
};
/// Most steps that are written out one by one.
inline constexpr std::int64_t kMostExplicitSteps = 16'000'000;

/// Appends the steps of a template pattern on one group of `whole`, its positions lined up in `order`, as one
/// lane. Gives the end of the scratch places it uses. Throws an input error above `kMostExplicitSteps`.
std::int64_t append_ordered(const std::string& name, const ir::Collective& whole, int group,
                            const std::vector<int>& order, const Lane& lane, std::vector<ir::Step>& steps);
/// Positions of a group as `rank_order` lines them up; 0, 1, 2, ... when it is empty.
std::vector<int> positions_in_order(const ir::Collective& c, int group, const std::vector<int>& rank_order);
/// Chunks with which a template pattern serves all groups.
std::int64_t common_chunks(const std::string& name, const ir::Collective& collective);

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
Family multi_ring();

}  // namespace baton::synth::patterns
