/* Puts the emulated variants before those of the tables. */
#include "tests/support/kernel_variants.h"

extern const struct linear_kernels linear_amx_emulated;
extern const struct attention_kernels attention_amx_emulated;

size_t kernel_variants_linear_count(void) {
    return linear_variant_count() + 1;
}

const struct linear_kernels *kernel_variants_linear_at(size_t index) {
    return index == 0 ? &linear_amx_emulated : linear_variant_at(index - 1);
}

size_t kernel_variants_attention_count(void) {
    return attention_variant_count() + 1;
}

const struct attention_kernels *kernel_variants_attention_at(size_t index) {
    return index == 0 ? &attention_amx_emulated : attention_variant_at(index - 1);
}
