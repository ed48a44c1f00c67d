#include "c_api_c99.h"

#include <baton/codegen/prelude/abi.h>
#include <baton/runtime/baton.h>

#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                  \
    do {                                   \
        if (!(condition)) return __LINE__; \
    } while (0)
#define REFUSED(call)                                        \
    do {                                                     \
        if ((call) != BATON_INVALID_INPUT) return __LINE__;  \
        if (strlen(baton_last_error()) < 5) return __LINE__; \
    } while (0)

int c99_all_reduce(const char* folder, int ranks, long count) {
    baton_options options = BATON_OPTIONS_INIT;
    baton_comm* comms = (baton_comm*)calloc((size_t)ranks, sizeof(baton_comm));
    float** send = (float**)calloc((size_t)ranks, sizeof(float*));
    float** receive = (float**)calloc((size_t)ranks, sizeof(float*));
    baton_plan plan = NULL;
    int64_t elements = 0;
    int r;
    long i;
    EXPECT(comms != NULL && send != NULL && receive != NULL);
    options.timeout_ns = INT64_C(10000000000);
    EXPECT(baton_comm_init_all(comms, ranks, &options) == BATON_SUCCESS);
    EXPECT(baton_plan_load(folder, &plan) == BATON_SUCCESS);
    EXPECT(baton_plan_buffers(plan, 0, count, &elements, NULL) == BATON_SUCCESS);
    EXPECT(elements == count);
    EXPECT(baton_comm_add_plan(comms[0], plan, 0, INT64_MAX, 0) == BATON_SUCCESS);
    EXPECT(baton_plan_destroy(plan) == BATON_SUCCESS);
    EXPECT(baton_group_start() == BATON_SUCCESS);
    for (r = 0; r < ranks; ++r) {
        void* memory = NULL;
        send[r] = (float*)malloc((size_t)count * sizeof(float) + 1);
        EXPECT(send[r] != NULL);
        for (i = 0; i < count; ++i) send[r][i] = (float)(r * 100 + i % 50);
        EXPECT(baton_mem_alloc(comms[r], count * (int64_t)sizeof(float), &memory) == BATON_SUCCESS);
        receive[r] = (float*)memory;
        EXPECT(baton_all_reduce(send[r], receive[r], count, BATON_F32, BATON_SUM, comms[r], NULL) ==
               BATON_SUCCESS);
    }
    EXPECT(baton_group_end() == BATON_SUCCESS);
    for (r = 0; r < ranks; ++r) {
        for (i = 0; i < count; ++i)
            EXPECT(receive[r][i] == (float)(100 * ranks * (ranks - 1) / 2 + ranks * (i % 50)));
        free(send[r]);
        EXPECT(baton_mem_free(comms[r], receive[r]) == BATON_SUCCESS);
        REFUSED(baton_mem_free(comms[r], receive[r]));
    }
    for (r = 0; r < ranks; ++r) EXPECT(baton_comm_destroy(comms[r]) == BATON_SUCCESS);
    free(comms);
    free(send);
    free(receive);
    return 0;
}

