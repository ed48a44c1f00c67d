// What persists between the calls of a communicator and belongs to it, not to a plan: counters, slots, entry
// records.
#pragma once

#include <baton/codegen/prelude/abi.h>
#include <baton/codegen/manifest.hpp>
#include <baton/runtime/backend.hpp>

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace baton::runtime {

/// Names a connection of the communicator. Plans that need more or larger slots than others have connections
/// of their own: slots and slot bytes of a connection never change.
struct ConnectionKey {
    int src = 0, dst = 0, channel = 0;
    ir::Mode mode = ir::Mode::staged;
    ir::Protocol protocol = ir::Protocol::simple;
    int slots = 0;
    std::int64_t slot_bytes = 0;
    auto operator<=>(const ConnectionKey&) const = default;
};

/// One generation of a communicator's state: made at the start and again after a failed call. All addresses
/// are in the backend's memory. Not for several threads at once.
class SharedState {
public:
    SharedState(Backend& backend, int ranks);
    ~SharedState();
    SharedState(const SharedState&) = delete;
    SharedState& operator=(const SharedState&) = delete;

    /// Zeroed memory of a rank, aligned to 128 bytes, that lives as long as this object.
    void* allocate(int rank, std::int64_t bytes);

    baton_rank_state* rank_state(int rank) const { return ranks_[rank].state; }
    /// Raised for all ranks at once; the host reads and writes it directly.
    baton_u32* abort_word() const { return abort_; }
    /// How `rank` exchanges entry records with `peer`.
    baton_peer peer(int rank, int peer) const;
    /// The end of a connection at its source (`sends`) or destination.
    baton_connection end(const ConnectionKey& key, bool sends);
    /// A token counter, in memory of the waiter.
    baton_u64* token(const codegen::ManifestToken& token);

private:
    struct Arena {
        std::vector<void*> chunks;
        char* next = nullptr;
        std::int64_t left = 0;
    };
    struct RankMemory {
        Arena arena;
        baton_rank_state* state = nullptr;
        baton_u64* windows = nullptr;  // one window at address 0
        char* received = nullptr;      // [peer] of 128 bytes: two records
        char* acknowledged = nullptr;  // [peer] of 128 bytes
        baton_u64* told = nullptr;     // [peer][2]
    };
    struct Connection {
        void* data;
        baton_u64 *tail, *head, *sent, *received;
    };
    Backend& backend_;
    std::vector<RankMemory> ranks_;
    baton_u32* abort_ = nullptr;
    std::map<ConnectionKey, Connection> connections_;
    std::map<std::tuple<int, int, int>, baton_u64*> tokens_;
};

}  // namespace baton::runtime
