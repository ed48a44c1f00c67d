/* Baton's C interface: communicators, loaded plans and collective calls, in the shape of NCCL's.
 *
 * A communicator has `ranks` ranks, all of them in this process: threads, or one thread that makes the calls of several
 * ranks inside a group. Ranks in other processes are refused in words. Each rank has a handle of its own. Schedules come
 * from folders that `baton codegen` wrote ("plans"); a communicator chooses among those it was given, or a call names
 * one.
 *
 *     baton_comm comms[4];
 *     baton_plan plan;
 *     baton_comm_init_all(comms, 4, NULL);
 *     baton_plan_load("module", &plan);
 *     baton_comm_add_plan(comms[0], plan, 0, INT64_MAX, 0);
 *     baton_group_start();
 *     for (int r = 0; r < 4; ++r)
 *         baton_all_reduce(send[r], recv[r], count, BATON_F32, BATON_SUM, comms[r], NULL);
 *     if (baton_group_end() != BATON_SUCCESS) fprintf(stderr, "%s\n", baton_last_error());
 *
 * Rules of all functions:
 *  - The result says whether the function did its work; `baton_last_error` has the words. Nothing is written to an out
 *    parameter of a function that failed. No exception leaves a function, and no argument crashes the process except an
 *    address that is neither null nor valid.
 *  - Handles are numbers in a pointer's clothes, never to be dereferenced and never used again: a destroyed handle is
 *    refused.
 *  - Functions may be called from any thread. A rank's calls must come in an order, from one thread at a time.
 *  - The CUDA context that is current in the calling thread stays current.
 *  - Buffers are host memory on the backend cpu, memory of the rank's GPU (or memory that it can address) on cuda.
 */
#ifndef BATON_H
#define BATON_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define BATON_API __attribute__((visibility("default")))
#else
#define BATON_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define BATON_VERSION_MAJOR 0
#define BATON_VERSION_MINOR 1
#define BATON_VERSION_PATCH 0

/* ---- results ------------------------------------------------------------------------------------------------------ */

/* The values are those of the command line's exit codes. */
typedef enum baton_result {
    BATON_SUCCESS = 0,
    BATON_CHECK_FAILED = 1,  /* ranks made different calls, a wait ran past its deadline, the communicator was aborted */
    BATON_INVALID_INPUT = 2, /* an argument, a file or a call is wrong; nothing was started */
    BATON_MISSING_PART = 3,  /* a compiler, a GPU, a driver or memory is absent */
    BATON_INTERNAL = 70      /* a fault of Baton itself */
} baton_result;

/* A few words for a result, in static memory; never null, whatever the value. */
BATON_API const char* baton_error_string(baton_result result);

/* What the last function that failed in this thread had to say, with the remedy where one is known; "" when none has
 * failed. Valid until the next function fails in this thread. */
BATON_API const char* baton_last_error(void);

/* Version of the library as 10000 major + 100 minor + patch. Never fails. */
BATON_API int baton_version(void);

/* ---- types and operators ------------------------------------------------------------------------------------------ */

/* Element types. Values never change. Narrow floats are computed in f32 and rounded when stored. Pairs are
 * {value, int32_t index}, padded to a multiple of the value's size, for maxloc and minloc. */
typedef int baton_type;
enum {
    BATON_I8 = 0, BATON_U8 = 1, BATON_I32 = 2, BATON_U32 = 3, BATON_I64 = 4, BATON_U64 = 5,
    BATON_F16 = 6, BATON_BF16 = 7, BATON_F32 = 8, BATON_F64 = 9, BATON_F8E4M3 = 10, BATON_F8E5M2 = 11,
    BATON_F32_I32 = 12, BATON_F64_I32 = 13, BATON_I32_I32 = 14, BATON_I64_I32 = 15
};

/* Bytes of an element, padding included; 0 for a value that is no type. */
BATON_API size_t baton_type_size(baton_type type);

