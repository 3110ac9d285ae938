/* Reference unpacks of the plain types and of the 32-value block types with one fp16 scale (and,
 * for the _1 types, one fp16 minimum). Signature and contract: struct quant_type. */
#ifndef CORE_WEIGHTS_QUANT_SIMPLE_H
#define CORE_WEIGHTS_QUANT_SIMPLE_H

#include <stddef.h>

void quant_simple_f32(const void *blocks, size_t block_count, float *out);
void quant_simple_f16(const void *blocks, size_t block_count, float *out);
void quant_simple_bf16(const void *blocks, size_t block_count, float *out);
void quant_simple_q4_0(const void *blocks, size_t block_count, float *out);
void quant_simple_q4_1(const void *blocks, size_t block_count, float *out);
void quant_simple_q5_0(const void *blocks, size_t block_count, float *out);
void quant_simple_q5_1(const void *blocks, size_t block_count, float *out);
void quant_simple_q8_0(const void *blocks, size_t block_count, float *out);

#endif