static int refuse_communicators(void) {
    baton_options options = BATON_OPTIONS_INIT;
    baton_comm comms[2] = {NULL, NULL};
    baton_unique_id id;
    int number = 7;
    memset(&id, 0, sizeof id);
    REFUSED(baton_comm_init_all(NULL, 2, NULL));
    REFUSED(baton_comm_init_all(comms, 0, NULL));
    REFUSED(baton_comm_init_all(comms, -1, NULL));
    REFUSED(baton_comm_init_all(comms, 1 << 30, NULL));
    options.backend = 9;
    REFUSED(baton_comm_init_all(comms, 2, &options));
    options.backend = BATON_BACKEND_CPU;
    options.nan = 2;
    REFUSED(baton_comm_init_all(comms, 2, &options));
    options.nan = BATON_NAN_IGNORE;
    options.slots = 0;
    REFUSED(baton_comm_init_all(comms, 2, &options));
    options.slots = 4;
    options.timeout_ns = -1;
    REFUSED(baton_comm_init_all(comms, 2, &options));
    REFUSED(baton_comm_init_rank(comms, 2, id, 0, &options));
    options.size = 3;
    REFUSED(baton_comm_init_all(comms, 2, &options));
    REFUSED(baton_get_unique_id(NULL));
    REFUSED(baton_comm_init_rank(comms, 2, id, 0, NULL));
    EXPECT(baton_get_unique_id(&id) == BATON_SUCCESS);
    REFUSED(baton_comm_init_rank(comms, 2, id, 2, NULL));
    REFUSED(baton_comm_init_rank(comms, 2, id, -1, NULL));
    REFUSED(baton_comm_init_rank(NULL, 2, id, 0, NULL));
    REFUSED(baton_comm_init_gather(comms, 2, 0, NULL, NULL, NULL));
    EXPECT(comms[0] == NULL && comms[1] == NULL);
    EXPECT(baton_comm_destroy(NULL) == BATON_SUCCESS);
    REFUSED(baton_comm_destroy((baton_comm)(uintptr_t)123456789));
    REFUSED(baton_comm_count(NULL, &number));
    REFUSED(baton_comm_rank(NULL, &number));
    REFUSED(baton_comm_device(NULL, &number));
    REFUSED(baton_comm_wait(NULL, NULL));
    REFUSED(baton_comm_async_error(NULL));
    REFUSED(baton_comm_abort(NULL, "x"));
    REFUSED(baton_comm_recover(NULL));
    EXPECT(number == 7);
    return 0;
}

static int refuse_plans(const char* folder, baton_comm comm) {
    baton_plan plan = NULL;
    baton_plan_description description;
    int64_t bytes = -5;
    REFUSED(baton_plan_load(NULL, &plan));
    REFUSED(baton_plan_load(folder, NULL));
    REFUSED(baton_plan_load("/no/such/folder", &plan));
    EXPECT(plan == NULL);
    EXPECT(baton_plan_load(folder, &plan) == BATON_SUCCESS);
    REFUSED(baton_plan_info(plan, NULL));
    REFUSED(baton_plan_info(NULL, &description));
    REFUSED(baton_plan_buffers(plan, 99, 1, &bytes, NULL));
    REFUSED(baton_plan_buffers(plan, 0, -1, &bytes, NULL));
    REFUSED(baton_plan_buffers(plan, 0, INT64_MAX, &bytes, NULL));
    REFUSED(baton_plan_workspace(plan, 0, 10, 99, BATON_SUM, &bytes));
    REFUSED(baton_plan_workspace(plan, 0, 10, BATON_F32, -1, &bytes));
    REFUSED(baton_plan_workspace(plan, 0, 10, BATON_F64, BATON_SUM, &bytes));
    REFUSED(baton_plan_workspace(plan, -1, 10, BATON_F32, BATON_SUM, &bytes));
    REFUSED(baton_plan_workspace(plan, 0, INT64_MAX, BATON_F32, BATON_SUM, &bytes));
    REFUSED(baton_plan_workspace(plan, 0, 10, BATON_F32, BATON_SUM, NULL));
    REFUSED(baton_plan_bind(plan, NULL, 10, BATON_F32, BATON_SUM));
    REFUSED(baton_plan_bind(NULL, comm, 10, BATON_F32, BATON_SUM));
    REFUSED(baton_plan_bind(plan, comm, -10, BATON_F32, BATON_SUM));
    REFUSED(baton_plan_launch(plan, NULL, NULL, 10, BATON_F32, BATON_SUM, comm, NULL));
    REFUSED(baton_plan_launch(NULL, NULL, NULL, 0, BATON_F32, BATON_SUM, comm, NULL));
    REFUSED(baton_plan_launch(plan, NULL, NULL, 0, BATON_F32, BATON_SUM, NULL, NULL));
    REFUSED(baton_comm_add_plan(comm, plan, 10, 5, 0));
    REFUSED(baton_comm_add_plan(comm, plan, -1, 5, 0));
    REFUSED(baton_comm_add_plan(comm, NULL, 0, 5, 0));
    REFUSED(baton_comm_add_plan((baton_comm)(void*)plan, plan, 0, 5, 0));
    EXPECT(bytes == -5);
    EXPECT(baton_plan_destroy(plan) == BATON_SUCCESS);
    REFUSED(baton_plan_destroy(plan));
    EXPECT(baton_plan_destroy(NULL) == BATON_SUCCESS);
    return 0;
}

