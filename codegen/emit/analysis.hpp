// What the text of a module is printed from: instructions with everything they need to know spelled out.
#pragma once

#include <baton/codegen/manifest.hpp>
#include <baton/ir/program.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace baton::codegen {

/// Where a source or destination lies. message: the slot of a staged connection. remote: a place at the other
/// end of a connection (put and get). nothing: no access of its own (a put's receive, a get's send).
enum class Site : std::uint8_t { local, message, remote };

struct Access {
    Site site = Site::local;
    ir::Buffer buffer = ir::Buffer::output;
    int end = -1;                      ///< ordinal among the threadblock's sends or receives; -1 for local
    bool sends = false;                ///< which of the two lists `end` counts in
    std::int64_t index = 0;            ///< of the first place, unless a message
    std::vector<std::int64_t> shards;  ///< custom collectives: shard of each chunk, for input and output
};

/// A run of chunks whose classes are consecutive (modulo the number of classes).
struct ClassRun {
    std::int64_t first = 0, chunks = 0;
    bool operator==(const ClassRun&) const = default;
};

struct EmitInstruction {
    int number = 0;
    std::string shape;
    std::vector<Access> sources, destinations;  ///< empty for pure signals
    std::vector<ClassRun> classes;
    std::int64_t chunks = 0;
    bool finalize = false;
    std::vector<int> wait_messages, wait_slots;  ///< ends
    struct SourceFree {
        int end = 0;
        std::int64_t back = 0;  ///< the message is `back` before the next one of that end
    };
    std::vector<SourceFree> wait_source_free;
    struct TokenWait {
        int token = 0;  ///< index in the rank's token table
        int peer = -1;  ///< another rank; -1: the own
        std::int64_t instruction = 0;
    };
    std::vector<TokenWait> needs;
    std::vector<int> publishes, releases, passes, posts;  ///< ends, ends, ends, tokens
};

struct EmitThreadblock {
    int rank = 0, number = 0;
    std::vector<int> sends, receives;  ///< index in the rank's connection table
    std::vector<int> send_peers, receive_peers;
    std::vector<ir::Mode> send_modes, receive_modes;
    std::vector<EmitInstruction> instructions;
    std::vector<ir::Repeat> repeats;
};

struct EmitPlan {
    const ir::Program* program = nullptr;
    std::vector<EmitThreadblock> threadblocks;  ///< rank by rank
    std::vector<int> first;                     ///< [rank]: its first threadblock; total at the end
    std::int64_t advance = 1;
    /// Manifest parts of one instance.
    std::vector<ManifestConnection> connections;
    std::vector<ManifestToken> tokens;
    std::vector<ManifestRank> ranks;
};

/// Throws an input error for programs that cannot be emitted.
EmitPlan analyze(const ir::Program& program);

}  // namespace baton::codegen
