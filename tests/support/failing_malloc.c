/* A countdown in front of the C library's (or the sanitizer's) allocation functions. */
#include "tests/support/failing_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **result, size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **result, size_t alignment, size_t bytes);

static atomic_int left; /* allocations until the one that fails; at most 0: none */

void failing_malloc_arm(int n) {
    atomic_store(&left, n);
}

bool failing_malloc_disarm(void) {
    return atomic_exchange(&left, 0) < 0;
}

/* The one that fails turns the countdown negative, which says that it was reached. */
static bool fails_now(void) {
    int now = atomic_load(&left);
    while (now > 0) {
        if (atomic_compare_exchange_weak(&left, &now, now == 1 ? -1 : now - 1)) {
            errno = now == 1 ? ENOMEM : errno;
            return now == 1;
        }
    }
    return false;
}

void *__wrap_malloc(size_t bytes) {
    return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t bytes) {
    return fails_now() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return fails_now() ? NULL : __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **result, size_t alignment, size_t bytes) {
    return fails_now() ? ENOMEM : __real_posix_memalign(result, alignment, bytes);
}

void *failing_malloc_allocate(size_t bytes) {
    return malloc(bytes);
}