static int refuse_calls(baton_comm comm) {
    float one[4] = {1, 2, 3, 4}, two[4];
    void* memory = NULL;
    REFUSED(baton_all_reduce(one, two, 4, BATON_F32, BATON_SUM, NULL, NULL));
    REFUSED(baton_all_reduce(one, two, 4, BATON_F32, BATON_SUM, comm, NULL)); /* no plan yet */
    REFUSED(baton_all_reduce(one, two, -4, BATON_F32, BATON_SUM, comm, NULL));
    REFUSED(baton_all_reduce(one, two, 4, 16, BATON_SUM, comm, NULL));
    REFUSED(baton_all_reduce(one, two, 4, -1, BATON_SUM, comm, NULL));
    REFUSED(baton_all_reduce(one, two, 4, BATON_F32, 13, comm, NULL));
    REFUSED(baton_all_reduce(one, two, 4, BATON_F32, BATON_MAXLOC, comm, NULL));
    REFUSED(baton_broadcast(one, two, 4, BATON_F32, 77, comm, NULL));
    REFUSED(baton_reduce(one, two, 4, BATON_F32, BATON_SUM, -1, comm, NULL));
    REFUSED(baton_gather(one, two, 4, BATON_F32, 77, comm, NULL));
    REFUSED(baton_scatter(one, two, 4, BATON_F32, 77, comm, NULL));
    REFUSED(baton_send_recv(one, two, 4, BATON_F32, 0, -1, comm, NULL));
    REFUSED(baton_all_gather(one, two, 4, 500, comm, NULL));
    REFUSED(baton_reduce_scatter(one, two, 4, BATON_F32, BATON_BAND, comm, NULL));
    REFUSED(baton_all_to_all(one, two, INT64_MAX, BATON_F32, comm, NULL));
    REFUSED(baton_group_end());
    REFUSED(baton_mem_alloc(comm, -1, &memory));
    REFUSED(baton_mem_alloc(comm, 8, NULL));
    REFUSED(baton_mem_alloc(NULL, 8, &memory));
    REFUSED(baton_mem_free(comm, one));
    REFUSED(baton_mem_write(comm, NULL, one, 4));
    REFUSED(baton_mem_read(comm, two, NULL, 4));
    REFUSED(baton_mem_read(comm, two, one, -4));
    EXPECT(memory == NULL);
    return 0;
}

int c99_misuse(const char* folder) {
    baton_comm comms[2] = {NULL, NULL};
    int line = refuse_communicators();
    if (line != 0) return line;
    EXPECT(baton_comm_init_all(comms, 2, NULL) == BATON_SUCCESS);
    if ((line = refuse_plans(folder, comms[0])) != 0) return line;
    if ((line = refuse_calls(comms[1])) != 0) return line;
    EXPECT(baton_comm_destroy(comms[0]) == BATON_SUCCESS);
    REFUSED(baton_comm_destroy(comms[0]));
    REFUSED(baton_comm_wait(comms[0], NULL));
    EXPECT(baton_comm_destroy(comms[1]) == BATON_SUCCESS);
    EXPECT(strcmp(baton_error_string(BATON_SUCCESS), "success") == 0);
    EXPECT(strlen(baton_error_string((baton_result)12345)) > 0);
    EXPECT(baton_type_size(BATON_F64_I32) == 16 && baton_type_size(99) == 0 && baton_type_size(-1) == 0);
    EXPECT(baton_version() == 100 && BATON_ABI_VERSION == 1);
    return 0;
}
