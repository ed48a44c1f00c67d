#include <baton/ir/verify/value_trees.hpp>

#include <algorithm>

namespace baton::ir::checks {
namespace {

constexpr std::int64_t kManyLeaves = std::int64_t{1} << 40;

std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}

}  // namespace

std::size_t ValueTrees::Hash::operator()(const Key& key) const {
    const std::uint64_t nodes =
        static_cast<std::uint32_t>(key.a) | std::uint64_t{static_cast<std::uint32_t>(key.b)} << 32;
    return mix(nodes +
               mix(static_cast<std::uint64_t>(key.a_offset) +
                   mix(static_cast<std::uint64_t>(key.b_offset) * 4 + static_cast<std::uint64_t>(key.kind))));
}

std::int32_t ValueTrees::intern(Kind kind, std::int32_t a, std::int64_t a_offset, std::int32_t b,
                                std::int64_t b_offset) {
    const auto [found, added] =
        index_.try_emplace(Key{a_offset, b_offset, a, b, kind}, static_cast<std::int32_t>(nodes_.size()));
    if (!added) return found->second;
    Node node{kind, kind == Kind::finalized, a, b, a_offset, b_offset, 1};
    if (kind != Kind::leaf) {
        node.leaves = nodes_[a].leaves;
        node.has_finalized = node.has_finalized || nodes_[a].has_finalized;
        if (b >= 0) {
            node.leaves = std::min(kManyLeaves, node.leaves + nodes_[b].leaves);
            node.has_finalized = node.has_finalized || nodes_[b].has_finalized;
        }
    }
    nodes_.push_back(node);
    return found->second;
}

Value ValueTrees::combine(Value a, Value b) {
    if (std::pair(b.node, b.base) < std::pair(a.node, a.base)) std::swap(a, b);
    const std::int64_t base = std::min(a.base, b.base);
    return {intern(Kind::combined, a.node, a.base - base, b.node, b.base - base), base};
}

Value ValueTrees::rounded(Value value) {
    if (nodes_[value.node].kind != Kind::combined) return value;
    return {intern(Kind::rounded, value.node, 0), value.base};
}

Value ValueTrees::finalized(Value value) { return {intern(Kind::finalized, value.node, 0), value.base}; }

Value ValueTrees::completed(Value value) const {
    const Node& node = nodes_[value.node];
    return node.kind == Kind::finalized ? Value{node.a, value.base + node.a_offset} : value;
}

std::vector<Leaf> ValueTrees::leaves(Value value) const {
    std::vector<Leaf> out;
    std::vector<Value> open{value};
    while (!open.empty()) {
        const Value top = open.back();
        open.pop_back();
        const Node& node = nodes_[top.node];
        if (node.kind == Kind::leaf) {
            out.push_back({node.a, top.base});
            continue;
        }
        open.push_back({node.a, top.base + node.a_offset});
        if (node.b >= 0) open.push_back({node.b, top.base + node.b_offset});
    }
    std::sort(out.begin(), out.end());
    return out;
}

Value ValueTrees::left_fold(const std::vector<Leaf>& leaves) {
    Value value = leaf(leaves[0].rank, leaves[0].index);
    for (std::size_t i = 1; i < leaves.size(); ++i)
        value = combine(value, leaf(leaves[i].rank, leaves[i].index));
    return value;
}

}  // namespace baton::ir::checks
