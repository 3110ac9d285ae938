/* The variants of the ops that the tests compare: those of the tables, best first and scalar last,
 * and before them the AMX kernels over emulated tile registers, which need only AVX-512 and bf16.
 */
#ifndef TESTS_SUPPORT_KERNEL_VARIANTS_H
#define TESTS_SUPPORT_KERNEL_VARIANTS_H

#include "core/kernels/kernels.h"

size_t kernel_variants_linear_count(void);
const struct linear_kernels *kernel_variants_linear_at(size_t index);
size_t kernel_variants_attention_count(void);
const struct attention_kernels *kernel_variants_attention_at(size_t index);

#endif
