/* Ceilings are found under their own key only, and a damaged file is none. */
#include "core/profile/machine_cache.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(machine_cache, what_was_stored_is_found_under_its_key) {
    char folder[] = "/tmp/sheaf-ceilings-XXXXXX", command[128];
    const struct ceilings_step stored = {2, 1e12, 4.5e10, 2e11};
    struct ceilings_step found = {0};
    cr_assert_not_null(mkdtemp(folder));
    cr_expect_not(machine_cache_load(folder, "a CPU", &found));
    machine_cache_store(folder, "a CPU", &stored);
    cr_assert(machine_cache_load(folder, "a CPU", &found));
    cr_expect_eq(found.threads, 2);
    cr_expect_eq(found.flops, stored.flops);
    cr_expect_eq(found.memory, stored.memory);
    cr_expect_not(machine_cache_load(folder, "another CPU", &found));
    snprintf(command, sizeof command, "for f in %s/*; do echo '{' > $f; done", folder);
    cr_assert_eq(system(command), 0);
    cr_expect_not(machine_cache_load(folder, "a CPU", &found));
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    machine_cache_store("/nowhere/at/all", "a CPU", &stored);
}

Test(machine_cache, the_key_tells_threads_and_builds_apart) {
    struct cpu_features features = {.model_name = "a CPU"};
    struct kernels kernels = {.numerics = "cpu-scalar"};
    char one[MACHINE_CACHE_KEY_BYTES], two[MACHINE_CACHE_KEY_BYTES], old[MACHINE_CACHE_KEY_BYTES];
    machine_cache_key("1", &features, &kernels, 1, one);
    machine_cache_key("1", &features, &kernels, 2, two);
    machine_cache_key("0", &features, &kernels, 1, old);
    cr_expect_str_neq(one, two);
    cr_expect_str_neq(one, old);
}
