/* Every allocation of core/base fails once: the answer is a status, and what was there stays. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/cpu_affinity.h"
#include "core/base/json.h"
#include "core/base/thread_pool.h"
#include "core/base/yaml.h"
#include "tests/support/failing_malloc.h"

Test(base_faults, text) {
    int n = 0;
    bool failed;
    do {
        struct text text;
        text_init(&text, 1000);
        bool kept = true;
        size_t appended = 0;
        failing_malloc_arm(++n);
        while (kept && appended < 50) {
            kept = text_append_string(&text, "0123456789");
            appended += kept;
        }
        failed = failing_malloc_disarm();
        cr_assert_eq(kept, !failed);
        cr_assert_eq(text.length, 10 * appended);
        cr_assert(text.length == 0 || strlen(text.bytes) == text.length);
        text_deinit(&text);
    } while (failed);
    cr_assert_gt(n, 3);
}

Test(base_faults, json_parse_is_out_of_memory) {
    const char *source = "{\"a\":[1,2.5,\"text\",{\"b\":null}],\"c\":\"\\u00e9\"}";
    json_set_alloc_funcs(failing_malloc_allocate, free);
    int n = 0;
    bool failed;
    do {
        json_t *value;
        struct error error = {0};
        failing_malloc_arm(++n);
        enum status status = json_parse(source, strlen(source), &value, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status == STATUS_OK, !failed, "allocation %d", n);
        if (n == 1)
            cr_assert_eq(status, STATUS_NO_MEMORY);
        cr_assert_eq(value == NULL, failed);
        json_decref(value);
    } while (failed);
    cr_assert_gt(n, 10);
    json_set_alloc_funcs(malloc, free);
}

Test(base_faults, yaml_parse_is_out_of_memory) {
    const char *source = "a: [1, 2, 3, 4, 5, 6, 7, 8, 9]\nb: {c: d}\n";
    int n = 0;
    bool failed;
    do {
        struct arena arena;
        arena_init(&arena, 64, 1 << 20);
        struct yaml_node *root;
        struct error error = {0};
        failing_malloc_arm(++n);
        enum status status = yaml_parse(source, strlen(source), &arena, &root, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d", n);
        cr_assert_eq(root == NULL, failed);
        arena_deinit(&arena);
    } while (failed);
    cr_assert_gt(n, 10);
}

Test(base_faults, thread_pool_create_is_out_of_memory) {
    int n = 0;
    bool failed;
    do {
        struct thread_pool *pool;
        struct error error = {0};
        failing_malloc_arm(++n);
        enum status status = thread_pool_create(2, false, &pool, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK);
        cr_assert_eq(pool == NULL, failed);
        thread_pool_destroy(pool);
    } while (failed);
    cr_assert_eq(n, 6);
}

Test(base_faults, counting_cores_falls_back) {
    const int cpus[2] = {0, 1};
    failing_malloc_arm(1);
    int cores = cpu_affinity_cores("/nonexistent", cpus, 2);
    cr_assert(failing_malloc_disarm());
    cr_assert_eq(cores, 2);
}

static void touch(void *context, int task_index, int worker_index) {
    (void)context, (void)task_index, (void)worker_index;
}

Test(base_faults, a_section_allocates_nothing) {
    struct thread_pool *pool;
    cr_assert_eq(thread_pool_create(3, false, &pool, NULL), STATUS_OK);
    thread_pool_run(pool, 10, touch, NULL);
    failing_malloc_arm(1);
    for (int i = 0; i < 100; i++)
        thread_pool_run(pool, 10, touch, NULL);
    cr_assert_not(failing_malloc_disarm(), "a section allocated");
    thread_pool_destroy(pool);
}