/* Operators. Values never change. sum, prod, max, min, avg: all types but pairs. Logical and bitwise operators:
 * integers. maxloc, minloc: pairs. */
typedef int baton_op;
enum {
    BATON_SUM = 0, BATON_PROD = 1, BATON_MAX = 2, BATON_MIN = 3, BATON_AVG = 4,
    BATON_LAND = 5, BATON_LOR = 6, BATON_LXOR = 7, BATON_BAND = 8, BATON_BOR = 9, BATON_BXOR = 10,
    BATON_MAXLOC = 11, BATON_MINLOC = 12
};

/* Kinds of collectives, as `baton_plan_info` reports them. */
typedef int baton_kind;
enum {
    BATON_BROADCAST = 0, BATON_SCATTER = 1, BATON_GATHER = 2, BATON_ALL_GATHER = 3, BATON_REDUCE = 4,
    BATON_REDUCE_SCATTER = 5, BATON_ALL_REDUCE = 6, BATON_ALL_TO_ALL = 7, BATON_SEND_RECV = 8, BATON_CUSTOM = 9
};

/* ---- communicators ------------------------------------------------------------------------------------------------ */

typedef struct baton_comm_handle* baton_comm; /* one rank of a communicator */
typedef struct baton_plan_handle* baton_plan; /* a loaded plan */

enum { BATON_BACKEND_CPU = 0, BATON_BACKEND_CUDA = 1 };
enum { BATON_NAN_PROPAGATE = 0, BATON_NAN_IGNORE = 1 };

/* How a communicator is made; equal on all ranks. Begin with BATON_OPTIONS_INIT, which holds the defaults. */
typedef struct baton_options {
    size_t size;        /* sizeof(baton_options) */
    int backend;        /* BATON_BACKEND_CPU: the calling threads, code for the host; BATON_BACKEND_CUDA: GPUs */
    int nan;            /* what max, min, maxloc and minloc do with NaN; IGNORE is the rule of NCCL */
    const int* devices; /* cuda: [ranks] GPU of each rank, any of them several times; null: rank modulo number of GPUs */
    int cpu_threads;    /* cpu: threads of a call of all ranks (a complete group); 0: one per core */
    int slots;          /* least depth of staged connections, 1 to 1024 */
    int64_t slot_bytes; /* least bytes of a slot, 16 to 4 GiB */
    int64_t workspace;  /* most scratch bytes of a rank; calls that need more run in segments */
    int64_t timeout_ns; /* longest single wait, for a peer in a call or for ranks that join; 0: for ever */
} baton_options;

#define BATON_OPTIONS_INIT                                                                            \
    { sizeof(baton_options), BATON_BACKEND_CPU, BATON_NAN_PROPAGATE, NULL, 0, 4, 131072, 1073741824, \
      INT64_C(30000000000) }

/* Makes a communicator of 1 to 4096 ranks and writes the handle of rank r to comms[r]. options null: the defaults. */
BATON_API baton_result baton_comm_init_all(baton_comm* comms, int ranks, const baton_options* options);

/* Names a communicator to be made, within this process. To be passed on as it is. */
typedef struct baton_unique_id {
    char bytes[64];
} baton_unique_id;

BATON_API baton_result baton_get_unique_id(baton_unique_id* id);

/* Joins as `rank`; returns when all ranks have joined, each from a thread of its own, with the same `ranks`, id and
 * options. CHECK_FAILED on every rank when one does not come before the deadline or comes with other options;
 * INVALID_INPUT for an id of another process: this version has no transport between processes. */
BATON_API baton_result baton_comm_init_rank(baton_comm* comm, int ranks, baton_unique_id id, int rank,
                                            const baton_options* options);

/* The caller's own all-gather, over whatever connects the ranks (a store, MPI, a barrier of threads): every rank gives
 * `bytes` bytes and receives those of all ranks, in the order of ranks. Returns 0 on success. */
typedef int (*baton_all_gather_bytes)(const void* mine, void* all, size_t bytes, void* context);

