/* What a launcher hands to an emitted kernel: the loader contract, in C, for every compiler and language.
 *
 * All counters are 64 bits, start at 0, only grow and are never reset. "As mapped here" means: an address valid for
 * the rank (device or process) that owns the structure; the two ends of a connection see the same memory through their
 * own addresses. Every counter that another rank writes sits alone in its 128 bytes.
 */
#ifndef BATON_ABI_H
#define BATON_ABI_H

#define BATON_ABI_VERSION 1
/* Most ranks that one launch may carry; keeps baton_arguments below the 4 KiB every driver accepts. */
#define BATON_MAX_LOCAL_RANKS 48

typedef unsigned int baton_u32;
typedef unsigned long long baton_u64;

/* One end of a connection. The kernel's connection table in the manifest gives the order.
 * staged: the receiver owns `slots` slots of `slot_bytes` at `data`; message k lies in slot k mod slots.
 * put, get: `data` is null, `slots` 0; the data moves between user or scratch buffers. */
typedef struct baton_connection {
    void* data;             /* staged: first slot, in the receiver's memory, 16-byte aligned; as mapped here */
    baton_u64* tail;        /* in the receiver's memory: messages published by the sender */
    baton_u64* head;        /* in the sender's memory: messages the receiver is done with */
    baton_u64* position;    /* private to this end: messages so far; loaded at the start, stored at the end of a call */
    baton_u64 slot_bytes;   /* multiple of 16 */
    baton_u32 slots;
    baton_u32 peer;         /* rank of the other end */
} baton_connection;

/* What a rank tells its peers when it enters a call. A window is a registered range of the teller's memory; the reader
 * adds the offset to its own mapping of that window. Window 0 begins at address 0 (one address space). */
typedef struct baton_entry {
    baton_u64 fingerprint;
    baton_u64 offset[3];      /* input, output, scratch */
    baton_u32 window[3];
    baton_u32 reserved;
    baton_u64 padding;
    baton_u64 epoch;          /* written last, with release */
} baton_entry;

/* A peer with which entry records are exchanged. Two records per direction, used by epoch parity. Plans differ in whom
 * they exchange with, so not every epoch has a record for every peer. */
typedef struct baton_peer {
    const baton_entry* received;    /* [2] in own memory, written by the peer; null: no exchange with this peer */
    baton_entry* sent;              /* [2] in the peer's memory, as mapped here */
    const baton_u64* acknowledged;  /* in own memory: last epoch whose own record the peer has done with */
    baton_u64* acknowledge;         /* in the peer's memory: the same for the peer's record */
    const baton_u64* windows;       /* base addresses of the peer's windows, as mapped here */
    baton_u64* told;                /* [2] private: epochs of the records last sent, by parity; 0: none yet */
} baton_peer;

/* Persists between calls and plans; private to the rank. Zero at the start. */
typedef struct baton_rank_state {
    baton_u64 epoch;        /* calls completed */
    baton_u64 token_base;   /* tokens of the next call are counted from here */
    baton_u32 finished;     /* threadblocks done with the running call */
    baton_u32 reserved;
} baton_rank_state;

enum {
    BATON_OK = 0,
    BATON_TIMED_OUT = 1,    /* a wait ran past its deadline */
    BATON_ABORTED = 2,      /* the abort word was seen during a wait */
    BATON_MISMATCH = 3      /* a peer entered another call: expected and seen are fingerprints */
};

enum {
    BATON_WAIT_NONE = 0,
    BATON_WAIT_DATA = 1,        /* a message: expected and seen are the tail */
    BATON_WAIT_CREDIT = 2,      /* a free slot, or an acknowledgement: the head */
    BATON_WAIT_TOKEN = 3,       /* a token */
    BATON_WAIT_ENTRY = 4,       /* a peer's entry record: epochs */
    BATON_WAIT_RECORD = 5       /* room for the own entry record: epochs */
};

/* Where a threadblock stood when it gave up. `code` is written last, with release. */
typedef struct baton_error {
    baton_u32 code;
    baton_u32 wait;
    baton_u32 rank, threadblock;
    baton_u32 instruction;
    baton_u32 peer;             /* ~0u: none */
    baton_u64 expected, seen;
    baton_u64 epoch;
    baton_u64 padding;
} baton_error;

/* One rank's part of a bound plan; lies in memory the kernel can read. Constant while kernels of the plan run. */
typedef struct baton_rank {
    baton_u32 rank, ranks;
    baton_u32 position;                     /* position of this rank in the program */
    baton_u32 threadblocks;                 /* of this rank */
    baton_rank_state* state;
    const baton_connection* connections;    /* ends at this rank, in the order of the manifest */
    const baton_peer* peers;                /* [ranks] */
    baton_u64* const* tokens;               /* counters this rank posts to or waits for, in the order of the manifest */
    baton_u32* abort;                       /* not 0: every wait gives up */
    baton_error* errors;                    /* [threadblocks] */
    baton_u64 reserved[4];                  /* zero; place for switch groups */
} baton_rank;

/* What changes from call to call for one local rank. Null where the rank has no such buffer. */
typedef struct baton_call {
    const baton_rank* rank;
    const void* input;
    void* output;
    void* scratch;
    baton_u64 input_offset, output_offset, scratch_offset;  /* as the peers are told, see baton_entry */
    baton_u32 input_window, output_window, scratch_window;
    baton_u32 reserved;
} baton_call;

/* Which threadblock of which local rank a block of the grid is. */
typedef struct baton_block {
    baton_u32 call;             /* index into baton_arguments::calls */
    baton_u32 threadblock;
} baton_block;

/* The one argument of every kernel. */
typedef struct baton_arguments {
    baton_u64 count;            /* elements per shard */
    baton_u64 fingerprint;      /* of kind, count, type, operator, root and plan */
    baton_u64 timeout_ns;       /* longest single wait; 0: for ever */
    baton_u64 scratch_stride;   /* bytes from one scratch place to the next, multiple of 16; a place holds the tiles of
                                   this call, beginning with first_tile */
    baton_u32 tiles;            /* tiles that every chunk is cut into */
    baton_u32 first_tile, last_tile;  /* this call executes tiles [first_tile, last_tile): all, or one segment */
    baton_u32 root;
    baton_u32 contributions;    /* divisor of avg */
    baton_u32 local_ranks;
    const baton_block* blocks;  /* [grid] */
    baton_u64 reserved[2];      /* zero */
    baton_call calls[BATON_MAX_LOCAL_RANKS];
} baton_arguments;

/* Host only: what one thread of a team needs of its launcher. */
typedef struct baton_host_thread {
    baton_u32 block;            /* index into baton_arguments::blocks */
    baton_u32 thread, threads;  /* of the team that stands for one threadblock */
    baton_u32 spin_limit;       /* polls before a wait yields the processor; 0 when threads outnumber cores */
    void* context;              /* handed to the functions below */
    /* Barrier of the team; returns whether any thread came with `flag` not 0. Not called when threads == 1. */
    int (*barrier)(void* context, int flag);
    void (*yield)(void* context);
    baton_u64 (*now_ns)(void* context);     /* monotonic */
} baton_host_thread;

/* Host entry points have this type; `extern "C"` name as in the manifest. Every thread of every team calls it. */
typedef void (*baton_host_entry)(const baton_arguments*, const baton_host_thread*);

#endif
