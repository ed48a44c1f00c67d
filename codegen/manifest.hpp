// The manifest of a generated module: everything a launcher must know, as data. Together with
// codegen/prelude/abi.h this is the loader contract; the runtime reads nothing else of codegen.
#pragma once

#include <baton/base/json_reader.hpp>
#include <baton/ir/collective.hpp>
#include <baton/ir/data_type.hpp>
#include <baton/ir/program.hpp>
#include <baton/ir/reduce_op.hpp>
#include <baton/ir/verify.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::codegen {

/// One entry point. A reducing entry serves one (type, operator); a copying one every type of its element
/// size.
struct ManifestEntry {
    std::string name;                      ///< `extern "C"` name in the object and in the cubins
    ir::DataType type = ir::DataType::u8;  ///< reducing: the type; copying: some type of that element size
    std::optional<ir::ReduceOp> op;        ///< none: copying
    ir::NanMode nan = ir::NanMode::propagate;
    ir::DataType wire = ir::DataType::u8;  ///< type of messages and scratch places
    std::int64_t element_size() const { return ir::size_of(type); }
    std::int64_t wire_size() const { return ir::size_of(wire); }
};

/// Largest message of one kind on a connection: `pieces` chunks whose classes have at most this weight.
struct MessageShape {
    std::int64_t pieces = 1, weight = 1;
    bool operator==(const MessageShape&) const = default;
};

/// A connection of the plan. Its state belongs to the communicator: (src, dst, channel, mode, protocol).
struct ManifestConnection {
    int src = 0, dst = 0, channel = 0;
    ir::Mode mode = ir::Mode::staged;
    ir::Protocol protocol = ir::Protocol::simple;
    int slots = 0;  ///< least FIFO depth; more is allowed, the same on both sides; 0 for put, get
    std::vector<MessageShape> messages;  ///< distinct shapes; a staged slot must hold the largest
    bool operator==(const ManifestConnection&) const = default;
};

/// A counter: threadblock `threadblock` of rank `rank` posts it, rank `waiter` waits for it. It lies in
/// memory of the waiter, alone in its 128 bytes.
struct ManifestToken {
    int rank = 0, threadblock = 0, waiter = 0;
    bool operator==(const ManifestToken&) const = default;
};

/// What one position of the program needs.
struct ManifestRank {
    int threadblocks = 0;  ///< blocks of the grid that belong to this rank; 0: the rank does nothing
    std::int64_t scratch_places = 0;
    /// baton_rank::connections, in order: (number in Manifest::connections, this rank sends). Either end
    /// once.
    std::vector<std::pair<int, bool>> connections;
    /// baton_rank::tokens, in order: numbers in Manifest::tokens.
    std::vector<int> tokens;
    /// Ranks with which entry records are exchanged (symmetric). baton_peer::received is null for all others.
    std::vector<int> peers;
    /// Buffers of this rank that peers access directly; they must be registered.
    bool remote_input = false, remote_output = false, remote_scratch = false;
};

/// A compiled form of the source. `target`: "host" (shared object of baton_host_entry functions) or "sm_90"
/// and the like (cubin). `file` is relative to the manifest.
struct ManifestBinary {
    std::string target, file;
};

/// The manifest. Positions of the program are called ranks here; the runtime maps communicator ranks to them.
struct Manifest {
    int abi_version = 1;  ///< BATON_ABI_VERSION of the prelude
    std::string name;     ///< of the plan
    std::string hash;     ///< 32 hex digits over the source: equal source, equal hash
    ir::Collective collective;
    bool wide = false;             ///< lowered wide: serves every (operator, type)
    std::optional<bool> in_place;  ///< as of the Program: only for calls in place, or out of place
    ir::Order order = ir::Order::fixed;
    ir::Assurance assurance = ir::Assurance::not_proven;
    int threads = 512;         ///< largest (and usual) number of CUDA threads per threadblock
    int instances = 1;         ///< copies of the program; copy i executes tiles i, i + instances, ...
    std::int64_t advance = 1;  ///< tokens per tile; for explanation only, the kernel knows it
    std::string source_file, header_file, program_file;  ///< relative to the manifest; empty = not written
    std::vector<ManifestEntry> entries;
    std::vector<ManifestConnection> connections;
    std::vector<ManifestToken> tokens;
    std::vector<ManifestRank> ranks;
    std::vector<ManifestBinary> binaries;
    std::string topology_hash;

    /// The entry for a call, or null. Copying collectives ignore `op`.
    const ManifestEntry* find_entry(ir::DataType type, ir::ReduceOp op,
                                    ir::NanMode nan = ir::NanMode::propagate) const;

    /// Bytes from one scratch place to the next (baton_arguments::scratch_stride): the largest class, whole
    /// 16-byte units of the data type, in the wire type. `count`: elements per shard.
    std::int64_t scratch_stride(const ManifestEntry& entry, std::int64_t count) const;
    /// Scratch bytes of a rank for a call: places times stride. Independent of the tiles.
    std::int64_t workspace_bytes(int rank, const ManifestEntry& entry, std::int64_t count) const;
    /// Bytes of the largest message of a staged connection when every chunk is cut into `tiles` tiles (0 for
    /// put and get). Must not exceed the connection's slot bytes.
    std::int64_t message_bytes(int connection, const ManifestEntry& entry, std::int64_t count,
                               std::int64_t tiles) const;
    /// The least number of tiles, at least `wanted`, with which every message fits `slot_bytes`. A multiple
    /// of 1. Throws an input error when even single 16-byte units do not fit.
    std::int64_t fitting_tiles(const ManifestEntry& entry, std::int64_t count, std::int64_t slot_bytes,
                               std::int64_t wanted) const;
};

/// JSON text ("baton": "manifest/1").
std::string to_json(const Manifest& manifest);
/// Reads and checks every number; throws an input error with the place.
Manifest read_manifest(const JsonReader& reader);
/// Reads a file, or `manifest.json` in a folder.
Manifest load_manifest(const std::string& path);

}  // namespace baton::codegen
