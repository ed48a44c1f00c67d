
// ring all_reduce: all_reduce of 5 ranks, 5 chunks.
namespace ring_all_reduce_d24fee33 {
using namespace baton_kernel;

constexpr u32 kAdvance = 9;  // tokens per tile
BATON_FN Range tile_of(const Partition& chunks, u32 k, u32 t) { return chunks.tile(k, t); }
BATON_FN u64 begin_of(const Partition& chunks, u32 k) { return chunks.tile(k, chunks.first_tile).begin; }

// What differs among the threadblocks of a role.
BATON_TABLE u32 kConstants[] = {
    0, 4, 1, 2, 1, 0, 2, 3, 2, 1, 3, 4, 3, 2, 4, 0,
    4, 3, 0, 1,
};

// Rank.threadblock 0.0, 1.0, 2.0, 3.0, 4.0: 9 instructions.
template <class E>
BATON_OUTLINE void role0(Block& block, const u32* c) {
    Sender s[] = {Sender(block, 0)};
    Receiver r[] = {Receiver(block, 1)};
    if (block.leader()) {
        wait_entry(block, r[0].peer);
    }
    block.after_waits();
    const Partition chunks(block.arguments, E::unit, 5);
    for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
        {  // send
            block.instruction = 0;
            s[0].wait_slot(block);
            block.after_waits();
            const u32 k = c[0];
            const Range range = tile_of(chunks, k, t);
            apply<E, 0x0, 0x1, false>(block, {s[0].message()},
                {in_shard<E>(block, block.input(), 0, range)}, range.size);
            block.before_posts();
            s[0].publish(block);
        }
        for (u32 i = 0; i < 3; ++i) {
            {  // recv_reduce_send
                block.instruction = 1 + i;
                r[0].wait_message(block);
                s[0].wait_slot(block);
                block.after_waits();
                const u32 k = wrapped(c[1], i, 4, 5);
                const Range range = tile_of(chunks, k, t);
                apply<E, 0x2, 0x1, false>(block, {s[0].message()},
                    {in_shard<E>(block, block.input(), 0, range), r[0].message()}, range.size);
                block.before_posts();
                s[0].publish(block);
                r[0].release(block);
            }
        }
        {  // recv_reduce_copy_send
            block.instruction = 4;
            r[0].wait_message(block);
            s[0].wait_slot(block);
            block.after_waits();
            const u32 k = c[2];
            const Range range = tile_of(chunks, k, t);
            apply<E, 0x2, 0x2, true>(block, {in_shard<E>(block, block.output(), 0, range), s[0].message()},
                {in_shard<E>(block, block.input(), 0, range), r[0].message()}, range.size);
            block.before_posts();
            s[0].publish(block);
            r[0].release(block);
        }
        for (u32 i = 0; i < 3; ++i) {
            {  // recv_copy_send
                block.instruction = 5 + i;
                r[0].wait_message(block);
                s[0].wait_slot(block);
                block.after_waits();
                const u32 k = wrapped(c[0], i, 4, 5);
                const Range range = tile_of(chunks, k, t);
                apply<E, 0x1, 0x2, false>(block, {in_shard<E>(block, block.output(), 0, range), s[0].message()},
                    {r[0].message()}, range.size);
                block.before_posts();
                s[0].publish(block);
                r[0].release(block);
            }
        }
        {  // recv
            block.instruction = 8;
            r[0].wait_message(block);
            block.after_waits();
            const u32 k = c[3];
            const Range range = tile_of(chunks, k, t);
            apply<E, 0x1, 0x0, false>(block, {in_shard<E>(block, block.output(), 0, range)},
                {r[0].message()}, range.size);
            block.before_posts();
            r[0].release(block);
        }
    }
    s[0].close(block);
    r[0].close(block);
}

// Role of each threadblock of each rank, and where its constants begin.
BATON_TABLE u32 kRoles[] = {
    0, 0, 0, 4, 0, 8, 0, 12, 0, 16,
};

template <class E>
BATON_FN void run(Block& block) {
    enter(block);
    const u32* const role = kRoles + 2 * (block.rank.position * 1 + block.threadblock);
    switch (role[0]) {
        case 0: role0<E>(block, kConstants + role[1]); break;
    }
    leave(block, kAdvance);
}

}  // namespace ring_all_reduce_d24fee33

BATON_KERNEL(baton_ring_all_reduce_d24fee33_f32_sum, 512) {
    BATON_BLOCK(block);
    ring_all_reduce_d24fee33::run<baton_kernel::Entry<baton_kernel::op::sum, baton_kernel::element::f32, baton_kernel::element::f32>>(block);
}
