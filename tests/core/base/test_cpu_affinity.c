/* Quotas and topology, read from trees of small files laid out as the kernel does. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cpu_affinity.h"

static char root[] = "/tmp/sheaf-affinity-XXXXXX";

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void setup(void) {
    cr_assert_not_null(mkdtemp(root));
}

static void teardown(void) {
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(cpu_affinity, .init = setup, .fini = teardown);

/* Writes root/name, making the folders on the way. */
static void put(const char *content, const char *name_format, ...) {
    char path[512];
    int length = snprintf(path, sizeof path, "%s/", root);
    va_list arguments;
    va_start(arguments, name_format);
    vsnprintf(path + length, sizeof path - (size_t)length, name_format, arguments);
    va_end(arguments);
    for (char *slash = path + length; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0755);
    }
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fputs(content, file);
    fclose(file);
}

static int quota(void) {
    char membership[512];
    snprintf(membership, sizeof membership, "%s/membership", root);
    return cpu_affinity_quota(root, membership);
}

Test(cpu_affinity, version_2_quotas_are_rounded_up) {
    put("0::/a/b\n", "membership");
    put("150000 100000\n", "a/b/cpu.max");
    cr_assert_eq(quota(), 2);
    put("200000 100000\n", "a/b/cpu.max");
    cr_assert_eq(quota(), 2);
    put("1000 100000\n", "a/b/cpu.max");
    cr_assert_eq(quota(), 1);
}

Test(cpu_affinity, the_tightest_group_on_the_way_up_counts) {
    put("0::/a/b/c\n", "membership");
    put("max 100000\n", "a/b/c/cpu.max");
    put("800000 100000\n", "a/b/cpu.max");
    put("300000 100000\n", "a/cpu.max");
    cr_assert_eq(quota(), 3);
    put("100000 100000\n", "cpu.max");
    cr_assert_eq(quota(), 1);
}

Test(cpu_affinity, a_group_of_the_host_falls_back_to_the_mount) {
    put("0::/system.slice/docker-123.scope\n", "membership");
    put("400000 100000\n", "cpu.max");
    cr_assert_eq(quota(), 4);
}

Test(cpu_affinity, version_1) {
    put("5:cpuset:/x\n4:cpu,cpuacct:/job\n0::/\n", "membership");
    put("250000\n", "cpu,cpuacct/job/cpu.cfs_quota_us");
    put("100000\n", "cpu,cpuacct/job/cpu.cfs_period_us");
    cr_assert_eq(quota(), 3);
    put("-1\n", "cpu,cpuacct/job/cpu.cfs_quota_us");
    cr_assert_eq(quota(), 0);
}

Test(cpu_affinity, strange_or_missing_files_mean_no_limit) {
    cr_assert_eq(quota(), 0);
    put("nonsense\n0::\n:::\n0::/a\n", "membership");
    put("lots 100000\n", "a/cpu.max");
    put("100000\n", "cpu.max");
    cr_assert_eq(quota(), 0);
    put("100000 0\n", "cpu.max");
    cr_assert_eq(quota(), 0);
    put("", "cpu.max");
    cr_assert_eq(quota(), 0);
}

Test(cpu_affinity, hyperthreads_share_a_core) {
    int cpus[8];
    for (int i = 0; i < 8; i++) {
        char number[16];
        cpus[i] = i;
        snprintf(number, sizeof number, "%d\n", i / 4);
        put(number, "cpu%d/topology/physical_package_id", i);
        snprintf(number, sizeof number, "%d\n", i % 2);
        put(number, "cpu%d/topology/core_id", i);
    }
    cr_assert_eq(cpu_affinity_cores(root, cpus, 8), 4);
    cr_assert_eq(cpu_affinity_cores(root, cpus, 3), 2);
    cr_assert_eq(cpu_affinity_cores(root, cpus, 1), 1);
}

Test(cpu_affinity, without_topology_every_cpu_is_a_core) {
    const int cpus[3] = {0, 1, 5};
    cr_assert_eq(cpu_affinity_cores(root, cpus, 3), 3);
}

Test(cpu_affinity, the_list_is_ascending_and_bounded) {
    int cpus[CPU_AFFINITY_MAX];
    int count = cpu_affinity_list(cpus, CPU_AFFINITY_MAX);
    cr_assert_geq(count, 1);
    for (int i = 1; i < count; i++)
        cr_assert_lt(cpus[i - 1], cpus[i]);
    int first[2] = {-1, -1};
    cr_assert_eq(cpu_affinity_list(first, 1), count);
    cr_assert_eq(first[0], cpus[0]);
    cr_assert_eq(first[1], -1);
}
