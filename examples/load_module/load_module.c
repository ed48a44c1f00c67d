/* Loads a folder that `baton codegen` wrote and calls its collective on buffers of this program, in C:
 *
 *     baton codegen ring_all_reduce.json --ranks 4 --host -o module
 *     load_module_c module            on this machine's processors
 *     load_module_c module cuda       on its GPUs (all ranks share them; generate with --arch sm_90 or the
 * like)
 *
 * Serves every kind of collective but `custom`, with f32 (and sum, where it reduces). Exit code 0: the result
 * is right.
 */
#include <baton/runtime/baton.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 64, COUNT = 10007 };

/* Element i of rank `rank`'s send buffer: small integers, so that sums are exact. */
static float value(int rank, int64_t i) { return (float)((rank * 31 + i) % 97); }

/* Element i of rank `rank`'s receive buffer after the call. */
static float expected(const baton_plan_description* plan, int rank, int64_t i) {
    const int64_t shard = i / COUNT, at = i % COUNT;
    float sum = 0;
    int r;
    switch (plan->kind) {
        case BATON_BROADCAST:
        case BATON_SEND_RECV: return value(plan->root, i);
        case BATON_SCATTER: return value(plan->root, rank * (int64_t)COUNT + i);
        case BATON_GATHER:
        case BATON_ALL_GATHER: return value((int)shard, at);
        case BATON_ALL_TO_ALL: return value((int)shard, rank * (int64_t)COUNT + at);
        default: break;
    }
    if (plan->kind == BATON_REDUCE_SCATTER) i += rank * (int64_t)COUNT;
    for (r = 0; r < plan->ranks; ++r) sum += value(r, i);
    return sum;
}

static void must(baton_result result, const char* doing) {
    if (result == BATON_SUCCESS) return;
    fprintf(stderr, "%s: %s\n", doing, baton_last_error());
    exit((int)result);
}

/* Number of wrong elements in a rank's receive buffer. */
static int64_t wrong_elements(const baton_plan_description* plan, baton_comm comm, int rank,
                              const void* memory, int64_t elements) {
    float* host = (float*)malloc((size_t)elements * sizeof(float) + 1);
    int64_t i, wrong = 0;
    if (host == NULL) return elements;
    must(baton_mem_read(comm, host, memory, elements * (int64_t)sizeof(float)), "reading the result");
    for (i = 0; i < elements; ++i) wrong += host[i] != expected(plan, rank, i);
    free(host);
    return wrong;
}

/* A rank's send buffer, filled. */
static void* filled(baton_comm comm, int rank, int64_t elements) {
    const int64_t bytes = elements * (int64_t)sizeof(float);
    float* host = (float*)malloc((size_t)bytes + 1);
    void* memory = NULL;
    int64_t i;
    if (host == NULL) exit(BATON_MISSING_PART);
    for (i = 0; i < elements; ++i) host[i] = value(rank, i);
    must(baton_mem_alloc(comm, bytes, &memory), "allocating a send buffer");
    must(baton_mem_write(comm, memory, host, bytes), "writing a send buffer");
    free(host);
    return memory;
}

int main(int argc, char** argv) {
    baton_options options = BATON_OPTIONS_INIT;
    baton_plan_description about;
    baton_plan plan;
    baton_comm comms[MAX_RANKS];
    void *send[MAX_RANKS], *receive[MAX_RANKS];
    int64_t send_elements, receive_elements, wrong = 0, checked = 0;
    int r;
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "cuda") != 0)) {
        fprintf(stderr, "usage: %s FOLDER [cuda]\n", argv[0]);
        return BATON_INVALID_INPUT;
    }
    if (argc == 3) options.backend = BATON_BACKEND_CUDA;
    must(baton_plan_load(argv[1], &plan), "loading the module");
    must(baton_plan_info(plan, &about), "asking for the plan");
    if (about.ranks > MAX_RANKS || about.kind == BATON_CUSTOM) {
        fprintf(stderr, "this example serves up to %d ranks and the standard kinds\n", MAX_RANKS);
        return BATON_INVALID_INPUT;
    }
    must(baton_comm_init_all(comms, about.ranks, &options), "making a communicator");
    must(baton_plan_bind(plan, comms[0], COUNT, BATON_F32, BATON_SUM), "binding the plan");

    must(baton_group_start(), "starting a group");
    for (r = 0; r < about.ranks; ++r) {
        must(baton_plan_buffers(plan, r, COUNT, &send_elements, &receive_elements), "asking for buffers");
        send[r] = filled(comms[r], r, send_elements);
        must(baton_mem_alloc(comms[r], receive_elements * (int64_t)sizeof(float), &receive[r]),
             "allocating a receive buffer");
        must(baton_plan_launch(plan, send[r], receive[r], COUNT, BATON_F32, BATON_SUM, comms[r], NULL),
             "a call");
    }
    must(baton_group_end(), "the calls of all ranks");
    for (r = 0; r < about.ranks; ++r) must(baton_comm_wait(comms[r], NULL), "waiting for a rank");

    for (r = 0; r < about.ranks; ++r) {
        must(baton_plan_buffers(plan, r, COUNT, NULL, &receive_elements), "asking for buffers");
        wrong += wrong_elements(&about, comms[r], r, receive[r], receive_elements);
        checked += receive_elements;
    }
    for (r = 0; r < about.ranks; ++r) must(baton_comm_destroy(comms[r]), "destroying a rank");
    must(baton_plan_destroy(plan), "destroying the plan");
    printf("%s: %lld elements on %d ranks, %lld wrong\n", wrong == 0 && checked > 0 ? "right" : "wrong",
           (long long)checked, about.ranks, (long long)wrong);
    return wrong == 0 && checked > 0 ? 0 : 1;
}
