#include <baton/base/error.hpp>
#include <baton/runtime/bound_plan.hpp>

#include <fmt/format.h>
#include <bit>
#include <map>

namespace baton::runtime {

namespace {

/// Slot bytes with which even the largest message of single 16-byte units fits, whatever the type (a unit of
/// f8 takes 64 bytes when it travels as f32).
std::int64_t least_slot_bytes(const codegen::Manifest& manifest, std::int64_t wanted) {
    for (const codegen::ManifestConnection& connection : manifest.connections) {
        if (connection.mode != ir::Mode::staged) continue;
        for (const codegen::MessageShape& shape : connection.messages) {
            if (shape.pieces > std::int64_t{1} << 40)
                throw input_error("a message of too many chunks", manifest.name);
            wanted = std::max(wanted, shape.pieces * 64);
        }
    }
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
}

template <class T>
T* put_table(Backend& backend, SharedState& state, int rank, const std::vector<T>& table) {
    const auto bytes = static_cast<std::int64_t>(table.size() * sizeof(T));
    auto* memory = static_cast<T*>(state.allocate(rank, bytes));
    if (bytes > 0) backend.write(rank, memory, table.data(), bytes);
    return memory;
}

}  // namespace

BoundPlan::BoundPlan(Backend& backend, SharedState& state, std::shared_ptr<const Module> module, int slots,
                     std::int64_t slot_bytes)
    : module_(std::move(module)), slot_bytes_(least_slot_bytes(manifest(), slot_bytes)) {
    const int ranks = manifest().collective.ranks;
    place_in_group_.assign(ranks, {-1, 0});
    errors_.assign(ranks, nullptr);
    std::map<int, int> group_at;
    std::vector<std::vector<baton_block>> blocks;
    for (int r = 0; r < ranks; ++r) {
        const int threadblocks = manifest().ranks[r].threadblocks;
        if (threadblocks == 0) continue;
        const auto [at, fresh] = group_at.try_emplace(backend.place_of(r), static_cast<int>(groups_.size()));
        if (fresh) {
            groups_.emplace_back();
            groups_.back().place = at->first;
            groups_.back().code.assign(manifest().entries.size(), nullptr);
            blocks.emplace_back();
        }
        Group& group = groups_[at->second];
        if (group.ranks.size() == BATON_MAX_LOCAL_RANKS) {
            throw input_error(fmt::format("more than {} ranks share a device", BATON_MAX_LOCAL_RANKS),
                              manifest().name);
        }
        const int index = static_cast<int>(group.ranks.size());
        place_in_group_[r] = {at->second, index};
        group.ranks.push_back(r);
        group.arguments.calls[index].rank = bind_rank(backend, state, r, slots);
        for (int b = 0; b < threadblocks; ++b)
            blocks[at->second].push_back({static_cast<baton_u32>(index), static_cast<baton_u32>(b)});
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        groups_[g].blocks = static_cast<int>(blocks[g].size());
        groups_[g].arguments.local_ranks = static_cast<baton_u32>(groups_[g].ranks.size());
        groups_[g].arguments.blocks = put_table(backend, state, groups_[g].ranks[0], blocks[g]);
    }
}

baton_rank* BoundPlan::bind_rank(Backend& backend, SharedState& state, int rank, int slots) {
    const codegen::Manifest& m = manifest();
    const codegen::ManifestRank& mine = m.ranks[rank];
    std::vector<baton_connection> connections;
    for (const auto& [number, sends] : mine.connections) {
        const codegen::ManifestConnection& c = m.connections[number];
        ConnectionKey key{c.src, c.dst, c.channel, c.mode, c.protocol, 0, 0};
        if (c.mode == ir::Mode::staged) {
            key.slots = std::max(slots, static_cast<int>(std::bit_ceil(static_cast<unsigned>(c.slots))));
            key.slot_bytes = slot_bytes_;
        }
        connections.push_back(state.end(key, sends));
    }
    std::vector<baton_u64*> tokens;
    for (const int number : mine.tokens) tokens.push_back(state.token(m.tokens[number]));
    std::vector<baton_peer> peers(m.ranks.size());
    for (const int peer : mine.peers) peers[peer] = state.peer(rank, peer);
    auto* errors = static_cast<baton_error*>(
        state.allocate(rank, mine.threadblocks * static_cast<std::int64_t>(sizeof(baton_error))));
    errors_[rank] = errors;

    baton_rank table{};
    table.rank = table.position = static_cast<baton_u32>(rank);
    table.ranks = static_cast<baton_u32>(m.ranks.size());
    table.threadblocks = static_cast<baton_u32>(mine.threadblocks);
    table.state = state.rank_state(rank);
    table.connections = put_table(backend, state, rank, connections);
    table.peers = put_table(backend, state, rank, peers);
    table.tokens = put_table(backend, state, rank, tokens);
    table.abort = state.abort_word();
    table.errors = errors;
    return put_table(backend, state, rank, std::vector<baton_rank>{table});
}

std::pair<BoundPlan::Group*, int> BoundPlan::group_of(int rank) {
    const auto [group, index] = place_in_group_[rank];
    return group < 0 ? std::pair<Group*, int>{nullptr, 0} : std::pair<Group*, int>{&groups_[group], index};
}

const void* BoundPlan::code(Backend& backend, Group& group, const codegen::ManifestEntry& entry) {
    const void*& code = group.code[&entry - manifest().entries.data()];
    if (code == nullptr)
        code = backend.prepare(*module_, entry, group.place, group.blocks, manifest().threads);
    return code;
}

std::vector<baton_error> BoundPlan::errors(Backend& backend, int rank) const {
    std::vector<baton_error> records(errors_[rank] == nullptr ? 0 : manifest().ranks[rank].threadblocks);
    if (records.empty()) return records;
    if (backend.host_memory()) {
        // Other ranks may be writing theirs: a record counts once its code is there.
        for (std::size_t i = 0; i < records.size(); ++i) {
            const baton_u32 code = __atomic_load_n(&errors_[rank][i].code, __ATOMIC_ACQUIRE);
            if (code != BATON_OK && code != ~0u) records[i] = errors_[rank][i];
        }
    } else {
        backend.read(rank, records.data(), errors_[rank],
                     static_cast<std::int64_t>(records.size() * sizeof(baton_error)));
    }
    return records;
}

}  // namespace baton::runtime
