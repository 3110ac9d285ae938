/* Detection is consistent with itself and with what the kernel says; masks clear exactly what is
 * wider. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cpu_features.h"

static const struct cpu_features everything = {
    .avx2 = true,
    .avx_vnni = true,
    .avx512 = true,
    .avx512_vnni = true,
    .avx512_bf16 = true,
    .avx512_bf16_fast = true,
    .amx_bf16 = true,
    .amx_int8 = true,
};

Test(cpu_features, masks_clear_what_is_wider) {
    struct cpu_features features = everything;
    cpu_features_mask(&features, ISA_AMX);
    cr_assert(features.amx_bf16 && features.amx_int8 && features.avx512_bf16_fast);
    cr_assert_eq(cpu_features_best(&features), ISA_AMX);
    cpu_features_mask(&features, ISA_AVX512);
    cr_assert_not(features.amx_bf16 || features.amx_int8);
    cr_assert(features.avx512 && features.avx512_vnni && features.avx512_bf16);
    cr_assert_eq(cpu_features_best(&features), ISA_AVX512);
    cpu_features_mask(&features, ISA_AVX2);
    cr_assert_not(features.avx512 || features.avx512_vnni || features.avx512_bf16 ||
                  features.avx512_bf16_fast);
    cr_assert(features.avx2 && features.avx_vnni);
    cr_assert_eq(cpu_features_best(&features), ISA_AVX2);
    cpu_features_mask(&features, ISA_SCALAR);
    cr_assert_not(features.avx2 || features.avx_vnni);
    cr_assert_eq(cpu_features_best(&features), ISA_SCALAR);
}

Test(cpu_features, a_wider_mask_brings_nothing_back) {
    struct cpu_features features = everything;
    cpu_features_mask(&features, ISA_SCALAR);
    cpu_features_mask(&features, ISA_AMX);
    cr_assert_eq(cpu_features_best(&features), ISA_SCALAR);
}

Test(cpu_features, a_feature_includes_what_it_rests_on) {
    struct cpu_features features = cpu_features_detect();
    cr_assert(!features.avx512 || features.avx2);
    cr_assert(!features.avx512_vnni || features.avx512);
    cr_assert(!features.avx512_bf16_fast || features.avx512_bf16);
    cr_assert(!features.amx_bf16 || (features.avx512 && features.avx512_bf16));
    cr_assert_gt(strlen(features.model_name), 0);
}

#if defined(__x86_64__)
/* The flags line of /proc/cpuinfo holds what the CPU has and the kernel supports. */
static bool kernel_lists(const char *flag) {
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[16384];
    char wanted[64];
    bool found = false;
    snprintf(wanted, sizeof wanted, " %s ", flag);
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) != 0)
            continue;
        line[strcspn(line, "\n")] = ' ';
        found = strstr(line, wanted) != NULL;
    }
    if (file)
        fclose(file);
    return found;
}

Test(cpu_features, agrees_with_the_kernel) {
    if (!kernel_lists("fpu"))
        cr_skip("/proc/cpuinfo is not readable");
    struct cpu_features features = cpu_features_detect();
    cr_assert_eq(features.avx2,
                 kernel_lists("avx2") && kernel_lists("fma") && kernel_lists("f16c"));
    cr_assert_eq(features.avx_vnni, features.avx2 && kernel_lists("avx_vnni"));
    cr_assert_eq(features.avx512, kernel_lists("avx512f") && kernel_lists("avx512bw") &&
                                      kernel_lists("avx512dq") && kernel_lists("avx512vl"));
    cr_assert_eq(features.avx512_vnni, features.avx512 && kernel_lists("avx512_vnni"));
    cr_assert_eq(features.avx512_bf16, features.avx512 && kernel_lists("avx512_bf16"));
    cr_assert(!features.amx_bf16 || kernel_lists("amx_bf16"));
}
#endif

Test(cpu_features, names_parse_back_as_far_as_present) {
    struct cpu_features features = cpu_features_detect();
    for (int i = 0; i < ISA_COUNT; i++) {
        enum isa isa = ISA_COUNT;
        struct error error = {0};
        const char *name = cpu_features_isa_name((enum isa)i);
        enum status status = cpu_features_parse_isa(name, &isa, &error);
        if (i <= (int)cpu_features_best(&features)) {
            cr_assert_eq(status, STATUS_OK);
            cr_assert_eq((int)isa, i);
        } else {
            cr_assert_eq(status, STATUS_BAD_INPUT);
            cr_assert_not_null(strstr(error.text, "this machine has scalar"));
        }
    }
}

Test(cpu_features, unknown_names_list_what_there_is) {
    enum isa isa;
    struct error error;
    cr_assert_eq(cpu_features_parse_isa("avx", &isa, &error), STATUS_BAD_INPUT);
    cr_assert_not_null(strstr(error.text, "'avx'"));
    cr_assert_not_null(strstr(error.text, "scalar"));
    cr_assert_eq(cpu_features_parse_isa("", &isa, &error), STATUS_BAD_INPUT);
}

Test(cpu_features, default_threads_follow_the_affinity_mask) {
    int before = cpu_features_default_threads();
    cr_assert_geq(before, 1);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    cr_assert_eq(cpu_features_default_threads(), 1);
}
