#include <baton/runtime/shared_state.hpp>

namespace baton::runtime {

namespace {

constexpr std::int64_t kLine = 128;
constexpr std::int64_t kChunk = std::int64_t{4} << 20;

}  // namespace

SharedState::SharedState(Backend& backend, int ranks)
    : backend_(backend), ranks_(static_cast<std::size_t>(ranks)) {
    static_assert(2 * sizeof(baton_entry) <= kLine && sizeof(baton_rank_state) <= kLine);
    abort_ = static_cast<baton_u32*>(backend_.allocate_shared(kLine));
    for (int r = 0; r < ranks; ++r) {
        RankMemory& mine = ranks_[r];
        mine.state = static_cast<baton_rank_state*>(allocate(r, kLine));
        mine.windows = static_cast<baton_u64*>(allocate(r, kLine));
        mine.received = static_cast<char*>(allocate(r, kLine * ranks));
        mine.acknowledged = static_cast<char*>(allocate(r, kLine * ranks));
        mine.told = static_cast<baton_u64*>(allocate(r, 16 * ranks));
    }
}

SharedState::~SharedState() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        for (void* chunk : ranks_[r].arena.chunks) backend_.release(static_cast<int>(r), chunk);
    }
    backend_.release_shared(abort_);
}

void* SharedState::allocate(int rank, std::int64_t bytes) {
    Arena& arena = ranks_[rank].arena;
    bytes = (std::max<std::int64_t>(bytes, 1) + kLine - 1) / kLine * kLine;
    if (bytes > kChunk / 4) {
        arena.chunks.push_back(nullptr);
        return arena.chunks.back() = backend_.allocate(rank, bytes);
    }
    if (bytes > arena.left) {
        arena.chunks.push_back(nullptr);
        arena.next = static_cast<char*>(backend_.allocate(rank, kChunk));
        arena.chunks.back() = arena.next;
        arena.left = kChunk;
    }
    void* memory = arena.next;
    arena.next += bytes, arena.left -= bytes;
    return memory;
}

baton_peer SharedState::peer(int rank, int peer) const {
    const RankMemory &mine = ranks_[rank], &theirs = ranks_[peer];
    baton_peer result{};
    result.received = reinterpret_cast<const baton_entry*>(mine.received + kLine * peer);
    result.sent = reinterpret_cast<baton_entry*>(theirs.received + kLine * rank);
    result.acknowledged = reinterpret_cast<const baton_u64*>(mine.acknowledged + kLine * peer);
    result.acknowledge = reinterpret_cast<baton_u64*>(theirs.acknowledged + kLine * rank);
    result.windows = mine.windows;
    result.told = mine.told + 2 * peer;
    return result;
}

baton_connection SharedState::end(const ConnectionKey& key, bool sends) {
    auto found = connections_.find(key);
    if (found == connections_.end()) {
        Connection made{};
        if (key.mode == ir::Mode::staged) made.data = allocate(key.dst, key.slots * key.slot_bytes);
        made.tail = static_cast<baton_u64*>(allocate(key.dst, kLine));
        made.received = static_cast<baton_u64*>(allocate(key.dst, kLine));
        made.head = static_cast<baton_u64*>(allocate(key.src, kLine));
        made.sent = static_cast<baton_u64*>(allocate(key.src, kLine));
        found = connections_.emplace(key, made).first;
    }
    const Connection& c = found->second;
    baton_connection result{};
    result.data = c.data;
    result.tail = c.tail;
    result.head = c.head;
    result.position = sends ? c.sent : c.received;
    result.slot_bytes = static_cast<baton_u64>(key.slot_bytes);
    result.slots = static_cast<baton_u32>(key.slots);
    result.peer = static_cast<baton_u32>(sends ? key.dst : key.src);
    return result;
}

baton_u64* SharedState::token(const codegen::ManifestToken& token) {
    baton_u64*& counter = tokens_[{token.rank, token.threadblock, token.waiter}];
    if (counter == nullptr) counter = static_cast<baton_u64*>(allocate(token.waiter, kLine));
    return counter;
}

}  // namespace baton::runtime
