// Kernels written by hand in the dialect of emitted ones; compiled behind the prelude, once per planted fault.

using namespace baton_kernel;

constexpr u32 kWidth = 4;  // of an i32
typedef element::i32 Element;
BATON_FN u32 ordinal(const Block& block, u32 tile) { return tile - block.arguments.first_tile; }

// All-reduce on a ring through staged connections. Connections: 0 to the right, 1 from the left.
BATON_KERNEL(ring_staged, 256) {
    BATON_BLOCK(block);
    const u32 n = block.rank.ranks, r = block.rank.position;
    enter(block);
    Sender send(block, 0);
    Receiver recv(block, 1);
    const Partition chunks(block.arguments, 4, n);
    wait_entry(block, recv.peer);
    for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
        for (u32 i = 0; i < 2 * n - 1; ++i) {
            const u32 k = (r + 2 * n - i) % n;
            const Range range = chunks.tile(k, t);
            const u64 at = range.begin * kWidth;
            block.instruction = i;
            if (i > 0) recv.wait_message(block);
            if (i < 2 * n - 2) send.wait_slot(block);
            block.after_waits();
            if (i == 0)
                copy<Element>(block, {send.message()}, block.input() + at, range.size);
            else if (i < n - 1)
                move<op::sum, Element>(block, {send.message()}, {recv.message(), block.input() + at}, range.size);
            else if (i == n - 1)
                move<op::sum, Element, 0, 0, true>(block, {block.output() + at, send.message()},
                                                   {recv.message(), block.input() + at}, range.size);
            else if (i < 2 * n - 2)
                copy<Element>(block, {block.output() + at, send.message()}, recv.message(), range.size);
            else
                copy<Element>(block, {block.output() + at}, recv.message(), range.size);
            block.before_posts();
            if (i < 2 * n - 2) send.publish(block);
            if (i > 0) recv.release(block);
        }
    }
    send.close(block);
    recv.close(block);
    leave(block, 2 * n - 1);
}

// The same, written straight into the neighbor: partial sums into two alternating scratch places, whose reuse needs a
// token of the neighbor. Tokens: 0 posted to the left, 1 awaited from the right.
BATON_KERNEL(ring_put, 256) {
    BATON_BLOCK(block);
    const u32 n = block.rank.ranks, r = block.rank.position, advance = 2 * n - 1;
    enter(block);
    Sender send(block, 0);
    Receiver recv(block, 1);
    const Partition chunks(block.arguments, 4, n);
    wait_entry(block, send.peer);
    wait_entry(block, recv.peer);
    block.after_waits();
    const Remote right = remote(block, send.peer);
    const u64 stride = block.arguments.scratch_stride;
    for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
        const u32 o = ordinal(block, t);
        for (u32 i = 0; i < advance; ++i) {
            const u32 k = (r + 2 * n - i) % n;
            const Range range = chunks.tile(k, t);
            const u64 at = range.begin * kWidth;
            u8* const theirs = right.scratch + (i % 2) * stride;
            const u8* const mine = block.scratch() + ((i + 1) % 2) * stride;
            block.instruction = i;
            if (i > 0) recv.wait_message(block);
            // The place was read last by instruction i-1 of the neighbor, or by its last use in the tile before.
            if (i + 1 < n) {
                if (i >= 2) {
                    need_remote(block, 1, token(block, o, advance, i - 1), send.peer);
                } else if (o > 0) {
                    const u32 last = n - 2 >= i ? n - 2 - (n - 2 - i) % 2 : 0;
                    need_remote(block, 1, token(block, o - 1, advance, last + 1), send.peer);
                }
            }
            block.after_waits();
            if (i == 0)
                copy<Element>(block, {theirs}, block.input() + at, range.size);
            else if (i < n - 1)
                move<op::sum, Element>(block, {theirs}, {mine, block.input() + at}, range.size);
            else if (i == n - 1)
                move<op::sum, Element, 0, 0, true>(block, {block.output() + at, right.output + at},
                                                   {mine, block.input() + at}, range.size);
            else if (i < 2 * n - 2)
                copy<Element>(block, {right.output + at}, block.output() + at, range.size);
            block.before_posts();
            if (i < 2 * n - 2) send.publish(block);
            if (i > 0) recv.pass();
            post(block, 0, token(block, o, advance, i));
        }
    }
    send.close(block);
    recv.close(block);
    leave(block, advance);
}

