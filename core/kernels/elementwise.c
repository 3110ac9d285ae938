/* The variants of the element-wise kernels, best first. */
#include "core/kernels/kernels_variants.h"

static const struct elementwise_kernels *const variants[] = {
    &elementwise_avx512,
    &elementwise_avx2,
    &elementwise_scalar,
};

size_t elementwise_variant_count(void) {
    return sizeof variants / sizeof variants[0];
}

const struct elementwise_kernels *elementwise_variant_at(size_t index) {
    return variants[index];
}
