/* CPUID says what the CPU has, XGETBV what the kernel saves on a context switch; a feature counts
 * only with both. AMX needs a third thing, the kernel's permission for its large state, asked for
 * here. On other architectures everything is false and the scalar kernels serve. */
#include "core/base/cpu_features.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/cpu_affinity.h"

static const char *const isa_names[ISA_COUNT] = {
    [ISA_SCALAR] = "scalar",
    [ISA_AVX2] = "avx2",
    [ISA_AVX512] = "avx512",
    [ISA_AMX] = "amx",
};

#if defined(__x86_64__)
#include <cpuid.h>

enum { XSTATE_AVX = 0x6, XSTATE_AVX512 = 0xE6, XSTATE_AMX = 0x60000 };
enum { ARCH_PRCTL_REQUEST_PERMISSION = 0x1023, XFEATURE_TILE_DATA = 18 };

struct cpuid_leaf {
    uint32_t eax, ebx, ecx, edx;
};

/* All zero when the CPU has no such leaf. */
static struct cpuid_leaf cpuid_read(uint32_t leaf, uint32_t subleaf) {
    struct cpuid_leaf out = {0};
    if (!__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx))
        return (struct cpuid_leaf){0};
    return out;
}

static bool bit(uint32_t word, int index) {
    return (word >> index & 1) != 0;
}

/* The state components the kernel saves (XCR0); needs OSXSAVE. */
static uint32_t saved_state(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool state_is_saved(uint32_t saved, uint32_t wanted) {
    return (saved & wanted) == wanted;
}

static bool tile_permission(void) {
    return syscall(SYS_arch_prctl, ARCH_PRCTL_REQUEST_PERMISSION, XFEATURE_TILE_DATA) == 0;
}

static bool is_amd(void) {
    struct cpuid_leaf vendor = cpuid_read(0, 0);
    return vendor.ebx == signature_AMD_ebx && vendor.edx == signature_AMD_edx &&
           vendor.ecx == signature_AMD_ecx;
}

static void read_model_name(char *name, size_t name_bytes) {
    if (cpuid_read(0x80000000, 0).eax < 0x80000004)
        return;
    char raw[49] = {0};
    for (uint32_t i = 0; i < 3; i++) {
        struct cpuid_leaf leaf = cpuid_read(0x80000002 + i, 0);
        memcpy(raw + i * sizeof leaf, &leaf, sizeof leaf);
    }
    const char *start = raw + strspn(raw, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ')
        length--;
    if (length >= name_bytes)
        length = name_bytes - 1;
    memcpy(name, start, length);
    name[length] = '\0';
}

static void detect(struct cpu_features *features) {
    read_model_name(features->model_name, sizeof features->model_name);
    struct cpuid_leaf basic = cpuid_read(1, 0);
    enum { FMA = 12, OSXSAVE = 27, F16C = 29 };                                   /* leaf 1, ecx */
    enum { AVX2 = 5, AVX512F = 16, AVX512DQ = 17, AVX512BW = 30, AVX512VL = 31 }; /* leaf 7, ebx */
    enum { AVX512_VNNI = 11 };                                                    /* leaf 7, ecx */
    enum { AMX_BF16 = 22, AMX_TILE = 24, AMX_INT8 = 25 };                         /* leaf 7, edx */
    enum { AVX_VNNI = 4, AVX512_BF16 = 5 }; /* leaf 7.1, eax */
    if (!bit(basic.ecx, OSXSAVE))
        return;
    uint32_t saved = saved_state();
    struct cpuid_leaf wide = cpuid_read(7, 0);
    struct cpuid_leaf wide_more = cpuid_read(7, 1);
    features->avx2 = bit(wide.ebx, AVX2) && bit(basic.ecx, FMA) && bit(basic.ecx, F16C) &&
                     state_is_saved(saved, XSTATE_AVX);
    features->avx_vnni = features->avx2 && bit(wide_more.eax, AVX_VNNI);
    features->avx512 = features->avx2 && bit(wide.ebx, AVX512F) && bit(wide.ebx, AVX512BW) &&
                       bit(wide.ebx, AVX512DQ) && bit(wide.ebx, AVX512VL) &&
                       state_is_saved(saved, XSTATE_AVX512);
    if (!features->avx512)
        return;
    features->avx512_vnni = bit(wide.ecx, AVX512_VNNI);
    features->avx512_bf16 = bit(wide_more.eax, AVX512_BF16);
    /* On every Intel CPU measured so far the instruction is slower than fp32 FMA. */
    features->avx512_bf16_fast = features->avx512_bf16 && is_amd();
    bool tiles = bit(wide.edx, AMX_TILE) && state_is_saved(saved, XSTATE_AMX) && tile_permission();
    features->amx_bf16 = tiles && bit(wide.edx, AMX_BF16) && features->avx512_bf16;
    features->amx_int8 = tiles && bit(wide.edx, AMX_INT8);
}
#else
static void detect(struct cpu_features *features) {
    (void)features;
}
#endif

struct cpu_features cpu_features_detect(void) {
    struct cpu_features features = {.model_name = "unknown"};
    detect(&features);
    return features;
}

void cpu_features_mask(struct cpu_features *features, enum isa isa) {
    if (isa < ISA_AMX)
        features->amx_bf16 = features->amx_int8 = false;
    if (isa < ISA_AVX512) {
        features->avx512 = features->avx512_vnni = false;
        features->avx512_bf16 = features->avx512_bf16_fast = false;
    }
    if (isa < ISA_AVX2)
        features->avx2 = features->avx_vnni = false;
}

enum isa cpu_features_best(const struct cpu_features *features) {
    if (features->amx_bf16)
        return ISA_AMX;
    if (features->avx512)
        return ISA_AVX512;
    return features->avx2 ? ISA_AVX2 : ISA_SCALAR;
}

const char *cpu_features_isa_name(enum isa isa) {
    return (unsigned)isa < ISA_COUNT ? isa_names[isa] : "unknown";
}

static enum status refuse_isa(const char *reason, const char *name, enum isa best,
                              struct error *error) {
    char present[64];
    int used = 0;
    for (int i = 0; i <= (int)best; i++)
        used += snprintf(present + used, sizeof present - (size_t)used, "%s%s", i ? ", " : "",
                         isa_names[i]);
    return error_set(error, STATUS_BAD_INPUT, "%s '%s': this machine has %s", reason, name,
                     present);
}

enum status cpu_features_parse_isa(const char *name, enum isa *isa, struct error *error) {
    struct cpu_features features = cpu_features_detect();
    enum isa best = cpu_features_best(&features);
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(name, isa_names[i]) != 0)
            continue;
        if (i > (int)best)
            return refuse_isa("instruction set not present", name, best, error);
        *isa = (enum isa)i;
        return STATUS_OK;
    }
    return refuse_isa("unknown instruction set", name, best, error);
}

int cpu_features_default_threads(void) {
    int cpus[CPU_AFFINITY_MAX];
    int threads = cpu_affinity_list(cpus, CPU_AFFINITY_MAX);
    if (threads > CPU_AFFINITY_MAX)
        threads = CPU_AFFINITY_MAX;
    int cores = cpu_affinity_cores("/sys/devices/system/cpu", cpus, threads);
    int quota = cpu_affinity_quota("/sys/fs/cgroup", "/proc/self/cgroup");
    if (cores < threads)
        threads = cores;
    if (quota > 0 && quota < threads)
        threads = quota;
    return threads;
}
