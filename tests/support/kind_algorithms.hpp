// For every kind, number of ranks and root: algorithms of different shapes, small enough to be read.
#pragma once

#include "support/small_algorithms.hpp"

#include <vector>

namespace baton::test {

/// The root keeps its own shard and sends every other rank its shard.
inline ir::Algorithm flat_scatter(int n, int root, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("flat scatter", collective(ir::CollectiveKind::scatter, n, chunks, root));
    for (int r = 0; r < n; ++r) b.send({root, input, r * chunks}, {r, output, 0}, chunks);
    return b.build();
}

/// Shards go down the chain of ranks that starts at the root; each rank keeps the first one that reaches it.
inline ir::Algorithm chain_scatter(int n, int root) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("chain scatter", collective(ir::CollectiveKind::scatter, n, 2, root));
    b.copy({root, input, root * 2}, {root, output, 0}, 2);
    for (int far = n - 1; far >= 1; --far) {
        const int target = (root + far) % n;
        for (int hop = 1; hop <= far; ++hop) {
            const int from = (root + hop - 1) % n, to = (root + hop) % n;
            const ir::Place source =
                hop == 1 ? ir::Place{root, input, target * 2} : ir::Place{from, scratch, far * 2};
            const ir::Place destination =
                hop == far ? ir::Place{target, output, 0} : ir::Place{to, scratch, far * 2};
            b.send(source, destination, 2);
        }
    }
    return b.build();
}

inline ir::Algorithm flat_gather(int n, int root, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("flat gather", collective(ir::CollectiveKind::gather, n, chunks, root));
    for (int r = 0; r < n; ++r) b.send({r, input, 0}, {root, output, r * chunks}, chunks);
    return b.build();
}

/// Shards go up the chain of ranks that ends at the root, through scratch.
inline ir::Algorithm chain_gather(int n, int root) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("chain gather", collective(ir::CollectiveKind::gather, n, 2, root));
    b.copy({root, input, 0}, {root, output, root * 2}, 2);
    for (int far = n - 1; far >= 1; --far) {
        const int origin = (root + far) % n;
        for (int hop = far; hop >= 1; --hop) {
            const int from = (root + hop) % n, to = (root + hop - 1) % n;
            const ir::Place source =
                hop == far ? ir::Place{origin, input, 0} : ir::Place{from, scratch, far * 2};
            const ir::Place destination =
                hop == 1 ? ir::Place{root, output, origin * 2} : ir::Place{to, scratch, far * 2};
            b.send(source, destination, 2);
        }
    }
    return b.build();
}

/// Partial sums move along the chain that ends at the root.
inline ir::Algorithm chain_reduce(int n, int root, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("chain reduce", collective(ir::CollectiveKind::reduce, n, chunks, root));
    for (int c = 0; c < chunks; ++c) {
        for (int hop = n - 1; hop >= 1; --hop) {
            const int from = (root + hop) % n, to = (root + hop - 1) % n;
            const ir::Place partial = hop == 1 ? ir::Place{root, output, c} : ir::Place{to, scratch, c};
            b.copy({to, input, c}, partial);
            b.send_reduce(hop == n - 1 ? ir::Place{from, input, c} : ir::Place{from, scratch, c}, partial);
        }
        if (n == 1) b.copy({root, input, c}, {root, output, c});
    }
    return b.build();
}

/// Everybody sends every shard to its owner, which adds them up.
inline ir::Algorithm direct_reduce_scatter(int n, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("direct reduce_scatter",
                           collective(ir::CollectiveKind::reduce_scatter, n, chunks));
    for (int r = 0; r < n; ++r) b.copy({r, input, r * chunks}, {r, output, 0}, chunks);
    for (int shift = 1; shift < n; ++shift) {
        for (int r = 0; r < n; ++r)
            b.send_reduce({(r + shift) % n, input, r * chunks}, {r, output, 0}, chunks);
    }
    return b.build();
}

inline ir::Algorithm direct_all_gather_steps(int n, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("direct all_gather", collective(ir::CollectiveKind::all_gather, n, chunks));
    b.begin_par();
    for (int r = 0; r < n; ++r) {
        for (int q = 0; q < n; ++q) b.send({r, input, 0}, {q, output, r * chunks}, chunks);
    }
    b.end_par();
    return b.build();
}

/// From the root to its neighbor, or through a third rank where there is one.
inline ir::Algorithm pair_send(int n, int root, int peer, bool relayed) {
    using enum ir::Buffer;
    ir::Collective c = collective(ir::CollectiveKind::send_recv, n, 3, root);
    c.peer = peer;
    ir::AlgorithmBuilder b(relayed ? "relayed send_recv" : "send_recv", c);
    int third = 0;
    while (third == root || third == peer) ++third;
    if (relayed && third < n) {
        b.send({root, input, 0}, {third, scratch, 0}, 3);
        b.send({third, scratch, 0}, {peer, output, 0}, 3);
    } else {
        b.send({root, input, 0}, {peer, output, 0}, 3);
    }
    return b.build();
}

/// Algorithms for a kind, all of different shape. Roots count only for rooted kinds.
inline std::vector<ir::Algorithm> algorithms_for(ir::CollectiveKind kind, int n, int root) {
    using enum ir::CollectiveKind;
    const bool power = (n & (n - 1)) == 0;
    std::vector<ir::Algorithm> list;
    switch (kind) {
        case broadcast: list = {chain_broadcast(n, root, 1), chain_broadcast(n, root, 3)}; break;
        case scatter: list = {flat_scatter(n, root, 2), chain_scatter(n, root)}; break;
        case gather: list = {flat_gather(n, root, 3), chain_gather(n, root)}; break;
        case all_gather: list = {ring_all_gather(n, 2), direct_all_gather_steps(n)}; break;
        case reduce: list = {reduce_to_root(n, root), chain_reduce(n, root, 3)}; break;
        case reduce_scatter: list = {scratch_reduce_scatter(n), direct_reduce_scatter(n, 2)}; break;
        case all_reduce:
            list = {ring_all_reduce(n), one_shot_all_reduce(n)};
            if (power) list.push_back(recursive_doubling(n, 2));
            break;
        case all_to_all: list = {direct_all_to_all(n), direct_all_to_all(n, 2)}; break;
        case send_recv:
            list = {pair_send(n, root, (root + 1) % n, false), pair_send(n, root, (root + n / 2) % n, true)};
            break;
        case custom: break;
    }
    return list;
}

}  // namespace baton::test
