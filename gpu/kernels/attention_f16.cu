/* Attention over pages of f16. */
#include "gpu/kernels/ptx.cuh"
#include "gpu/kernels/attention_paged.cuh"

ATTENTION_KERNELS(attention_prefill_f16, KV_ELEMENT_F16, false)
ATTENTION_KERNELS(attention_decode_f16, KV_ELEMENT_F16, true)
