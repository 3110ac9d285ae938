/* The thread pool's checks as a plain program, for ThreadSanitizer. The sections are fewer than in
 * tests/core/base/test_thread_pool.c: the sanitizer looks at every access, not at luck. */
#include <stdio.h>

#include "tests/support/thread_pool_cases.h"

static int report(const char *name, int threads, bool good) {
    if (!good)
        fprintf(stderr, "%s fails with %d threads\n", name, threads);
    return good ? 0 : 1;
}

int main(void) {
    int failures = 0;
    for (int threads = 1; threads <= 8; threads++) {
        failures +=
            report("each_task_once", threads, thread_pool_cases_each_task_once(threads, 500, 50));
        failures +=
            report("sleep_and_wake", threads, thread_pool_cases_sleep_and_wake(threads, 100));
        failures +=
            report("caller_is_woken", threads, thread_pool_cases_caller_is_woken(threads, 50));
        if (threads > 1)
            failures += report("called_before_sleep", threads,
                               thread_pool_cases_called_before_sleep(threads));
        failures +=
            report("writes_are_seen", threads, thread_pool_cases_writes_are_seen(threads, 300));
        failures +=
            report("create_destroy", threads, thread_pool_cases_create_destroy(threads, 20));
    }
    return failures == 0 ? 0 : 1;
}
