/* Calls through baton.h from a translation unit in C99. Each returns 0 when all is well, else a line number.
 */
#ifndef BATON_TESTS_C_API_C99_H
#define BATON_TESTS_C_API_C99_H

#ifdef __cplusplus
extern "C" {
#endif

/* All-reduces f32 in one thread, all ranks in a group, with a plan that was added to the communicator. */
int c99_all_reduce(const char* folder, int ranks, long count);
/* Null pointers, wrong numbers and stale handles in every function. */
int c99_misuse(const char* folder);

#ifdef __cplusplus
}
#endif

#endif
