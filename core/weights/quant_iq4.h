/* Reference unpacks of the 4-bit types that index a table of uneven steps.
 * Signature and contract: struct quant_type. */
#ifndef CORE_WEIGHTS_QUANT_IQ4_H
#define CORE_WEIGHTS_QUANT_IQ4_H

#include <stddef.h>

void quant_iq4_nl(const void *blocks, size_t block_count, float *out);
void quant_iq4_xs(const void *blocks, size_t block_count, float *out);

#endif
