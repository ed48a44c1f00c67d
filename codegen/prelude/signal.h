// Counters and the one wait through which everything waits. A poll is a relaxed load; when it is satisfied the counter
// is loaded once more with acquire. A post is a release: on the device the fence lies in Block::before_posts and the
// stores are relaxed, on the host (where the thread sanitizer does not know fences) each store releases.

namespace baton_kernel {

#if BATON_ON_DEVICE
BATON_FN u64 load_relaxed(const u64* counter) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(global_address(counter)) : "memory");
    return value;
}
BATON_FN u32 load_relaxed(const u32* word) {
    u32 value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(global_address(word)) : "memory");
    return value;
}
BATON_FN u64 load_acquire(const u64* counter) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(global_address(counter)) : "memory");
    return value;
}
BATON_FN void store_relaxed(u64* counter, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" :: "l"(global_address(counter)), "l"(value) : "memory");
}
BATON_FN void store_relaxed(u32* word, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" :: "l"(global_address(word)), "r"(value) : "memory");
}
BATON_FN void store_release(u32* word, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" :: "l"(global_address(word)), "r"(value) : "memory");
}
BATON_FN void store_release(u64* counter, u64 value) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(global_address(counter)), "l"(value) : "memory");
}
BATON_FN u32 add_acq_rel(u32* word, u32 value) {
    u32 before;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(global_address(word)), "r"(value) : "memory");
    return before;
}
BATON_FN u32 claim(u32* word, u32 value) {
    u32 before;
    asm volatile("atom.cas.relaxed.sys.global.b32 %0, [%1], 0, %2;"
                 : "=r"(before) : "l"(global_address(word)), "r"(value) : "memory");
    return before;
}
BATON_FN u64 now_ns(const Block&) {
    u64 time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}
BATON_FN void relax(const Block&, u32) {}
// Only after Block::before_posts, only by the leader.
BATON_FN void post_counter(u64* counter, u64 value) { store_relaxed(counter, value); }
#else
template <class Word> BATON_FN Word load_relaxed(const Word* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
template <class Word> BATON_FN Word load_acquire(const Word* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
template <class Word> BATON_FN void store_relaxed(Word* p, Word v) { __atomic_store_n(p, v, __ATOMIC_RELAXED); }
template <class Word> BATON_FN void store_release(Word* p, Word v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
BATON_FN u32 add_acq_rel(u32* word, u32 value) { return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL); }
BATON_FN u32 claim(u32* word, u32 value) {
    u32 before = 0;
    __atomic_compare_exchange_n(word, &before, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return before;
}
BATON_FN u64 now_ns(const Block& block) { return block.host.now_ns(block.host.context); }
BATON_FN void relax(const Block& block, u32 polls) {
    if (polls >= block.host.spin_limit) return block.host.yield(block.host.context);
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
BATON_FN void post_counter(u64* counter, u64 value) {
#ifdef BATON_MUTATE_RELAXED_RELEASE
    store_relaxed(counter, value);
#else
    store_release(counter, value);
#endif
}
#endif

// Marks the block, writes the first error record of the threadblock and raises the abort word of the rank. Not a
// call: on the device one would force registers to memory in every kernel that waits.
BATON_OUTLINE void fail(Block& block, u32 code, u32 kind, u32 peer, u64 expected, u64 seen) {
    block.failed = 1;
    baton_error& error = block.rank.errors[block.threadblock];
    if (claim(&error.code, ~0u) == 0) {
        error.wait = kind;
        error.rank = block.rank.rank;
        error.threadblock = block.threadblock;
        error.instruction = block.instruction;
        error.peer = peer;
        error.expected = expected;
        error.seen = seen;
        error.epoch = block.epoch;
        store_release(&error.code, code);
    }
    store_relaxed(block.rank.abort, 1u);
}

// BATON_OK while a wait may go on; asked every 256 polls.
BATON_FN u32 verdict(const Block& block, u64& started) {
    if (load_relaxed(block.rank.abort) != 0) return BATON_ABORTED;
    if (block.arguments.timeout_ns == 0) return BATON_OK;
    const u64 now = now_ns(block);
    if (started == 0) started = now;
    return now - started > block.arguments.timeout_ns ? u32(BATON_TIMED_OUT) : u32(BATON_OK);
}

// Until *counter >= target. Any thread may call it; the others learn of the result at the next barrier.
BATON_OUTLINE bool wait(Block& block, const u64* counter, u64 target, u32 kind, u32 peer) {
    if (block.failed) return false;
    u64 seen = load_relaxed(counter), started = 0;
    u32 code = BATON_OK;
    for (u32 polls = 1; seen < target && code == BATON_OK; ++polls) {
        if (polls % 256 == 0) code = verdict(block, started);
        relax(block, polls);
        seen = load_relaxed(counter);
    }
    if (code != BATON_OK) {
        fail(block, code, kind, peer, target, seen);
        return false;
    }
#ifndef BATON_MUTATE_RELAXED_ACQUIRE
    load_acquire(counter);
#endif
    return true;
}

// Tokens. The value of instruction i in the n-th executed tile is token_base + n * advance + i + 1, where advance is
// the largest number of instructions of any threadblock of the plan, the same for all ranks.
BATON_FN u64 token(const Block& block, u64 tile_ordinal, u32 advance, u32 instruction) {
    return block.token_base + tile_ordinal * advance + instruction + 1;
}
BATON_FN void need(Block& block, u32 index, u64 value) {
    if (block.leader()) wait(block, block.rank.tokens[index], value, BATON_WAIT_TOKEN, block.rank.rank);
}
// A token of another rank: besides data it carries the permission to overwrite what that rank has read.
BATON_FN void need_remote(Block& block, u32 index, u64 value, u32 peer) {
#ifdef BATON_MUTATE_NO_REMOTE_CREDIT
    (void)block; (void)index; (void)value; (void)peer;
#else
    if (block.leader()) wait(block, block.rank.tokens[index], value, BATON_WAIT_TOKEN, peer);
#endif
}
BATON_FN void post(Block& block, u32 index, u64 value) {
    if (block.leader() && !block.failed) post_counter(block.rank.tokens[index], value);
}

}  // namespace baton_kernel
