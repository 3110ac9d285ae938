/* Every variant of every op, defined in <op>_<isa>.c and listed in <op>.c; not for use outside this
 * folder. */
#ifndef CORE_KERNELS_KERNELS_VARIANTS_H
#define CORE_KERNELS_KERNELS_VARIANTS_H

#include "core/kernels/attention_dense.h"
#include "core/kernels/kernels.h"

extern const struct linear_kernels linear_scalar;
extern const struct linear_kernels linear_avx2;
extern const struct linear_kernels linear_avx512;
extern const struct linear_kernels linear_avx512bf16;
extern const struct linear_kernels linear_amx;

extern const struct linear_kernels linear_int8_scalar;
extern const struct linear_kernels linear_int8_avx2;
extern const struct linear_kernels linear_int8_avxvnni;
extern const struct linear_kernels linear_int8_avx512vnni;

extern const struct attention_kernels attention_scalar;
extern const struct attention_kernels attention_avx2;
extern const struct attention_kernels attention_avx512;
extern const struct attention_kernels attention_avx512bf16;
extern const struct attention_kernels attention_amx;

extern const struct attention_dense_kernels attention_dense_scalar;
extern const struct attention_dense_kernels attention_dense_avx2;
extern const struct attention_dense_kernels attention_dense_avx512;

extern const struct elementwise_kernels elementwise_scalar;
extern const struct elementwise_kernels elementwise_avx2;
extern const struct elementwise_kernels elementwise_avx512;

#endif
