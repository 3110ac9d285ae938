/* What this CPU and kernel can run, detected once, and the narrowing for `--isa`. */
#ifndef CORE_BASE_CPU_FEATURES_H
#define CORE_BASE_CPU_FEATURES_H

#include <stdbool.h>

#include "core/base/error.h"

/* Ordered: a later one includes the earlier ones. */
enum isa { ISA_SCALAR, ISA_AVX2, ISA_AVX512, ISA_AMX, ISA_COUNT };

struct cpu_features {
    bool avx2; /* with FMA and F16C, and the kernel saving the state */
    bool avx_vnni;
    bool avx512; /* F, BW, DQ, VL */
    bool avx512_vnni;
    bool avx512_bf16;
    bool avx512_bf16_fast; /* VDPBF16PS beats fp32 FMA: AMD since Zen 4, no Intel so far */
    bool amx_bf16;         /* with avx512_bf16, and the permission to use tile data was granted */
    bool amx_int8;
    char model_name[64]; /* the CPU's own brand text */
};

/* Detects the features. AMX permission is asked for here, once a process. */
struct cpu_features cpu_features_detect(void);

/* Clears everything wider than `isa`. */
void cpu_features_mask(struct cpu_features *features, enum isa isa);

/* The widest instruction set present. */
enum isa cpu_features_best(const struct cpu_features *features);

const char *cpu_features_isa_name(enum isa isa); /* "scalar", "avx2", "avx512", "amx" */

/* Parses a name of --isa; an unknown one or one this machine lacks is an error that lists what
 * there is. */
enum status cpu_features_parse_isa(const char *name, enum isa *isa, struct error *error);

/* Threads to use by default: min(affinity mask, cgroup CPU quota rounded up, physical cores). */
int cpu_features_default_threads(void);

#endif
