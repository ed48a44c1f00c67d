// Hash-consed expression trees of reductions, with their rounding.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace baton::ir::checks {

/// What a place holds: a tree over input places, shifted by `base`. `node` -1: nothing. Neighboring places of
/// a run hold the same node with ascending bases.
struct Value {
    std::int32_t node = -1;
    std::int64_t base = 0;
    Value advanced(std::int64_t by) const { return {node, node < 0 ? 0 : base + by}; }
    bool operator==(const Value&) const = default;
};

/// A leaf of a value: input place `index` of `rank`.
struct Leaf {
    int rank = 0;
    std::int64_t index = 0;
    auto operator<=>(const Leaf&) const = default;
};

/// Nodes are equal exactly when the trees are, modulo commutativity of their combinations: operands are
/// stored in sorted order, and the smallest leaf offset of every node is zero.
class ValueTrees {
public:
    enum class Kind : std::uint8_t { leaf, combined, rounded, finalized };

    /// The value of input place `index` of a rank.
    Value leaf(int rank, std::int64_t index) { return {intern(Kind::leaf, rank, 0), index}; }
    /// a op b, not yet rounded.
    Value combine(Value a, Value b);
    /// Rounded to the data type; a leaf and what is rounded already stay as they are.
    Value rounded(Value value);
    /// Completed: divided (avg) and rounded.
    Value finalized(Value value);

    bool has_finalized(Value value) const { return nodes_[value.node].has_finalized; }
    bool is_finalized(Value value) const { return nodes_[value.node].kind == Kind::finalized; }
    /// What a finalized value was made of; the value itself otherwise.
    Value completed(Value value) const;
    /// Number of leaves, counting repeated ones; saturates at 2^40.
    std::int64_t leaf_count(Value value) const { return nodes_[value.node].leaves; }
    /// All leaves, sorted, repeated ones as often as they occur. REQUIRES a moderate `leaf_count`.
    std::vector<Leaf> leaves(Value value) const;
    /// The left fold of `leaves` without rounding in between.
    Value left_fold(const std::vector<Leaf>& leaves);
    std::size_t size() const { return nodes_.size(); }

private:
    struct Node {
        Kind kind = Kind::leaf;
        bool has_finalized = false;
        std::int32_t a = 0;   // leaf: rank; else the first operand
        std::int32_t b = -1;  // the second operand of a combination
        std::int64_t a_offset = 0, b_offset = 0;
        std::int64_t leaves = 1;
    };
    struct Key {
        std::int64_t a_offset, b_offset;
        std::int32_t a, b;
        Kind kind;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };

    std::int32_t intern(Kind kind, std::int32_t a, std::int64_t a_offset, std::int32_t b = -1,
                        std::int64_t b_offset = 0);

    std::vector<Node> nodes_;
    std::unordered_map<Key, std::int32_t, Hash> index_;
};

}  // namespace baton::ir::checks
