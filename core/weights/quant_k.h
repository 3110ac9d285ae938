/* Reference unpacks of the K types: 256-value super-blocks with a second level of integer scales.
 * Signature and contract: struct quant_type. */
#ifndef CORE_WEIGHTS_QUANT_K_H
#define CORE_WEIGHTS_QUANT_K_H

#include <stddef.h>
#include <stdint.h>

void quant_k_q2(const void *blocks, size_t block_count, float *out);
void quant_k_q3(const void *blocks, size_t block_count, float *out);
void quant_k_q4(const void *blocks, size_t block_count, float *out);
void quant_k_q5(const void *blocks, size_t block_count, float *out);
void quant_k_q6(const void *blocks, size_t block_count, float *out);

/* The eight 6-bit (scale, minimum) pairs in the 12 `packed` bytes of a Q4_K or Q5_K block. */
void quant_k_scales(const uint8_t *packed, uint8_t scales[8], uint8_t minimums[8]);

/* The sixteen 6-bit scales in the 12 `packed` bytes of a Q3_K block, their offset of 32 removed. */
void quant_k_q3_scales(const uint8_t *packed, int8_t scales[16]);

#endif