/* As `baton_comm_init_rank`, with the id exchanged by one call of `gather`. Every rank learns from it when some rank is
 * in another process, and all are refused. */
BATON_API baton_result baton_comm_init_gather(baton_comm* comm, int ranks, int rank, baton_all_gather_bytes gather,
                                              void* context, const baton_options* options);

/* Gives a rank's handle back; null is allowed. What was started still ends. The communicator goes with its last handle. */
BATON_API baton_result baton_comm_destroy(baton_comm comm);

/* Number of ranks, this rank, and its GPU (-1 on the backend cpu). */
BATON_API baton_result baton_comm_count(baton_comm comm, int* ranks);
BATON_API baton_result baton_comm_rank(baton_comm comm, int* rank);
BATON_API baton_result baton_comm_device(baton_comm comm, int* device);

/* Until the rank's calls on `stream` have ended. CHECK_FAILED, with who waited for whom, when one of them failed. */
BATON_API baton_result baton_comm_wait(baton_comm comm, void* stream);

/* CHECK_FAILED while the communicator is in failure (see `baton_comm_recover`), else SUCCESS. Does not wait for calls. */
BATON_API baton_result baton_comm_async_error(baton_comm comm);

/* Makes all waits of all ranks give up: calls that run and calls that come later fail with `reason` (null: "aborted"). */
BATON_API baton_result baton_comm_abort(baton_comm comm, const char* reason);

/* After a failure: waits until no rank is in a call, then builds connections and counters anew. Once for all ranks, from
 * one thread, with any rank's handle. Plans stay. */
BATON_API baton_result baton_comm_recover(baton_comm comm);

/* ---- plans -------------------------------------------------------------------------------------------------------- */

/* Reads a folder that `baton codegen` wrote, or its manifest. Its host object or cubin is loaded when it is first
 * needed; where none fits the machine, the source is compiled if a compiler is there. */
BATON_API baton_result baton_plan_load(const char* path, baton_plan* plan);

/* Gives the handle back; null is allowed. Communicators keep what they were given. */
BATON_API baton_result baton_plan_destroy(baton_plan plan);

typedef struct baton_plan_description {
    baton_kind kind;
    int ranks;   /* of the communicator */
    int root;    /* kinds without a root: 0 */
    int peer;    /* send_recv: the receiver; else -1 */
    int entries; /* (type, operator) combinations that were generated */
} baton_plan_description;

BATON_API baton_result baton_plan_info(baton_plan plan, baton_plan_description* description);

/* Elements of a rank's send and receive buffer for a call with `count`; 0 where the rank has no such buffer. Either
 * pointer may be null. */
BATON_API baton_result baton_plan_buffers(baton_plan plan, int rank, int64_t count, int64_t* send, int64_t* receive);

/* Scratch bytes of a rank for a call that runs in one segment. `op` is ignored by copying kinds. */
BATON_API baton_result baton_plan_workspace(baton_plan plan, int rank, int64_t count, baton_type type, baton_op op,
                                            int64_t* bytes);

/* Prepares a communicator (all its ranks) for launches of this plan with this type and operator and at most `count`:
 * connections, loaded code and scratch. Launches then allocate nothing. Optional, may be repeated; not while a rank is in
 * a call. */
BATON_API baton_result baton_plan_bind(baton_plan plan, baton_comm comm, int64_t count, baton_type type, baton_op op);

/* One rank's part of the plan's collective; see "collective calls" for buffers, counts and streams. Root and peer are
 * the plan's. */
BATON_API baton_result baton_plan_launch(baton_plan plan, const void* sendbuff, void* recvbuff, int64_t count,
                                         baton_type type, baton_op op, baton_comm comm, void* stream);

/* Lets the communicator (all its ranks) choose this plan for calls of `from` to below `below` bytes: of the larger of a
 * rank's send and receive buffer, the size of nccl-tests. The first plan that serves a call in the order of adding is
 * chosen; a plan added as fallback only when no other serves, whatever the size. Once for all ranks, between calls. */
