/* Reads sched_getaffinity and small files of /sys and /proc. A file that is missing or strange
 * means "no limit": a wrong guess here costs speed, never a result. */
#include "core/base/cpu_affinity.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cpu_affinity_list(int *cpus, int cpus_max) {
    cpu_set_t set[CPU_AFFINITY_MAX / CPU_SETSIZE];
    memset(set, 0, sizeof set);
    int count = 0;
    if (sched_getaffinity(0, sizeof set, set) == 0) {
        for (int cpu = 0; cpu < CPU_AFFINITY_MAX; cpu++) {
            if (!CPU_ISSET_S((size_t)cpu, sizeof set, set))
                continue;
            if (count < cpus_max)
                cpus[count] = cpu;
            count++;
        }
    }
    if (count > 0)
        return count;
    if (cpus_max > 0)
        cpus[0] = 0;
    return 1;
}

/* The first line of a small file, without its newline. */
static bool read_line(const char *path, char *line, size_t line_bytes) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(line, (int)line_bytes, file) != NULL;
    fclose(file);
    if (read)
        line[strcspn(line, "\n")] = '\0';
    return read;
}

static bool parse_count(const char *text, long long *value) {
    char *end;
    *value = strtoll(text, &end, 10);
    return end != text && (*end == '\0' || *end == ' ');
}

static int cpus_of(long long quota_us, long long period_us) {
    if (quota_us <= 0 || period_us <= 0)
        return 0;
    long long cpus = quota_us / period_us + (quota_us % period_us != 0);
    return cpus > INT_MAX ? 0 : (int)cpus;
}

/* Version 2: "cpu.max" holds "<quota|max> <period>". */
static int quota_of_v2(const char *group) {
    char path[PATH_MAX];
    char line[64];
    if (snprintf(path, sizeof path, "%s/cpu.max", group) >= (int)sizeof path ||
        !read_line(path, line, sizeof line))
        return 0;
    long long quota;
    long long period;
    char *space = strchr(line, ' ');
    if (!space || !parse_count(line, &quota) || !parse_count(space + 1, &period))
        return 0;
    return cpus_of(quota, period);
}

/* Version 1: two files; a quota of -1 means none. */
static int quota_of_v1(const char *group) {
    static const char *const names[2] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
    long long values[2];
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        char line[64];
        if (snprintf(path, sizeof path, "%s/%s", group, names[i]) >= (int)sizeof path ||
            !read_line(path, line, sizeof line) || !parse_count(line, &values[i]))
            return 0;
    }
    return cpus_of(values[0], values[1]);
}

static int tighter(int a, int b) {
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

/* The tightest quota from `mount` + `group` up to `mount` itself. In a container the group may be a
 * path of the host that is not visible here: its parents, down to the mount, are. */
static int quota_along(const char *mount, const char *group, int (*quota_of)(const char *group)) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s%s", mount, group) >= (int)sizeof path)
        return 0;
    size_t mount_length = strlen(mount);
    int quota = 0;
    for (;;) {
        quota = tighter(quota, quota_of(path));
        char *slash = strrchr(path + mount_length, '/');
        if (!slash)
            return quota;
        *slash = '\0';
    }
}

/* Whether "cpu" is one of the comma-separated controllers. */
static bool names_cpu(const char *controllers) {
    while (*controllers) {
        size_t length = strcspn(controllers, ",");
        if (length == 3 && memcmp(controllers, "cpu", 3) == 0)
            return true;
        controllers += length + (controllers[length] == ',');
    }
    return false;
}

/* One line of the membership file: "<id>:<controllers>:<group>"; version 2 names no controller. */
static int quota_of_membership(const char *cgroup_root, char *line) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return 0;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (*controllers == '\0')
        return quota_along(cgroup_root, group, quota_of_v2);
    if (!names_cpu(controllers))
        return 0;
    char mount[PATH_MAX];
    if (snprintf(mount, sizeof mount, "%s/%s", cgroup_root, controllers) >= (int)sizeof mount)
        return 0;
    int quota = quota_along(mount, group, quota_of_v1);
    if (quota == 0 && snprintf(mount, sizeof mount, "%s/cpu", cgroup_root) < (int)sizeof mount)
        quota = quota_along(mount, group, quota_of_v1);
    return quota;
}

int cpu_affinity_quota(const char *cgroup_root, const char *membership) {
    FILE *file = fopen(membership, "re");
    if (!file)
        return 0;
    int quota = 0;
    char line[PATH_MAX + 256];
    while (fgets(line, sizeof line, file))
        quota = tighter(quota, quota_of_membership(cgroup_root, line));
    fclose(file);
    return quota;
}

/* Package and core number as one value; false when the kernel does not tell. */
static bool core_of(const char *topology_root, int cpu, long long *core) {
    static const char *const names[2] = {"physical_package_id", "core_id"};
    long long values[2];
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        char line[64];
        if (snprintf(path, sizeof path, "%s/cpu%d/topology/%s", topology_root, cpu, names[i]) >=
                (int)sizeof path ||
            !read_line(path, line, sizeof line) || !parse_count(line, &values[i]))
            return false;
    }
    *core = values[0] * 65536 + values[1];
    return true;
}

static int compare_cores(const void *a, const void *b) {
    long long left = *(const long long *)a;
    long long right = *(const long long *)b;
    return (left > right) - (left < right);
}

int cpu_affinity_cores(const char *topology_root, const int *cpus, int count) {
    long long *cores = malloc((size_t)count * sizeof *cores);
    if (!cores)
        return count;
    int distinct = 0;
    bool told = true;
    for (int i = 0; i < count && told; i++)
        told = core_of(topology_root, cpus[i], &cores[i]);
    if (told) {
        qsort(cores, (size_t)count, sizeof *cores, compare_cores);
        for (int i = 0; i < count; i++)
            distinct += i == 0 || cores[i] != cores[i - 1];
    }
    free(cores);
    return told ? distinct : count;
}
