// Begin and end of a call at one rank: entry records, the pointers of peers, and the state that persists.

namespace baton_kernel {

// Where a peer's buffers are in this call, as mapped here.
struct Remote {
    u8* input;
    u8* output;
    u8* scratch;
};

// Threadblock 0 tells every peer that the rank has entered; the threads share the peers. The others do nothing.
// The record that was sent last in this parity must have been read: its place is taken again.
BATON_FN void enter(Block& block) {
    if (block.threadblock != 0) return;
    for (u32 p = block.thread; p < block.rank.ranks; p += block.threads) {
        const baton_peer& peer = block.rank.peers[p];
        if (peer.received == nullptr) continue;
        u64& told = peer.told[block.epoch & 1];
        if (told != 0 && !wait(block, peer.acknowledged, told, BATON_WAIT_RECORD, p)) break;
        baton_entry& record = peer.sent[block.epoch & 1];
        record.fingerprint = block.arguments.fingerprint;
        record.offset[0] = block.call.input_offset;
        record.offset[1] = block.call.output_offset;
        record.offset[2] = block.call.scratch_offset;
        record.window[0] = block.call.input_window;
        record.window[1] = block.call.output_window;
        record.window[2] = block.call.scratch_window;
        store_release(&record.epoch, block.epoch);
        told = block.epoch;
    }
}

// Until peer p has entered this call. A peer in another call is an error, not a hang. Any thread may call it.
BATON_FN void wait_entry(Block& block, u32 p) {
    const baton_peer& peer = block.rank.peers[p];
    const baton_entry& record = peer.received[block.epoch & 1];
#ifndef BATON_MUTATE_NO_ENTRY_WAIT
    if (!wait(block, &record.epoch, block.epoch, BATON_WAIT_ENTRY, p)) return;
#endif
    if (record.fingerprint != block.arguments.fingerprint)
        fail(block, BATON_MISMATCH, BATON_WAIT_ENTRY, p, block.arguments.fingerprint, record.fingerprint);
}

// REQUIRES: wait_entry(p) by some thread of the block, and a barrier since. For the own rank the own buffers.
BATON_FN Remote remote(const Block& block, u32 p) {
    if (p == block.rank.rank) return {const_cast<u8*>(block.input()), block.output(), block.scratch()};
    if (block.failed) return {nullptr, nullptr, nullptr};
    const baton_peer& peer = block.rank.peers[p];
    const baton_entry& record = peer.received[block.epoch & 1];
    u8* at[3];
    BATON_UNROLL
    for (int b = 0; b < 3; ++b)
        at[b] = reinterpret_cast<u8*>(peer.windows[record.window[b]] + record.offset[b]);
    return {at[0], at[1], at[2]};
}

// Ends the part of one threadblock: the last statement of a kernel, after the connections were closed. The last
// threadblock of the rank advances the epoch and the token base and acknowledges the peers' records; where a peer has
// entered by then, its fingerprint is compared also by ranks that never waited for it.
BATON_FN void leave(Block& block, u32 advance) {
    block.before_posts();
    if (!block.leader() || block.failed) return;
    baton_rank_state& state = *block.rank.state;
    if (add_acq_rel(&state.finished, 1) + 1 != block.rank.threadblocks) return;
    for (u32 p = 0; p < block.rank.ranks; ++p) {
        const baton_peer& peer = block.rank.peers[p];
        if (peer.received == nullptr) continue;
        const baton_entry& record = peer.received[block.epoch & 1];
        if (load_acquire(&record.epoch) == block.epoch && record.fingerprint != block.arguments.fingerprint)
            return fail(block, BATON_MISMATCH, BATON_WAIT_ENTRY, p, block.arguments.fingerprint, record.fingerprint);
        post_counter(peer.acknowledge, block.epoch);
    }
    state.finished = 0;
    state.token_base = block.token_base + u64(block.arguments.last_tile - block.arguments.first_tile) * advance;
    state.epoch = block.epoch;
}

}  // namespace baton_kernel
