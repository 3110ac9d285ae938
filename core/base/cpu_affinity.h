/* The CPUs this process may run on, and the share of them a control group grants. Both change with
 * containers and batch systems, so nothing here is cached. */
#ifndef CORE_BASE_CPU_AFFINITY_H
#define CORE_BASE_CPU_AFFINITY_H

/* The most CPUs a Linux kernel can be built for. */
enum { CPU_AFFINITY_MAX = 8192 };

/* Writes the numbers of the CPUs in the calling thread's affinity mask, ascending, at most
 * `cpus_max` of them; returns how many there are in all (≥ 1). */
int cpu_affinity_list(int *cpus, int cpus_max);

/* The cgroup CPU quota in whole CPUs, rounded up, or 0 when there is none. `cgroup_root` is where
 * the hierarchies are mounted ("/sys/fs/cgroup"), `membership` the file that says where this
 * process stands in them ("/proc/self/cgroup"). Version 2 and version 1 are read; the tightest
 * limit between the process's group and the root counts. */
int cpu_affinity_quota(const char *cgroup_root, const char *membership);

/* Distinct physical cores among `cpus`, from `topology_root` ("/sys/devices/system/cpu"); `count`
 * when the topology is not told. */
int cpu_affinity_cores(const char *topology_root, const int *cpus, int count);

#endif
