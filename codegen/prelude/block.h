// A threadblock: CUDA threads on the device, a team of host threads elsewhere. Every instruction of a program is
//     waits (thread 0 polls);  block.after_waits();  moves;  block.before_posts();  posts (thread 0 stores)
// where an instruction that posts nothing needs no before_posts. after_waits also orders this instruction's moves
// behind those of the one before. A wait that fails marks the block; from the next barrier on all its threads know,
// and every later wait, move and post of the call does nothing, so that a kernel ends without further control flow.

#if BATON_ON_DEVICE
#define BATON_KERNEL(name, threads) \
    extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ baton_arguments arguments)
#define BATON_BLOCK(block) baton_kernel::Block block(arguments)
#else
#define BATON_KERNEL(name, threads)                                   \
    extern "C" __attribute__((visibility("default"))) void name(      \
        const baton_arguments* baton_arguments_, const baton_host_thread* baton_thread_)
#define BATON_BLOCK(block) baton_kernel::Block block(*baton_arguments_, *baton_thread_)
#endif

namespace baton_kernel {

struct Block {
    const baton_arguments& arguments;
    const baton_call& call;
    const baton_rank& rank;
    u32 threadblock, thread, threads;
    u32 instruction;    // of the program; kept for the error record
    u32 failed;         // after a barrier: the same on all threads
    u64 epoch;          // of this call, from 1
    u64 token_base;
#if BATON_ON_DEVICE
    BATON_FN explicit Block(const baton_arguments& a)
        : arguments(a), call(a.calls[a.blocks[blockIdx.x].call]), rank(*call.rank),
          threadblock(a.blocks[blockIdx.x].threadblock), thread(threadIdx.x), threads(blockDim.x), instruction(0),
          failed(0), epoch(rank.state->epoch + 1), token_base(rank.state->token_base) {}
    BATON_FN void barrier() { failed = u32(__syncthreads_or(int(failed))); }
#else
    const baton_host_thread& host;
    BATON_FN Block(const baton_arguments& a, const baton_host_thread& h)
        : arguments(a), call(a.calls[a.blocks[h.block].call]), rank(*call.rank),
          threadblock(a.blocks[h.block].threadblock), thread(h.thread), threads(h.threads), instruction(0), failed(0),
          epoch(rank.state->epoch + 1), token_base(rank.state->token_base), host(h) {}
    BATON_FN void barrier() {
        if (threads > 1) failed = u32(host.barrier(host.context, int(failed)));
    }
#endif

    BATON_FN bool leader() const { return thread == 0; }

    BATON_FN void after_waits() {
#ifndef BATON_MUTATE_NO_BARRIER_AFTER_WAIT
        barrier();
#endif
    }
    // All moves of the block before it are visible to whoever acquires a post after it.
    BATON_FN void before_posts() {
#ifndef BATON_MUTATE_NO_BARRIER_BEFORE_PUBLISH
        barrier();
#endif
#if BATON_ON_DEVICE
        if (leader()) asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
    }

    // Own buffers. Copying a pointer out of the arguments costs nothing; null where the rank has no such buffer.
    BATON_FN const u8* input() const { return static_cast<const u8*>(call.input); }
    BATON_FN u8* output() const { return static_cast<u8*>(call.output); }
    BATON_FN u8* scratch() const { return static_cast<u8*>(call.scratch); }

    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
};

}  // namespace baton_kernel
