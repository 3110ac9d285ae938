/* What `sheaf profile` found, as text for a terminal and as JSON (profile.schema.json). */
#ifndef CORE_PROFILE_REPORT_H
#define CORE_PROFILE_REPORT_H

#include "core/base/json.h"
#include "core/profile/rules.h"

struct report {
    const struct facts *facts;
    const struct span_recorder *recorder;
    const struct rules_advice *advice;
    const struct kernels *kernels;
    double drift; /* of the ceilings, from start to end */
    struct machine_others others;
    const char *unreliable; /* why no advice is given, or NULL */
    const char *version, *cpu_name, *isa, *numerics, *model_name;
    double load_seconds;
    uint64_t weight_bytes, scratch_bytes, kv_bytes;
};

/* The name of the kernel path of an op: "attention/avx512-bf16/tile96". */
void report_path(const struct report *report, enum op_site_kind kind, char *path, size_t bytes);
/* The sizes of an op: "576x1920", "9 heads of 64 over 3". */
void report_shape(const struct report *report, enum op_site_kind kind, char *shape, size_t bytes);

bool report_text_write(struct text *out, const struct report *report);
/* NULL: out of memory. */
json_t *report_json(const struct report *report);

#endif
