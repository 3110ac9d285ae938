/* Reference unpacks of the K types: 256-value super-blocks with a second level of integer scales.
 * Signature and contract: struct quant_type. */
#ifndef CORE_WEIGHTS_QUANT_K_H
#define CORE_WEIGHTS_QUANT_K_H

#include <stddef.h>

void quant_k_q2(const void *blocks, size_t block_count, float *out);
void quant_k_q3(const void *blocks, size_t block_count, float *out);
void quant_k_q4(const void *blocks, size_t block_count, float *out);
void quant_k_q5(const void *blocks, size_t block_count, float *out);
void quant_k_q6(const void *blocks, size_t block_count, float *out);

#endif
