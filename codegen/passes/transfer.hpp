// Transfer modes: which messages may be put into, or got from, the place itself.
#pragma once

#include <baton/codegen/passes/values.hpp>

#include <vector>

namespace baton::codegen {

/// The reads and writes of one par block, by memory (input and output merged as in-place calls merge them).
/// Steps outside a par block are a block of their own.
class BlockAccesses {
public:
    BlockAccesses(const Aliases& aliases, int ranks)
        : aliases_(&aliases), maps_(static_cast<std::size_t>(ranks) * 3) {}
    void add(const Move& move);
    /// Whether a move other than `move` of the block reads what `move` writes.
    bool destination_is_read(const Move& move) const;
    /// Whether a move other than `move` of the block writes what `move` reads.
    bool source_is_written(const Move& move) const;

private:
    struct Count {
        int reads = 0, writes = 0;
    };
    const Aliases* aliases_;
    std::vector<IntervalMap<Count>> maps_;
};

/// The mode of a crossing move. `block`: the accesses of its par block; null when it stands alone.
ir::Mode choose_mode(ModePreference preference, const Move& move, const BlockAccesses* block);

}  // namespace baton::codegen
