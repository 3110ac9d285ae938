/* The variants of the attention kernels, best first. */
#include "core/kernels/kernels_variants.h"

static const struct attention_kernels *const variants[] = {
#if defined(__x86_64__)
    &attention_amx,    &attention_avx512bf16, &attention_avx512, &attention_avx2,
#endif
    &attention_scalar,
};

size_t attention_variant_count(void) {
    return sizeof variants / sizeof variants[0];
}

const struct attention_kernels *attention_variant_at(size_t index) {
    return variants[index];
}
