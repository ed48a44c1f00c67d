// The hand-written kernels of the prelude's tests as modules: what a communicator needs to be tested without
// emission.
#pragma once

#include <baton/codegen/prelude.hpp>
#include <baton/runtime/module.hpp>

#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace baton::test {

inline std::string hand_source(const std::string& before = {}) {
    std::ifstream in(BATON_SOURCE_DIR "/tests/codegen/prelude/kernels.cc");
    std::stringstream text;
    text << in.rdbuf();
    return fmt::format("{}{}{}", before, codegen::prelude_source(), text.str());
}

/// An all-reduce (i32 sum) on a ring with one threadblock a rank; `name`: ring_staged, ring_put or ring_get.
inline codegen::Manifest hand_ring(const std::string& name, int ranks) {
    codegen::Manifest m;
    m.name = name;
    m.hash = fmt::format("{}{}", name, ranks);
    m.collective.kind = ir::CollectiveKind::all_reduce;
    m.collective.ranks = ranks;
    m.collective.chunks = ranks;
    m.advance = 2 * ranks - 1;
    m.threads = 256;
    m.entries.push_back(
        {name, ir::DataType::i32, ir::ReduceOp::sum, ir::NanMode::propagate, ir::DataType::i32});
    const ir::Mode mode = name == "ring_put"   ? ir::Mode::put
                          : name == "ring_get" ? ir::Mode::get
                                               : ir::Mode::staged;
    for (int r = 0; r < ranks; ++r) {
        codegen::ManifestConnection connection;
        connection.src = r, connection.dst = (r + 1) % ranks;
        connection.mode = mode;
        connection.slots = mode == ir::Mode::staged ? 2 : 0;
        connection.messages = {{1, 1}};
        m.connections.push_back(connection);
        m.tokens.push_back({r, 0, (r + ranks - 1) % ranks});
    }
    for (int r = 0; r < ranks; ++r) {
        const int left = (r + ranks - 1) % ranks, right = (r + 1) % ranks;
        codegen::ManifestRank rank;
        rank.threadblocks = 1;
        rank.scratch_places = 2;
        rank.connections = {{r, true}, {left, false}};
        rank.tokens = {r, right};
        rank.peers = {left};
        if (right != left) rank.peers.push_back(right);
        m.ranks.push_back(rank);
    }
    return m;
}

}  // namespace baton::test