BATON_API baton_result baton_comm_add_plan(baton_comm comm, baton_plan plan, int64_t from, int64_t below, int fallback);

/* ---- collective calls --------------------------------------------------------------------------------------------- */

/* Every rank makes the same calls in the same order. A call that differs from another rank's in kind, count, type,
 * operator, root or plan fails on every rank with CHECK_FAILED, now or in `baton_comm_wait`.
 *
 * count: elements of one shard for scatter, gather, all_gather, reduce_scatter and all_to_all (as in NCCL: the smaller
 * buffer), of the whole buffer for the others. Any count from 0 on. Buffers are aligned to their type; a rank's buffers
 * are either apart or in place: recvbuff == sendbuff for all_reduce, broadcast, reduce and all_to_all; sendbuff ==
 * recvbuff + rank * count elements for all_gather and gather at the root; recvbuff == sendbuff + rank * count for
 * reduce_scatter and scatter at the root. A buffer that the rank does not have (sendbuff of broadcast beside the root)
 * is ignored and may be null.
 *
 * stream: backend cuda: a CUstream (cudaStream_t) of the rank's GPU, or null for a stream of Baton's own; the call
 * returns when it is enqueued, and buffers must live until it has ended. Ranks that share a GPU are launched together,
 * when the last of them has called, and must name the same stream. Backend cpu: null; the call returns when the rank's
 * part has ended. Outside a group, ranks of the backend cpu therefore call from threads of their own.
 *
 * Errors: INVALID_INPUT before anything starts (also when no plan serves: the text says for each plan why not);
 * MISSING_PART when the code of the plan does not run here; CHECK_FAILED as above. */

BATON_API baton_result baton_all_reduce(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                                        baton_op op, baton_comm comm, void* stream);
BATON_API baton_result baton_broadcast(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                                       baton_comm comm, void* stream);
BATON_API baton_result baton_reduce(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, baton_op op,
                                    int root, baton_comm comm, void* stream);
BATON_API baton_result baton_all_gather(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                                        baton_comm comm, void* stream);
BATON_API baton_result baton_reduce_scatter(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                                            baton_op op, baton_comm comm, void* stream);
BATON_API baton_result baton_all_to_all(const void* sendbuff, void* recvbuff, int64_t count, baton_type type,
                                        baton_comm comm, void* stream);
BATON_API baton_result baton_gather(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                                    baton_comm comm, void* stream);
BATON_API baton_result baton_scatter(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int root,
                                     baton_comm comm, void* stream);
/* From rank `from` to rank `to`; every rank of the communicator calls. */
BATON_API baton_result baton_send_recv(const void* sendbuff, void* recvbuff, int64_t count, baton_type type, int from,
                                       int to, baton_comm comm, void* stream);

/* Calls between start and end are collected and start together at the end of the outermost group of this thread, so one
 * thread can make the calls of several ranks. Arguments are checked when the call is made; if one fails, none of the
 * group is started and the end returns that failure. Backend cpu: the end returns when all calls have ended. */
BATON_API baton_result baton_group_start(void);
BATON_API baton_result baton_group_end(void);

/* ---- memory ------------------------------------------------------------------------------------------------------- */

/* Zeroed memory for a rank's buffers, aligned to 128 bytes: host memory (cpu) or memory of its GPU (cuda). For callers
 * without an allocator of their own. INVALID_INPUT when there is not that much. `baton_mem_free` takes what this rank
 * was given, or null. What is not freed goes with the communicator. */
BATON_API baton_result baton_mem_alloc(baton_comm comm, int64_t bytes, void** memory);
BATON_API baton_result baton_mem_free(baton_comm comm, void* memory);

/* Copies between host memory and a rank's memory, complete on return. Not while a call uses the memory. */
BATON_API baton_result baton_mem_write(baton_comm comm, void* to, const void* from, int64_t bytes);
BATON_API baton_result baton_mem_read(baton_comm comm, void* to, const void* from, int64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