// The same, read from the neighbor: a source is overwritten only after its reader acknowledged.
BATON_KERNEL(ring_get, 256) {
    BATON_BLOCK(block);
    const u32 n = block.rank.ranks, r = block.rank.position;
    enter(block);
    Sender send(block, 0);
    Receiver recv(block, 1);
    const Partition chunks(block.arguments, 4, n);
    wait_entry(block, recv.peer);
    block.after_waits();
    const Remote left = remote(block, recv.peer);
    const u64 stride = block.arguments.scratch_stride;
    for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
        const u64 first = send.next;
        for (u32 i = 0; i < 2 * n - 1; ++i) {
            const u32 k = (r + 2 * n - i) % n;
            const Range range = chunks.tile(k, t);
            const u64 at = range.begin * kWidth;
            u8* const mine = block.scratch() + (i % 2) * stride;
            const u8* const theirs = left.scratch + ((i + 1) % 2) * stride;
            block.instruction = i;
            if (i > 0) recv.wait_message(block);
            if (i + 1 < n) {
                if (i >= 2) send.wait_source_free(block, first + i - 2);
                else if (ordinal(block, t) > 0) send.wait_source_free(block, first - 1);
            }
            block.after_waits();
            if (i == 0)
                copy<Element>(block, {mine}, block.input() + at, range.size);
            else if (i < n - 1)
                move<op::sum, Element>(block, {mine}, {theirs, block.input() + at}, range.size);
            else if (i == n - 1)
                move<op::sum, Element, 0, 0, true>(block, {block.output() + at}, {theirs, block.input() + at}, range.size);
            else
                copy<Element>(block, {block.output() + at}, left.output + at, range.size);
            block.before_posts();
            if (i < 2 * n - 2) send.publish(block);
            if (i > 0) recv.release(block);
        }
    }
    send.drain(block);
    send.close(block);
    recv.close(block);
    leave(block, 2 * n - 1);
}

// Broadcast down a chain, pipelined. Threadblock 0 receives, threadblock 1 sends what threadblock 0 has stored.
// Connections: 0 to the next, 1 from the one before; token 0 from threadblock 0 to threadblock 1.
BATON_KERNEL(chain_staged, 256) {
    BATON_BLOCK(block);
    const u32 n = block.rank.ranks, r = block.rank.position;
    enter(block);
    const Partition chunks(block.arguments, 4, 1);
    if (block.threadblock == 0 && r > 0) {
        Receiver recv(block, 1);
        wait_entry(block, recv.peer);
        for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
            const Range range = chunks.tile(0, t);
            recv.wait_message(block);
            block.after_waits();
            copy<Element>(block, {block.output() + range.begin * kWidth}, recv.message(), range.size);
            block.before_posts();
            recv.release(block);
            post(block, 0, token(block, ordinal(block, t), 1, 0));
        }
        recv.close(block);
    }
    if (block.threadblock == 1 && r + 1 < n) {
        Sender send(block, 0);
        const u8* const from = r == 0 ? block.input() : block.output();
        for (u32 t = block.arguments.first_tile; t < block.arguments.last_tile; ++t) {
            const Range range = chunks.tile(0, t);
            send.wait_slot(block);
            if (r > 0) need(block, 0, token(block, ordinal(block, t), 1, 0));
            block.after_waits();
            copy<Element>(block, {send.message()}, from + range.begin * kWidth, range.size);
            block.before_posts();
            send.publish(block);
        }
        send.close(block);
    }
    leave(block, 1);
}
