// Small hand-written algorithms that tests of several layers lower, run and break.
#pragma once

#include <baton/ir/algorithm.hpp>

#include <functional>
#include <string>
#include <vector>

namespace baton::test {

struct NamedAlgorithm {
    std::string name;
    ir::Algorithm algorithm;
};

inline ir::Collective collective(ir::CollectiveKind kind, int ranks, std::int64_t chunks, int root = 0) {
    ir::Collective c;
    c.kind = kind;
    c.ranks = ranks;
    c.chunks = chunks;
    c.root = root;
    return c;
}

inline ir::Algorithm ring_all_reduce(int n) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("ring all_reduce", collective(ir::CollectiveKind::all_reduce, n, n));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, 0}, n);
    for (int s = 0; s < n - 1; ++s) {
        for (int r = 0; r < n; ++r)
            b.send_reduce({r, output, (r - s + n) % n}, {(r + 1) % n, output, (r - s + n) % n});
    }
    for (int s = 0; s < n - 1; ++s) {
        for (int r = 0; r < n; ++r)
            b.send({r, output, (r + 1 - s + n) % n}, {(r + 1) % n, output, (r + 1 - s + n) % n});
    }
    return b.build();
}

inline ir::Algorithm ring_all_gather(int n, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("ring all_gather", collective(ir::CollectiveKind::all_gather, n, chunks));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, r * chunks}, chunks);
    for (int s = 0; s < n - 1; ++s) {
        for (int r = 0; r < n; ++r) {
            const int shard = (r - s + n) % n;
            b.send({r, output, shard * chunks}, {(r + 1) % n, output, shard * chunks}, chunks);
        }
    }
    return b.build();
}

/// Exchange in par blocks; n a power of two.
inline ir::Algorithm recursive_doubling(int n, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("recursive doubling", collective(ir::CollectiveKind::all_reduce, n, chunks));
    for (int r = 0; r < n; ++r) b.copy({r, input, 0}, {r, output, 0}, chunks);
    for (int d = 1; d < n; d *= 2) {
        b.begin_par();
        for (int r = 0; r < n; ++r) b.send_reduce({r, output, 0}, {r ^ d, output, 0}, chunks);
        b.end_par();
    }
    return b.build();
}

/// Everybody sends everything to everybody, then adds up.
inline ir::Algorithm one_shot_all_reduce(int n) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("one-shot all_reduce", collective(ir::CollectiveKind::all_reduce, n, 1));
    b.begin_par();
    for (int r = 0; r < n; ++r) {
        for (int q = 0; q < n; ++q) {
            if (q != r) b.send({r, input, 0}, {q, scratch, r});
        }
    }
    b.end_par();
    for (int r = 0; r < n; ++r) {
        b.copy({r, input, 0}, {r, scratch, r});
        b.copy({r, scratch, 0}, {r, output, 0});
        for (int q = 1; q < n; ++q) b.reduce({r, scratch, q}, {r, output, 0});
    }
    return b.build();
}

inline ir::Algorithm reduce_to_root(int n, int root) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("flat reduce", collective(ir::CollectiveKind::reduce, n, 2, root));
    b.copy({root, input, 0}, {root, output, 0}, 2);
    for (int r = 0; r < n; ++r) {
        if (r != root) b.send_reduce({r, input, 0}, {root, output, 0}, 2);
    }
    return b.build();
}

inline ir::Algorithm chain_broadcast(int n, int root, int chunks) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("chain broadcast", collective(ir::CollectiveKind::broadcast, n, chunks, root));
    b.copy({root, input, 0}, {root, output, 0}, chunks);
    for (int c = 0; c < chunks; ++c) {
        for (int i = 0; i + 1 < n; ++i) b.send({(root + i) % n, output, c}, {(root + i + 1) % n, output, c});
    }
    return b.build();
}

inline ir::Algorithm direct_all_to_all(int n, int chunks = 1) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("direct all_to_all", collective(ir::CollectiveKind::all_to_all, n, chunks));
    b.begin_par();
    for (int r = 0; r < n; ++r) {
        for (int q = 0; q < n; ++q) b.send({r, input, q * chunks}, {q, output, r * chunks}, chunks);
    }
    b.end_par();
    return b.build();
}

/// Partial sums travel through scratch to the owner of each shard.
inline ir::Algorithm scratch_reduce_scatter(int n) {
    using enum ir::Buffer;
    ir::AlgorithmBuilder b("scratch reduce_scatter", collective(ir::CollectiveKind::reduce_scatter, n, 1));
    for (int shard = 0; shard < n; ++shard) {
        int at = (shard + 1) % n;
        b.copy({at, input, shard}, {at, scratch, shard});
        for (int i = 1; i < n; ++i) {
            const int next = (at + 1) % n;
            b.copy({next, input, shard}, {next, scratch, n + shard});
            b.send_reduce({at, scratch, i == 1 ? shard : n + shard}, {next, scratch, n + shard});
            at = next;
        }
    }
    for (int shard = 0; shard < n; ++shard)
        b.copy({shard, scratch, n == 1 ? 0 : n + shard}, {shard, output, 0});
    return b.build();
}

}  // namespace baton::test
