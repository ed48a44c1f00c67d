// Small Programs written by hand, for tests of verification and execution.
#pragma once

#include <baton/ir/program.hpp>

#include <vector>

namespace baton::test {
// Algorithms of the same names are in small_algorithms.hpp.
inline namespace programs {

using ir::Buffer;
using ir::Operand;
using ir::OperandKind;

inline Operand local(Buffer buffer, int index, int chunks = 1) {
    return {OperandKind::local, buffer, -1, index, chunks};
}
inline Operand input(int index, int chunks = 1) { return local(Buffer::input, index, chunks); }
inline Operand output(int index, int chunks = 1) { return local(Buffer::output, index, chunks); }
inline Operand scratch(int index, int chunks = 1) { return local(Buffer::scratch, index, chunks); }
inline Operand message(int connection, int chunks = 1) {
    return {OperandKind::message, Buffer::output, connection, 0, chunks};
}
inline Operand remote(int rank, Buffer buffer, int index, int chunks = 1) {
    return {OperandKind::remote, buffer, rank, index, chunks};
}

/// Adds an instruction to a threadblock.
inline int add(ir::Threadblock& block, std::vector<Operand> sources, std::vector<Operand> destinations,
               std::vector<ir::Need> needs = {}, bool finalize = false, std::int64_t step = -1) {
    return block.add(sources, destinations, needs, step, finalize);
}

/// An empty Program of a collective: `blocks` threadblocks on each rank.
inline ir::Program blank(ir::CollectiveKind kind, int ranks, std::int64_t chunks, int blocks = 1) {
    ir::Program program;
    program.name = "test";
    program.collective.kind = kind;
    program.collective.ranks = ranks;
    program.collective.chunks = chunks;
    program.ranks.resize(static_cast<std::size_t>(ranks));
    for (auto& rank : program.ranks) rank.threadblocks.resize(static_cast<std::size_t>(blocks));
    return program;
}

/// Adds a connection owned by the given threadblocks; returns its number.
inline int connect(ir::Program& program, int src, int dst, ir::Mode mode = ir::Mode::staged, int slots = 2,
                   int sender = 0, int receiver = 0, int channel = 0) {
    const int number = static_cast<int>(program.connections.size());
    program.connections.push_back({src, dst, channel, mode, ir::Protocol::simple, slots});
    program.ranks[src].threadblocks[sender].sends.push_back(number);
    program.ranks[dst].threadblocks[receiver].receives.push_back(number);
    return number;
}

/// The ring all-reduce with one threadblock a rank: every rank sends chunk r, then receives, reduces and
/// forwards. With one slot all ranks wait for each other; with two it runs.
inline ir::Program ring_all_reduce_program(int ranks, int slots = 2) {
    ir::Program program = blank(ir::CollectiveKind::all_reduce, ranks, ranks);
    std::vector<int> next;
    for (int r = 0; r < ranks; ++r)
        next.push_back(connect(program, r, (r + 1) % ranks, ir::Mode::staged, slots));
    for (int r = 0; r < ranks; ++r) {
        ir::Threadblock& block = program.ranks[r].threadblocks[0];
        const int to = next[r], from = next[(r + ranks - 1) % ranks];
        const auto chunk = [&](int s) { return ((r - s) % ranks + ranks) % ranks; };
        add(block, {input(r)}, {message(to)}, {}, false, 0);
        for (int s = 1; s < ranks - 1; ++s)
            add(block, {message(from), input(chunk(s))}, {message(to)}, {}, false, s);
        add(block, {message(from), input(chunk(ranks - 1))}, {output(chunk(ranks - 1)), message(to)}, {},
            true, ranks - 1);
        for (int s = 0; s < ranks - 2; ++s)
            add(block, {message(from)}, {output(chunk(s)), message(to)}, {}, false, ranks + s);
        add(block, {message(from)}, {output(chunk(ranks - 2))}, {}, false, 2 * ranks - 2);
    }
    return program;
}

/// The direct all-gather: every rank sends its shard to all others on connections of one mode; one
/// threadblock per peer on each rank, and one for the copy of its own shard. The sends wait for that copy,
/// which in place rewrites what they read.
inline ir::Program direct_all_gather(int ranks, ir::Mode mode, std::int64_t chunks = 1) {
    ir::Program program = blank(ir::CollectiveKind::all_gather, ranks, chunks, ranks);
    const int n = static_cast<int>(chunks);
    for (int src = 0; src < ranks; ++src) {
        for (int dst = 0; dst < ranks; ++dst) {
            if (src != dst) connect(program, src, dst, mode, 2, dst, src);
        }
    }
    for (std::size_t c = 0; c < program.connections.size(); ++c) {
        const auto& connection = program.connections[c];
        add(program.ranks[connection.src].threadblocks[connection.dst], {input(0, n)},
            {message(static_cast<int>(c), n)}, {{connection.src, connection.src, 0, ir::Event::completed}});
    }
    for (std::size_t c = 0; c < program.connections.size(); ++c) {
        const auto& connection = program.connections[c];
        add(program.ranks[connection.dst].threadblocks[connection.src], {message(static_cast<int>(c), n)},
            {output(connection.src * n, n)});
    }
    for (int r = 0; r < ranks; ++r) add(program.ranks[r].threadblocks[r], {input(0, n)}, {output(r * n, n)});
    ir::mark_posts(program);
    return program;
}

/// The one-shot all-reduce: every rank receives the inputs of all others and reduces them in rank order in
/// one instruction, in one threadblock.
inline ir::Program one_shot_all_reduce_program(int ranks) {
    ir::Program program = blank(ir::CollectiveKind::all_reduce, ranks, 1, 2);
    for (int src = 0; src < ranks; ++src) {
        for (int dst = 0; dst < ranks; ++dst) {
            if (src != dst) connect(program, src, dst, ir::Mode::staged, 1, 1, 0);
        }
    }
    for (int r = 0; r < ranks; ++r) {
        std::vector<Operand> sends, sources;
        for (int q = 0; q < ranks; ++q) {
            for (std::size_t c = 0; c < program.connections.size(); ++c) {
                if (program.connections[c].src == r && program.connections[c].dst == q)
                    sends.push_back(message(static_cast<int>(c)));
                if (program.connections[c].src == q && program.connections[c].dst == r)
                    sources.push_back(message(static_cast<int>(c)));
            }
            if (q == r) sources.push_back(input(0));
        }
        if (!sends.empty()) add(program.ranks[r].threadblocks[1], {input(0)}, sends);
        // In place, the output is the input that threadblock 1 still sends: wait for it.
        std::vector<ir::Need> needs;
        if (!sends.empty()) needs.push_back({r, 1, 0, ir::Event::completed});
        add(program.ranks[r].threadblocks[0], sources, {output(0)}, needs, ranks > 1);
    }
    ir::mark_posts(program);
    return program;
}

}  // namespace programs
}  // namespace baton::test
