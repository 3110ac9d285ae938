/* The checks of the thread pool, as plain functions: Criterion does not start under
 * ThreadSanitizer, so test_thread_pool.c runs them as tests and tests/tsan/thread_pool_main.c as a
 * program. */
#ifndef TESTS_SUPPORT_THREAD_POOL_CASES_H
#define TESTS_SUPPORT_THREAD_POOL_CASES_H

#include <stdbool.h>

/* Every task of every section runs once, with the section's own context; false when not. */
bool thread_pool_cases_each_task_once(int threads, int sections, int tasks_max);

/* As above while the caller idles between sections, so that workers fall asleep and are woken. */
bool thread_pool_cases_sleep_and_wake(int threads, int sections);

/* As above with workers that take long, so that the caller falls asleep and is woken. */
bool thread_pool_cases_caller_is_woken(int threads, int sections);

/* Every thread that sleeps has called what it was told to call before; false when not. */
bool thread_pool_cases_called_before_sleep(int threads);

/* Plain (non-atomic) writes of a section are seen by the next one, whoever runs it. */
bool thread_pool_cases_writes_are_seen(int threads, int sections);

/* Pools are created and destroyed at once, before and after a section. */
bool thread_pool_cases_create_destroy(int threads, int rounds);

#endif
