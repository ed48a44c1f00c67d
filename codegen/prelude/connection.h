// The two ends of a connection, protocol simple. All threads of the block call every function; thread 0 waits and
// posts. Message numbers continue from call to call.

namespace baton_kernel {

// What both ends keep in registers.
struct End {
    u8* data;
    u64* tail;
    u64* head;
    u64* position;
    u64 slot_bytes;
    u64 next;       // number of the next message
    u32 slots, slot, peer;

    BATON_FN End(const Block& block, u32 connection) {
        const baton_connection& c = block.rank.connections[connection];
        data = static_cast<u8*>(c.data);
        tail = c.tail;
        head = c.head;
        position = c.position;
        slot_bytes = c.slot_bytes;
        slots = c.slots;
        peer = c.peer;
        next = *position;
        slot = slots == 0 ? 0 : u32(next % slots);
    }
    // staged: the slot of the next message.
    BATON_FN u8* message() const { return data + slot * slot_bytes; }
    BATON_FN void advance() {
        ++next;
        if (++slot >= slots) slot = 0;
    }
    // Stores the message number for the next call. After a failure the state is rebuilt by the host instead.
    BATON_FN void close(const Block& block) const {
        if (block.leader() && !block.failed) *position = next;
    }
};

struct Sender : End {
    BATON_FN Sender(const Block& block, u32 connection) : End(block, connection) {}
    // staged: until the next slot is free.
    BATON_FN void wait_slot(Block& block) const {
#ifdef BATON_MUTATE_NO_CREDIT_WAIT
        (void)block;
#else
#ifdef BATON_MUTATE_CREDIT_OFF_BY_ONE
        const u64 depth = slots + 1;
#else
        const u64 depth = slots;
#endif
        if (block.leader() && next + 1 > depth) wait(block, head, next + 1 - depth, BATON_WAIT_CREDIT, peer);
#endif
    }
    // After before_posts. staged: the slot is filled; put: the destination is written; get: the source may be read.
    BATON_FN void publish(const Block& block) {
        if (block.leader() && !block.failed) post_counter(tail, next + 1);
        advance();
    }
    // get: until the reader has acknowledged message `number` and all before it; then their sources may be
    // overwritten. staged and put: sources are free as soon as the message is published.
    BATON_FN void wait_source_free(Block& block, u64 number) const {
        if (block.leader()) wait(block, head, number + 1, BATON_WAIT_CREDIT, peer);
    }
    // get: until everything published was read; before the end of a call.
    BATON_FN void drain(Block& block) const {
        if (block.leader()) wait(block, head, next, BATON_WAIT_CREDIT, peer);
    }
};

struct Receiver : End {
    BATON_FN Receiver(const Block& block, u32 connection) : End(block, connection) {}
    // Until the next message is there.
    BATON_FN void wait_message(Block& block) const {
        if (block.leader()) wait(block, tail, next + 1, BATON_WAIT_DATA, peer);
    }
    // After before_posts. staged: the slot was read and is free; get: the source was read. Not needed to be called
    // for put, where `pass` does.
    BATON_FN void release(const Block& block) {
        if (block.leader() && !block.failed) post_counter(head, next + 1);
        advance();
    }
    // put: on to the next message; nothing to tell the sender.
    BATON_FN void pass() { advance(); }
};

}  // namespace baton_kernel
