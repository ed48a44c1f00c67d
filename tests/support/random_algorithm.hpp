// Random right algorithms of every standard kind: trees, detours through scratch and par blocks.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace baton::test {

namespace detail {

/// Spreads values from an owner, or gathers sums to it, along random trees; one tree for each (shard, run of
/// chunks).
class RandomTrees {
public:
    RandomTrees(ir::AlgorithmBuilder& builder, std::mt19937_64& random)
        : builder_(builder), random_(random) {}

    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

    /// parent[i] for members in order of joining; member 0 is the root.
    std::vector<std::pair<int, int>> edges(std::vector<int> members, int root) {
        std::shuffle(members.begin(), members.end(), random_);
        std::vector<int> reached{root};
        std::vector<std::pair<int, int>> list;
        for (const int member : members) {
            if (member == root) continue;
            list.emplace_back(reached[static_cast<std::size_t>(below(static_cast<int>(reached.size())))],
                              member);
            reached.push_back(member);
        }
        return list;
    }

    ir::AlgorithmBuilder& builder() { return builder_; }

private:
    ir::AlgorithmBuilder& builder_;
    std::mt19937_64& random_;
};

}  // namespace detail

/// A right algorithm for any collective but `custom`. The same generator state gives the same algorithm.
inline ir::Algorithm random_algorithm(const ir::Collective& c, std::mt19937_64& random) {
    using enum ir::Buffer;
    using Kind = ir::CollectiveKind;
    ir::AlgorithmBuilder b("random " + std::string(ir::to_string(c.kind)), c);
    detail::RandomTrees trees(b, random);
    const std::int64_t k = c.chunks;
    for (int g = 0; g < c.group_count(); ++g) {
        const int n = c.group_size(g);
        std::vector<int> all(static_cast<std::size_t>(n));
        for (int p = 0; p < n; ++p) all[static_cast<std::size_t>(p)] = c.rank_at(g, p);
        const int root = c.rank_at(g, c.root);
        // Splits [0, k) at a random chunk.
        const auto runs = [&](auto&& visit) {
            const std::int64_t cut = trees.below(static_cast<int>(k) + 1);
            if (cut > 0) visit(std::int64_t{0}, cut);
            if (cut < k) visit(cut, k - cut);
        };
        const auto spread = [&](int owner, std::int64_t source, std::int64_t place, std::int64_t chunks) {
            b.copy({owner, input, source}, {owner, output, place}, chunks);
            for (const auto& [from, to] : trees.edges(all, owner))
                b.send({from, output, place}, {to, output, place}, chunks);
        };
        // Sums the inputs at `place` of all ranks to `owner`, through scratch; stored at `result` of its
        // output.
        const auto collect = [&](int owner, std::int64_t place, std::int64_t result, std::int64_t chunks) {
            for (const int rank : all) b.copy({rank, input, place}, {rank, scratch, place}, chunks);
            auto list = trees.edges(all, owner);
            std::reverse(list.begin(), list.end());
            for (const auto& [to, from] : list)
                b.send_reduce({from, scratch, place}, {to, scratch, place}, chunks);
            return [&b, owner, place, result, chunks] {
                b.copy({owner, scratch, place}, {owner, output, result}, chunks);
            };
        };
        // A value on its way from rank to rank through up to two relays.
        const auto carry = [&](int from, std::int64_t source, int to, std::int64_t result,
                               std::int64_t chunks, std::int64_t slot) {
            ir::Place at{from, input, source};
            for (int hop = trees.below(3); hop > 0; --hop) {
                const ir::Place next{all[static_cast<std::size_t>(trees.below(n))], scratch, slot + hop * k};
                b.send(at, next, chunks);
                at = next;
            }
            return [&b, at, to, result, chunks] { b.send(at, {to, output, result}, chunks); };
        };
        std::vector<std::function<void()>> last;
        switch (c.kind) {
            case Kind::broadcast:
                runs([&](std::int64_t at, std::int64_t m) { spread(root, at, at, m); });
                break;
            case Kind::all_gather:
                for (int p = 0; p < n; ++p)
                    b.copy({all[static_cast<std::size_t>(p)], input, 0},
                           {all[static_cast<std::size_t>(p)], output, p * k}, k);
                for (int p = 0; p < n; ++p) {
                    for (const auto& [from, to] : trees.edges(all, all[static_cast<std::size_t>(p)]))
                        b.send({from, output, p * k}, {to, output, p * k}, k);
                }
                break;
            case Kind::reduce:
                runs([&](std::int64_t at, std::int64_t m) { last.push_back(collect(root, at, at, m)); });
                break;
            case Kind::reduce_scatter:
                for (int p = 0; p < n; ++p)
                    last.push_back(collect(all[static_cast<std::size_t>(p)], p * k, 0, k));
                break;
            case Kind::all_reduce:
                for (const int rank : all) b.copy({rank, input, 0}, {rank, output, 0}, k);
                runs([&](std::int64_t at, std::int64_t m) {
                    auto list = trees.edges(all, all[static_cast<std::size_t>(trees.below(n))]);
                    for (auto edge = list.rbegin(); edge != list.rend(); ++edge)
                        b.send_reduce({edge->second, output, at}, {edge->first, output, at}, m);
                    for (const auto& [from, to] : list) b.send({from, output, at}, {to, output, at}, m);
                });
                break;
            case Kind::scatter:
                for (int p = 0; p < n; ++p)
                    last.push_back(carry(root, p * k, all[static_cast<std::size_t>(p)], 0, k, 3 * p * k));
                break;
            case Kind::gather:
                for (int p = 0; p < n; ++p)
                    last.push_back(carry(all[static_cast<std::size_t>(p)], 0, root, p * k, k, 3 * p * k));
                break;
            case Kind::all_to_all:
                for (int p = 0; p < n; ++p) {
                    for (int q = 0; q < n; ++q) {
                        last.push_back(carry(all[static_cast<std::size_t>(p)], q * k,
                                             all[static_cast<std::size_t>(q)], p * k, k,
                                             3 * (p * n + q) * k));
                    }
                }
                break;
            case Kind::send_recv: last.push_back(carry(root, 0, c.rank_at(g, c.receiver(g)), 0, k, 0)); break;
            case Kind::custom: break;
        }
        // In place, results stand on inputs: all of them are written at once, after everything was read.
        if (!last.empty()) b.begin_par();
        for (const auto& write : last) write();
        if (!last.empty()) b.end_par();
    }
    return b.build();
}

}  // namespace baton::test
